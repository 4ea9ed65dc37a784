"""Which sequences of an evaluation go through the model together. Pure; knows tokens and limits only.

A runtime's kernels may round differently when a batch is composed differently. So the plan is a function of the items
and the limits alone, in the order of the items: whatever was asked before, or is asked beside, the same items go
through in the same company, at the same places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MIN_SHARED_TOKENS = 4
"""A shorter common beginning is not worth a decode of its own."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one group may hold."""

    cells: int
    """Tokens remembered together, without the shared beginning. Every token looks at all of them, so more is slower."""
    sequences: int


@dataclass(frozen=True, slots=True)
class Need:
    """What one item takes."""

    tokens: tuple[int, ...]
    """Input, the shared beginning included."""
    first_output: int
    """Position of the first input token whose logits are wanted; no shared beginning may reach it."""
    grows: int = 0
    """Tokens that may be added while it is evaluated."""


def shared_beginning(needs: Sequence[Need]) -> int:
    """Return how many leading tokens all inputs have in common and no output needs, or 0 if it is not worth it."""
    if len(needs) < 2:  # noqa: PLR2004 - alone, nothing is shared
        return 0
    length = min(need.first_output for need in needs)
    first = needs[0].tokens
    for need in needs[1:]:
        while need.tokens[:length] != first[:length]:
            length -= 1
    return length if length >= MIN_SHARED_TOKENS else 0


def plan(needs: Sequence[Need], limits: Limits, *, shared: int) -> list[list[int]]:
    """Return groups of indices, in order, of about the same size. An item that exceeds the limits goes alone."""
    groups = _filled(needs, limits, shared)
    if len(groups) < 2:  # noqa: PLR2004 - nothing to even out
        return groups
    even = -(-len(needs) // len(groups))
    return _filled(needs, Limits(limits.cells, min(even, limits.sequences)), shared)


def _filled(needs: Sequence[Need], limits: Limits, shared: int) -> list[list[int]]:
    groups: list[list[int]] = []
    cells = 0
    for index, need in enumerate(needs):
        own = len(need.tokens) - shared + need.grows
        if not groups or len(groups[-1]) >= limits.sequences or cells + own > limits.cells:
            groups.append([])
            cells = 0
        groups[-1].append(index)
        cells += own
    return groups
