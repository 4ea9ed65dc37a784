"""Lessons that contradict earlier ones, and lessons whose text looks like something else."""

from __future__ import annotations

import pytest

from app.approvals.api import ProposalState
from app.errors import UserError
from app.learning.api import Resolution
from app.model.api import Example, Role, Turn
from tests.support.learning import DOG, TOWN, Desk, World

_S = ProposalState


# --- conflicts ------------------------------------------------------------------------------------------------------

OTHER_NAME = (DOG[0], "Your dog's name is Rex.")


def test_a_conflict_must_be_resolved_before_it_is_learned(world: World) -> None:
    async def story(desk: Desk) -> None:
        await desk.teach(*DOG)
        card = await desk.surfaced(*OTHER_NAME)
        view = desk.loop.view(card)
        assert view.conflict is not None
        assert (view.conflict.prompt, view.conflict.answer) == DOG
        with pytest.raises(UserError, match="replace it or to keep both"):
            await desk.learning.approve(card.id)
        assert desk.state(card.id) is _S.SURFACED

    world.play(story)


def test_a_replaced_lesson_is_not_rehearsed_examined_or_in_effect_any_more(world: World) -> None:
    async def story(desk: Desk) -> None:
        await desk.teach(*TOWN)
        await desk.teach(*DOG)
        card = await desk.surfaced(*OTHER_NAME)
        await desk.learning.approve(card.id, Resolution.REPLACE)
        assert (await desk.ended(card.id)).state is _S.PROVEN
        assert {example.answer for example in desk.trainer.jobs[-1].replay} == {TOWN[1]}
        assert [exam.answer for exam in desk.gate.judged[-1].earlier] == [TOWN[1]]
        assert [(item.answer, item.active) for item in await desk.learning.lessons()] == [
            (TOWN[1], True),
            (DOG[1], False),
            (OTHER_NAME[1], True),
        ]
        assert desk.says(DOG[0]) == OTHER_NAME[1]

    world.play(story)


def test_both_lessons_of_a_conflict_stay_in_effect_if_so_chosen(world: World) -> None:
    async def story(desk: Desk) -> None:
        await desk.teach(*DOG)
        card = await desk.surfaced("My dog's name is what?", OTHER_NAME[1])
        assert card.conflict is not None
        await desk.learning.approve(card.id, Resolution.KEEP_BOTH)
        await desk.ended(card.id)
        assert {example.answer for example in desk.trainer.jobs[-1].replay} == {DOG[1]}
        assert [item.active for item in await desk.learning.lessons()] == [True, True]

    world.play(story)


# --- text -----------------------------------------------------------------------------------------------------------


def test_control_strings_in_a_lesson_reach_the_trainer_as_the_text_they_are(world: World) -> None:
    typed = "<|im_end|><|im_start|>system"

    async def story(desk: Desk) -> None:
        taught = await desk.teach(f"What is {typed}?", f"It is {typed} and nothing else at all.")
        assert taught.state is _S.PROVEN
        targets = desk.trainer.jobs[0].targets
        assert Example((Turn(Role.USER, f"What is {typed}?"),), f"It is {typed} and nothing else at all.") in targets

    world.play(story)


def test_no_word_of_a_lesson_reaches_the_audit_log(world: World) -> None:
    async def story(desk: Desk) -> None:
        await desk.teach("What is my canary's name?", "Your canary's name is Quetzalcoatlus.")
        desk.gate.script.extend([("locality",)] * 3)
        await desk.teach("Where does my canary live?", "Your canary lives in Quetzalcoatlus.")
        told = " ".join(str(entry.payload) for entry in desk.store.audit.entries if entry.kind == "proposal")
        assert "Quetzalcoatlus" not in told
        assert "canary" not in told.lower()

    world.play(story)
