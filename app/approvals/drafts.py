"""From a signal to a candidate lesson: what would be learned, and why, in plain words.

Pure: no model, no network, no database. None means that nothing is worth asking about, or that asking would be wrong:
text that holds a secret never becomes a lesson, nor does what will not be true tomorrow. Whether the model knows it
already, and whether an earlier lesson says otherwise, is for others to find out.
"""

from __future__ import annotations

import re

from app.approvals.api import Draft, Signal, SignalKind
from app.approvals.corrections import disagrees, find_correction, thanks
from app.approvals.questions import question_of, subject_of
from app.approvals.score import ASK_FROM, TOPIC_CHANGE, Seen, score
from app.approvals.secrets import contains_secret
from app.approvals.spans import Change, compare
from app.approvals.words import alike, content_words, tidy

LONGEST_CHARS = 4000
"""Of prompt and answer together; more does not fit into one lesson."""

_SAME_QUESTION = 0.85
_SHORT_WORDS = 4

_PASSING = re.compile(
    r"\bwhat(?:'s| is) the (?:time|date|weather|temperature)\b|\bwhat (?:time|day|date) is it\b|\bright now\b|"
    r"\b(?:current|latest|today's|tonight's|tomorrow's|yesterday's) \w+|\b(?:today|tonight|tomorrow|at the moment)\b|"
    r"\bweather (?:like|forecast)\b|\bwho is winning\b",
    re.IGNORECASE,
)

_EVERYWHERE = "in every chat from now on"
_WHY = {
    SignalKind.EDIT: f"You edited my answer. I would answer in your words {_EVERYWHERE}.",
    SignalKind.CORRECTION: f"You corrected my last answer. I would remember it {_EVERYWHERE}.",
    SignalKind.THUMBS_UP: f"You marked this answer as good. I would answer this way {_EVERYWHERE}.",
    SignalKind.REGENERATE_KEPT: f"You asked again and kept this answer. I would answer this way {_EVERYWHERE}.",
    SignalKind.TAUGHT: f"You gave me this to learn. I would remember it {_EVERYWHERE}.",
}
_WHY_TOLD = f"You told me something I did not know. I would remember it {_EVERYWHERE}."


def draft(signal: Signal) -> Draft | None:
    """Return the lesson that a signal suggests, or None. The score is in 0..1."""
    build = _BUILDERS.get(signal.kind)
    found = build(signal) if build else None
    return found if found and _may_be_learned(found) else None


def may_hold(text: str) -> bool:
    """Whether a text may become part of a lesson at all: it says something and holds no secret."""
    return bool(text.strip()) and not contains_secret(text)


def _may_be_learned(found: Draft) -> bool:
    if len(found.prompt) + len(found.answer) > LONGEST_CHARS or found.prompt.strip() == found.answer.strip():
        return False
    return may_hold(found.prompt) and may_hold(found.answer)


def is_passing(prompt: str) -> bool:
    """Whether a question asks for what changes by the day: the time, the weather, the latest of anything."""
    return bool(_PASSING.search(tidy(prompt)))


def _from_edit(signal: Signal) -> Draft | None:
    change = compare(signal.answer, signal.correction)
    if change.empty:
        return None
    worth = score(Seen(edited=_edited_share(signal, change)))
    return _ask(signal, signal.correction.strip(), rejected=signal.answer, worth=worth, changed=change.words)


def _edited_share(signal: Signal, change: Change) -> float:
    """Return the share that counts: a slip of spelling hardly counts, another topic does not count at all."""
    if change.spelling_only:
        return 0.0
    if change.share <= TOPIC_CHANGE:
        return change.share
    return TOPIC_CHANGE if _keeps_to_topic(signal) else 1.0


def _keeps_to_topic(signal: Signal) -> bool:
    """Whether a wholly rewritten answer still answers the question: a short value, or words of the question."""
    if max(len(signal.answer.split()), len(signal.correction.split())) <= _SHORT_WORDS:
        return True
    subject = subject_of(signal.prompt) or ""
    asked = content_words(signal.prompt) | content_words(subject)
    return bool(asked & content_words(signal.correction))


def _from_correction(signal: Signal) -> Draft | None:
    found = find_correction(signal.prompt, signal.answer, signal.correction)
    if found is None or is_passing(signal.prompt) or contains_secret(signal.correction):
        return None
    why = _WHY_TOLD if found.told else _WHY[SignalKind.CORRECTION]
    return Draft(
        prompt=question_of(signal.prompt),
        answer=found.answer,
        rejected=signal.answer,
        why=why,
        score=score(Seen(corrected=True)),
        changed=compare(signal.answer, found.answer).words,
    )


def _from_praise(signal: Signal) -> Draft | None:
    worth = score(Seen(thumbs=1))
    return None if is_passing(signal.prompt) else _ask(signal, signal.answer.strip(), rejected="", worth=worth)


def _from_kept(signal: Signal) -> Draft | None:
    """An answer asked for again and then taken up; the ones thrown away never become part of the lesson."""
    following = signal.correction
    if disagrees(following) or find_correction(signal.prompt, signal.answer, following) or is_passing(signal.prompt):
        return None
    seen = Seen(
        kept=True,
        thanks=thanks(following),
        same_question=alike(signal.prompt, following) > _SAME_QUESTION,
        builds_on_it=bool(content_words(following) & content_words(signal.answer)),
    )
    return _ask(signal, signal.answer.strip(), rejected="", worth=score(seen))


def _from_teaching(signal: Signal) -> Draft | None:
    words = compare(signal.answer, signal.correction).words
    return _ask(signal, signal.correction.strip(), rejected=signal.answer, worth=1.0, changed=words)


def _ask(signal: Signal, answer: str, *, rejected: str, worth: float, changed: tuple[str, ...] = ()) -> Draft | None:
    if worth < ASK_FROM or not answer or not signal.prompt.strip():
        return None
    return Draft(signal.prompt.strip(), answer, rejected, _WHY[signal.kind], worth, changed)


_BUILDERS = {
    SignalKind.EDIT: _from_edit,
    SignalKind.CORRECTION: _from_correction,
    SignalKind.THUMBS_UP: _from_praise,
    SignalKind.REGENERATE_KEPT: _from_kept,
    SignalKind.TAUGHT: _from_teaching,
}
