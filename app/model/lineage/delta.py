"""Whether the bytes of an adapter are what they claim to be, before they become a version.

The canonical form is one safetensors file: pairs ``base_model.model.model.layers.N.<module>.lora_A.weight`` (r, in)
and ``.lora_B.weight`` (out, r), float32, and in the header's metadata ``format``, ``base``, ``rank`` and ``alpha``.
This module trusts neither the header nor the numbers; it knows no model and no runtime.
"""

from __future__ import annotations

import json
import math
import re
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from app.errors import KnownError, VerificationError

FORMAT = "ownmind-adapter-1"

_NAME = re.compile(r"base_model\.model\.(model\.layers\.\d+\.[a-z_]+(?:\.[a-z_]+)*)\.lora_([AB])\.weight")
_LENGTH_BYTES = 8

Tensors = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class DeltaInfo:
    """What an adapter says about itself, after checking that it is so."""

    base: str
    """Passport id."""
    rank: int
    alpha: float
    modules: tuple[str, ...]
    """Written modules, sorted: "model.layers.6.mlp.gate_proj"."""


def check_delta(data: bytes, base: str) -> DeltaInfo:
    """Check the bytes of a canonical adapter against this base and return what it is.

    (1) It is one whole safetensors file, (2) of our format, (3) for this base; (4) it holds complete A/B pairs of
    float32 and nothing else, (5) with the rank it states; (6) every number is finite, (7) and it changes something.

    Raises: VerificationError for 1-5: it is not what it claims. KnownError for 6 and 7: the training went wrong.
    """
    try:
        tensors: Tensors = load(data)  # (1)
        metadata = _metadata(data)
    except (SafetensorError, ValueError, KeyError, struct.error) as error:
        raise _not_ours("It is not a whole safetensors file.") from error
    if metadata.get("format") != FORMAT:  # (2)
        raise _not_ours("It is not in Ownmind's adapter format.")
    if metadata.get("base") != base:  # (3)
        raise _not_ours("It was made for another base model.")
    info = DeltaInfo(base, _positive_int(metadata, "rank"), _positive(metadata, "alpha"), _modules(tensors))  # (4)
    for module in info.modules:
        _check_pair(tensors, module, info.rank)  # (4) (5)
    _check_numbers(tensors, info)  # (6) (7)
    return info


def _metadata(data: bytes) -> dict[str, str]:
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[_LENGTH_BYTES : _LENGTH_BYTES + length])
    metadata: dict[str, str] = header.get("__metadata__", {})
    return metadata


def _positive(metadata: dict[str, str], name: str) -> float:
    try:
        value = float(metadata[name])
    except (KeyError, ValueError) as error:
        raise _not_ours(f"It does not state its {name}.") from error
    if not math.isfinite(value) or value <= 0:
        raise _not_ours(f"Its {name} is not a positive number.")
    return value


def _positive_int(metadata: dict[str, str], name: str) -> int:
    value = _positive(metadata, name)
    if not value.is_integer():
        raise _not_ours(f"Its {name} is not a whole number.")
    return int(value)


def _modules(tensors: Tensors) -> tuple[str, ...]:
    halves: dict[str, set[str]] = {}
    for name in tensors:
        found = _NAME.fullmatch(name)
        if found is None:
            raise _not_ours("It holds a tensor that no adapter has.")
        halves.setdefault(found[1], set()).add(found[2])
    if not halves or any(half != {"A", "B"} for half in halves.values()):
        raise _not_ours("One of its tensors is missing.")
    return tuple(sorted(halves))


def _pair(tensors: Tensors, module: str) -> tuple[NDArray[Any], NDArray[Any]]:
    prefix = f"base_model.model.{module}"
    return tensors[f"{prefix}.lora_A.weight"], tensors[f"{prefix}.lora_B.weight"]


def _check_pair(tensors: Tensors, module: str, rank: int) -> None:
    down, up = _pair(tensors, module)  # Shapes: (r, in), (out, r)
    if down.dtype != np.float32 or up.dtype != np.float32:
        raise _not_ours("Its numbers are not 32-bit floats.")
    if down.ndim != 2 or up.ndim != 2 or down.shape[0] != rank or up.shape[1] != rank:  # noqa: PLR2004 - matrices
        raise _not_ours(f"Its tensors do not have the rank {rank} that it states.")


def _check_numbers(tensors: Tensors, info: DeltaInfo) -> None:
    if not all(np.isfinite(tensor).all() for tensor in tensors.values()):
        raise _useless("It holds numbers that are not finite. Nothing was changed; the old version stays in use.")
    pairs = (_pair(tensors, module) for module in info.modules)
    if not any(down.any() and up.any() for down, up in pairs):
        raise _useless("It would change nothing. The old version stays in use.")


def _not_ours(hint: str) -> VerificationError:
    return VerificationError("accept an adapter", "the trained change", hint)


def _useless(hint: str) -> KnownError:
    return KnownError("accept an adapter", "the trained change", hint, retryable=False)
