"""What an approval card says in each state of its life: words and actions, no Qt.

A card says what was noticed, what would change, and how to take it back. Numbers with units appear only among the
details ("What was checked"). The widget shows a ``Face``; everything that decides about words is here, where it can be
tested without a window.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from app.approvals.api import ProposalState
from app.errors import ErrorInfo
from app.learning.api import CardView
from app.model.api import Check, Outcome

TYPICAL_SECONDS = 40.0
"""Shown before approval while the app has no estimate of its own."""

MAX_TITLE = 64
"""Characters of a question that a title quotes."""

_S = ProposalState
RUNNING = frozenset({_S.APPROVED, _S.QUEUED, _S.TRAINING, _S.GATING, _S.COMMITTED, _S.ACTIVE})
STOPPABLE = frozenset({_S.APPROVED, _S.QUEUED, _S.TRAINING, _S.GATING})
"""From COMMITTED on the lesson is in the lineage: it is taken back by Undo, not by Stop."""

_STAGE_WORDS = {
    _S.APPROVED: "waiting its turn",
    _S.QUEUED: "waiting its turn",
    _S.TRAINING: "learning",
    _S.GATING: "checking",
    _S.COMMITTED: "taking it into use",
    _S.ACTIVE: "checking once more in use",
}

_PLAIN_RULES = frozenset({"efficacy", "held_out", "locality", "earlier"})
"""Checks that say something to anyone; the others are shown under "What was checked", or when they failed."""


class Tone(StrEnum):
    """The colour of the card's edge, always together with words that say the same."""

    ACCENT = "accent"
    WARN = "warn"
    BAD = "bad"
    QUIET = "quiet"


class Act(StrEnum):
    """What a button of the card does."""

    LEARN = "learn"
    REPLACE = "replace"
    KEEP_BOTH = "keep_both"
    WORDING = "wording"
    NOT_NOW = "not_now"
    NEVER = "never"
    REOPEN = "reopen"
    """Show a declined card's conflict again, since it cannot be learned without a choice."""
    STOP = "stop"
    UNDO = "undo"
    USE_AGAIN = "use_again"
    TRY_AGAIN = "try_again"
    DETAILS = "details"


class Weight(StrEnum):
    """How much a button stands out."""

    PRIMARY = "primary"
    NORMAL = "normal"
    TEXT = "text"
    MENU = "menu"
    """Only in the card's menu."""


