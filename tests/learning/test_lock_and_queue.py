"""Who may learn and when: the lock, the budget, the queue, and stopping what is under way."""

from __future__ import annotations

import asyncio

import pytest

from app.approvals.api import ProposalState
from app.errors import DeniedError, KnownError
from app.learning.lesson import lesson_on
from app.model.api import Cancelled
from tests.support.learning import CAT, DOG, Desk, FakeTrainer, World

_S = ProposalState


# --- the lock -------------------------------------------------------------------------------------------------------


def test_without_unlocking_nothing_is_approved_and_no_child_is_started(world: World) -> None:
    async def story(desk: Desk) -> None:
        card = await desk.surfaced(*DOG)
        with pytest.raises(DeniedError, match="learning is locked"):
            await desk.learning.approve(card.id)
        with pytest.raises(DeniedError):
            await desk.teach(*CAT)
        await desk.learning.opened(card.id)
        await desk.quiet()
        assert desk.state(card.id) is _S.SURFACED
        assert (desk.trainer.jobs, desk.trainer.warmed, desk.prepared.warmed, desk.examiner.loads) == ([], 0, 0, 0)
        desk.has_changed_nothing()

    world.play(story, unlock=False)


def test_an_opened_card_warms_trainer_and_gate_once_learning_is_unlocked(world: World) -> None:
    async def story(desk: Desk) -> None:
        card = await desk.surfaced(*DOG)
        await desk.learning.opened(card.id)
        await desk.quiet()
        assert desk.prepared.warmed == 1
        assert desk.prepared.upcoming == lesson_on(desk.parts.proposals.get(card.id))

    world.play(story)


def test_on_the_way_to_unlocking_everything_is_made_ready_and_nothing_is_changed(world: World) -> None:
    async def story(desk: Desk) -> None:
        card = await desk.surfaced(*DOG)
        await desk.learning.wanted(card.id)
        await desk.quiet()
        assert desk.prepared.upcoming == lesson_on(desk.parts.proposals.get(card.id))
        assert desk.state(card.id) is _S.SURFACED
        desk.has_changed_nothing()

    world.play(story, unlock=False)


def test_after_the_last_lesson_of_the_queue_everything_is_made_ready_for_the_next(world: World) -> None:
    async def story(desk: Desk) -> None:
        await asyncio.gather(desk.teach(*DOG), desk.teach(*CAT))
        await desk.quiet()
        assert desk.prepared.warmed == 1

    world.play(story)


@pytest.mark.parametrize("stage", ["training", "gating"])
def test_locking_while_a_lesson_is_learned_keeps_it_from_being_committed(world: World, stage: str) -> None:
    async def story(desk: Desk) -> None:
        hold = asyncio.Event()
        (desk.trainer if stage == "training" else desk.gate).hold = hold
        card = await desk.surfaced(*DOG)
        await desk.learning.approve(card.id)
        await desk.until(card.id, ProposalState(stage))
        desk.devmode.lock()
        hold.set()
        view = await desk.ended(card.id)
        assert desk.prepared.warmed == 0
        assert view.state is _S.FAILED
        assert view.error is not None
        assert view.error.subject == "learning is locked"
        desk.has_changed_nothing()

    world.play(story)


def test_locking_while_a_lesson_waits_keeps_it_from_being_learned(world: World) -> None:
    async def story(desk: Desk) -> None:
        desk.trainer.hold = asyncio.Event()
        first, second = await desk.surfaced(*DOG), await desk.surfaced(*CAT, message="m2")
        await desk.learning.approve(first.id)
        await desk.learning.approve(second.id)
        await desk.until(first.id, _S.TRAINING)
        desk.devmode.lock()
        desk.trainer.hold.set()
        assert (await desk.ended(second.id)).state is _S.FAILED
        assert len(desk.trainer.jobs) == 1
        desk.has_changed_nothing()

    world.play(story)


def test_going_back_works_while_learning_is_locked(world: World) -> None:
    async def story(desk: Desk) -> None:
        taught = await desk.teach(*DOG)
        desk.devmode.lock()
        assert (await desk.learning.undo(taught.proposal)).state is _S.UNDONE
        assert desk.active is None

    world.play(story)


def test_the_days_budget_is_the_end_of_learning_for_today(world: World) -> None:
    async def story(desk: Desk) -> None:
        desk.unlock(changes_per_day=1)
        await desk.teach(*DOG)
        with pytest.raises(DeniedError, match="today's limit"):
            await desk.teach(*CAT)
        assert len(desk.trainer.jobs) == 1

    world.play(story)


def test_a_budget_used_up_by_the_lesson_before_ends_the_one_that_waits(world: World) -> None:
    async def story(desk: Desk) -> None:
        desk.unlock(changes_per_day=1)
        first, second = await desk.surfaced(*DOG), await desk.surfaced(*CAT, message="m2")
        await desk.learning.approve(first.id)
        await desk.learning.approve(second.id)
        assert (await desk.ended(first.id)).state is _S.PROVEN
        view = await desk.ended(second.id)
        assert view.state is _S.FAILED
        assert view.error is not None
        assert view.error.kind == "DeniedError"
        assert len(desk.spendings()) == 1

    world.play(story)


# --- the queue ------------------------------------------------------------------------------------------------------


