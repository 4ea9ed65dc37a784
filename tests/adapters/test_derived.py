from __future__ import annotations

import json
import os
from pathlib import Path

import gguf
import numpy as np
import pytest

from app.errors import BugError, KnownError, VerificationError
from app.model.adapters.canonical import read_adapter, write_adapter
from app.model.adapters.gguf import gguf_adapter
from app.model.adapters.mlx import canonical_from_mlx, mlx_adapter
from app.model.adapters.serving import ServingFiles
from app.model.api import BaseFiles
from app.model.gguf_check import check_gguf
from app.model.safetensors_file import unpack
from app.store.canonical import digest
from app.store.faults import FailingFiles
from app.store.files import RealFiles
from tests.adapters.test_canonical import PASSPORT, RANK, SIZES, tensors

DATA = write_adapter(tensors(layers=(0, 2)), PASSPORT, rank=RANK, alpha=4)
SHA = digest(DATA)
ADAPTER = read_adapter(DATA, PASSPORT)
BASE = BaseFiles(PASSPORT, Path("serving"), Path("training"))


def convert(adapter=ADAPTER, **given):
    return gguf_adapter(adapter, PASSPORT, SHA, **given)


def read_gguf(data, tmp_path):
    path = tmp_path / "adapter.gguf"
    path.write_bytes(data)
    check_gguf(path)
    return gguf.GGUFReader(path)


def test_the_gguf_says_what_it_is_and_what_it_was_made_from(tmp_path):
    reader = read_gguf(convert(), tmp_path)
    values = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    assert values == {
        "general.type": "adapter",
        "general.architecture": "llama",
        "general.name": f"ownmind {SHA[:12]}",
        "adapter.type": "lora",
        "adapter.lora.alpha": 4.0,
        "ownmind.base": PASSPORT.id,
        "ownmind.sha256": SHA,
        "ownmind.rank": RANK,
    }


@pytest.mark.parametrize(("half", "dtype"), [(True, np.float16), (False, np.float32)])
def test_every_half_is_there_under_the_engines_name_and_only_query_and_key_rows_move(half, dtype, tmp_path):
    found = {tensor.name: tensor.data for tensor in read_gguf(convert(half=half), tmp_path).tensors}
    assert len(found) == 4 * len(SIZES)
    pair = ADAPTER.pairs["model.layers.2.mlp.gate_proj"]
    assert np.array_equal(found["blk.2.ffn_gate.weight.lora_a"], pair.down.astype(dtype))
    assert np.array_equal(found["blk.2.ffn_gate.weight.lora_b"], pair.up.astype(dtype))
    query = ADAPTER.pairs["model.layers.0.self_attn.q_proj"]
    assert np.array_equal(found["blk.0.attn_q.weight.lora_a"], query.down.astype(dtype))
    assert found["blk.0.attn_q.weight.lora_b"].tolist() == query.up.astype(dtype).tolist()  # heads of size 2: no move


def test_query_and_key_rows_move_by_their_own_numbers_of_heads(tmp_path):
    wide = {name: array for name, array in tensors().items() if "q_proj" in name or "k_proj" in name}
    passport = PASSPORT.__class__(**{**_fields(), "heads": 2, "kv_heads": 1})
    data = write_adapter(wide, passport, rank=RANK, alpha=4)
    adapter = read_adapter(data, passport)
    found = {t.name: t.data for t in read_gguf(gguf_adapter(adapter, passport, SHA, half=False), tmp_path).tensors}
    order = [0, 2, 1, 3]
    key, query = adapter.pairs["model.layers.1.self_attn.k_proj"], adapter.pairs["model.layers.1.self_attn.q_proj"]
    assert np.array_equal(found["blk.1.attn_k.weight.lora_b"], key.up[order])
    assert np.array_equal(found["blk.1.attn_q.weight.lora_b"], query.up[[*order, 4, 6, 5, 7]])


def _fields():
    return {name: getattr(PASSPORT, name) for name in PASSPORT.__slots__}


def test_the_same_adapter_gives_the_same_bytes():
    assert convert() == convert(read_adapter(DATA, PASSPORT))


@pytest.mark.parametrize(("factor", "other"), [(1e6, 1.0), (1e-30, 1.0), (1e-5, 1e-5)])
def test_numbers_that_do_not_survive_16_bits_are_refused_not_rounded_away(factor, other):
    scaled = {name: array * (factor if "lora_B" in name else other) for name, array in tensors().items()}
    adapter = read_adapter(write_adapter(scaled, PASSPORT, rank=RANK, alpha=4), PASSPORT)
    if (factor, other) == (1e-5, 1e-5):
        convert(adapter)  # small, but still there
    else:
        with pytest.raises(VerificationError, match="16 bits"):
            convert(adapter)
    convert(adapter, half=False)


def test_converting_for_another_base_is_our_own_mistake():
    with pytest.raises(BugError):
        gguf_adapter(ADAPTER, PASSPORT.__class__(**{**_fields(), "id": "c3" * 32}), SHA)


