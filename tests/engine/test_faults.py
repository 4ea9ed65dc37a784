"""What the engine does when the child dies, hangs or starves, and when a file is not what it should be."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from app.errors import AppError, KnownError, VerificationError
from app.model.adapters.canonical import read_adapter
from app.model.adapters.gguf import gguf_adapter
from app.model.api import AdapterRef, BaseFiles, Cancelled, Done, Failed, Greedy, Piece, Sampling, Score
from app.model.child.process import ChildProcess
from app.model.engine.client import ChildEngine, LlamaEngine
from app.model.engine.crash_note import CrashNote
from app.store.canonical import digest
from tests.engine.contract import collect, said
from tests.support.real import canonical_adapter, real_base, small_adapter

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="uses signals and limits of POSIX"),
]

QUESTION = said("What is the capital of France?")
LONG = said("Write a long poem about the rain.")
MIB = 1024 * 1024


@contextlib.asynccontextmanager
async def loaded(engine: ChildEngine | None = None, **knobs) -> AsyncIterator[ChildEngine]:
    engine = engine or LlamaEngine()
    try:
        await engine.load(real_base(), context_tokens=1024, **knobs)
        yield engine
    finally:
        await engine.close()


async def killed_mid_answer(engine: ChildEngine, how: signal.Signals) -> list[object]:
    events: list[object] = []
    async for event in engine.generate(LONG, Sampling(max_tokens=300)):
        events.append(event)
        if len(events) == 3:
            os.kill((await engine.stats()).pid, how)
    return events


# --- dying, hanging, starving ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (signal.SIGKILL, "it was killed from outside"),
        (signal.SIGSEGV, "it crashed (segmentation fault)"),
    ],
)
def test_a_child_that_dies_mid_answer_fails_it_with_the_reason_and_the_next_answer_restarts_it(tmp_path, how, words):
    adapter = small_adapter(real_base(), tmp_path, seed=1)

    async def run():
        async with loaded() as engine:
            await engine.activate(adapter)
            events = await killed_mid_answer(engine, how)
            return events, (await collect(engine, QUESTION))[-1]

    events, after = asyncio.run(run())
    assert [type(event) for event in events[:3]] == [Piece] * 3
    assert isinstance(events[-1], Failed)
    assert events[-1].error.subject == words
    assert events[-1].error.retryable
    assert isinstance(after, Done)
    assert after.adapter == adapter.sha256


def test_a_second_crash_within_a_minute_keeps_it_down_until_someone_loads_again():
    async def run():
        async with loaded() as engine:
            first = (await killed_mid_answer(engine, signal.SIGSEGV))[-1]
            second = (await killed_mid_answer(engine, signal.SIGSEGV))[-1]
            down = await collect(engine, QUESTION)
            with pytest.raises(KnownError) as caught:
                await engine.evaluate([Greedy(QUESTION)], adapter=None)
            pid = (await engine.stats()).pid
            await engine.load(real_base(), context_tokens=1024)
            return first, second, down, caught.value, pid, (await collect(engine, QUESTION))[-1]

    first, second, down, error, pid, after = asyncio.run(run())
    assert isinstance(first, Failed)
    assert isinstance(second, Failed)
    assert [type(event) for event in down] == [Failed]
    assert "safe mode" in down[0].error.hint
    assert "safe mode" in error.hint
    assert pid == 0
    assert isinstance(after, Done)


def test_a_child_that_dies_while_idle_is_started_again_by_the_next_request():
    async def run():
        async with loaded() as engine:
            os.kill((await engine.stats()).pid, signal.SIGKILL)
            await asyncio.sleep(0.2)
            return await engine.evaluate([Score(QUESTION, "Paris.")], adapter=None)

    assert len(asyncio.run(run())) == 1


def test_after_a_crash_the_base_never_answers_in_place_of_the_version_in_use(tmp_path):
    adapter = small_adapter(real_base(), tmp_path, seed=1)

    async def run():
        async with loaded() as engine:
            await engine.activate(adapter)
            os.kill((await engine.stats()).pid, signal.SIGKILL)
            away = adapter.path.rename(tmp_path / "away")
            without = [(await collect(engine, QUESTION))[-1] for _ in range(2)]
            stats = await engine.stats()
            away.rename(adapter.path)
            return without, stats, (await collect(engine, QUESTION))[-1]

    without, stats, after = asyncio.run(run())
    assert [type(event) for event in without] == [Failed, Failed]
    assert stats.adapter is None
    assert isinstance(after, Done)
    assert after.adapter == adapter.sha256


def test_a_child_that_dies_mid_evaluation_raises_the_reason():
    async def run():
        async with loaded() as engine:
            items = [Greedy(LONG, 100)] * 8
            running = asyncio.create_task(engine.evaluate(items, adapter=None))
            await asyncio.sleep(0.3)
            os.kill((await engine.stats()).pid, signal.SIGABRT)
            with pytest.raises(KnownError) as caught:
                await running
            return caught.value, await engine.evaluate([Greedy(QUESTION, 4)], adapter=None)

    error, after = asyncio.run(run())
    assert error.subject == "it gave up (aborted)"
    assert len(after) == 1


def test_a_base_that_crashes_the_child_while_loading_is_not_loaded_again_unasked(tmp_path):
    class Doomed(ChildProcess):
        async def start(self) -> None:
            await super().start()
            assert self.pid is not None
            os.kill(self.pid, signal.SIGSTOP)  # so that it dies with the load request before it
            loop = asyncio.get_running_loop()
            loop.call_later(0.05, os.kill, self.pid, signal.SIGSEGV)
            loop.call_later(0.1, os.kill, self.pid, signal.SIGCONT)

    note = CrashNote(tmp_path / "crashed")

    async def run():
        engine = ChildEngine(Doomed("app.model.engine.backends.llama", name="engine"), note=note)
        with pytest.raises(KnownError):
            await engine.load(real_base(), context_tokens=1024)
        events = await collect(engine, QUESTION)
        pid = (await engine.stats()).pid
        await engine.close()
        return events, pid

    events, pid = asyncio.run(run())
    assert note.names(real_base().passport.id)
    assert isinstance(events[-1], Failed)
    assert "not loaded again unasked" in events[-1].error.hint
    assert pid == 0


def test_a_child_that_hangs_is_ended_and_named_and_the_next_answer_restarts_it():
    async def run():
        child = ChildProcess("app.model.engine.backends.llama", name="engine", silence_timeout_s=8)
        async with loaded(ChildEngine(child)) as engine:
            child._silence_timeout_s = 1.0
            psutil.Process((await engine.stats()).pid).suspend()
            hung = (await collect(engine, QUESTION))[-1]
            child._silence_timeout_s = 30.0
            return hung, (await collect(engine, QUESTION))[-1]

    hung, after = asyncio.run(run())
    assert isinstance(hung, Failed)
    assert hung.error.subject == "it stopped responding"
    assert isinstance(after, Done)


@pytest.mark.skipif(not hasattr(psutil.Process, "rlimit"), reason="limits another process")
def test_running_out_of_memory_is_named_and_the_engine_answers_after():
    async def run():
        async with loaded() as engine:
            process = psutil.Process((await engine.stats()).pid)
            limit = process.memory_info().vms + 20 * MIB
            process.rlimit(psutil.RLIMIT_AS, (limit, psutil.RLIM_INFINITY))
            with pytest.raises(KnownError) as caught:
                await engine.evaluate([Greedy(QUESTION, 4)] * 8, adapter=None)
            with contextlib.suppress(psutil.NoSuchProcess):
                process.rlimit(psutil.RLIMIT_AS, (psutil.RLIM_INFINITY, psutil.RLIM_INFINITY))
            return caught.value, (await collect(engine, QUESTION))[-1]

    error, after = asyncio.run(run())
    assert "smaller model" in error.hint
    assert isinstance(after, Done)


def test_stop_while_the_engine_restarts_cancels_the_answer():
    async def run():
        async with loaded() as engine:
            os.kill((await engine.stats()).pid, signal.SIGKILL)
            await asyncio.sleep(0.2)
            running = asyncio.create_task(collect(engine, LONG, Sampling(max_tokens=500)))
            await asyncio.sleep(0.1)
            await engine.stop()
            return await running

    assert asyncio.run(run()) == [Cancelled()]


# --- files that are not what they should be --------------------------------------------------------------------------


def truncated(base: BaseFiles, path: Path) -> None:
    with base.serving.open("rb") as source:
        path.write_bytes(source.read(8 * MIB))


BAD_BASES: dict[str, Callable[[BaseFiles, Path], object]] = {
    "truncated": truncated,
    "web page": lambda _, path: path.write_text("<!DOCTYPE html><html>404</html>"),
    "pickle": lambda _, path: path.write_bytes(pickle.dumps({"a": 1})),
    "empty": lambda _, path: path.write_bytes(b""),
    "companion file": lambda _, path: path.write_bytes(b"\x00\x05\x16\x07" + bytes(100)),
    "adapter": lambda base, path: path.write_bytes(_gguf(base, canonical_adapter(base, seed=1))),
}


def test_bad_model_files_are_refused_by_name_and_a_good_one_loads_after(tmp_path):
    base = real_base()

    async def refused(engine: LlamaEngine, what: str) -> tuple[VerificationError, object]:
        bad = replace(base, serving=tmp_path / "model.gguf")
        BAD_BASES[what](base, bad.serving)
        with pytest.raises(VerificationError) as caught:
            await engine.load(bad, context_tokens=512)
        return caught.value, (await collect(engine, QUESTION))[-1]

    async def run():
        engine = LlamaEngine()
        try:
            outcomes = {what: await refused(engine, what) for what in BAD_BASES}
            await engine.load(base, context_tokens=512)
            return outcomes, (await collect(engine, QUESTION))[-1]
        finally:
            await engine.close()

    outcomes, after = asyncio.run(run())
    for what, (error, blocked) in outcomes.items():
        assert error.subject == "model.gguf", what
        assert isinstance(blocked, Failed), what
        assert blocked.error.kind == "VerificationError", what
    assert isinstance(after, Done)


def test_a_model_larger_than_memory_is_refused_with_the_numbers(tmp_path):
    big = replace(real_base(), serving=tmp_path / "big.gguf")
    with big.serving.open("wb") as file:
        file.write(b"GGUF")
        file.truncate(psutil.virtual_memory().total * 4)

    async def run():
        engine = LlamaEngine()
        with pytest.raises(KnownError) as caught:
            await engine.load(big)
        await engine.close()
        return caught.value

    assert " MB are free" in asyncio.run(run()).hint


def _gguf(base: BaseFiles, data: bytes, sha256: str | None = None) -> bytes:
    return gguf_adapter(read_adapter(data, base.passport), base.passport, sha256 or digest(data))


def bad_adapters(base: BaseFiles, folder: Path) -> dict[str, AdapterRef]:
    """Return adapters that must not act, by what is wrong with them."""
    data = canonical_adapter(base, seed=1)
    good, sha256 = _gguf(base, data), digest(data)
    other = replace(base, passport=replace(base.passport, id="e" * 64))
    foreign = canonical_adapter(other, seed=1)
    not_a_number = good[:-2] + np.array([np.nan], "<f2").tobytes()
    contents = {
        "of another base": _gguf(other, foreign, sha256),
        "with other weights than asked for": _gguf(base, data, "d" * 64),
        "cut short": good[:-100],
        "with something behind it": good + bytes(4096),
        "a web page": b"<html></html>",
        "a pickle": pickle.dumps([1]),
        "not a number inside": not_a_number,
        "of another rank than announced": _announcing_rank(good, 4),
        "for another architecture": good.replace(b"llama", b"qwen2"),
    }
    refs = {}
    for number, (what, content) in enumerate(contents.items()):
        path = folder / f"{number}.gguf"
        path.write_bytes(content)
        refs[what] = AdapterRef(sha256, path)
    refs["the base itself"] = AdapterRef(sha256, base.serving)
    refs["missing"] = AdapterRef(sha256, folder / "none.gguf")
    return refs


def _announcing_rank(gguf: bytes, rank: int) -> bytes:
    at = gguf.index(b"ownmind.rank") + len(b"ownmind.rank") + 4
    return gguf[:at] + rank.to_bytes(4, "little") + gguf[at + 4 :]


def test_bad_adapters_are_refused_and_nothing_changes(tmp_path):
    base = real_base()

    async def run():
        async with loaded() as engine:
            good = small_adapter(base, tmp_path, seed=5)
            await engine.activate(good)
            before = (await collect(engine, QUESTION))[-1]
            pid = (await engine.stats()).pid
            refused: dict[str, AppError] = {}
            for what, ref in bad_adapters(base, tmp_path).items():
                with pytest.raises(AppError) as caught:
                    await engine.activate(ref)
                refused[what] = caught.value
                with pytest.raises(AppError):
                    await engine.evaluate([Score(QUESTION, "Paris.")], adapter=ref)
            after = (await collect(engine, QUESTION))[-1]
            return refused, before, after, pid == (await engine.stats()).pid

    refused, before, after, same_child = asyncio.run(run())
    assert same_child
    missing = refused.pop("missing")
    assert isinstance(missing, KnownError)
    assert {what: type(error) for what, error in refused.items()} == dict.fromkeys(refused, VerificationError)
    assert isinstance(before, Done)
    assert isinstance(after, Done)
    assert (after.text, after.adapter) == (before.text, before.adapter)
    assert before.adapter is not None
