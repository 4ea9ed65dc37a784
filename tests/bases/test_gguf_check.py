from __future__ import annotations

import pickle
import random
import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from app.errors import KnownError, VerificationError
from app.model.bases import embedded_source
from app.model.gguf_check import check_gguf
from app.model.gguf_write import F16, F32, TensorPlan, text_value, uint32_value, write_gguf
from tests.bases.tiny_gguf import write_tiny


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(data)) + data


def string(value):
    return struct.pack("<I", 8) + text(value)


def array(kind, count, payload):
    return struct.pack("<IIQ", 9, kind, count) + payload


@dataclass
class Tensor:
    name: str | bytes = "a"
    sizes: tuple[int, ...] = (32, 2)
    kind: int = 0
    offset: int = 0
    dimensions: int | None = None

    def head(self):
        count = len(self.sizes) if self.dimensions is None else self.dimensions
        return text(self.name) + struct.pack(f"<I{len(self.sizes)}QIQ", count, *self.sizes, self.kind, self.offset)


@dataclass
class File:
    """A well-formed file unless told otherwise."""

    magic: bytes = b"GGUF"
    version: int = 3
    keys: list[tuple[str | bytes, bytes]] = field(default_factory=lambda: [("general.architecture", string("llama"))])
    tensors: list[Tensor] = field(default_factory=lambda: [Tensor()])
    key_count: int | None = None
    tensor_count: int | None = None
    data: bytes = bytes(256)
    align: int = 32

    def bytes(self):
        head = self.magic + struct.pack(
            "<IQQ",
            self.version,
            len(self.tensors) if self.tensor_count is None else self.tensor_count,
            len(self.keys) if self.key_count is None else self.key_count,
        )
        head += b"".join(text(key) + value for key, value in self.keys)
        head += b"".join(tensor.head() for tensor in self.tensors)
        return head + bytes(-len(head) % self.align) + self.data


