"""Undo, use again, choosing versions, and forgetting: exact, logged, and true on every card."""

from __future__ import annotations

import asyncio

import pytest

from app.approvals.api import ProposalState
from app.errors import AppError, DeniedError, ErrorInfo, KnownError, UserError
from app.learning.api import Resolution, Taught
from app.model.api import Commit
from tests.support.learning import CAT, DOG, TOWN, Desk, World

_S = ProposalState
OTHER_NAME = (DOG[0], "Your dog's name is Rex.")
THIRD_NAME = (DOG[0], "Your dog's name is Otto.")


async def taught(desk: Desk, *lessons: tuple[str, str]) -> list[Taught]:
    found = [await desk.teach(*lesson) for lesson in lessons]
    assert all(each.state is _S.PROVEN for each in found)
    return found


def version(desk: Desk, of: Taught) -> Commit:
    return desk.lineage.get(of.commit or "")


async def in_use(desk: Desk) -> list[str]:
    return [lesson.answer for lesson in await desk.learning.lessons() if lesson.active]


# --- undo -----------------------------------------------------------------------------------------------------------


def test_undo_takes_back_exactly_the_version_before(world: World) -> None:
    async def story(desk: Desk) -> None:
        first, second = await taught(desk, DOG, CAT)
        view = await desk.learning.undo(second.proposal)
        assert view.state is _S.UNDONE
        assert view.title == "Taken back: your cat's name"
        assert not view.can_undo
        assert desk.head == version(desk, first)
        assert desk.active == version(desk, first).delta
        assert desk.says(CAT[0]) != CAT[1]
        assert desk.says(DOG[0]) == DOG[1]
        assert await in_use(desk) == [DOG[1]]

    world.play(story)


def test_undo_of_the_first_lesson_leaves_the_base_alone_in_the_engine(world: World) -> None:
    async def story(desk: Desk) -> None:
        (only,) = await taught(desk, DOG)
        await desk.learning.undo(only.proposal)
        assert desk.head == desk.lineage.root()
        assert desk.active is None

    world.play(story)


def test_undo_makes_no_version_and_costs_nothing(world: World) -> None:
    async def story(desk: Desk) -> None:
        (only,) = await taught(desk, DOG)
        before = (desk.lineage.log(), desk.spendings(), len(desk.trainer.jobs))
        await desk.learning.undo(only.proposal)
        assert (desk.lineage.log(), desk.spendings(), len(desk.trainer.jobs)) == before
        last = [entry for entry in desk.store.audit.entries if entry.kind == "head"][-1]
        assert (last.payload["to"], last.payload["reason"]) == (desk.lineage.root().id, "undo")

    world.play(story)


def test_undo_holds_over_a_restart(world: World) -> None:
    async def story() -> None:
        async with world.session() as desk:
            (only,) = await taught(desk, DOG)
            await desk.learning.undo(only.proposal)
        async with world.session() as desk:
            assert desk.active is None
            assert desk.state(only.proposal) is _S.UNDONE
            assert desk.said == []

    asyncio.run(story())


def test_undo_of_a_lesson_that_others_were_built_on_is_refused_with_a_plain_reason(world: World) -> None:
    async def story(desk: Desk) -> None:
        first, second = await taught(desk, DOG, CAT)
        with pytest.raises(UserError, match="A later version is in use") as caught:
            await desk.learning.undo(first.proposal)
        assert "forget the lesson" in caught.value.hint
        assert desk.head == version(desk, second)
        assert desk.state(first.proposal) is _S.PROVEN

    world.play(story)


def test_undo_of_what_was_never_learned_is_refused(world: World) -> None:
    async def story(desk: Desk) -> None:
        card = await desk.surfaced(*DOG)
        with pytest.raises(UserError):
            await desk.learning.undo(card.id)

    world.play(story)


def test_undoing_twice_is_refused_and_changes_nothing(world: World) -> None:
    async def story(desk: Desk) -> None:
        first, second = await taught(desk, DOG, CAT)
        await desk.learning.undo(second.proposal)
        with pytest.raises(UserError):
            await desk.learning.undo(second.proposal)
        assert desk.head == version(desk, first)

    world.play(story)


