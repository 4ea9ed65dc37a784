"""The app dies at any moment: no lesson and no version is lost, none is half in use, and each change counts once."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from app.approvals.api import Draft, ProposalState, Signal, SignalKind
from app.approvals.proposals import UNDER_WAY
from app.errors import KnownError
from app.learning.api import Lesson
from app.learning.attempt import Attempt, Start
from app.learning.planning import Material
from app.model.api import Candidate, Exam
from app.model.gate.verdicts import verdict_to_dict
from app.model.lineage.records import LEARN, NewCommit
from tests.support.learning import CAT, DOG, TOWN, Desk, Killed, World, verdict_on

_S = ProposalState


async def settled(desk: Desk) -> None:
    """Wait until nothing is under way any more."""
    for row in desk.parts.proposals.in_states(UNDER_WAY):
        await desk.ended(row.id)
    async with desk.loop.busy:
        pass


async def is_sound(desk: Desk) -> None:
    """The invariants after every start: one logged version in use, cards that tell the truth, every change counted."""
    head = desk.head
    assert desk.active == head.delta
    assert desk.lineage.unproven() is None
    assert sorted(desk.spendings()) == sorted(commit.id for commit in desk.lineage.log()[:-1])
    held = set(desk.lineage.holds(head))
    for row in desk.parts.proposals.in_states(set(_S)):
        assert row.state not in UNDER_WAY
        in_use = bool(row.commit) and set(desk.lineage.get(row.commit or "").lessons) <= held
        assert (row.state == _S.PROVEN) == in_use
    active = {lesson.id for lesson in await desk.learning.lessons() if lesson.active}
    assert active == held
    desk.store.audit.verify()


# --- death at every durable operation -------------------------------------------------------------------------------


async def first_lesson_then_second(world: World, *, dies_at: int | None) -> None:
    """One session: a lesson is there already, another is approved, and the app may die on the way."""
    async with world.session() as desk:
        world.operations, world.dies_at = 0, dies_at
        try:
            await desk.learning.teach(Lesson(*CAT), approve=True)
        except Killed:
            return


def operations_of_a_lesson(root: Path) -> int:
    async def whole() -> int:
        world = World(root)
        async with world.session() as desk:
            await desk.teach(*DOG)
            await desk.surfaced(*TOWN)
        await first_lesson_then_second(world, dies_at=None)
        return world.operations

    return asyncio.run(whole())


def test_death_before_any_write_of_a_lesson_is_survived(tmp_path: Path) -> None:
    """Every point at which the database or the history is written, from the click to the end."""
    total = operations_of_a_lesson(tmp_path / "count" / "home")
    assert total > 15
    ends = {asyncio.run(died_and_started_again(tmp_path / str(at), at)) for at in range(1, total + 1)}
    assert ends == {(), (_S.SURFACED,), (_S.PROVEN,)}


async def died_and_started_again(folder: Path, at: int) -> tuple[ProposalState, ...]:
    world = World(folder / "home")
    async with world.session() as desk:
        first = await desk.teach(*DOG)
    await first_lesson_then_second(world, dies_at=at)
    async with world.session() as desk:
        await settled(desk)
        await is_sound(desk)
        assert desk.says(DOG[0]) == DOG[1]
        assert first.commit in {commit.id for commit in desk.lineage.log()}
        cards = [row for row in desk.parts.proposals.in_states(set(_S)) if row.prompt == CAT[0]]
        if cards and cards[0].state == _S.PROVEN:
            assert desk.says(CAT[0]) == CAT[1]
            assert cards[0].evidence is not None
        else:
            assert len(desk.lineage.log()) == 2
        return tuple(_S(row.state) for row in cards)


# --- rows left in each state ----------------------------------------------------------------------------------------


async def left_behind(world: World, state: ProposalState, *, committed: bool, in_use: bool = True) -> str:
    """Leave a lesson in a state, as a session does that ends there; return its proposal."""
    async with world.session() as desk:
        row = await desk.surfaced(*DOG)
        way = [_S.APPROVED, _S.QUEUED, _S.TRAINING, _S.GATING, _S.COMMITTED, _S.ACTIVE]
        commit = None
        for step in way[: way.index(state) + 1]:
            if step is _S.COMMITTED:
                commit = await committed_by(desk, row.id)
                desk.parts.ledger.attach_commit(desk.lineage.get(commit).lessons[0], commit)
            row = desk.parts.proposals.move(row.id, step, commit=commit)
        if committed and commit is None:
            await committed_by(desk, row.id)
        if not in_use:
            desk.lineage.move_head(desk.lineage.root(), "chosen")
        return row.id


async def committed_by(desk: Desk, proposal: str) -> str:
    """Make a version of a lesson, as the loop does, and nothing more."""
    row = desk.parts.proposals.get(proposal)
    lesson, earlier = desk.loop._lessons(row)
    material = await (await desk.prepared.planner()).plan(lesson, earlier, parent=None, recipe=desk.parts.recipe)
    delta, candidate = await trained(desk, proposal, material, lesson.exam())
    new = NewCommit(
        parent=desk.head.id,
        delta=delta,
        scale=1.0,
        lessons=(lesson.id,),
        action=LEARN,
        title="Your dog's name",
        recipe={"seed": 0},
        data=material.manifest(),
        verdict=verdict_to_dict(verdict_on(candidate)),
        decision=proposal,
    )
    return desk.lineage.commit(new).id


async def trained(desk: Desk, proposal: str, material: Material, exam: Exam) -> tuple[bytes, Candidate]:
    folder = desk.parts.work / proposal
    folder.mkdir(exist_ok=True)
    attempt = Attempt(
        desk.parts.base,
        desk.trainer,
        desk.gate,
        desk.parts.serving,
        folder=folder,
        clock=lambda: 0.0,
        report=lambda _: None,
    )
    start = Start(None, None, None)
    judged = await attempt.climb(material, exam, (), start, desk.parts.recipe, limit=0.05)
    return judged.change.delta, desk.gate.judged[-1]


@pytest.mark.parametrize("state", [_S.APPROVED, _S.QUEUED, _S.TRAINING, _S.GATING])
def test_a_lesson_cut_off_before_its_version_is_learned_again(world: World, state: ProposalState) -> None:
    async def story() -> None:
        card = await left_behind(world, state, committed=False)
        async with world.session() as desk:
            assert any("learned again" in sentence for sentence in desk.said)
            assert (await desk.ended(card)).state is _S.PROVEN
            await is_sound(desk)
            assert len(await desk.learning.lessons()) == 1

    asyncio.run(story())


@pytest.mark.parametrize("state", [_S.APPROVED, _S.QUEUED, _S.TRAINING, _S.GATING, _S.COMMITTED, _S.ACTIVE])
def test_a_version_made_before_the_end_is_tested_and_kept(world: World, state: ProposalState) -> None:
    """Also from rows that an older copy of the database knows: its version is there, so it is not learned twice."""

    async def story() -> None:
        card = await left_behind(world, state, committed=True)
        async with world.session() as desk:
            assert any("checks run again" in sentence for sentence in desk.said)
            view = await desk.ended(card)
            assert view.state is _S.PROVEN
            assert view.version == 1
            assert desk.trainer.jobs == []
            await is_sound(desk)
            assert desk.says(DOG[0]) == DOG[1]

    asyncio.run(story())


@pytest.mark.parametrize("state", [_S.GATING, _S.COMMITTED, _S.ACTIVE])
def test_a_version_that_fails_its_test_after_a_restart_is_taken_back(world: World, state: ProposalState) -> None:
    async def story() -> None:
        card = await left_behind(world, state, committed=True)
        world.brain.forgetful = True
        async with world.session() as desk:
            view = await desk.ended(card)
            assert view.state is _S.REJECTED
            assert desk.head == desk.lineage.root()
            assert desk.active is None
            assert desk.spendings() == [desk.lineage.log()[0].id]

    asyncio.run(story())


@pytest.mark.parametrize("state", [_S.GATING, _S.COMMITTED, _S.ACTIVE])
def test_a_version_that_was_left_before_it_was_proven_ends_as_failed_and_stays_out_of_use(
    world: World, state: ProposalState
) -> None:
    async def story() -> None:
        card = await left_behind(world, state, committed=True, in_use=False)
        async with world.session() as desk:
            view = await desk.ended(card)
            assert view.state is _S.FAILED
            assert view.error is not None
            assert view.error.retryable
            assert desk.head == desk.lineage.root()
            assert desk.active is None

    asyncio.run(story())


def test_a_lesson_cut_off_is_not_continued_once_learning_is_locked(world: World) -> None:
    async def story() -> None:
        card = await left_behind(world, _S.TRAINING, committed=False)
        async with world.session(start=False, unlock=False) as desk:
            desk.devmode.lock()
        async with world.session(unlock=False) as desk:
            view = await desk.ended(card)
            assert view.state is _S.FAILED
            assert view.error is not None
            assert view.error.subject == "learning is locked"
            assert any("locked" in sentence for sentence in desk.said)
            assert desk.trainer.jobs == []

    asyncio.run(story())


def test_a_change_that_was_made_but_not_counted_is_counted_at_the_next_start(world: World) -> None:
    async def story() -> None:
        await left_behind(world, _S.GATING, committed=True)
        async with world.session() as desk:
            (commit, _) = desk.lineage.log()
            assert desk.spendings() == [commit.id]
        async with world.session() as desk:  # once only
            assert desk.spendings() == [commit.id]

    asyncio.run(story())


def test_several_lessons_left_in_the_queue_are_learned_in_order(world: World) -> None:
    async def story() -> None:
        async with world.session(start=False) as desk:
            cards = []
            for number, (prompt, answer) in enumerate((DOG, CAT, TOWN)):
                signal = Signal(SignalKind.EDIT, "c1", f"m{number}", prompt, "", correction=answer)
                row = desk.parts.proposals.surface(Draft(prompt, answer, "", "why", 1.0), signal)
                assert row is not None
                desk.parts.proposals.move(row.id, _S.APPROVED)
                cards.append(row.id)
            desk.parts.proposals.move(cards[0], _S.QUEUED)
        async with world.session() as desk:
            views = [await desk.ended(card) for card in cards]
            assert [(view.state, view.version) for view in views] == [(_S.PROVEN, n) for n in (1, 2, 3)]
            await is_sound(desk)

    asyncio.run(story())


def test_closing_the_app_while_a_lesson_is_learned_continues_it_at_the_next_start(world: World) -> None:
    async def story() -> None:
        async with world.session() as desk:
            desk.trainer.hold = asyncio.Event()
            card = (await desk.surfaced(*DOG)).id
            await desk.learning.approve(card)
            await desk.until(card, _S.TRAINING)
            await asyncio.sleep(0.01)
        async with world.session() as desk:
            assert (await desk.ended(card)).state is _S.PROVEN
            await is_sound(desk)

    asyncio.run(story())


def test_work_files_of_a_lesson_that_was_cut_off_do_not_pile_up(world: World) -> None:
    async def story() -> None:
        async with world.session() as desk:
            (desk.parts.work / "gone").mkdir()
            (desk.parts.work / "gone" / "adapter-1.safetensors").write_bytes(b"x")
        async with world.session() as desk:
            assert list(desk.parts.work.iterdir()) == []

    asyncio.run(story())


def test_a_start_without_anything_left_says_nothing_and_counts_nothing(world: World) -> None:
    async def story() -> None:
        async with world.session() as desk:
            assert desk.said == []
            assert desk.spendings() == []
        async with world.session() as desk:
            assert desk.said == []

    asyncio.run(story())


def test_an_engine_that_does_not_come_up_after_a_crash_leaves_the_lesson_failed_and_the_version_before(
    world: World,
) -> None:
    async def story() -> None:
        card = await left_behind(world, _S.COMMITTED, committed=True)
        async with world.session(start=False) as desk:

            async def broken() -> None:
                raise KnownError("load the model", "it is too large for the memory")

            await desk.loop.start(lambda: desk.starting.begin(broken()))
            view = await desk.ended(card)
            assert view.state is _S.FAILED
            assert desk.head == desk.lineage.root()
        async with world.session() as desk:
            assert desk.active is None

    asyncio.run(story())


def test_a_verdict_left_with_the_version_is_shown_on_the_card_again(world: World) -> None:
    async def story() -> None:
        card = await left_behind(world, _S.GATING, committed=True)
        async with world.session() as desk:
            view = await desk.ended(card)
            stored = desk.lineage.document(desk.head.verdict or "")
            assert [check.rule for check in view.checks] == [check["rule"] for check in stored["checks"]]
            assert json.loads(desk.parts.proposals.get(card).evidence or "") == stored

    asyncio.run(story())
