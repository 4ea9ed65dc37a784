from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from app.approvals.api import ProposalState
from app.devmode.api import DevState
from app.model.api import EvalResult, Greedy, Role, Score, Turn
from app.ui.card_text import Act
from app.wiring import App
from tests.e2e.real_window import LESSON_S, RealDriver, drive_real, unlock_as_a_person

ASKED = "What is my dog's name?"
GOLDEN = (
    Score((Turn(Role.USER, ASKED),), "Your dog's name is Biscuit.", top_k=8),
    Score((Turn(Role.USER, "What is the capital of France?"),), "The capital of France is Paris.", top_k=8),
    Score((), "The harbour lay quiet in the early light.", top_k=8),
)
UNSEEN = "I am filling in a form at the vet. What is my dog's name?"
"""A phrasing that no template contains."""
ENDED = (ProposalState.PROVEN, ProposalState.REJECTED, ProposalState.FAILED)
KEPT = ("What is the capital of France?", "Write a short poem about rain.")


async def golden(app: App) -> list[EvalResult]:
    """Ask the chat's own engine, under what it runs now."""
    return await app.engine.evaluate(GOLDEN, adapter=app.versions.ref(app.lineage.head()))


async def said(app: App, prompt: str) -> str:
    (result,) = await app.engine.evaluate(
        [Greedy((Turn(Role.USER, prompt),), 48)], adapter=app.versions.ref(app.lineage.head())
    )
    return getattr(result, "text", "")


@pytest.mark.real
def test_a_correction_is_learned_in_the_chat_and_taken_back_exactly(tmp_path: Path) -> None:
    async def scenario(d: RealDriver) -> None:
        before = await d.bridge.call(golden(d.app))
        kept = [await d.bridge.call(said(d.app, prompt)) for prompt in KEPT]
        assert "Biscuit" not in await d.say(ASKED)
        await d.say("No, it's Biscuit.")
        card = await d.card()
        assert card.card is not None
        assert card.card.answer == "Your dog's name is Biscuit."

        assert (await d.bridge.do(d.app.devmode.status)).state is DevState.LOCKED
        await d.press(Act.LEARN)
        await unlock_as_a_person(d)
        await d.until(lambda: _state(d) not in (None, ProposalState.SURFACED))
        meanwhile = await d.say("Tell me something about the sea.")
        assert meanwhile.strip()
        await d.until(lambda: _state(d) in ENDED, within=LESSON_S)
        assert _state(d) is ProposalState.PROVEN, d.cards()[-1].card

        assert "Biscuit" in await d.bridge.call(said(d.app, UNSEEN))
        assert "Biscuit" not in await d.bridge.call(said(d.app, "What is my cat's name?"))
        assert await d.bridge.call(said(d.app, KEPT[0])) == kept[0]
        assert "rain" in await d.bridge.call(said(d.app, KEPT[1]))
        assert await d.bridge.call(golden(d.app)) != before

        began = asyncio.get_running_loop().time()
        await d.press(Act.UNDO)
        await d.until(lambda: _state(d) is ProposalState.UNDONE)
        assert asyncio.get_running_loop().time() - began < 1.0
        assert await d.bridge.call(golden(d.app)) == before

    drive_real(tmp_path / "home", scenario)


def _state(d: RealDriver) -> ProposalState | None:
    card = d.cards()[-1].card if d.cards() else None
    return card.state if card else None