def test_a_lesson_taken_back_is_used_again_without_learning_it_anew(world: World) -> None:
    async def story(desk: Desk) -> None:
        _, second = await taught(desk, DOG, CAT)
        await desk.learning.undo(second.proposal)
        view = await desk.learning.approve(second.proposal)
        assert view.state is _S.PROVEN
        assert view.can_undo
        assert desk.head == version(desk, second)
        assert desk.active == desk.head.delta
        assert len(desk.trainer.jobs) == 2
        assert desk.says(CAT[0]) == CAT[1]

    world.play(story)


def test_a_lesson_taken_back_cannot_be_used_again_beside_others_learned_since(world: World) -> None:
    async def story(desk: Desk) -> None:
        (first,) = await taught(desk, DOG)
        await desk.learning.undo(first.proposal)
        (other,) = await taught(desk, CAT)
        with pytest.raises(UserError, match="Teach it again"):
            await desk.learning.approve(first.proposal)
        assert desk.head == version(desk, other)

    world.play(story)


def test_a_lesson_taken_back_can_be_taught_again_on_top_of_others(world: World) -> None:
    async def story(desk: Desk) -> None:
        (first,) = await taught(desk, DOG)
        await desk.learning.undo(first.proposal)
        await taught(desk, CAT)
        (again,) = await taught(desk, DOG)
        assert again.proposal != first.proposal
        assert desk.says(DOG[0]) == DOG[1]
        assert desk.says(CAT[0]) == CAT[1]

    world.play(story)


def test_what_is_in_use_waits_for_a_lesson_under_way_before_it_changes(world: World) -> None:
    async def story(desk: Desk) -> None:
        (first,) = await taught(desk, DOG)
        desk.gate.hold = asyncio.Event()
        card = (await desk.surfaced(*CAT)).id
        await desk.learning.approve(card)
        await desk.until(card, _S.GATING)
        undoing = asyncio.create_task(desk.learning.undo(first.proposal))
        await asyncio.sleep(0.01)
        assert not undoing.done()
        desk.gate.hold.set()
        with pytest.raises(UserError):  # by then another version is in use
            await undoing
        assert desk.state(card) is _S.PROVEN

    world.play(story)


# --- choosing a version ---------------------------------------------------------------------------------------------


def test_any_version_can_be_taken_into_use_and_left_again_exactly(world: World) -> None:
    async def story(desk: Desk) -> None:
        lessons = await taught(desk, DOG, CAT, TOWN)
        versions = [desk.lineage.root(), *(version(desk, each) for each in lessons)]
        for chosen in (versions[1], versions[3], versions[0], versions[2]):
            await desk.learning.use(chosen.id)
            assert desk.head == chosen
            assert desk.active == chosen.delta
            assert await in_use(desk) == [DOG[1], CAT[1], TOWN[1]][: chosen.number]

    world.play(story)


def test_cards_tell_the_truth_about_the_version_that_was_chosen(world: World) -> None:
    async def story(desk: Desk) -> None:
        first, second, third = await taught(desk, DOG, CAT, TOWN)
        await desk.learning.use(version(desk, first).id)
        assert desk.state(first.proposal) is _S.PROVEN
        assert desk.state(second.proposal) is _S.UNDONE
        third_card = desk.loop.view(desk.parts.proposals.get(third.proposal))
        assert "does not hold it" in third_card.outcome_words
        await desk.learning.use(version(desk, third).id)
        assert [desk.state(each.proposal) for each in (first, second, third)] == [_S.PROVEN] * 3
        cards = [desk.loop.view(desk.parts.proposals.get(each.proposal)) for each in (first, second, third)]
        assert [card.can_undo for card in cards] == [False, False, True]
        assert "holds it too" in cards[0].outcome_words

    world.play(story)


def test_a_version_whose_weights_are_gone_is_refused_and_the_one_in_use_stays(world: World) -> None:
    async def story(desk: Desk) -> None:
        first, second = await taught(desk, DOG, CAT)
        gone = version(desk, first).delta or ""
        (desk.store.home.objects / gone[:2] / gone[2:]).unlink()
        with pytest.raises(AppError):
            await desk.learning.use(version(desk, first).id)
        assert desk.head == version(desk, second)
        assert desk.active == desk.head.delta
        assert [row.available for row in await desk.learning.versions()] == [True, False, True]

    world.play(story)