def test_mlx_gets_both_halves_transposed_and_whole_paths():
    data, config = mlx_adapter(ADAPTER, PASSPORT)
    found, _ = unpack(data, "mlx")
    pair = ADAPTER.pairs["model.layers.2.mlp.down_proj"]
    assert np.array_equal(found["model.layers.2.mlp.down_proj.lora_a"], pair.down.T)
    assert np.array_equal(found["model.layers.2.mlp.down_proj.lora_b"], pair.up.T)
    assert config["lora_parameters"]["scale"] == 2.0
    assert config["lora_parameters"]["keys"] == sorted(ADAPTER.pairs)


def test_mlx_and_back_is_the_same_adapter():
    found, _ = unpack(mlx_adapter(ADAPTER, PASSPORT)[0], "mlx")
    assert canonical_from_mlx(found, PASSPORT, rank=RANK, scale=2.0) == DATA


def test_something_else_from_mlx_is_refused():
    with pytest.raises(VerificationError):
        canonical_from_mlx({"model.embed_tokens.weight": np.ones((2, 2), np.float32)}, PASSPORT, rank=RANK, scale=2.0)


class Loader:
    """The object store's side, counting how often it is asked."""

    def __init__(self, data=DATA):
        self.data = data
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return self.data


@pytest.mark.parametrize("form", ["gguf", "mlx"])
def test_a_derived_file_is_made_once(form, tmp_path):
    serving, load = ServingFiles(tmp_path, BASE, form=form), Loader()
    first = serving.ref(SHA, load, scale=0.8)
    again = ServingFiles(tmp_path, BASE, form=form).ref(SHA, load)
    assert load.calls == 1
    assert (first.sha256, first.scale, again.scale) == (SHA, 0.8, 1.0)
    assert first.path == again.path
    assert first.path.exists()


def test_the_gguf_file_is_the_converters(tmp_path):
    assert ServingFiles(tmp_path, BASE).ref(SHA, Loader()).path.read_bytes() == convert()


def test_the_mlx_folder_has_the_two_files(tmp_path):
    folder = ServingFiles(tmp_path, BASE, form="mlx").ref(SHA, Loader()).path
    assert (folder / "adapters.safetensors").read_bytes() == mlx_adapter(ADAPTER, PASSPORT)[0]
    assert json.loads((folder / "adapter_config.json").read_text())["fine_tune_type"] == "lora"


@pytest.mark.parametrize("how", ["cut", "changed", "lost", "emptied", "note lost", "note cut", "note of another kind"])
def test_a_damaged_derived_file_is_made_again(how, tmp_path):
    serving, load = ServingFiles(tmp_path, BASE), Loader()
    path = serving.ref(SHA, load).path
    note = path.with_suffix(".note")
    whole = path.read_bytes()
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    if how == "cut":
        path.write_bytes(whole[:-1])
    elif how == "changed":
        path.write_bytes(whole[:-40] + b"\1" + whole[-39:])
        os.utime(path, ns=times)
    elif how == "emptied":
        path.write_bytes(b"")
    elif how == "lost":
        path.unlink()
    elif how == "note lost":
        note.unlink()
    else:
        note.write_text("{" if how == "note cut" else "[]")
    assert serving.ref(SHA, load).path.read_bytes() == whole
    assert load.calls == 2


def test_other_bytes_than_those_that_were_learned_are_refused(tmp_path):
    with pytest.raises(VerificationError, match="not the ones"):
        ServingFiles(tmp_path, BASE).ref(SHA, Loader(DATA + b"x"))
    assert not list(tmp_path.rglob("*.gguf"))


def test_an_adapter_of_another_base_is_refused(tmp_path):
    other = BaseFiles(PASSPORT.__class__(**{**_fields(), "id": "c3" * 32}), Path("s"), Path("t"))
    with pytest.raises(VerificationError, match="another model"):
        ServingFiles(tmp_path, other).ref(SHA, Loader())


@pytest.mark.parametrize("sha", ["", "../../etc/passwd", "A" * 64, "a" * 63])
def test_what_is_not_a_hash_never_becomes_a_path(sha, tmp_path):
    with pytest.raises(VerificationError):
        ServingFiles(tmp_path, BASE).ref(sha, Loader())


def test_a_failing_disk_leaves_nothing_that_counts(tmp_path):
    counting = FailingFiles(RealFiles(), at=None)
    ServingFiles(tmp_path / "count", BASE, files=counting).ref(SHA, Loader())
    for at in range(counting.count):
        folder = tmp_path / str(at)
        with pytest.raises(KnownError, match="disk is full"):
            ServingFiles(folder, BASE, files=FailingFiles(RealFiles(), at=at)).ref(SHA, Loader())
        assert ServingFiles(folder, BASE).ref(SHA, Loader()).path.read_bytes() == convert()


def test_pruning_keeps_what_is_wanted(tmp_path):
    other = write_adapter(tensors(seed=1), PASSPORT, rank=RANK, alpha=4)
    serving = ServingFiles(tmp_path, BASE)
    kept, gone = serving.ref(SHA, Loader()), serving.ref(digest(other), Loader(other))
    serving.prune({SHA})
    assert kept.path.exists()
    assert not gone.path.exists()
    assert serving.ref(digest(other), Loader(other)).path.exists()
