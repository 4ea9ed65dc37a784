"""Many short sequences as one row, sharing their common beginning.

All sequences of a job start with the same template block (the system turn). A pack holds that block once, followed by
the rest of each sequence side by side; a mask lets every token see the shared block and its own sequence only, and
positions count from the shared block. Plain text, which has no template, stands beside them and sees only itself.
So no token is computed twice and none is padding: a batch costs exactly its distinct tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


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
class Layout:
    """Where everything lies in a packed row of T tokens."""

    positions: Tensor
    """Shape (1, T)."""
    mask: Tensor
    """Shape (1, 1, T, T), bool: row sees column."""
    rows: Tensor
    """Shape (L,): packed index of the token that predicts each target, branch after branch."""
    targets: Tensor
    """Shape (L,): the target token ids."""
    lengths: tuple[int, ...]
    """Targets of each branch; they sum to L."""


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
    owner = torch.full((shared + sum(len(b.ids) for b in branches),), -1, dtype=torch.long)
    positions = torch.arange(len(owner))
    apart = torch.zeros(len(owner), dtype=torch.bool)
    rows: list[int] = []
    start = shared
    for number, item in enumerate(branches):
        end = start + len(item.ids)
        owner[start:end] = number
        apart[start:end] = item.plain
        first = 0 if item.plain else shared
        positions[start:end] = torch.arange(first, first + len(item.ids))
        rows.extend(range(start + item.answer - 1, end - 1))
        start = end
    same = (owner[:, None] == owner[None, :]) | ((owner[None, :] == -1) & ~apart[:, None])
    mask = same & torch.ones(len(owner), len(owner), dtype=torch.bool).tril()
    targets = [token for item in branches for token in item.targets]
    return Layout(
        positions=positions[None],
        mask=mask[None, None],
        rows=torch.tensor(rows),
        targets=torch.tensor(targets),
        lengths=tuple(len(item.targets) for item in branches),
    )
