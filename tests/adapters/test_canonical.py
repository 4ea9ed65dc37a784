from __future__ import annotations

import pickle
import struct
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load, save

from app.errors import VerificationError
from app.model.adapters.canonical import FORMAT, read_adapter, tensor_names, write_adapter
from app.model.api import Passport
from app.model.safetensors_file import Array, pack, unpack

HIDDEN, INNER, VALUES, RANK = 8, 12, 4, 2
PASSPORT = Passport(
    id="a1" * 32, name="Tiny", weights_sha256="", architecture="llama", tokenizer_sha256="", template_sha256="",
    quantisation="F16", licence="", layers=3, hidden=HIDDEN, heads=4, kv_heads=2, vocabulary=9,
    adaptable=("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
)  # fmt: skip
SIZES = {
    "self_attn.q_proj": (HIDDEN, HIDDEN), "self_attn.k_proj": (HIDDEN, VALUES), "self_attn.v_proj": (HIDDEN, VALUES),
    "self_attn.o_proj": (HIDDEN, HIDDEN), "mlp.gate_proj": (HIDDEN, INNER), "mlp.up_proj": (HIDDEN, INNER),
    "mlp.down_proj": (INNER, HIDDEN),
}  # fmt: skip
METADATA = {"format": FORMAT, "base": PASSPORT.id, "rank": str(RANK), "alpha": "4.0"}
DOWN, UP = tensor_names("model.layers.1.mlp.gate_proj")
Q_DOWN, Q_UP = tensor_names("model.layers.1.self_attn.q_proj")


def tensors(modules=tuple(SIZES), layers=(1,), seed=0):
    random = np.random.default_rng(seed)
    found = {}
    for layer in layers:
        for module in modules:
            inputs, outputs = SIZES[module]
            down, up = tensor_names(f"model.layers.{layer}.{module}")
            found[down] = random.standard_normal((RANK, inputs)).astype(np.float32)
            found[up] = random.standard_normal((outputs, RANK)).astype(np.float32)
    return found


def changed(**changes):
    return {**tensors(), **changes}


def test_what_is_written_is_read_back():
    adapter = read_adapter(write_adapter(tensors(layers=(0, 2)), PASSPORT, rank=RANK, alpha=4), PASSPORT)
    assert (adapter.base, adapter.rank, adapter.alpha) == (PASSPORT.id, RANK, 4.0)
    assert len(adapter.pairs) == 14
    pair = adapter.pairs["model.layers.2.mlp.down_proj"]
    assert np.array_equal(pair.down, tensors(layers=(0, 2))[tensor_names("model.layers.2.mlp.down_proj")[0]])


def test_the_same_tensors_give_the_same_bytes_in_any_order():
    given = tensors()
    data = {
        write_adapter(dict(order), PASSPORT, rank=RANK, alpha=4) for order in (given.items(), reversed(given.items()))
    }
    assert len(data) == 1


def test_the_library_reads_what_is_written_and_the_other_way_round():
    data = write_adapter(tensors(), PASSPORT, rank=RANK, alpha=4)
    assert {name: array.tolist() for name, array in load(data).items()} == {n: a.tolist() for n, a in tensors().items()}
    assert read_adapter(save(tensors(), metadata=METADATA), PASSPORT).rank == RANK


REFUSED = {
    "another base": (tensors(), {"base": "b2" * 32}, "another model"),
    "no base": (tensors(), {"base": ""}, "another model"),
    "another format": (tensors(), {"format": "pt"}, "not an adapter"),
    "no rank": (tensors(), {"rank": ""}, "rank"),
    "rank 0": (tensors(), {"rank": "0"}, "out of bounds"),
    "rank 1,000,000": (tensors(), {"rank": "1000000"}, "out of bounds"),
    "rank not that of the tensors": (tensors(), {"rank": "3"}, "rank"),
    "alpha 0": (tensors(), {"alpha": "0"}, "out of bounds"),
    "alpha not a number": (tensors(), {"alpha": "nan"}, "out of bounds"),
    "alpha infinite": (tensors(), {"alpha": "inf"}, "out of bounds"),
    "nothing in it": ({}, {}, "half"),
    "one half missing": ({name: array for name, array in tensors().items() if name != UP}, {}, "half"),
    "a foreign tensor": (changed(**{"lm_head.weight": np.ones((2, 2), np.float32)}), {}, "not an adapter's"),
    "an embedding": (changed(**{DOWN.replace("layers.1.mlp.gate_proj", "embed_tokens"): tensors()[UP]}), {}, "not an"),
    "a DoRA magnitude": (changed(**{DOWN.replace("lora_A", "lora_magnitude_vector"): tensors()[DOWN]}), {}, "not an"),
    "a layer too far": (tensors(layers=(3,)), {}, "lacks"),
    "a layer with zeros before": (
        {name.replace("layers.1", "layers.01"): array for name, array in tensors().items()}, {}, "lacks"),
    "a module in the wrong place": (
        {name.replace("mlp.gate_proj", "self_attn.gate_proj"): a for name, a in tensors().items()}, {}, "lacks"),
    "an unknown module": ({name.replace("gate_proj", "gate"): array for name, array in tensors().items()}, {}, "lacks"),
    "64-bit numbers": ({name: array.astype(np.float64) for name, array in tensors().items()}, {}, "F32"),
    "16-bit numbers": ({name: array.astype(np.float16) for name, array in tensors().items()}, {}, "32-bit"),
    "whole numbers": ({name: array.astype(np.int32) for name, array in tensors().items()}, {}, "F32"),
    "sizes of another model": (changed(**{DOWN: np.ones((RANK, HIDDEN + 1), np.float32)}), {}, "sizes"),
    "outputs of another model": (changed(**{Q_UP: np.ones((HIDDEN * 2, RANK), np.float32)}), {}, "sizes"),
    "inner widths that differ": (changed(**{UP: np.ones((INNER + 1, RANK), np.float32)}), {}, "sizes"),
    "three dimensions": (changed(**{DOWN: np.ones((RANK, HIDDEN, 1), np.float32)}), {}, "rank"),
    "one dimension": (changed(**{DOWN: np.ones(RANK, np.float32)}), {}, "rank"),
    "halves exchanged": (changed(**{Q_DOWN: tensors()[Q_UP], Q_UP: tensors()[Q_DOWN]}), {}, "rank"),
    "not a number": (changed(**{DOWN: np.full((RANK, HIDDEN), np.nan, np.float32)}), {}, "not finite"),
    "infinite": (changed(**{UP: np.full((INNER, RANK), -np.inf, np.float32)}), {}, "not finite"),
    "all zero": ({name: np.zeros_like(array) for name, array in tensors().items()}, {}, "changes nothing"),
    "every up half zero": (
        {name: array * ("lora_A" in name) for name, array in tensors().items()}, {}, "changes nothing"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_an_adapter_is_refused_that_is_not_exactly_for_this_base(name):
    arrays, changes, words = REFUSED[name]
    with pytest.raises(VerificationError, match=words):
        read_adapter(save(arrays, metadata={**METADATA, **changes}), PASSPORT)


def test_a_module_that_may_not_learn_is_refused():
    bound = replace(PASSPORT, adaptable=("gate_proj", "up_proj", "down_proj"))
    with pytest.raises(VerificationError, match="must not change"):
        read_adapter(save(tensors(), metadata=METADATA), bound)


def test_nothing_invalid_is_ever_written():
    with pytest.raises(VerificationError, match="not finite"):
        write_adapter(changed(**{DOWN: np.full((RANK, HIDDEN), np.nan)}), PASSPORT, rank=RANK, alpha=4)


def test_every_cut_of_a_file_is_refused():
    data = write_adapter(tensors(("mlp.gate_proj",)), PASSPORT, rank=RANK, alpha=4)
    for length in range(len(data)):
        with pytest.raises(VerificationError):
            read_adapter(data[:length], PASSPORT)
    with pytest.raises(VerificationError):
        read_adapter(data + b"\0", PASSPORT)


def test_random_damage_is_refused_or_leaves_a_valid_adapter():
    chance = np.random.default_rng(5)
    data = write_adapter(tensors(("mlp.gate_proj",)), PASSPORT, rank=RANK, alpha=4)
    for _ in range(2000):
        damaged = bytearray(data)
        for _ in range(chance.integers(1, 6)):
            damaged[chance.integers(len(damaged))] = chance.integers(256)
        try:
            adapter = read_adapter(bytes(damaged), PASSPORT)
        except VerificationError:
            continue
        assert all(np.isfinite(pair.up).all() for pair in adapter.pairs.values())


class Bomb:
    def __init__(self, canary):
        self.canary = canary

    def __reduce__(self):
        return type(self.canary).touch, (self.canary,)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_under_the_name_of_an_adapter_never_runs(protocol, tmp_path):
    canary = tmp_path / "canary"
    with pytest.raises(VerificationError):
        read_adapter(pickle.dumps(Bomb(canary), protocol), PASSPORT)
    assert not canary.exists()


def test_a_zipped_pickle_never_runs(tmp_path):
    canary, path = tmp_path / "canary", tmp_path / "adapter.safetensors"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Bomb(canary)))
    with pytest.raises(VerificationError, match="pickle"):
        read_adapter(path.read_bytes(), PASSPORT)
    assert not canary.exists()


def headed(head, body=b""):
    return struct.pack("<Q", len(head)) + head + body


ENTRY = b'"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
MALFORMED = {
    "empty": b"",
    "seven bytes": bytes(7),
    "a head longer than the file": struct.pack("<Q", 100) + b"{}",
    "a head of 2^63 bytes": struct.pack("<Q", 2**63) + b"{}",
    "a head that is not JSON": headed(b"{nope"),
    "a head that is not UTF-8": headed(b"\xff\xfe"),
    "a head that is a list": headed(b"[]"),
    "a head nested without end": headed(b"[" * 100_000),
    "a name twice": headed(b"{" + ENTRY + b"," + ENTRY + b"}", bytes(4)),
    "a tensor that is a number": headed(b'{"x":1}'),
    "no offsets": headed(b'{"x":{"dtype":"F32","shape":[1]}}', bytes(4)),
    "offsets that are texts": headed(ENTRY.join((b"{", b"}")).replace(b"[0,4]", b'["0","4"]'), bytes(4)),
    "offsets that are booleans": headed(ENTRY.join((b"{", b"}")).replace(b"[0,4]", b"[false,4]"), bytes(4)),
    "offsets outside": headed(ENTRY.join((b"{", b"}")).replace(b"[0,4]", b"[0,8]"), bytes(4)),
    "offsets backwards": headed(ENTRY.join((b"{", b"}")).replace(b"[0,4]", b"[4,0]"), bytes(4)),
    "negative offsets": headed(ENTRY.join((b"{", b"}")).replace(b"[0,4]", b"[-4,0]"), bytes(4)),
    "a shape larger than its data": headed(ENTRY.join((b"{", b"}")).replace(b"[1]", b"[2]"), bytes(4)),
    "a negative shape": headed(ENTRY.join((b"{", b"}")).replace(b"[1]", b"[-1]"), bytes(4)),
    "a shape that is a number": headed(ENTRY.join((b"{", b"}")).replace(b"[1]", b"1"), bytes(4)),
    "a shape that overflows": headed(ENTRY.join((b"{", b"}")).replace(b"[1]", b"[4294967296,4294967296]"), bytes(4)),
    "an unknown type": headed(ENTRY.join((b"{", b"}")).replace(b"F32", b"F99"), bytes(4)),
    "a type that is a list": headed(ENTRY.join((b"{", b"}")).replace(b'"F32"', b"[]"), bytes(4)),
    "data that no tensor owns": headed(ENTRY.join((b"{", b"}")), bytes(8)),
    "metadata that is not text": headed(b'{"__metadata__":{"a":1},' + ENTRY + b"}", bytes(4)),
    "metadata that is a list": headed(b'{"__metadata__":[],' + ENTRY + b"}", bytes(4)),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_file_is_refused(name):
    with pytest.raises(VerificationError):
        unpack(MALFORMED[name], "file")


def test_any_tensors_survive_packing():
    given: dict[str, Array] = {
        "b": np.ones((2, 3), np.float16),
        "a": np.zeros((0, 4), np.float32),
        "c": np.array(5, np.float32),
    }
    read, metadata = unpack(pack(given, {"z": "1", "a": "ü"}), "file")
    assert metadata == {"z": "1", "a": "ü"}
    assert {n: (a.dtype, a.shape, a.tolist()) for n, a in read.items()} == {
        n: (a.dtype, a.shape, a.tolist()) for n, a in given.items()
    }
