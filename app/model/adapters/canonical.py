"""The canonical adapter: a safetensors file whose SHA-256 is the identity of what was learned.

Tensors are named as PEFT names them and are 32-bit floats; the metadata binds them to one base. Reading is
verification, in this order, and nothing of a file is used unless every step holds:

(1) the bytes are safetensors, completely and exactly;
(2) the metadata is ours and complete, and names the base it is read for;
(3) every tensor belongs to a module that the base has and that may learn, and each module has both halves;
(4) types and shapes are those of the base, with one rank throughout;
(5) every number is finite;
(6) the change is not zero.

The caller's remaining duty: that the bytes have the hash by which they were asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.errors import VerificationError
from app.model.api import Passport
from app.model.safetensors_file import Array, pack, unpack

FORMAT = "ownmind-adapter-1"
"""NOTE: persisted, do not rename."""
MAX_RANK = 256
MAX_ALPHA = 4096.0

_NAME = re.compile(r"base_model\.model\.(model\.layers\.(\d{1,4})\.(self_attn|mlp)\.(\w+))\.lora_([AB])\.weight")
_PARENTS = {
    "q_proj": "self_attn", "k_proj": "self_attn", "v_proj": "self_attn", "o_proj": "self_attn",
    "gate_proj": "mlp", "up_proj": "mlp", "down_proj": "mlp",
}  # fmt: skip

_UNKNOWN = 0


@dataclass(frozen=True, slots=True)
class Pair:
    """One module's change: ``ΔW = (alpha / rank) · up @ down``. Shapes: down (r, in), up (out, r), float32."""

    down: NDArray[np.float32]
    up: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Adapter:
    """A verified adapter."""

    base: str
    """Passport id."""
    rank: int
    alpha: float
    pairs: Mapping[str, Pair]
    """By module: "model.layers.6.mlp.gate_proj"."""


def read_adapter(data: bytes, passport: Passport, what: str = "adapter") -> Adapter:
    """Return the adapter in canonical bytes; ``what`` names it in errors.

    Raises: VerificationError saying which of the steps above failed.
    """
    tensors, metadata = unpack(data, what)  # (1)
    rank, alpha = _bound(metadata, passport, what)  # (2)
    pairs = {name: Pair(*halves) for name, halves in _halves(tensors, passport, what).items()}  # (3)
    _check_shapes(pairs, rank, passport, what)  # (4)
    if not all(np.isfinite(half).all() for pair in pairs.values() for half in (pair.down, pair.up)):  # (5)
        raise _wrong(what, "It contains numbers that are not finite")
    if not any(np.any(pair.up @ pair.down) for pair in pairs.values()):  # (6)
        raise _wrong(what, "It changes nothing")
    return Adapter(passport.id, rank, alpha, pairs)


def write_adapter(tensors: Mapping[str, Array], passport: Passport, *, rank: int, alpha: float) -> bytes:
    """Return the canonical bytes of tensors named as PEFT names them; the same tensors always give the same bytes.

    Raises: VerificationError if they would not pass ``read_adapter``.
    """
    data = canonical_bytes(tensors, passport.id, rank=rank, alpha=alpha)
    read_adapter(data, passport, "trained adapter")
    return data


def canonical_bytes(tensors: Mapping[str, Array], base: str, *, rank: int, alpha: float) -> bytes:
    """Return what ``write_adapter`` returns, unchecked; ``base`` is a passport id."""
    floats = {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in tensors.items()}
    return pack(floats, {"format": FORMAT, "base": base, "rank": str(rank), "alpha": repr(float(alpha))})


def tensor_names(module: str) -> tuple[str, str]:
    """Return what PEFT calls the two halves of a module's change: down, up."""
    return f"base_model.model.{module}.lora_A.weight", f"base_model.model.{module}.lora_B.weight"


def _bound(metadata: Mapping[str, str], passport: Passport, what: str) -> tuple[int, float]:
    if metadata.get("format") != FORMAT:
        raise _wrong(what, "It is not an adapter of Ownmind")
    if metadata.get("base") != passport.id:
        raise _wrong(what, f"It was made for another model than {passport.name}")
    try:
        rank, alpha = int(metadata["rank"]), float(metadata["alpha"])
    except (KeyError, ValueError) as error:
        raise _wrong(what, "It does not state its rank and strength") from error
    if not 1 <= rank <= MAX_RANK or not 0 < alpha <= MAX_ALPHA:
        raise _wrong(what, "Its rank or strength is out of bounds")
    return rank, alpha


def _halves(tensors: Mapping[str, Array], passport: Passport, what: str) -> dict[str, tuple[Array, Array]]:
    found: dict[str, dict[str, Array]] = {}
    for name, array in tensors.items():
        match = _NAME.fullmatch(name)
        if match is None:
            raise _wrong(what, "It contains something that is not an adapter's")
        module, layer, parent, kind, half = match.groups()
        known = int(layer) < passport.layers and str(int(layer)) == layer and _PARENTS.get(kind) == parent
        if not known or kind not in passport.adaptable:
            raise _wrong(what, "It changes a part that the model lacks or that must not change")
        if array.dtype != np.float32:
            raise _wrong(what, "Its numbers are not 32-bit floats")
        found.setdefault(module, {})[half] = array
    if not found or any(len(halves) != 2 for halves in found.values()):  # noqa: PLR2004 - both halves
        raise _wrong(what, "One half of a change is missing")
    return {module: (halves["A"], halves["B"]) for module, halves in sorted(found.items())}


def _check_shapes(pairs: Mapping[str, Pair], rank: int, passport: Passport, what: str) -> None:
    inner: set[int] = set()
    for module, pair in pairs.items():
        if pair.down.ndim != 2 or pair.up.ndim != 2 or pair.down.shape[0] != rank or pair.up.shape[1] != rank:  # noqa: PLR2004
            raise _wrong(what, "Its parts do not have the rank it states")
        wanted = _sizes(module.rpartition(".")[2], passport)
        for size, expected in zip((pair.down.shape[1], pair.up.shape[0]), wanted, strict=True):
            if expected == _UNKNOWN:
                inner.add(size)
            elif size != expected:
                raise _wrong(what, "Its parts do not have the sizes of the model")
    if len(inner) > 1:
        raise _wrong(what, "Its parts do not have the sizes of the model")


def _sizes(kind: str, passport: Passport) -> tuple[int, int]:
    """Return inputs and outputs of a module; the inner width of an MLP is not part of a passport."""
    hidden = passport.hidden
    values = hidden // passport.heads * passport.kv_heads
    return {
        "q_proj": (hidden, hidden),
        "k_proj": (hidden, values),
        "v_proj": (hidden, values),
        "o_proj": (hidden, hidden),
        "gate_proj": (hidden, _UNKNOWN),
        "up_proj": (hidden, _UNKNOWN),
        "down_proj": (_UNKNOWN, hidden),
    }[kind]


def _wrong(what: str, reason: str) -> VerificationError:
    return VerificationError("use an adapter", what, f"{reason}. Nothing of it was used.")