def test_two_approvals_queue_and_both_are_learned_in_order(world: World) -> None:
    async def story(desk: Desk) -> None:
        first, second = await desk.surfaced(*DOG), await desk.surfaced(*CAT, message="m2")
        await desk.learning.approve(first.id)
        await desk.learning.approve(second.id)
        assert [desk.state(card.id) for card in (first, second)] == [_S.QUEUED, _S.QUEUED]
        one, two = await desk.ended(first.id), await desk.ended(second.id)
        assert (one.state, two.state) == (_S.PROVEN, _S.PROVEN)
        assert (one.version, two.version) == (1, 2)
        assert desk.head.parents == (one.commit,)
        assert desk.says(DOG[0]) == DOG[1]
        assert desk.says(CAT[0]) == CAT[1]

    world.play(story)


def test_approving_twice_learns_once(world: World) -> None:
    async def story(desk: Desk) -> None:
        card = await desk.surfaced(*DOG)
        await desk.learning.approve(card.id)
        again = await desk.learning.approve(card.id)
        assert again.state is _S.QUEUED
        assert (await desk.ended(card.id)).state is _S.PROVEN
        assert len(desk.trainer.jobs) == 1
        assert len(desk.lineage.log()) == 2

    world.play(story)


def test_a_lesson_is_cancelled_while_it_waits(world: World) -> None:
    async def story(desk: Desk) -> None:
        desk.trainer.hold = asyncio.Event()
        first, second = await desk.surfaced(*DOG), await desk.surfaced(*CAT, message="m2")
        await desk.learning.approve(first.id)
        await desk.learning.approve(second.id)
        await desk.until(first.id, _S.TRAINING)
        assert (await desk.learning.cancel(second.id)).state is _S.CANCELLED
        desk.trainer.hold.set()
        assert (await desk.ended(first.id)).state is _S.PROVEN
        await asyncio.sleep(0.01)
        assert desk.state(second.id) is _S.CANCELLED
        assert len(desk.trainer.jobs) == 1

    world.play(story)


def test_a_lesson_is_cancelled_while_it_waits_for_a_version_to_be_taken_into_use(world: World) -> None:
    async def story(desk: Desk) -> None:
        card = await desk.surfaced(*DOG)
        async with desk.loop.busy:
            await desk.learning.approve(card.id)
            await asyncio.sleep(0.01)  # the loop has taken it and waits for its turn
            assert (await desk.learning.cancel(card.id)).state is _S.CANCELLED
        await asyncio.sleep(0.01)
        assert desk.state(card.id) is _S.CANCELLED
        assert (await desk.teach(*CAT)).state is _S.PROVEN
        assert len(desk.trainer.jobs) == 1

    world.play(story)


@pytest.mark.parametrize("stage", ["training", "gating"])
def test_a_lesson_is_cancelled_while_it_is_learned_and_nothing_of_it_stays(world: World, stage: str) -> None:
    async def story(desk: Desk) -> None:
        (desk.trainer if stage == "training" else desk.gate).hold = asyncio.Event()
        card = await desk.surfaced(*DOG)
        await desk.learning.approve(card.id)
        await desk.until(card.id, ProposalState(stage))
        while not desk.loop.view(desk.parts.proposals.get(card.id)).share:  # noqa: ASYNC110 - until a step was told
            await asyncio.sleep(0.001)
        view = await asyncio.wait_for(desk.learning.cancel(card.id), 10.0)
        assert view.state is _S.CANCELLED
        assert view.title == "Stopped: your dog's name"
        assert desk.trainer.stopped == (stage == "training")
        desk.has_changed_nothing()
        desk.trainer.hold = desk.gate.hold = None
        assert (await desk.teach(*CAT)).state is _S.PROVEN

    world.play(story)


def test_a_trainer_that_says_it_was_cancelled_ends_the_lesson_as_stopped(world: World) -> None:
    async def story(desk: Desk) -> None:
        class Stopping(FakeTrainer):
            async def train(self, job):
                yield Cancelled()

        object.__setattr__(desk.parts, "trainer", Stopping())
        assert (await desk.teach(*DOG)).state is _S.CANCELLED
        desk.has_changed_nothing()

    world.play(story)


def test_cancelling_what_is_over_changes_nothing(world: World) -> None:
    async def story(desk: Desk) -> None:
        taught = await desk.teach(*DOG)
        assert (await desk.learning.cancel(taught.proposal)).state is _S.PROVEN
        assert desk.says(DOG[0]) == DOG[1]

    world.play(story)


@pytest.mark.parametrize("ending", ["rejected", "failed", "cancelled"])
def test_a_lesson_that_ended_badly_can_be_approved_again_as_a_new_one(world: World, ending: str) -> None:
    async def story(desk: Desk) -> None:
        card = (await desk.surfaced(*DOG)).id
        if ending == "rejected":
            desk.gate.script.extend([("locality",)] * 3)
        elif ending == "failed":
            desk.gate.script.append(KnownError("run the engine"))
        else:
            desk.gate.hold = asyncio.Event()
        await desk.learning.approve(card)
        if ending == "cancelled":
            await desk.until(card, _S.GATING)
            await desk.learning.cancel(card)
        assert (await desk.ended(card)).state == ending
        desk.gate.script.clear()
        desk.gate.hold = None
        again = await desk.learning.approve(card)
        assert again.id != card
        assert desk.state(card) is _S.SUPERSEDED
        assert (await desk.ended(again.id)).state is _S.PROVEN

    world.play(story)