def test_asking_an_earlier_version_does_not_change_the_one_in_use(world: World) -> None:
    async def story(desk: Desk) -> None:
        first, second = await taught(desk, DOG, CAT)
        assert await desk.learning.ask_version(version(desk, first).id, CAT[0]) != CAT[1]
        assert await desk.learning.ask_version(version(desk, second).id, CAT[0]) == CAT[1]
        assert await desk.learning.ask_version("0", DOG[0]) != DOG[1]
        assert desk.active == version(desk, second).delta

    world.play(story)


@pytest.mark.parametrize("name", ["99", "abc", "nothing", ""])
def test_a_version_that_does_not_exist_is_refused_in_plain_words(world: World, name: str) -> None:
    async def story(desk: Desk) -> None:
        for work in (desk.learning.use(name), desk.learning.ask_version(name, "Hi?")):
            with pytest.raises(UserError, match="find a version"):
                await work

    world.play(story)


# --- forgetting -----------------------------------------------------------------------------------------------------


def lesson_id(desk: Desk, answer: str) -> str:
    return next(row.id for row in desk.parts.ledger.all() if row.answer == answer)


def test_forgetting_the_last_lesson_uses_the_very_weights_of_the_version_before(world: World) -> None:
    async def story(desk: Desk) -> None:
        first, _ = await taught(desk, DOG, CAT)
        forgotten = await desk.learning.forget(lesson_id(desk, CAT[1]))
        assert forgotten.commit == desk.head.id
        assert desk.head.action == "forget"
        assert desk.head.number == 3
        assert desk.head.delta == version(desk, first).delta
        assert desk.active == desk.head.delta
        assert len(desk.trainer.jobs) == 2
        assert await in_use(desk) == [DOG[1]]
        assert desk.lineage.unproven() is None

    world.play(story)


def test_forgetting_the_only_lesson_gives_back_the_base(world: World) -> None:
    async def story(desk: Desk) -> None:
        await taught(desk, DOG)
        await desk.learning.forget(lesson_id(desk, DOG[1]))
        assert desk.head.delta is None
        assert desk.active is None
        assert await in_use(desk) == []
        assert desk.says(DOG[0]) != DOG[1]

    world.play(story)


def test_forgetting_a_lesson_in_the_middle_learns_the_others_again_from_the_base(world: World) -> None:
    async def story(desk: Desk) -> None:
        await taught(desk, DOG, CAT, TOWN)
        forgotten = await desk.learning.forget(lesson_id(desk, CAT[1]))
        job, candidate = desk.trainer.jobs[-1], desk.gate.judged[-1]
        assert job.parent is None
        taught_again = {example.answer for example in job.targets if not example.answer.startswith("I would say")}
        assert taught_again == {DOG[1], TOWN[1]}
        assert CAT[1] not in {example.answer for example in (*job.replay, *job.keeps, *job.anchors)}
        assert {candidate.exam.answer, *(exam.answer for exam in candidate.earlier)} == {DOG[1], TOWN[1]}
        assert forgotten.verdict is not None
        assert desk.head.verdict is not None
        assert desk.says(DOG[0]) == DOG[1]
        assert desk.says(TOWN[0]) == TOWN[1]
        assert desk.says(CAT[0]) != CAT[1]
        assert await in_use(desk) == [DOG[1], TOWN[1]]
        assert list(desk.parts.work.iterdir()) == []

    world.play(story)


def test_forgetting_counts_against_the_budget_and_needs_the_lock_open(world: World) -> None:
    async def story(desk: Desk) -> None:
        await taught(desk, DOG)
        lesson = lesson_id(desk, DOG[1])
        desk.devmode.lock()
        with pytest.raises(DeniedError):
            await desk.learning.forget(lesson)
        desk.unlock()
        forgotten = await desk.learning.forget(lesson)
        assert desk.spendings()[-1] == forgotten.commit

    world.play(story)


def test_locking_while_the_rest_is_judged_keeps_the_version_in_use(world: World) -> None:
    async def story(desk: Desk) -> None:
        *_, last = await taught(desk, DOG, CAT, TOWN)
        desk.gate.hold = asyncio.Event()
        forgetting = asyncio.create_task(desk.learning.forget(lesson_id(desk, CAT[1])))
        while len(desk.gate.judged) < 4:  # noqa: ASYNC110 - the fake's list is what is waited for
            await asyncio.sleep(0.001)
        desk.devmode.lock()
        desk.gate.hold.set()
        with pytest.raises(DeniedError):
            await forgetting
        assert desk.head == version(desk, last)

    world.play(story)


