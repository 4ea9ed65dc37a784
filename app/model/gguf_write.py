"""Writes GGUF files: same input, same bytes. Knows the format, not what a model is."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.model.gguf_check import DEFAULT_ALIGNMENT, MAGIC, STRING, VERSION, padded

F32, F16 = 0, 1
_UINT32, _FLOAT32 = 4, 6
_DTYPES: Mapping[int, np.dtype[Any]] = {F32: np.dtype("<f4"), F16: np.dtype("<f2")}


@dataclass(frozen=True, slots=True)
class TensorPlan:
    """A tensor to come."""

    name: str
    shape: tuple[int, ...]
    """Rows first."""
    kind: int
    """``F32`` or ``F16``."""

    @property
    def size(self) -> int:
        """Return its bytes, without padding."""
        return prod(self.shape) * _DTYPES[self.kind].itemsize


def text_value(text: str) -> bytes:
    """Return a string value as it stands in a file."""
    return struct.pack("<I", STRING) + _text(text)


def uint32_value(number: int) -> bytes:
    """Return an unsigned value as it stands in a file."""
    return struct.pack("<II", _UINT32, number)


def float32_value(number: float) -> bytes:
    """Return a float value as it stands in a file."""
    return struct.pack("<If", _FLOAT32, number)


def write_gguf(
    write: Callable[[bytes], object],
    metadata: Mapping[str, bytes],
    plans: Sequence[TensorPlan],
    arrays: Iterable[NDArray[np.floating]],
) -> None:
    """Write a file: its values in the order given, then ``arrays``, which match ``plans`` one for one.

    Arrays are taken one at a time, so that a model never has to fit into memory twice.
    """
    head = _head(metadata, plans)
    write(head)
    for plan, array in zip(plans, arrays, strict=True):
        if array.shape != plan.shape:
            raise ValueError(f"{plan.name}: {array.shape} instead of {plan.shape}")
        write(np.ascontiguousarray(array, dtype=_DTYPES[plan.kind]).tobytes())
        write(bytes(padded(plan.size, DEFAULT_ALIGNMENT) - plan.size))


def _head(metadata: Mapping[str, bytes], plans: Sequence[TensorPlan]) -> bytes:
    parts = [MAGIC, struct.pack("<IQQ", VERSION, len(plans), len(metadata))]
    parts += [_text(key) + value for key, value in metadata.items()]
    offset = 0
    for plan in plans:
        sizes = tuple(reversed(plan.shape))
        parts.append(_text(plan.name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, plan.kind, offset))
        offset += padded(plan.size, DEFAULT_ALIGNMENT)
    head = b"".join(parts)
    return head + bytes(padded(len(head), DEFAULT_ALIGNMENT) - len(head))


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data