@dataclass(frozen=True, slots=True)
class Action:
    """One button."""

    act: Act
    label: str
    weight: Weight = Weight.NORMAL


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the checks: what, and its result in a word or, among the details, in numbers."""

    words: str
    result: str
    tone: Tone
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Face:
    """All that a card shows, apart from the moving progress."""

    title: str
    body: str = ""
    note: str = ""
    """A second, quieter sentence: the lock, or advice after a rejection."""
    tone: Tone = Tone.ACCENT
    lesson: bool = False
    conflict: bool = False
    running: bool = False
    rows: tuple[Row, ...] = ()
    actions: tuple[Action, ...] = ()
    aside: str = ""
    """Secondary text at the right end of the buttons."""
    line: bool = False
    """Shown as one quiet line instead of a card."""


def face(card: CardView, *, locked: bool = False, reopened: bool = False, detailed: bool = False) -> Face:
    """Return what ``card`` shows.

    Args:
        card: The card as it stands.
        locked: Whether learning is locked; asking stays possible, and the card says how to unlock.
        reopened: Whether the person took a declined card up again.
        detailed: Whether "What was checked" is open.
    """
    state = card.state
    if state is _S.SURFACED or (state is _S.DECLINED and reopened):
        return _surfaced(card, locked=locked)
    if state in RUNNING:
        return _running(card)
    if state is _S.PROVEN:
        return _proven(card, detailed=detailed)
    if state is _S.REJECTED:
        return _rejected(card, detailed=detailed)
    return _ended(card)


def _surfaced(card: CardView, *, locked: bool) -> Face:
    choices: tuple[Action, ...]
    if card.conflict is None:
        choices = (Action(Act.LEARN, "Learn it", Weight.PRIMARY), _WORDING, _NOT_NOW)
    else:
        replace = Action(Act.REPLACE, "Replace it", Weight.PRIMARY)
        keep = Action(Act.KEEP_BOTH, "Keep both")
        choices = (replace, keep, _WORDING, Action(Act.NOT_NOW, "Cancel", Weight.TEXT))
    return Face(
        title="Shall I learn this?",
        body=_noticed(card.why),
        note=_surfaced_note(card, locked=locked),
        lesson=True,
        conflict=card.conflict is not None,
        actions=(*choices, Action(Act.NEVER, "Never for this", Weight.MENU)),
        aside=f"about {duration(card.seconds_left or TYPICAL_SECONDS)}, you can keep chatting",
    )


def _noticed(why: str) -> str:
    """Return what was noticed, what would change unless ``why`` says it already, and how to take it back."""
    change = "" if "from now on" in why else "I would remember it in every chat from now on."
    return " ".join(filter(None, (_sentence(why), change, "You can take it back at any time.")))


def _surfaced_note(card: CardView, *, locked: bool) -> str:
    if locked:
        name = "“Learn it”" if card.conflict is None else "Choosing"
        return f"Learning is locked. {name} shows how to unlock it; until then this waits here."
    return ""


def _running(card: CardView) -> Face:
    stoppable = card.state in STOPPABLE
    ahead = "Nothing changes until the checks have passed."
    return Face(
        title=f"Learning: {subject(card)}",
        body=f"You can keep chatting. {ahead if stoppable else 'The checks have passed.'}",
        running=True,
        actions=(Action(Act.STOP, "Stop"),) if stoppable else (),
        aside=progress_words(card),
    )


def progress_words(card: CardView) -> str:
    """Return "checking · about 4 seconds left", from what is known."""
    stage = card.stage or _STAGE_WORDS.get(card.state, "")
    if card.seconds_left <= 0:
        return stage
    return f"{stage} · about {duration(card.seconds_left)} left"


def _proven(card: CardView, *, detailed: bool) -> Face:
    undo = (Action(Act.UNDO, "Undo"),) if card.can_undo else ()
    return Face(
        title=card.title or f"Learned: {subject(card)}",
        body=card.outcome_words or _in_use(card),
        rows=check_rows(card.checks, detailed=detailed),
        actions=(*undo, *_details_action(card, detailed=detailed)),
        aside=seconds_words(card.seconds),
    )


def _in_use(card: CardView) -> str:
    return "It is in use." if card.version is None else f"Version {card.version} is in use."


def _rejected(card: CardView, *, detailed: bool) -> Face:
    unsure = is_inconclusive(card)
    fallback = "The checks could not tell whether it helped." if unsure else "The checks did not pass."
    return Face(
        title=_not_learned(card),
        body=f"{_sentence(card.outcome_words or fallback)} Nothing was changed.",
        note=" ".join(filter(None, (_ADVICE.get(item, "") for item in card.suggestions))),
        tone=Tone.WARN if unsure else Tone.BAD,
        rows=check_rows(card.checks, detailed=detailed),
        actions=(_WORDING, *_details_action(card, detailed=detailed)),
        aside=seconds_words(card.seconds),
    )


def is_inconclusive(card: CardView) -> bool:
    """Return whether the checks were unsure rather than against it."""
    outcomes = {check.outcome for check in card.checks}
    return Outcome.INCONCLUSIVE in outcomes and Outcome.REJECT not in outcomes


def _not_learned(card: CardView) -> str:
    if card.title and not card.title.startswith("Learned"):
        return card.title
    return f"Not learned: {subject(card)}"


_ADVICE = {
    "rephrase": "Other words may work.",
    "examples": "It also helps to correct me once more when the same thing comes up.",
}
"""Suggestions of the gate in words. "retrieval" has none yet: nothing is offered that the app cannot do."""


def _ended(card: CardView) -> Face:
    state = card.state
    if state is _S.UNDONE:
        return _undone(card)
    if state is _S.FAILED:
        return _failed(card)
    if state is _S.CANCELLED:
        again = Action(Act.TRY_AGAIN, "Try again", Weight.TEXT)
        return _line(f"Stopped, nothing was changed: {subject(card)}", again)
    if state is _S.DECLINED:
        act = Act.LEARN if card.conflict is None else Act.REOPEN
        return _line(f"Not learned: {subject(card)}", Action(act, "Learn it after all", Weight.TEXT))
    if state is _S.EXPIRED:
        return _line(f"No longer offered: {subject(card)}")
    return _line(f"Replaced by a newer suggestion: {subject(card)}")


def _undone(card: CardView) -> Face:
    known = card.title.removeprefix("Learned: ") if card.title.startswith("Learned: ") else subject(card)
    return Face(
        title=f"Taken back: {known}",
        body=card.outcome_words or "The version from before this lesson is in use again, exactly as it was.",
        tone=Tone.QUIET,
        actions=(Action(Act.USE_AGAIN, "Use it again"),),
    )


def _failed(card: CardView) -> Face:
    error = card.error
    retry = error is None or error.retryable
    action = Action(Act.TRY_AGAIN, "Try again") if retry else _WORDING
    return Face(
        title=f"Could not learn: {subject(card)}",
        body=f"{problem_words(error)} Nothing was changed.",
        tone=Tone.BAD,
        actions=(action,),
    )


def problem_words(error: ErrorInfo | None) -> str:
    """Return what failed and what helps, as sentences."""
    if error is None:
        return "Something went wrong on the way."
    what = f"{error.what}: {error.subject}" if error.subject else error.what
    return " ".join(filter(None, (_sentence(what), _sentence(error.hint))))


def _line(title: str, *actions: Action) -> Face:
    return Face(title=title, tone=Tone.QUIET, actions=actions, line=True)


_WORDING = Action(Act.WORDING, "Change wording")
_NOT_NOW = Action(Act.NOT_NOW, "Not now", Weight.TEXT)


def _details_action(card: CardView, *, detailed: bool) -> tuple[Action, ...]:
    if not card.checks:
        return ()
    return (Action(Act.DETAILS, "Hide what was checked" if detailed else "What was checked", Weight.TEXT),)


# --- checks ---------------------------------------------------------------------------------------------------------

_RESULTS = {
    Outcome.ACCEPT: ("passed", Tone.ACCENT),
    Outcome.REJECT: ("not passed", Tone.BAD),
    Outcome.INCONCLUSIVE: ("not sure", Tone.WARN),
}


def check_rows(checks: tuple[Check, ...], *, detailed: bool) -> tuple[Row, ...]:
    """Return the lines to show: the plain checks and whatever did not pass, or all of them with numbers."""
    shown = [check for check in checks if detailed or _is_plain(check) or check.outcome is not Outcome.ACCEPT]
    return tuple(_row(check, detailed=detailed) for check in shown)


def _is_plain(check: Check) -> bool:
    return check.rule in _PLAIN_RULES and check.unit != "nats"


def _row(check: Check, *, detailed: bool) -> Row:
    word, tone = _RESULTS[check.outcome]
    result = f"{word} · {measured(check)}" if detailed else word
    return Row(check.words, result, tone, check.details if detailed else ())


def measured(check: Check) -> str:
    """Return "0.002 (limit 0.010)", with the unit where there is one."""
    whole = float(check.value).is_integer() and float(check.limit).is_integer()
    unit = f" {check.unit}" if check.unit else ""
    return f"{_number(check.value, whole=whole)}{unit} (limit {_number(check.limit, whole=whole)})"


def _number(value: float, *, whole: bool) -> str:
    if not math.isfinite(value):
        return "too large to say"
    if whole:
        return f"{value:.0f}"
    return f"{value:.3f}" if value == 0 or abs(value) >= 0.0005 else f"{value:.1e}"


# --- words ----------------------------------------------------------------------------------------------------------


def subject(card: CardView) -> str:
    """Return what the card is about in one short line: the question, shortened."""
    return shorten(card.prompt)


def shorten(text: str, limit: int = MAX_TITLE) -> str:
    """Return ``text`` in one line of at most ``limit`` characters, cut between words where possible."""
    flat = " ".join(text.split())
    if len(flat) <= limit:
        return flat
    cut = flat[: limit - 1]
    head = cut.rsplit(" ", 1)[0] if " " in cut[limit // 2 :] else cut
    return f"{head.rstrip(' ,.;:')}…"


def duration(seconds: float) -> str:
    """Return a time in words: "4 seconds", "2 minutes"."""
    whole = max(1, round(seconds))
    if whole < 90:
        return "1 second" if whole == 1 else f"{whole} seconds"
    return f"{round(whole / 60)} minutes"


def seconds_words(seconds: float) -> str:
    """Return how long something took, "11.4 seconds", or "" if unknown."""
    if seconds <= 0:
        return ""
    return f"{seconds:.1f} seconds" if seconds < 90 else duration(seconds)


def _sentence(text: str) -> str:
    """Return ``text`` starting with a capital and ending with a stop."""
    flat = text.strip()
    if not flat:
        return ""
    ended = flat if flat[-1] in ".!?…" else f"{flat}."
    return ended[0].upper() + ended[1:]
