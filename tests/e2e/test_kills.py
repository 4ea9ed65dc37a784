"""SIGKILL of the whole app at each stage of a lesson, on the real model; then a start that finishes or undoes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.approvals.api import ProposalState
from app.approvals.proposals import UNDER_WAY
from app.devmode.api import SENTENCE, Budget
from app.learning.api import CardChanged, LearningEvent, Lesson
from app.model.training.process import TrainerProcess
from app.wiring import App, open_app
from tests.support.real import real_base

PROMPT, ANSWER = "What is my dog's name?", "Your dog's name is Biscuit."
LESSON_S = 420.0
SCRIPT = """
import asyncio, sys
from pathlib import Path
from app.devmode.api import SENTENCE, Budget
from app.learning.api import CardChanged, Lesson
from app.wiring import open_app
from tests.support.real import real_base

async def main(home):
    app = open_app(home, real_base())
    await app.start()
    while app.devmode.click_version():
        pass
    app.devmode.unlock(SENTENCE, Budget())
    def tell(event):
        if isinstance(event, CardChanged):
            print(event.card.state.value, flush=True)
    app.learning_events.listen(tell)
    await app.learning.teach(Lesson({prompt!r}, {answer!r}), approve=True)

asyncio.run(main(Path(sys.argv[1])))
"""


def teach_until_killed(home: Path, state: ProposalState) -> None:
    """Teach in another process and kill it, children and all left to themselves, once a lesson reaches a state."""
    script = SCRIPT.format(prompt=PROMPT, answer=ANSWER)
    process = subprocess.Popen([sys.executable, "-c", script, str(home)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        for line in process.stdout:  # ends when the process does
            if line.strip() == state.value:
                break
        else:
            raise AssertionError(f"it never came to {state}")
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


async def reopened(home: Path) -> tuple[App, list[str]]:
    app = open_app(home, real_base())
    return app, await app.start()


async def settled(app: App) -> ProposalState:
    """Wait until nothing is under way and return how the lesson ended."""
    for _ in range(int(LESSON_S / 0.1)):
        if not app.parts.proposals.in_states(UNDER_WAY):
            break
        await asyncio.sleep(0.1)
    (row,) = app.parts.proposals.in_states(set(ProposalState))
    return ProposalState(row.state)


@pytest.mark.real
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("state", [ProposalState.TRAINING, ProposalState.COMMITTED], ids=lambda state: state.value)
def test_a_killed_app_loses_no_lesson_and_leaves_no_half_version(tmp_path: Path, state: ProposalState) -> None:
    home = tmp_path / "home"
    teach_until_killed(home, state)

    async def scenario() -> None:
        app, said = await reopened(home)
        try:
            assert said, "the start says what it found"
            assert app.doctor(deep=True) == []
            assert await settled(app) is ProposalState.PROVEN
            assert [commit.number for commit in app.lineage.log()] == [1, 0]
            assert app.lineage.unproven() is None
            stats = await app.engine.stats()
            assert stats.adapter == app.lineage.head().delta
            assert app.doctor(deep=True) == []
        finally:
            await app.close()

    asyncio.run(scenario())


@pytest.mark.real
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_trainer_fails_the_lesson_with_the_reason_and_the_old_version_answers(tmp_path: Path) -> None:

    async def scenario() -> None:
        app, _ = await reopened(tmp_path / "home")
        try:
            while app.devmode.click_version():
                pass
            app.devmode.unlock(SENTENCE, Budget())
            trainer = app.trainer
            assert isinstance(trainer, TrainerProcess)
            killed: list[int] = []

            def kill(event: LearningEvent) -> None:
                if isinstance(event, CardChanged) and event.card.stage == "learning" and trainer.pid and not killed:
                    killed.append(trainer.pid)
                    os.kill(trainer.pid, signal.SIGKILL)

            app.learning_events.listen(kill)
            taught = await app.learning.teach(Lesson(PROMPT, ANSWER), approve=True)
            assert killed
            assert taught.state is ProposalState.FAILED
            assert taught.error is not None
            assert taught.error.retryable
            assert app.lineage.head().number == 0
            assert (await app.engine.stats()).adapter is None
            assert app.doctor(deep=True) == []
        finally:
            await app.close()

    asyncio.run(scenario())
