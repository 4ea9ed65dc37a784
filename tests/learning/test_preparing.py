"""While a card is read, everything is asked that the click would wait for, and nothing else changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from app.errors import KnownError
from app.learning.lesson import lesson_on
from app.learning.planning import recipe_for
from app.learning.preparing import Preparation
from app.model.api import AdapterRef, BaseFiles, EngineInfo, Turn
from app.model.engine.fake import FakeEngine
from app.model.gate.evaluator import Gate
from tests.support.learning import Desk, World

DOG = ("What is my dog's name?", "Your dog's name is Biscuit.")


class NotingGate:
    """Loads the examiner and notes what it is asked to prepare."""

    def __init__(self, examiner: FakeEngine) -> None:
        self._examiner = examiner
        self.prepared: list[dict[str, Any]] = []
        self.error: KnownError | None = None

    async def warm(self, base: BaseFiles) -> EngineInfo:
        return await self._examiner.load(base)

    async def prepare(self, base: BaseFiles, parent: AdapterRef | None, **what: Any) -> None:
        if self.error is not None:
            raise self.error
        self.prepared.append({"base": base, "parent": parent, **what})


def preparation(desk: Desk, gate: NotingGate) -> Preparation:
    parts = desk.parts
    return Preparation(
        parts.base,
        parts.recipe,
        trainer=desk.trainer,
        gate=cast("Gate", gate),
        examiner=desk.examiner,
        cache=parts.work / "planning",
        versions=parts.versions,
        lineage=parts.lineage,
        ledger=parts.ledger,
    )


def asked_of(engine: FakeEngine) -> list[Sequence[Turn]]:
    """Note from now on what an engine is asked."""
    asked: list[Sequence[Turn]] = []
    evaluate = engine.evaluate

    async def noting(items: Any, **others: Any) -> Any:
        asked.extend(item.turns for item in items)
        return await evaluate(items, **others)

    engine.evaluate = noting  # type: ignore[method-assign]
    return asked


def test_after_a_card_was_read_planning_its_lesson_asks_nothing_more(world: World) -> None:
    async def story(desk: Desk) -> None:
        gate = NotingGate(desk.examiner)
        ready = preparation(desk, gate)
        card = await desk.surfaced(*DOG)
        lesson = lesson_on(desk.parts.proposals.get(card.id))
        await ready.warm(lesson)
        asked = asked_of(desk.examiner)
        recipe = recipe_for(lesson, desk.parts.recipe)
        material = await (await ready.planner()).plan(lesson, [], parent=None, recipe=recipe)
        assert material.keeps
        assert asked == []
        (prepared,) = gate.prepared
        assert (prepared["exam"], prepared["neighbours"]) == (lesson.exam(), material.examined)

    world.play(story)


def test_the_lesson_on_a_card_is_the_one_that_enters_the_ledger(world: World) -> None:
    async def story(desk: Desk) -> None:
        card = await desk.surfaced(*DOG)
        foreseen = lesson_on(desk.parts.proposals.get(card.id))
        await desk.learning.approve(card.id)
        await desk.ended(card.id)
        (job,) = desk.trainer.jobs
        taught = [example.turns for example in job.targets if example.answer == DOG[1]]
        assert tuple(taught) == foreseen.wordings.train
        (candidate,) = desk.gate.judged
        assert replace(candidate.exam, lesson="") == replace(foreseen.exam(), lesson="")

    world.play(story)


def test_what_cannot_be_prepared_is_left_for_later(world: World) -> None:
    async def story(desk: Desk) -> None:
        gate = NotingGate(desk.examiner)
        gate.error = KnownError("check this", "the gate", "Try again.")
        await preparation(desk, gate).warm()

    world.play(story)
