"""Reads and writes safetensors with numpy alone: strict in what it reads, same input same bytes in what it writes.

The library's own writer orders metadata at random, so two equal adapters would get two hashes. Numbers may be anything
here, NaN included: what they mean is for the caller to judge.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.errors import VerificationError

MAX_HEAD_BYTES = 16_000_000
_LENGTH = struct.Struct("<Q")
_DTYPES: Mapping[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2")}
_NAMES = {np.dtype(np.float32): "F32", np.dtype(np.float16): "F16"}

Array = NDArray[np.floating]


def pack(tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> bytes:
    """Return the file of these tensors, ordered by name."""
    names = sorted(tensors)
    parts: list[bytes] = []
    plan = [(name, tensors[name].shape, tensors[name].dtype) for name in names]
    write_safetensors(parts.append, metadata, plan, (tensors[name] for name in names))
    return b"".join(parts)


def write_safetensors(
    write: Callable[[bytes], object],
    metadata: Mapping[str, str],
    plan: Sequence[tuple[str, tuple[int, ...], np.dtype[Any]]],
    arrays: Iterable[Array],
) -> None:
    """Write a file; ``arrays`` match ``plan`` (name, shape, type) one for one and are taken one at a time."""
    head: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))}
    offset = 0
    for name, shape, dtype in plan:
        end = offset + prod(shape) * dtype.itemsize
        head[name] = {"dtype": _NAMES[dtype], "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the format aligns the data to eight bytes
    write(_LENGTH.pack(len(text)) + text)
    for (name, shape, dtype), array in zip(plan, arrays, strict=True):
        if array.shape != shape or array.dtype != dtype:
            raise ValueError(f"{name}: {array.shape} {array.dtype} instead of {shape} {dtype}")
        write(np.ascontiguousarray(array).astype(dtype.newbyteorder("<"), copy=False).tobytes())


def unpack(data: bytes, what: str) -> tuple[dict[str, Array], dict[str, str]]:
    """Return the tensors, as read-only views, and the metadata of a file; ``what`` names it in errors.

    Raises: VerificationError unless every byte is accounted for, exactly once.
    """
    head, body = _split(data, what)
    metadata = head.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise _wrong(what, "its metadata is not text")
    tensors: dict[str, Array] = {}
    expected = 0
    for name, entry in sorted(head.items(), key=lambda item: _start(item[1], what)):
        dtype, shape, end = _entry(entry, what)
        if _start(entry, what) != expected or end - expected != prod(shape) * dtype.itemsize or end > len(body):
            raise _wrong(what, "its tensors overlap, leave a gap or end too late")
        tensors[name] = np.frombuffer(body[expected:end], dtype=dtype).reshape(shape)
        expected = end
    if expected != len(body):
        raise _wrong(what, "it is longer or shorter than it says")
    return tensors, metadata


def _split(data: bytes, what: str) -> tuple[dict[str, Any], memoryview]:
    foreign = data[:1] == b"\x80" or data[:2] == b"PK"
    if foreign and data[_LENGTH.size : _LENGTH.size + 1] != b"{":  # a head's length may begin with the same byte
        raise _wrong(what, "it is a Python pickle, which can run programs; nothing of it was run")
    length = _LENGTH.unpack_from(data)[0] if len(data) >= _LENGTH.size else MAX_HEAD_BYTES + 1
    if length > min(MAX_HEAD_BYTES, len(data) - _LENGTH.size):
        raise _wrong(what, "it is cut short or is not safetensors")
    body = memoryview(data)[_LENGTH.size :]
    try:
        head = json.loads(bytes(body[:length]).decode(), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise _wrong(what, "its head is not readable") from error
    if not isinstance(head, dict):
        raise _wrong(what, "its head is not readable")
    return head, body[length:]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands there twice")
    return found


def _start(entry: Any, what: str) -> int:
    offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
    if not isinstance(offsets, list) or [type(offset) for offset in offsets] != [int, int]:
        raise _wrong(what, "a tensor has no place")
    return int(offsets[0])


def _entry(entry: dict[str, Any], what: str) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    shape = entry.get("shape")
    dtype = entry.get("dtype")
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise _wrong(what, "a tensor is neither F32 nor F16")
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        raise _wrong(what, "a tensor has no shape")
    return _DTYPES[dtype], tuple(shape), int(entry["data_offsets"][1])


def _wrong(what: str, reason: str) -> VerificationError:
    reason = reason[0].upper() + reason[1:]
    return VerificationError("read an adapter", what, f"{reason}.")
