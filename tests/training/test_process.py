"""The trainer as a child process: low priority, quick to stop, and no lesson is lost or half-written when it dies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest

from app.errors import ErrorInfo
from app.model.api import Cancelled, Failed, Trained, TrainEvent, Training, TrainJob
from app.model.training.process import NICE, TrainerProcess
from tests.training.tiny import RECIPE, dog_job, make_base

ENDLESS = replace(RECIPE, margin=1e9, max_steps=10**6)
SHORT = replace(RECIPE, max_steps=6, min_steps=2)
QUICK_S = 1.0


@dataclass
class Story:
    """What was seen in the life of one trainer: children are slow to start, so one story serves many rules."""

    folder: Path
    nice: int = 0
    cancelled: TrainEvent | None = None
    cancel_seconds: float = 0.0
    abandon_seconds: float = 0.0
    killed: TrainEvent | None = None
    killed_pid: int = 0
    next_pid: int = 0
    learned: TrainEvent | None = None
    steps: int = 0
    closed_pid: int = 0

    def written(self) -> set[str]:
        return {path.name for path in self.folder.glob("*.*")}


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("process")
    base = make_base(folder / "base")
    output = folder / "out"
    output.mkdir()
    seen = Story(output)
    asyncio.run(_lived(seen, dog_job(base, output / "none.safetensors")))
    return seen


async def _lived(seen: Story, job: TrainJob) -> None:
    trainer = TrainerProcess()
    endless = replace(job, recipe=ENDLESS)
    try:
        await trainer.warm(job.base)
        seen.nice = psutil.Process(trainer.pid).nice()
        asked = 0.0

        async def cancel() -> None:
            nonlocal asked
            asked = time.monotonic()
            await trainer.cancel()

        seen.cancelled = await _until_third_step(trainer, endless, cancel)
        seen.cancel_seconds = time.monotonic() - asked
        seen.abandon_seconds = await _abandoned(trainer, endless)
        seen.killed_pid = trainer.pid or 0

        async def kill() -> None:
            os.kill(seen.killed_pid, signal.SIGKILL)

        seen.killed = await _until_third_step(trainer, endless, kill)
        async with contextlib.aclosing(
            trainer.train(replace(job, recipe=SHORT, output=job.output.with_name("learned.safetensors")))
        ) as events:
            async for event in events:
                seen.steps += isinstance(event, Training)
                seen.learned = event
        seen.next_pid = seen.closed_pid = trainer.pid or 0
    finally:
        await trainer.close()


async def _until_third_step(trainer: TrainerProcess, job: TrainJob, act: Callable[[], object]) -> TrainEvent:
    last: TrainEvent | None = None
    async with contextlib.aclosing(trainer.train(job)) as events:
        async for event in events:
            last = event
            if isinstance(event, Training) and event.step == 3:
                result = act()
                assert asyncio.iscoroutine(result)
                await result
    assert last is not None
    return last


async def _abandoned(trainer: TrainerProcess, job: TrainJob) -> float:
    """Stop listening after a step and return how long that took."""
    async with contextlib.aclosing(trainer.train(job)) as events:
        async for _ in events:
            asked = time.monotonic()
            break
    return time.monotonic() - asked


def test_the_trainer_runs_at_low_priority(story: Story) -> None:
    assert story.nice >= NICE


def test_a_running_job_is_cancelled_within_a_second(story: Story) -> None:
    assert story.cancelled == Cancelled()
    assert story.cancel_seconds < QUICK_S


def test_a_job_that_nobody_listens_to_any_more_ends_within_a_second(story: Story) -> None:
    assert story.abandon_seconds < QUICK_S


def test_a_killed_trainer_ends_its_job_with_the_real_reason(story: Story) -> None:
    assert isinstance(story.killed, Failed)
    assert isinstance(story.killed.error, ErrorInfo)
    assert story.killed.error.kind == "KnownError"
    assert "killed" in story.killed.error.subject
    assert story.killed.error.retryable


def test_after_a_kill_the_next_job_runs_in_a_new_child(story: Story) -> None:
    assert isinstance(story.learned, Trained)
    assert story.steps == story.learned.steps > 0
    assert story.next_pid not in (0, story.killed_pid)


def test_cancelled_abandoned_and_killed_jobs_leave_no_file(story: Story) -> None:
    assert story.written() == {"learned.safetensors"}


def test_closing_ends_the_child(story: Story) -> None:
    assert not psutil.pid_exists(story.closed_pid)
