"""Many short sequences as one row, sharing their common beginning.

All sequences of a job start with the same template block (the system turn). A pack holds that block once, followed by
the rest of each sequence side by side; every token sees the shared block and its own sequence only, and positions count
from the shared block. Plain text, which has no template, stands beside them and sees only itself.
So no token is computed twice and none is padding (attention alone pads, see ``Group``): a batch costs its distinct
tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

NARROWEST = 32
"""Tokens of the narrowest group."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """One tokenised example: ``ids[answer:]`` is the target, end token included."""

    ids: tuple[int, ...]
    answer: int
    plain: bool = False
    """Text without a template: it begins by itself and does not see the shared block."""


@dataclass(frozen=True, slots=True)
class Branch:
    """What one sequence adds to the shared block."""

    ids: tuple[int, ...]
    answer: int
    """Index in ``ids`` of the first target token; at least 1, so that its predecessor is in the branch."""
    plain: bool = False

    @property
    def targets(self) -> tuple[int, ...]:
        """Return the target token ids."""
        return self.ids[self.answer :]


@dataclass(frozen=True, slots=True)
class Group:
    """Branches of similar length for attention: ``count`` of them, padded to ``width`` tokens."""

    count: int
    width: int
    index: Tensor
    """Shape (count · width,): where each token lies in the row; padding repeats its branch's last."""
    bias: Tensor
    """Shape (count, 1, 1, width, shared + width): 0 where a token sees another, −∞ where it does not."""

    @property
    def shared(self) -> int:
        """Return how many tokens the shared block has."""
        return self.bias.shape[-1] - self.width


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything lies in a packed row of T tokens."""

    positions: Tensor
    """Shape (1, T)."""
    groups: tuple[Group, ...]
    places: Tensor
    """Shape (T,): where each token of the row lies in the tokens of all groups."""
    rows: Tensor
    """Shape (L,): packed index of the token that predicts each target, branch after branch."""
    targets: Tensor
    """Shape (L,): the target token ids."""
    lengths: tuple[int, ...]
    """Targets of each branch; they sum to L."""


@dataclass(frozen=True, slots=True)
class _Span:
    """Consecutive tokens of the row that see each other, and the shared block if they are not apart."""

    start: int
    end: int
    apart: bool


def shared_length(sequences: Sequence[Tokens]) -> int:
    """Return how many leading tokens all sequences share, leaving each at least one token before its answer."""
    templated = [sequence for sequence in sequences if not sequence.plain]
    if not templated:
        return 0
    limit = min(sequence.answer for sequence in templated) - 1
    first = templated[0].ids
    for index in range(limit):
        if any(sequence.ids[index] != first[index] for sequence in templated):
            return index
    return limit


def branch(tokens: Tokens, shared: int) -> Branch:
    """Cut the shared block off a sequence that has it."""
    if tokens.plain:
        return Branch(tokens.ids, tokens.answer, plain=True)
    return Branch(tokens.ids[shared:], tokens.answer - shared)


def layout(shared: int, branches: Sequence[Branch]) -> Layout:
    """Lay branches out behind a shared block of ``shared`` tokens."""
    spans = [_Span(0, shared, apart=True)] if shared else []
    positions = [torch.arange(shared)]
    rows: list[int] = []
    start = shared
    for item in branches:
        end = start + len(item.ids)
        spans.append(_Span(start, end, item.plain))
        first = 0 if item.plain else shared
        positions.append(torch.arange(first, first + len(item.ids)))
        rows.extend(range(start + item.answer - 1, end - 1))
        start = end
    groups, places = _groups(spans, shared, start)
    return Layout(
        positions=torch.cat(positions)[None],
        groups=groups,
        places=places,
        rows=torch.tensor(rows),
        targets=torch.tensor([token for item in branches for token in item.targets]),
        lengths=tuple(len(item.targets) for item in branches),
    )


def _groups(spans: Sequence[_Span], shared: int, tokens: int) -> tuple[tuple[Group, ...], Tensor]:
    """Return the spans by width, and where each of the row's tokens lies in them."""
    by_width: dict[int, list[_Span]] = {}
    for span in spans:
        by_width.setdefault(_width(span.end - span.start), []).append(span)
    places = torch.empty(tokens, dtype=torch.long)
    groups: list[Group] = []
    begin = 0
    for width, members in sorted(by_width.items()):
        for span in members:
            places[span.start : span.end] = torch.arange(begin, begin + span.end - span.start)
            begin += width
        groups.append(_group(width, members, shared))
    return tuple(groups), places


def _group(width: int, members: Sequence[_Span], shared: int) -> Group:
    index = torch.stack([torch.arange(s.start, s.start + width).clamp_max(s.end - 1) for s in members])
    # Padding comes last, so that looking back only keeps everybody from seeing it.
    own = torch.ones(width, width, dtype=torch.bool).tril().expand(len(members), -1, -1)
    block = torch.tensor([not s.apart for s in members])[:, None, None].expand(-1, width, shared)
    seen = torch.cat([block, own], dim=2)[:, None, None]
    bias = torch.zeros(seen.shape).masked_fill(~seen, float("-inf"))
    return Group(len(members), width, index.flatten(), bias)


def _width(tokens: int) -> int:
    """Return the width of a span's group: few widths make few groups, and at most half of one is padding."""
    return max(NARROWEST, 1 << (tokens - 1).bit_length())
