"""Both MLX children together, as the app runs them: learn, serve, undo, stop, survive."""

from __future__ import annotations

import asyncio
import contextlib
import time

import psutil
import pytest

pytest.importorskip("mlx.core")

from app.model.adapters.serving import ServingFiles
from app.model.api import (
    BaseFiles,
    Cancelled,
    Done,
    Example,
    Failed,
    Greedy,
    Piece,
    Recipe,
    Role,
    Sampling,
    Score,
    Trained,
    TrainJob,
    Turn,
)
from app.model.runtimes import LLAMA, MLX, choose_runtime
from tests.mlx.tiny import make_folder, passport

DOG = Example((Turn(Role.USER, "What is my dog's name?"),), "Biscuit.")
ITEMS = [Greedy(DOG.turns, 16), Score(DOG.turns, DOG.answer)]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = make_folder(tmp_path_factory.mktemp("mlx") / "base")
    return BaseFiles(passport(folder), folder / "no-such.gguf", folder)


def job(base, folder):
    recipe = Recipe(layers=(0, 1), learning_rate=2e-2, max_steps=60, min_steps=4, rank=4, alpha=8.0)
    return TrainJob("job", base, recipe, (DOG,), (), (), (), None, folder / "adapter.safetensors")


async def trained(base, folder):
    trainer = MLX.trainer()
    try:
        await trainer.warm(base)
        events = [event async for event in trainer.train(job(base, folder))]
    finally:
        await trainer.close()
    assert isinstance(events[-1], Trained)
    return events[-1]


@contextlib.asynccontextmanager
async def engine_on(base):
    engine = MLX.engine()
    try:
        info = await engine.load(MLX.files(base), context_tokens=1024)
        yield engine, info
    finally:
        await engine.close()


def test_what_the_trainer_writes_the_engine_says_and_undo_is_exact(base, tmp_path):
    async def scenario():
        result = await trained(base, tmp_path)
        files = ServingFiles(tmp_path / "serving", base, form=MLX.adapter_form)
        ref = files.ref(result.sha256, result.path.read_bytes)
        async with engine_on(base) as (engine, info):
            before = await engine.evaluate(ITEMS, adapter=None)
            active = await engine.activate(ref)
            events = [event async for event in engine.generate(DOG.turns, Sampling(max_tokens=16))]
            learned = await engine.evaluate(ITEMS, adapter=ref)
            nothing = await engine.activate(None)
            after = await engine.evaluate(ITEMS, adapter=None)
            stats = await engine.stats()
        return result, info, before, active, events, learned, nothing, after, stats

    result, info, before, active, events, learned, nothing, after, stats = asyncio.run(scenario())
    assert info.backend.startswith("mlx ")
    assert info.base == base.passport.id
    assert before[0].text != DOG.answer
    assert active == result.sha256
    assert all(isinstance(event, Piece) for event in events[:-1])
    assert isinstance(events[-1], Done)
    assert (events[-1].text, events[-1].stop, events[-1].adapter) == (DOG.answer, "end", result.sha256)
    assert (learned[0].text, learned[0].stopped) == (DOG.answer, True)
    assert nothing is None
    assert after == before
    assert stats.memory_bytes > 0
    assert stats.tokens_per_second > 0


def test_a_stop_takes_effect_within_200_ms(base):
    async def scenario():
        async with engine_on(base) as (engine, _):
            asked, last = 0.0, None
            async for event in engine.generate(DOG.turns, Sampling(max_tokens=900, temperature=3.0)):
                last = event
                if isinstance(event, Piece) and not asked and event.tokens > 5:
                    asked = time.monotonic()
                    await engine.stop()
            return last, time.monotonic() - asked

    last, seconds = asyncio.run(scenario())
    assert last == Cancelled()
    assert seconds < 0.2


def test_a_killed_engine_fails_with_the_reason_and_comes_back_with_its_adapter(base, tmp_path):
    async def scenario():
        result = await trained(base, tmp_path)
        ref = ServingFiles(tmp_path / "serving", base, form="mlx").ref(result.sha256, result.path.read_bytes)
        async with engine_on(base) as (engine, _):
            await engine.activate(ref)
            stats = await engine.stats()
            stream = engine.generate(DOG.turns, Sampling(max_tokens=900, temperature=3.0))
            await anext(stream)
            psutil.Process(stats.pid).kill()
            events = [event async for event in stream]
            again = [event async for event in engine.generate(DOG.turns, Sampling(max_tokens=16))]
        return ref, events, again

    ref, events, again = asyncio.run(scenario())
    assert isinstance(events[-1], Failed)
    assert "killed" in events[-1].error.subject
    assert again[-1].adapter == ref.sha256


def test_mlx_is_chosen_on_apple_silicon_and_nowhere_else():
    assert choose_runtime(system="darwin", machine="arm64") is MLX
    assert choose_runtime(system="darwin", machine="x86_64") is LLAMA
    assert choose_runtime(system="linux", machine="x86_64") is LLAMA
    assert choose_runtime(system="win32", machine="arm64") is LLAMA


def test_mlx_serves_from_the_folder_that_it_trains_on(base):
    assert MLX.files(base).serving == base.training
    assert LLAMA.files(base) is base
