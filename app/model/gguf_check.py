"""Reads the head of a GGUF file and refuses anything that is not exactly what the format says.

Model files come from anywhere, and the native loaders that read them have had memory-safety holes. So every file passes
here first, and only then reaches native code, in a child process. The whole file is accounted for:

(1) the file is a file, and begins as GGUF version 3, little-endian;
(2) keys and tensors are at most 65,536 each; every length fits into the bytes that are left; arrays have depth 1;
(3) keys and tensor names are unique, valid UTF-8, tensor names at most 63 bytes;
(4) the alignment is a power of two; dimensions are 1 to 4, positive, and their product does not overflow;
(5) each tensor starts, aligned, where the one before ends: no gap, no overlap; rows are whole blocks;
(6) the file ends where the data ends.

The caller still has to load it in a child: a file can be well-formed and hostile in its meaning.

Example:
    info = check_gguf(path)
    info.metadata["general.architecture"]
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from app.errors import VerificationError
from app.store.disk import disk_errors

MAGIC = b"GGUF"
VERSION = 3
MAX_ENTRIES = 65_536
MAX_NAME_BYTES = 63
MAX_KEY_BYTES = 65_535
MAX_ITEMS = 4_000_000
"""Array elements in one file: a vocabulary with merges has under a million."""
MAX_DIMENSIONS = 4
MAX_ELEMENTS = 2**62
DEFAULT_ALIGNMENT = 32
MAX_ALIGNMENT = 2**20

STRING, ARRAY, BOOL = 8, 9, 7
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}

BLOCKS: Mapping[int, tuple[int, int]] = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 40),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292), 16: (256, 66),
    17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82), 23: (256, 136),
    24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54),
    35: (256, 66), 39: (32, 17),
}  # fmt: skip
"""Elements and bytes of one block, by tensor type. NOTE: numbers of the format, do not renumber."""

_LOOKALIKES = (
    (b"<", "It is a web page: the download failed."),
    (b"PK\x03\x04", "It is a zip archive."),
    (b"\x80", "It is a Python pickle, which can run programs."),
    (b"version https://git-lfs", "It is only a pointer to the file: fetch it with Git LFS."),
    (b"\x00\x05\x16\x07", "It is a companion file that macOS makes, not the model itself."),
)


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """One tensor as the head announces it."""

    name: str
    shape: tuple[int, ...]
    """Rows first, as numpy and torch have it; the file has it the other way round."""
    kind: int
    """Number of the tensor type: 0 is F32, 1 is F16."""
    offset: int
    """From the start of the file, in bytes."""
    size: int
    """In bytes, without padding."""


@dataclass(frozen=True, slots=True)
class GgufInfo:
    """The head of a checked file."""

    metadata: Mapping[str, Any]
    """Numbers, strings, booleans, and lists of them."""
    raw: Mapping[str, bytes]
    """Each value as it stands in the file, its type number included."""
    tensors: tuple[GgufTensor, ...]
    alignment: int


def check_gguf(path: Path) -> GgufInfo:
    """Return the head of a GGUF file that holds to the format in every point of the module docstring.

    Raises: VerificationError naming what is wrong; KnownError if the file cannot be read.
    """
    with disk_errors("read the model file", path.name), path.open("rb") as file:
        return _Reader(file, path.name).info()


class _Reader:
    """Reads forward through one open file, never past its end."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self._size = os.fstat(file.fileno()).st_size
        self._at = 0
        self._items = 0

    def info(self) -> GgufInfo:
        tensor_count, key_count = self._counts()
        metadata: dict[str, Any] = {}
        raw: dict[str, bytes] = {}
        for _ in range(key_count):
            key = self._text(MAX_KEY_BYTES)
            if not key or key in metadata:
                raise self._wrong("a key is empty or stands there twice")
            metadata[key], raw[key] = self._typed_value()
        alignment = self._alignment(metadata)
        heads = [self._tensor_head() for _ in range(tensor_count)]
        return GgufInfo(metadata, raw, self._placed(heads, alignment), alignment)

    def _counts(self) -> tuple[int, int]:  # (1), (2)
        start = self._file.read(len(MAGIC))
        self._at += len(start)
        if start != MAGIC:
            self._refuse_lookalike()
        version = self._number("I")
        if version != VERSION:
            raise self._wrong(f"its version is {version}, and only version {VERSION} is read")
        tensors, keys = self._number("Q"), self._number("Q")
        if max(tensors, keys) > MAX_ENTRIES:
            raise self._wrong("it announces too many entries")
        return tensors, keys

    def _refuse_lookalike(self) -> None:
        self._file.seek(0)
        start = self._file.read(64).lstrip()
        for mark, words in _LOOKALIKES:
            if start.startswith(mark):
                raise self._wrong(words.rstrip("."))
        raise self._wrong("it is not a GGUF file")

    def _bytes(self, count: int) -> bytes:
        if count > self._size - self._at:
            raise self._wrong("it ends too early")
        data = self._file.read(count)
        if len(data) != count:
            raise self._wrong("it changed while it was read")
        self._at += count
        return data

    def _number(self, code: str) -> Any:
        return struct.unpack(f"<{code}", self._bytes(struct.calcsize(f"<{code}")))[0]

    def _text(self, limit: int | None = None) -> str:  # (2), (3)
        length = self._number("Q")
        if limit is not None and length > limit:
            raise self._wrong("a name is too long")
        try:
            return self._bytes(length).decode()
        except UnicodeDecodeError as error:
            raise self._wrong("a text is not UTF-8") from error

    def _typed_value(self) -> tuple[Any, bytes]:
        start = self._at
        kind = self._number("I")
        value = self._array() if kind == ARRAY else self._values(kind, 1)[0]
        end = self._at
        self._file.seek(start)
        raw = self._file.read(end - start)
        return value, raw

    def _array(self) -> list[Any]:  # (2)
        kind, count = self._number("I"), self._number("Q")
        self._items += count
        if kind == ARRAY or self._items > MAX_ITEMS:
            raise self._wrong("an array is nested or too long")
        return self._values(kind, count)

    def _values(self, kind: int, count: int) -> list[Any]:
        if kind == STRING:
            return [self._text() for _ in range(count)]
        if kind not in _SCALARS:
            raise self._wrong("a value has an unknown type")
        form = f"<{count}{_SCALARS[kind]}"
        values = list(struct.unpack(form, self._bytes(struct.calcsize(form))))
        if kind != BOOL:
            return values
        if not set(values) <= {0, 1}:
            raise self._wrong("a yes-or-no value is neither")
        return [bool(value) for value in values]

    def _alignment(self, metadata: Mapping[str, Any]) -> int:  # (4)
        alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
        if type(alignment) is not int or not 0 < alignment <= MAX_ALIGNMENT or alignment & (alignment - 1):
            raise self._wrong("its alignment is not a power of two")
        return alignment

    def _tensor_head(self) -> GgufTensor:  # (3), (4)
        name = self._text(MAX_NAME_BYTES)
        dimensions = self._number("I")
        if not 1 <= dimensions <= MAX_DIMENSIONS:
            raise self._wrong("a tensor has a wrong number of dimensions")
        sizes = [self._number("Q") for _ in range(dimensions)]
        kind, offset = self._number("I"), self._number("Q")
        elements = 1
        for size in sizes:
            elements *= size
            if not 0 < elements <= MAX_ELEMENTS:
                raise self._wrong("a tensor is empty or impossibly large")
        if not name or kind not in BLOCKS or sizes[0] % BLOCKS[kind][0]:
            raise self._wrong("a tensor has no name, an unknown type or broken rows")
        per_block, block_bytes = BLOCKS[kind]
        return GgufTensor(name, tuple(reversed(sizes)), kind, offset, elements // per_block * block_bytes)

    def _placed(self, heads: list[GgufTensor], alignment: int) -> tuple[GgufTensor, ...]:  # (3), (5), (6)
        if len({head.name for head in heads}) != len(heads):
            raise self._wrong("two tensors have one name")
        start = padded(self._at, alignment)
        expected = 0
        end = start if heads else self._at
        placed = []
        for head in heads:
            if head.offset != expected:
                raise self._wrong("its tensors overlap or leave a gap")
            placed.append(GgufTensor(head.name, head.shape, head.kind, start + head.offset, head.size))
            end = start + head.offset + head.size
            expected += padded(head.size, alignment)
        if self._size < end:
            raise self._wrong("it ends too early")
        if self._size > padded(end, alignment):
            raise self._wrong("something follows after its data")
        return tuple(placed)

    def _wrong(self, reason: str) -> VerificationError:
        reason = reason[0].upper() + reason[1:]
        return VerificationError("use the model file", self._name, f"{reason}. Nothing of it was loaded; get it again.")


def padded(size: int, alignment: int) -> int:
    """Return ``size`` rounded up to a multiple of ``alignment``."""
    return -(-size // alignment) * alignment