def test_a_forgotten_lesson_does_not_bring_back_what_it_had_replaced(world: World) -> None:
    async def story(desk: Desk) -> None:
        await taught(desk, DOG)
        for lesson in (OTHER_NAME, THIRD_NAME):
            card = await desk.surfaced(*lesson, message=lesson[1])
            await desk.learning.approve(card.id, Resolution.REPLACE)
            await desk.ended(card.id)
        assert await in_use(desk) == [THIRD_NAME[1]]
        await desk.learning.forget(lesson_id(desk, THIRD_NAME[1]))
        assert await in_use(desk) == []
        assert desk.active is None

    world.play(story)


def test_what_is_not_in_effect_cannot_be_forgotten(world: World) -> None:
    async def story(desk: Desk) -> None:
        (only,) = await taught(desk, DOG)
        await desk.learning.undo(only.proposal)
        with pytest.raises(UserError, match="does not hold it"):
            await desk.learning.forget(lesson_id(desk, DOG[1]))
        with pytest.raises(UserError, match="no such lesson"):
            await desk.learning.forget("nothing")

    world.play(story)


@pytest.mark.parametrize("part", ["trainer", "gate"])
def test_a_rebuild_that_fails_leaves_everything_as_it_was(world: World, part: str) -> None:
    async def story(desk: Desk) -> None:
        *_, last = await taught(desk, DOG, CAT, TOWN)
        if part == "trainer":
            desk.trainer.endings.append(ErrorInfo("KnownError", "could not run the trainer", "it was killed", "", True))
        else:
            desk.gate.script.append(KnownError("run the engine", "it was killed"))
        with pytest.raises(KnownError, match="it was killed"):
            await desk.learning.forget(lesson_id(desk, CAT[1]))
        assert desk.head == version(desk, last)
        assert await in_use(desk) == [DOG[1], CAT[1], TOWN[1]]
        assert len(desk.spendings()) == 3
        assert list(desk.parts.work.iterdir()) == []
        assert (await desk.teach("Who am I?", "You are Sam.")).state is _S.PROVEN

    world.play(story)


def test_a_person_s_wish_to_forget_needs_nobody_s_acceptance_but_is_judged(world: World) -> None:
    async def story(desk: Desk) -> None:
        await taught(desk, DOG, CAT, TOWN)
        desk.gate.script.append(("held_out",))
        forgotten = await desk.learning.forget(lesson_id(desk, CAT[1]))
        assert forgotten.commit == desk.head.id
        assert desk.lineage.document(desk.head.verdict or "")["outcome"] == "reject"

    world.play(story)


def test_after_forgetting_learning_goes_on_from_there(world: World) -> None:
    async def story(desk: Desk) -> None:
        await taught(desk, DOG, CAT)
        await desk.learning.forget(lesson_id(desk, DOG[1]))
        await taught(desk, TOWN)
        assert await in_use(desk) == [CAT[1], TOWN[1]]
        assert [exam.answer for exam in desk.gate.judged[-1].earlier] == [CAT[1]]

    world.play(story)


def test_an_app_that_ends_while_it_forgets_finishes_the_checks_at_the_next_start(world: World) -> None:
    async def story() -> None:
        async with world.session() as desk:
            await taught(desk, DOG, CAT)

            async def dies(_: object) -> None:
                raise asyncio.CancelledError

            desk.parts.versions.activate = dies  # type: ignore[method-assign,assignment]
            with pytest.raises(asyncio.CancelledError):
                await desk.learning.forget(lesson_id(desk, CAT[1]))
            assert desk.lineage.unproven() is not None
        async with world.session() as desk:
            assert any("run again" in sentence for sentence in desk.said)
            async with asyncio.timeout(60):
                while desk.lineage.unproven() is not None:  # noqa: ASYNC110 - the lineage is what is waited for
                    await asyncio.sleep(0.001)
            assert desk.active == desk.head.delta
            assert sorted(desk.spendings()) == sorted(commit.id for commit in desk.lineage.log()[:-1])

    asyncio.run(story())
