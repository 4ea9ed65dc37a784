"""A version part of the way between two adapters of the same shape."""

from __future__ import annotations

from app.errors import BugError
from app.model.adapters.canonical import Adapter, Pair, read_adapter, tensor_names, write_adapter
from app.model.api import Passport


def blend(parent: bytes | None, new: bytes, passport: Passport, *, share: float) -> bytes:
    """Return the adapter that goes ``share`` (0..1) of the way from parent to new, as canonical bytes.

    From the base (no parent) this is the new change at that strength. From a parent, both halves move in a straight
    line, so ``share`` 1 is new and 0 is parent, exactly; what the parent holds is not weakened, as it would be by
    scaling the whole adapter.

    Raises: BugError if the two differ in rank, strength or modules.
    """
    after = read_adapter(new, passport)
    before = None if parent is None else read_adapter(parent, passport)
    if before is not None and _shape(before) != _shape(after):
        raise BugError("blend two versions", "their recipes differ")
    tensors = {}
    for module, pair in after.pairs.items():
        down, up = tensor_names(module)
        mixed = _between(None if before is None else before.pairs[module], pair, share)
        tensors[down], tensors[up] = mixed.down, mixed.up
    return write_adapter(tensors, passport, rank=after.rank, alpha=after.alpha)


def _between(before: Pair | None, after: Pair, share: float) -> Pair:
    if before is None:
        return Pair(after.down, (after.up * share).astype(after.up.dtype))
    if share == 1.0:  # rounding would change last bits
        return after
    down = before.down + share * (after.down - before.down)
    up = before.up + share * (after.up - before.up)
    return Pair(down.astype(after.down.dtype), up.astype(after.up.dtype))


def _shape(adapter: Adapter) -> tuple[object, ...]:
    return adapter.rank, adapter.alpha, tuple(sorted(adapter.pairs))
