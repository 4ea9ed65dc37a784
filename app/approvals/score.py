"""How promising a signal is, as a number from 0 to 1.

A logistic score over what was seen, with the cold-start weights below. They are design values, not measured ones:
they hold until enough of the person's own decisions exist to fit better ones. The person decides in any case; the
score only decides whether to ask.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

ASK_FROM = 0.5
"""A card is shown from this score on."""

_BIAS = -1.5
_EXPLICIT_CORRECTION = 2.5
_EDIT = 2.0
_THUMBS = 2.5
_COPIED = 1.0
_COPIED_PART = 0.5
_REGENERATED = -1.0
_KEPT = 1.0
_SAME_QUESTION = -1.5
_THANKS = 1.0
_BUILDS_ON_IT = 0.7

_LEAST_EDIT = 0.02
TOPIC_CHANGE = 0.60
"""An answer changed by more than this is another answer; whether to another question, the words must tell."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen around one answer."""

    corrected: bool = False
    """An explicit correction: "no, it's …"."""
    edited: float = 0.0
    """Share of characters that the person changed, 0..1."""
    thumbs: int = 0
    """1 up, -1 down, 0 none."""
    copied: float = 0.0
    """Share of the answer that was copied, 0..1."""
    regenerated: bool = False
    """Thrown away for another answer."""
    kept: bool = False
    """The answer that was kept after asking again."""
    same_question: bool = False
    """The next message asks the same thing again."""
    thanks: bool = False
    builds_on_it: bool = False
    """The next message takes the answer up."""


def score(seen: Seen) -> float:
    """Return how likely it is that the person would approve, 0..1."""
    total = (
        _BIAS
        + _EXPLICIT_CORRECTION * seen.corrected
        + _EDIT * edit_weight(seen.edited)
        + _THUMBS * seen.thumbs
        + _copied(seen.copied)
        + _REGENERATED * seen.regenerated
        + _KEPT * seen.kept
        + _SAME_QUESTION * seen.same_question
        + _THANKS * seen.thanks
        + _BUILDS_ON_IT * seen.builds_on_it
    )
    return 1.0 / (1.0 + math.exp(-total))


def edit_weight(share: float) -> float:
    """Return how much of the edit weight counts: all of it from 2 % of the characters on, none above 60 %."""
    return 0.0 if share > TOPIC_CHANGE else min(1.0, share / _LEAST_EDIT)


def _copied(share: float) -> float:
    if share <= 0:
        return 0.0
    return _COPIED if share >= 1 else _COPIED_PART
