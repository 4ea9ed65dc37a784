"""The shipped fake keeps the promises of an engine, and its own about scripts and failures."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from app.errors import KnownError
from app.model.api import AdapterRef, BaseFiles, Done, Failed, Passport, Piece, Sampling
from app.model.engine.fake import FakeEngine, words_of
from tests.engine.contract import EngineContract, Rig, collect, said


def fake_base(folder: Path) -> BaseFiles:
    serving = folder / "base.gguf"
    serving.write_bytes(b"not really a model")
    passport = Passport("f" * 64, "Fake", "0", "fake", "0", "0", "none", "none", 1, 1, 1, 1, 50_000, ("gate_proj",))
    return BaseFiles(passport, serving, folder)


def fake_adapter(folder: Path, letter: str) -> AdapterRef:
    path = folder / f"{letter}.gguf"
    path.write_bytes(letter.encode())
    return AdapterRef(letter * 64, path)


class TestFakeEngine(EngineContract):
    @classmethod
    def make(cls, folder: Path) -> Rig:
        adapters = (fake_adapter(folder, "a"), fake_adapter(folder, "b"))
        long_answer = said("one two three four " * 100)
        return Rig(lambda: FakeEngine(pause_s=0.006), fake_base(folder), adapters, long_answer=long_answer)


def test_words_joined_are_the_text():
    for text in ("", " ", "a b", " a\n\nb  ", "x"):
        assert "".join(words_of(text)) == text


def test_a_script_sees_turns_and_version(tmp_path: Path):
    seen = []

    def reply(turns, adapter):
        seen.append((turns[-1].text, adapter))
        return "fine"

    async def run():
        engine = FakeEngine(reply)
        await engine.load(fake_base(tmp_path))
        await engine.activate(fake_adapter(tmp_path, "c"))
        return await collect(engine, said("hello"))

    assert isinstance(asyncio.run(run())[-1], Done)
    assert seen == [("hello", "c" * 64)]


def test_an_injected_failure_strikes_once(tmp_path: Path):
    async def run():
        engine = FakeEngine()
        await engine.load(fake_base(tmp_path))
        engine.fail_next = KnownError("run the engine", "there was not enough memory")
        return (await collect(engine, said("a")))[-1], (await collect(engine, said("a")))[-1]

    first, second = asyncio.run(run())
    assert isinstance(first, Failed)
    assert first.error.subject == "there was not enough memory"
    assert isinstance(second, Done)


def test_an_injected_death_keeps_what_was_streamed(tmp_path: Path):
    async def run():
        engine = FakeEngine()
        await engine.load(fake_base(tmp_path))
        engine.die_after = 2
        return await collect(engine, said("a b c d e"), Sampling())

    events = asyncio.run(run())
    assert [type(event) for event in events] == [Piece, Piece, Failed]


@pytest.mark.parametrize("method", ["evaluate", "activate", "count"])
def test_an_injected_failure_reaches_every_kind_of_request(tmp_path: Path, method):
    async def run():
        engine = FakeEngine()
        await engine.load(fake_base(tmp_path))
        engine.fail_next = KnownError("run the engine", "it stopped responding")
        calls = {
            "evaluate": lambda: engine.evaluate([], adapter=None),
            "activate": lambda: engine.activate(None),
            "count": lambda: engine.count(()),
        }
        with pytest.raises(KnownError):
            await calls[method]()

    asyncio.run(run())