MALFORMED = {
    "another magic": File(magic=b"GGML"),
    "version 2": File(version=2),
    "big-endian": File(version=3 << 24),
    "too many keys": File(key_count=65_537),
    "too many tensors": File(tensor_count=65_537),
    "more keys than there are": File(key_count=60_000),
    "more tensors than there are": File(tensor_count=60_000),
    "counts that overflow": File(key_count=2**64 - 1, tensor_count=2**64 - 1),
    "a key longer than the file": File(keys=[("k" * 3, b"")], data=b""),
    "an empty key": File(keys=[("", string("x"))]),
    "a key twice": File(keys=[("a", string("x")), ("a", string("y"))]),
    "a key that is not UTF-8": File(keys=[(b"\xff\xfe", string("x"))]),
    "a string declared 2^40 long": File(keys=[("a", struct.pack("<IQ", 8, 2**40))], data=b""),
    "a string declared 2^64-1 long": File(keys=[("a", struct.pack("<IQ", 8, 2**64 - 1))]),
    "a string that is not UTF-8": File(keys=[("a", string(b"\xc3\x28"))]),
    "an unknown value type": File(keys=[("a", struct.pack("<II", 13, 1))]),
    "a boolean of 2": File(keys=[("a", struct.pack("<IB", 7, 2))]),
    "an array of arrays": File(keys=[("a", array(9, 1, struct.pack("<IQI", 4, 1, 1)))]),
    "an array declared 2^40 long": File(keys=[("a", array(4, 2**40, b""))]),
    "an array of strings declared 2^61 long": File(keys=[("a", array(8, 2**61, b""))]),
    "an array of an unknown type": File(keys=[("a", array(99, 1, bytes(8)))]),
    "an alignment of 0": File(keys=[("general.alignment", uint32_value(0))]),
    "an alignment of 3": File(keys=[("general.alignment", uint32_value(3))]),
    "an alignment of 2^31": File(keys=[("general.alignment", uint32_value(2**31))]),
    "an alignment that is a text": File(keys=[("general.alignment", string("32"))]),
    "a tensor name of 64 bytes": File(tensors=[Tensor(name="n" * 64)]),
    "a tensor without a name": File(tensors=[Tensor(name="")]),
    "a tensor name that is not UTF-8": File(tensors=[Tensor(name=b"\xff")]),
    "a tensor without dimensions": File(tensors=[Tensor(sizes=())]),
    "a tensor of five dimensions": File(tensors=[Tensor(sizes=(1, 1, 1, 1, 1))]),
    "a tensor of 2^31 dimensions": File(tensors=[Tensor(dimensions=2**31)]),
    "an empty tensor": File(tensors=[Tensor(sizes=(32, 0))]),
    "dimensions whose product overflows": File(tensors=[Tensor(sizes=(2**32, 2**32))]),
    "dimensions whose product overflows to fit": File(tensors=[Tensor(sizes=(2**63, 2, 2, 16))]),
    "an unknown tensor type": File(tensors=[Tensor(kind=4)]),
    "rows that are not whole blocks": File(tensors=[Tensor(sizes=(33, 1), kind=2)]),
    "an offset that is not aligned": File(tensors=[Tensor(offset=1)]),
    "an offset outside the file": File(tensors=[Tensor(offset=2**40)]),
    "an offset that overflows": File(tensors=[Tensor(offset=2**64 - 32)]),
    "tensors that overlap": File(tensors=[Tensor(), Tensor(name="b", offset=32)], data=bytes(512)),
    "tensors with a gap": File(tensors=[Tensor(), Tensor(name="b", offset=288)], data=bytes(544)),
    "tensors in another order": File(tensors=[Tensor(offset=256), Tensor(name="b")], data=bytes(512)),
    "two tensors of one name": File(tensors=[Tensor(), Tensor(offset=256)], data=bytes(512)),
    "data cut short": File(data=bytes(255)),
    "no data": File(data=b""),
    "something after the data": File(data=bytes(289)),
    "a program after the data": File(data=bytes(256) + b"\x7fELF" * 100),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_file_is_refused(name, tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(MALFORMED[name].bytes())
    with pytest.raises(VerificationError, match=r"model\.gguf"):
        check_gguf(path)


VALID = {
    "the plain file": File(),
    "no keys": File(keys=[]),
    "no tensors": File(tensors=[], data=b""),
    "no keys and no tensors": File(keys=[], tensors=[], data=b""),
    "every kind of number": File(keys=[(str(k), struct.pack("<I", k) + bytes(n)) for k, n in
        {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}.items()]),
    "arrays of numbers and texts": File(keys=[("a", array(4, 2, bytes(8))), ("b", array(8, 2, text("x") + text("ü")))]),
    "an alignment of 64": File(keys=[("general.alignment", uint32_value(64))], align=64),
    "a name of 63 bytes": File(tensors=[Tensor(name="n" * 63)]),
    "two tensors": File(tensors=[Tensor(), Tensor(name="b", offset=256)], data=bytes(512)),
    "a tensor padded to the alignment": File(tensors=[Tensor(sizes=(1,)), Tensor("b", (1,), 0, 32)], data=bytes(36)),
    "a last tensor with its padding": File(tensors=[Tensor(sizes=(1,))], data=bytes(32)),
}  # fmt: skip


@pytest.mark.parametrize("name", VALID)
def test_a_well_formed_file_is_accepted(name, tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(VALID[name].bytes())
    info = check_gguf(path)
    assert [tensor.name for tensor in info.tensors] == [str(tensor.name) for tensor in VALID[name].tensors]


def test_values_and_places_are_read_as_written(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(VALID["arrays of numbers and texts"].bytes())
    info = check_gguf(path)
    assert info.metadata == {"a": [0, 0], "b": ["x", "ü"]}
    assert info.tensors[0].shape == (2, 32)
    assert info.tensors[0].offset % 32 == 0
    assert info.tensors[0].size == 256


def test_what_gguf_py_writes_is_accepted(tmp_path):
    info = check_gguf(write_tiny(tmp_path / "tiny.gguf"))
    assert info.metadata["llama.attention.head_count_kv"] == 2
    assert len(info.tensors) == 20


def test_what_we_write_is_accepted_and_read_back(tmp_path):
    path = tmp_path / "own.gguf"
    plans = [TensorPlan("a", (3, 5), F16), TensorPlan("b", (7,), F32)]
    arrays = [np.arange(15, dtype=np.float32).reshape(3, 5), np.arange(7, dtype=np.float32)]
    with path.open("wb") as file:
        write_gguf(file.write, {"k": text_value("v"), "n": uint32_value(7)}, plans, arrays)
    info = check_gguf(path)
    assert info.metadata == {"k": "v", "n": 7}
    for tensor, array_ in zip(info.tensors, arrays, strict=True):
        dtype = np.float16 if tensor.kind == F16 else np.float32
        read = np.fromfile(path, dtype, array_.size, offset=tensor.offset).reshape(tensor.shape)
        assert np.array_equal(read, array_)


def test_the_embedded_model_is_accepted():
    assert check_gguf(embedded_source()).metadata["general.architecture"] == "llama"


class Bomb:
    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self):
        return Path.touch, (self.canary,)


LOOKALIKES = {
    "a web page": (b"<!DOCTYPE html><html><body>Not found</body></html>", "web page"),
    "a web page after a blank line": (b"\n  <html>", "web page"),
    "a zip archive": (b"PK\x03\x04" + bytes(60), "zip"),
    "a pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n", "Git LFS"),
    "a companion file": (b"\x00\x05\x16\x07" + bytes(60), "macOS"),
    "nothing": (b"", "not a GGUF file"),
    "three bytes": (b"GGU", "not a GGUF file"),
}


@pytest.mark.parametrize("name", LOOKALIKES)
def test_something_else_under_the_name_of_a_model_is_named_for_what_it_is(name, tmp_path):
    data, words = LOOKALIKES[name]
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    with pytest.raises(VerificationError, match=words):
        check_gguf(path)


def test_a_pickle_under_the_name_of_a_model_never_runs(tmp_path):
    canary, path = tmp_path / "canary", tmp_path / "model.gguf"
    path.write_bytes(pickle.dumps(Bomb(canary)))
    with pytest.raises(VerificationError, match="pickle"):
        check_gguf(path)
    assert not canary.exists()


def test_a_missing_file_is_the_environments_fault(tmp_path):
    with pytest.raises(KnownError):
        check_gguf(tmp_path / "gone.gguf")


def test_a_folder_is_not_a_model(tmp_path):
    with pytest.raises(KnownError):
        check_gguf(tmp_path)


def test_every_cut_of_a_file_is_refused(tmp_path):
    path = tmp_path / "model.gguf"
    whole = File(tensors=[Tensor(), Tensor(name="b", offset=256)], data=bytes(512)).bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(VerificationError):
            check_gguf(path)


def test_random_damage_is_refused_or_harmless_and_never_anything_else(tmp_path):
    chance = random.Random(7)
    path = tmp_path / "model.gguf"
    whole = write_tiny(tmp_path / "tiny.gguf").read_bytes()
    head = whole[:6000]
    for _ in range(400):
        damaged = bytearray(head)
        for _ in range(chance.randint(1, 8)):
            at = chance.randrange(len(damaged)) if chance.random() < 0.5 else chance.randrange(200)
            damaged[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        path.write_bytes(bytes(damaged) + whole[6000:])
        try:
            info = check_gguf(path)
        except VerificationError:
            continue
        assert max(tensor.offset + tensor.size for tensor in info.tensors) <= len(whole)
