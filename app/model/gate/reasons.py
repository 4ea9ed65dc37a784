"""Why a lesson was not accepted, and what can be done, in the person's terms. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from app.model.api import Check, Exam, Outcome
from app.model.gate import text
from app.model.gate.plan import asked
from app.model.gate.rules import Change

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_SUGGESTIONS = {
    "efficacy": ("rephrase", "examples", "retrieval"),
    "held_out": ("examples", "rephrase", "retrieval"),
    "locality": ("rephrase", "examples", "retrieval"),
    "retention_parent": ("retrieval", "examples"),
    "retention_base": ("retrieval",),
    "earlier": ("examples", "retrieval"),
    "safety": ("rephrase", "retrieval"),
    "norm": ("rephrase", "retrieval"),
    "degeneration": ("examples", "retrieval"),
}
_QUOTED_CHARACTERS = 60


def reason(exam: Exam, checks: Sequence[Check], changes: Sequence[Change]) -> str:
    """Return one plain sentence on the first rule that did not accept, or "" if all did."""
    check = blocking(checks)
    if check is None:
        return ""
    if check.outcome is Outcome.INCONCLUSIVE:
        return "It could not be shown that this leaves everything else as it is."
    if check.rule == "locality":
        return _locality(exam, changes, check)
    if check.rule == "held_out":
        return f"It said this for only {int(check.value)} {check.unit} other wordings."
    if check.rule == "earlier":
        return f"It would have forgotten {_lessons(int(check.value))}."
    return _SENTENCES[check.rule]


_SENTENCES = {
    "efficacy": "It did not say this even when asked in the same words.",
    "retention_parent": "It would have become worse at general text.",
    "retention_base": "Together with earlier lessons, it would have become worse at general text.",
    "safety": "It would have changed how it answers harmful requests or questions about itself.",
    "norm": "The change to the model would have been larger than you allow.",
    "degeneration": "Its answers in general would have become worse.",
}


def suggestions(checks: Sequence[Check]) -> tuple[str, ...]:
    """Return what can be done, most promising first; nothing when all rules accepted."""
    check = blocking(checks)
    return () if check is None else _SUGGESTIONS[check.rule]


def blocking(checks: Sequence[Check]) -> Check | None:
    """Return the check that decided: the first rejection, else the first open one, else None."""
    for outcome in (Outcome.REJECT, Outcome.INCONCLUSIVE):
        for check in checks:
            if check.outcome is outcome:
                return check
    return None


def names(exam: Exam, neighbours: Sequence[str], *, count: int = 3) -> tuple[str, ...]:
    """Return what near questions are about and the lesson is not: "cat", "sister", "hamster"."""
    own = text.content(asked(exam.prompt))
    found: list[str] = []
    for prompt in neighbours:
        other = next((word for word in _spelled(prompt) if word.casefold() not in own), None)
        if other is not None and other.casefold() not in {word.casefold() for word in found}:
            found.append(other)
    return tuple(found[:count])


def _spelled(prompt: str) -> list[str]:
    """Return the content words of a question as the person would write them."""
    about = text.content(prompt)
    spelled = [token.strip(".,;:!?\"'()“”‘’") for token in prompt.split()]
    plain = [token.removesuffix("'s").removesuffix("\u2019s") for token in spelled]
    return [token for token in plain if token.casefold() in about]


def _locality(exam: Exam, changes: Sequence[Change], check: Check) -> str:
    leaks = [change for change in changes if change.leak]
    if leaks:
        return (
            f"It would also have said “{_short(leaks[0].leak or '')}” to other questions, "
            f"such as “{_short(leaks[0].prompt)}”."
        )
    if not changes:
        return f"It would have moved its answers to similar questions too far ({check.value:.2f} {check.unit})."
    return f"It would have changed {_others(exam, changes)}."


def _others(exam: Exam, changes: Sequence[Change]) -> str:
    """Return "three other capitals" where the questions share a subject, else name one of them."""
    own = text.words(asked(exam.prompt))
    shared = frozenset.intersection(*(text.content(change.prompt) for change in changes)) & text.content(" ".join(own))
    number = _NUMBERS[len(changes)] if len(changes) < len(_NUMBERS) else str(len(changes))
    noun = next((word for word in own if word in shared and word.isalpha()), None)
    if noun is not None:
        return f"{number} other {noun if len(changes) == 1 else _plural(noun)}"
    if len(changes) == 1:
        return f"the answer to “{_short(changes[0].prompt)}”"
    return f"the answers to {number} other questions, such as “{_short(changes[0].prompt)}”"


def _lessons(count: int) -> str:
    number = _NUMBERS[count] if count < len(_NUMBERS) else str(count)
    return f"{number} earlier lesson{'' if count == 1 else 's'}"


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def _short(prompt: str) -> str:
    return prompt if len(prompt) <= _QUOTED_CHARACTERS else f"{prompt[: _QUOTED_CHARACTERS - 1].rstrip()}…"
