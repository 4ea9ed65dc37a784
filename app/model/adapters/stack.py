"""A change on top of a version, as one adapter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.model.adapters.canonical import Adapter, Pair, read_adapter, tensor_names, write_adapter
from app.model.api import Passport

MOST_RANK = 160
"""Of a version. It bounds what serving costs; a sum of more keeps its largest directions."""


def stack(parent: bytes | None, change: bytes, passport: Passport, *, share: float) -> bytes:
    """Return parent + ``share`` (0..1) times change, as canonical bytes.

    A sum of two adapters is one of their joint rank, so what the parent holds is left exactly as it was, and ``share``
    weakens the change only. Past ``MOST_RANK`` the nearest adapter of that rank is taken, module by module.

    Raises: VerificationError if one of them is not an adapter of this base.
    """
    added = read_adapter(change, passport)
    parts = [_products(added, share)]
    if parent is not None:
        parts.insert(0, _products(read_adapter(parent, passport), 1.0))
    names = sorted({name for part in parts for name in part})
    pairs = {name: _sum([part[name] for part in parts if name in part]) for name in names}
    rank = min(MOST_RANK, max(len(pair.down) for pair in pairs.values()))
    strength = np.float32(added.alpha / added.rank)
    tensors = {}
    for name, pair in pairs.items():
        down, up = tensor_names(name)
        fitted = _of_rank(pair, rank)
        tensors[down], tensors[up] = fitted.down, fitted.up / strength
    return write_adapter(tensors, passport, rank=rank, alpha=float(strength) * rank)


def _products(adapter: Adapter, share: float) -> dict[str, Pair]:
    """Return the pairs with their strength worked into ``up``: ΔW = up @ down."""
    strength = np.float32(share * adapter.alpha / adapter.rank)
    return {name: Pair(pair.down, pair.up * strength) for name, pair in adapter.pairs.items()}


def _sum(pairs: Sequence[Pair]) -> Pair:
    return Pair(np.concatenate([pair.down for pair in pairs]), np.concatenate([pair.up for pair in pairs], axis=1))


def _of_rank(pair: Pair, rank: int) -> Pair:
    """Return the same product with zeros up to ``rank``, or the nearest one of that rank (Eckart–Young 1936)."""
    if len(pair.down) > rank:
        left, inner_left = np.linalg.qr(pair.up)
        right, inner_right = np.linalg.qr(pair.down.T)
        u, values, v = np.linalg.svd(inner_left @ inner_right.T, full_matrices=False)
        root = np.sqrt(values[:rank])
        pair = Pair((root[:, None] * v[:rank]) @ right.T, (left @ u[:, :rank]) * root)
    missing = rank - len(pair.down)
    return Pair(np.pad(pair.down, ((0, missing), (0, 0))), np.pad(pair.up, ((0, 0), (0, missing))))
