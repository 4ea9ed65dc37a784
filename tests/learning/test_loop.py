"""The life of a lesson: every way from approval to its end, and that only a proven lesson changes the weights."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from app.approvals.api import ProposalState
from app.errors import AppError, BugError, DeniedError, ErrorInfo, KnownError, UserError, VerificationError
from app.learning.api import Resolution, VersionsChanged
from app.model.api import AdapterRef, Cancelled, Done, Example, Outcome, Piece, Role, Sampling, Turn
from tests.support.learning import CAT, DOG, TOWN, Desk, FakeTrainer, World

_S = ProposalState
Story = Callable[[Desk], Awaitable[None]]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "home")


def play(world: World, story: Story, *, unlock: bool = True) -> None:
    async def whole() -> None:
        async with world.session(unlock=unlock) as desk:
            await story(desk)

    asyncio.run(whole())


def nothing_changed(desk: Desk) -> None:
    """The base is in use, in the lineage and in the engine, and nothing was spent."""
    assert desk.head == desk.lineage.root()
    assert desk.lineage.log() == [desk.lineage.root()]
    assert desk.active is None
    assert desk.spendings() == []
    assert desk.says(DOG[0]) != DOG[1]
    assert list(desk.parts.work.iterdir()) == []


# --- accepted -------------------------------------------------------------------------------------------------------


def test_an_accepted_lesson_becomes_the_version_in_use_and_says_it(world: World) -> None:
    async def story(desk: Desk) -> None:
        taught = await desk.teach(*DOG)
        assert taught.state is _S.PROVEN
        assert taught.commit == desk.head.id
        assert taught.verdict is not None
        assert taught.verdict.outcome is Outcome.ACCEPT
        assert taught.error is None
        assert desk.active == desk.head.delta == taught.verdict.adapter_sha256
        assert desk.says(DOG[0]) == DOG[1]

    play(world, story)


def test_every_move_of_a_lesson_is_in_the_audit_log_in_order(world: World) -> None:
    async def story(desk: Desk) -> None:
        taught = await desk.teach(*DOG)
        assert desk.states_of(taught.proposal) == [
            *("surfaced", "approved", "queued", "training", "gating", "committed", "active", "proven"),
        ]
        kinds = desk.kinds()
        assert kinds.index("commit", kinds.index("commit") + 1) < kinds.index("active") < kinds.index("proven")

    play(world, story)


def test_a_version_names_its_lesson_recipe_data_verdict_and_decision(world: World) -> None:
    async def story(desk: Desk) -> None:
        taught = await desk.teach(*DOG)
        (lesson,) = await desk.learning.lessons()
        commit = desk.head
        assert commit.lessons == (lesson.id,)
        assert commit.decision == taught.proposal
        assert commit.parents == (desk.lineage.root().id,)
        recipe, data = desk.lineage.document(commit.recipe or ""), desk.lineage.document(commit.data or "")
        assert recipe["used_share"] == world.recipe.share
        assert recipe["rank"] == world.recipe.rank
        assert [item["answer"] for item in data["targets"]] == [DOG[1]] * len(data["targets"])
        assert desk.lineage.document(commit.verdict or "")["outcome"] == "accept"
        assert (lesson.prompt, lesson.answer, lesson.commit, lesson.active) == (*DOG, commit.id, True)

    play(world, story)


def test_what_was_judged_is_what_is_committed_and_served_at_full_strength(world: World) -> None:
    async def story(desk: Desk) -> None:
        await desk.teach(*DOG)
        (candidate,) = desk.gate.judged
        assert candidate.adapter.sha256 == desk.head.delta
        assert candidate.scales == (1.0,)
        assert desk.head.scale == 1.0
        assert candidate.parent is None

    play(world, story)


def test_each_accepted_lesson_counts_once_against_the_budget(world: World) -> None:
    async def story(desk: Desk) -> None:
        first = await desk.teach(*DOG)
        second = await desk.teach(*CAT)
        assert desk.spendings() == [first.commit, second.commit]
        assert desk.devmode.status().changes_left_today == 48

    play(world, story)


def test_a_second_lesson_starts_from_the_first_and_is_examined_with_it(world: World) -> None:
    async def story(desk: Desk) -> None:
        first = await desk.teach(*DOG)
        await desk.teach(*CAT)
        job, candidate = desk.trainer.jobs[-1], desk.gate.judged[-1]
        version = desk.lineage.get(first.commit or "")
        assert job.parent is not None
        assert candidate.parent is not None
        assert candidate.parent.sha256 == version.delta
        assert [exam.answer for exam in candidate.earlier] == [DOG[1]]
        assert {example.answer for example in job.replay} == {DOG[1]}
        assert desk.says(DOG[0]) == DOG[1]
        assert desk.says(CAT[0]) == CAT[1]

    play(world, story)


def test_the_stages_are_timed_and_stored_with_the_card(world: World) -> None:
    async def story(desk: Desk) -> None:
        real = desk.parts.clock.monotonic
        ticks = iter(range(10_000))
        desk.parts.clock.monotonic = lambda: float(next(ticks))  # type: ignore[method-assign]
        taught = await desk.teach(*DOG)
        stages = taught.stages
        parts = (stages.train, stages.gate, stages.activate, stages.self_test, stages.restore)
        assert all(seconds > 0 for seconds in parts)
        assert stages.total >= sum(parts)
        assert desk.loop.view(desk.parts.proposals.get(taught.proposal)).seconds == stages.total
        desk.parts.clock.monotonic = real  # type: ignore[method-assign]

    play(world, story)


def test_a_card_shows_its_progress_from_the_click_to_the_end(world: World) -> None:
    async def story(desk: Desk) -> None:
        taught = await desk.teach(*DOG)
        views = desk.views(taught.proposal)
        shares = [view.share for view in views if view.stage]
        assert shares == sorted(shares)
        assert list(dict.fromkeys(view.stage for view in views if view.stage)) == [
            *("getting ready", "learning", "checking", "taking it into use"),
        ]
        assert views[-1].state is _S.PROVEN
        assert views[-1].can_undo
        assert views[-1].version == 1
        assert "Version 1 is in use" in views[-1].outcome_words
        assert VersionsChanged(1) in desk.events

    play(world, story)


def test_the_open_conversation_is_carried_into_the_new_version(world: World) -> None:
    async def story(desk: Desk) -> None:
        prefilled: list[tuple[str | None, tuple[Turn, ...]]] = []
        desk.chat.turns = (Turn(Role.USER, "Hello"), Turn(Role.ASSISTANT, "Hi"))

        async def prefill(turns: tuple[Turn, ...]) -> int:
            prefilled.append((desk.active, turns))
            return 1

        desk.engine.prefill = prefill  # type: ignore[method-assign,assignment]
        await desk.teach(*DOG)
        assert prefilled == [(desk.head.delta, desk.chat.turns)]

    play(world, story)


def test_a_conversation_that_cannot_be_restored_now_does_not_undo_the_lesson(world: World) -> None:
    async def story(desk: Desk) -> None:
        desk.chat.error = KnownError("read the conversation")
        assert (await desk.teach(*DOG)).state is _S.PROVEN

    play(world, story)


def test_an_answer_that_streams_while_a_lesson_is_learned_is_neither_stopped_nor_mixed(world: World) -> None:
    async def story(desk: Desk) -> None:
        desk.engine.pause_s = 0.004
        world.brain.base["Tell me a story."] = " ".join(["Once upon a time a fox slept."] * 8)
        events = []
        begun = asyncio.Event()

        async def listen() -> None:
            async for event in desk.parts.engine.generate([Turn(Role.USER, "Tell me a story.")], Sampling()):
                events.append(event)
                begun.set()

        card = (await desk.surfaced(*DOG)).id
        streaming = asyncio.create_task(listen())
        await begun.wait()
        await desk.learning.approve(card)
        await desk.until(card, _S.COMMITTED, _S.ACTIVE, _S.PROVEN)
        during = len(events)
        await streaming
        done = events[-1]
        assert isinstance(done, Done)
        assert during < len(events)  # learned up to the swap while it streamed
        assert done.text == world.brain.base["Tell me a story."]
        assert done.adapter is None
        assert all(isinstance(event, Piece) for event in events[:-1])
        assert (await desk.ended(card)).state is _S.PROVEN

    play(world, story)


# --- not accepted ---------------------------------------------------------------------------------------------------


def test_a_rejected_lesson_changes_nothing_and_says_why(world: World) -> None:
    async def story(desk: Desk) -> None:
        desk.gate.script.extend([("locality",)] * 5)
        taught = await desk.teach(*DOG)
        assert taught.state is _S.REJECTED
        assert taught.commit is None
        assert taught.verdict is not None
        assert taught.verdict.outcome is Outcome.REJECT
        nothing_changed(desk)
        view = desk.loop.view(desk.parts.proposals.get(taught.proposal))
        assert view.outcome_words == "would have changed: locality"
        assert view.suggestions == ("rephrase",)
        assert [check.rule for check in view.checks if check.outcome is Outcome.REJECT] == ["locality"]
        assert await desk.learning.lessons() == []
        assert [row.rejected for row in await desk.learning.versions()] == [True, False]

    play(world, story)


@pytest.mark.parametrize(
    "error",
    [
        ErrorInfo("KnownError", "could not learn this", "training", "The numbers ran away (not a number).", True),
        ErrorInfo("KnownError", "could not run the trainer", "it was killed from outside", "", True),
        ErrorInfo("VerificationError", "could not load the model", "tiny", "The files are damaged.", False),
        ErrorInfo("BugError", "could not finish in a child process", "ValueError", "Please report this.", False),
    ],
)
def test_a_failing_trainer_ends_the_lesson_with_its_reason_and_changes_nothing(world: World, error: ErrorInfo) -> None:
    async def story(desk: Desk) -> None:
        desk.trainer.endings.append(error)
        taught = await desk.teach(*DOG)
        assert (taught.state, taught.commit, taught.error) == (_S.FAILED, None, error)
        nothing_changed(desk)
        assert (await desk.teach(*CAT)).state is _S.PROVEN

    play(world, story)


@pytest.mark.parametrize(
    "error",
    [
        VerificationError("judge", "the suite", "It was altered."),
        KnownError("run the engine", "it was killed from outside"),
        BugError("judge", "no verdict"),
    ],
)
def test_a_failing_gate_ends_the_lesson_with_its_reason_and_changes_nothing(world: World, error: AppError) -> None:
    async def story(desk: Desk) -> None:
        desk.gate.script.append(error)
        taught = await desk.teach(*DOG)
        assert (taught.state, taught.commit, taught.error) == (_S.FAILED, None, error.info())
        nothing_changed(desk)

    play(world, story)


def test_a_gate_engine_that_does_not_start_ends_the_lesson_with_its_reason(world: World) -> None:
    async def story(desk: Desk) -> None:
        desk.examiner.fail_next = KnownError("get enough memory")
        taught = await desk.teach(*DOG)
        assert taught.state is _S.FAILED
        assert taught.error is not None
        assert "memory" in taught.error.what
        nothing_changed(desk)

    play(world, story)


def test_a_full_disk_while_getting_ready_ends_the_lesson_with_its_reason(world: World) -> None:
    async def story(desk: Desk) -> None:
        work = desk.parts.work
        work.rmdir()
        work.write_bytes(b"")  # a folder cannot be made where a file stands
        taught = await desk.teach(*DOG)
        work.unlink()
        work.mkdir()
        assert taught.state is _S.FAILED
        assert taught.error is not None
        assert taught.error.kind == "KnownError"
        nothing_changed(desk)

    play(world, story)


def test_numbers_that_are_none_are_never_committed(world: World) -> None:
    async def story(desk: Desk) -> None:
        class Nan(FakeTrainer):
            async def train(self, job):
                async for event in super().train(job):
                    if hasattr(event, "path"):
                        data = job.output.read_bytes()
                        job.output.write_bytes(data[:-4] + b"\x00\x00\xc0\x7f")
                    yield event

        object.__setattr__(desk.parts, "trainer", Nan())
        taught = await desk.teach(*DOG)
        assert taught.state is _S.FAILED
        assert taught.error is not None
        assert "finite" in taught.error.hint
        nothing_changed(desk)

    play(world, story)


# --- self-test ------------------------------------------------------------------------------------------------------


def test_a_version_that_fails_its_self_test_is_taken_back_at_once_and_says_so(world: World) -> None:
    async def story(desk: Desk) -> None:
        first = await desk.teach(*DOG)
        world.brain.forgetful = True
        taught = await desk.teach(*CAT)
        world.brain.forgetful = False
        assert taught.state is _S.REJECTED
        assert taught.error is not None
        assert taught.error.subject == "it does not say it when asked in the same words"
        assert desk.head.id == first.commit
        assert desk.active == desk.lineage.get(first.commit or "").delta
        view = desk.loop.view(desk.parts.proposals.get(taught.proposal))
        assert not view.can_undo
        assert "taken back" in view.outcome_words
        assert [lesson.active for lesson in await desk.learning.lessons()] == [True, False]
        assert desk.lineage.unproven() is None

    play(world, story)


def test_an_engine_that_runs_other_weights_than_it_should_is_noticed(world: World) -> None:
    async def story(desk: Desk) -> None:
        real = desk.engine.activate

        async def stuck(adapter: AdapterRef | None) -> str | None:
            return await real(None)

        desk.engine.activate = stuck  # type: ignore[method-assign]
        taught = await desk.teach(*DOG)
        assert taught.state in (_S.FAILED, _S.REJECTED)
        assert desk.head == desk.lineage.root()
        assert desk.active is None

    play(world, story)


@pytest.mark.parametrize("failing", ["activate", "evaluate"])
def test_an_engine_that_dies_after_the_commit_leaves_the_version_before_in_use(world: World, failing: str) -> None:
    async def story(desk: Desk) -> None:
        first = await desk.teach(*DOG)
        real = getattr(desk.engine, failing)
        calls: list[object] = []

        async def dies(*given: object, **named: object) -> object:
            calls.append(given)
            if len(calls) == (2 if failing == "evaluate" else 1):  # the first asks whether it is known
                raise KnownError("run the engine", "it was killed from outside")
            return await real(*given, **named)

        setattr(desk.engine, failing, dies)
        taught = await desk.teach(*CAT)
        assert taught.state is _S.FAILED
        assert taught.error is not None
        assert taught.error.subject == "it was killed from outside"
        assert desk.head.id == first.commit
        assert desk.active == desk.head.delta
        assert [lesson.active for lesson in await desk.learning.lessons()] == [True, False]

    play(world, story)


# --- the lock -------------------------------------------------------------------------------------------------------


def test_without_unlocking_nothing_is_approved_and_no_child_is_started(world: World) -> None:
    async def story(desk: Desk) -> None:
        card = await desk.surfaced(*DOG)
        with pytest.raises(DeniedError, match="learning is locked"):
            await desk.learning.approve(card.id)
        with pytest.raises(DeniedError):
            await desk.teach(*CAT)
        await desk.learning.opened(card.id)
        await asyncio.sleep(0.01)
        assert desk.state(card.id) is _S.SURFACED
        assert (desk.trainer.jobs, desk.trainer.warmed, desk.prepared.warmed, desk.examiner.loads) == ([], 0, 0, 0)
        nothing_changed(desk)

    play(world, story, unlock=False)


def test_an_opened_card_warms_trainer_and_gate_once_learning_is_unlocked(world: World) -> None:
    async def story(desk: Desk) -> None:
        card = await desk.surfaced(*DOG)
        await desk.learning.opened(card.id)
        await asyncio.sleep(0.01)
        assert desk.prepared.warmed == 1

    play(world, story)


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
        assert view.state is _S.FAILED
        assert view.error is not None
        assert view.error.subject == "learning is locked"
        nothing_changed(desk)

    play(world, story)


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
        nothing_changed(desk)

    play(world, story)


def test_going_back_works_while_learning_is_locked(world: World) -> None:
    async def story(desk: Desk) -> None:
        taught = await desk.teach(*DOG)
        desk.devmode.lock()
        assert (await desk.learning.undo(taught.proposal)).state is _S.UNDONE
        assert desk.active is None

    play(world, story)


def test_the_days_budget_is_the_end_of_learning_for_today(world: World) -> None:
    async def story(desk: Desk) -> None:
        desk.unlock(changes_per_day=1)
        await desk.teach(*DOG)
        with pytest.raises(DeniedError, match="today's limit"):
            await desk.teach(*CAT)
        assert len(desk.trainer.jobs) == 1

    play(world, story)


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

    play(world, story)


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

    play(world, story)


def test_approving_twice_learns_once(world: World) -> None:
    async def story(desk: Desk) -> None:
        card = await desk.surfaced(*DOG)
        await desk.learning.approve(card.id)
        again = await desk.learning.approve(card.id)
        assert again.state is _S.QUEUED
        assert (await desk.ended(card.id)).state is _S.PROVEN
        assert len(desk.trainer.jobs) == 1
        assert len(desk.lineage.log()) == 2

    play(world, story)


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

    play(world, story)


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

    play(world, story)


@pytest.mark.parametrize("stage", ["training", "gating"])
def test_a_lesson_is_cancelled_while_it_is_learned_and_nothing_of_it_stays(world: World, stage: str) -> None:
    async def story(desk: Desk) -> None:
        (desk.trainer if stage == "training" else desk.gate).hold = asyncio.Event()
        card = await desk.surfaced(*DOG)
        await desk.learning.approve(card.id)
        await desk.until(card.id, ProposalState(stage))
        while not desk.loop.view(desk.parts.proposals.get(card.id)).share:  # noqa: ASYNC110 - until a step was told
            await asyncio.sleep(0.001)
        view = await asyncio.wait_for(desk.learning.cancel(card.id), 1.0)
        assert view.state is _S.CANCELLED
        assert view.title == "Stopped: your dog's name"
        assert desk.trainer.stopped == (stage == "training")
        nothing_changed(desk)
        desk.trainer.hold = desk.gate.hold = None
        assert (await desk.teach(*CAT)).state is _S.PROVEN

    play(world, story)


def test_a_trainer_that_says_it_was_cancelled_ends_the_lesson_as_stopped(world: World) -> None:
    async def story(desk: Desk) -> None:
        class Stopping(FakeTrainer):
            async def train(self, job):
                yield Cancelled()

        object.__setattr__(desk.parts, "trainer", Stopping())
        assert (await desk.teach(*DOG)).state is _S.CANCELLED
        nothing_changed(desk)

    play(world, story)


def test_cancelling_what_is_over_changes_nothing(world: World) -> None:
    async def story(desk: Desk) -> None:
        taught = await desk.teach(*DOG)
        assert (await desk.learning.cancel(taught.proposal)).state is _S.PROVEN
        assert desk.says(DOG[0]) == DOG[1]

    play(world, story)


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

    play(world, story)


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

    play(world, story)


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

    play(world, story)


def test_both_lessons_of_a_conflict_stay_in_effect_if_so_chosen(world: World) -> None:
    async def story(desk: Desk) -> None:
        await desk.teach(*DOG)
        card = await desk.surfaced("My dog's name is what?", OTHER_NAME[1])
        assert card.conflict is not None
        await desk.learning.approve(card.id, Resolution.KEEP_BOTH)
        await desk.ended(card.id)
        assert {example.answer for example in desk.trainer.jobs[-1].replay} == {DOG[1]}
        assert [item.active for item in await desk.learning.lessons()] == [True, True]

    play(world, story)


# --- text -----------------------------------------------------------------------------------------------------------


def test_control_strings_in_a_lesson_reach_the_trainer_as_the_text_they_are(world: World) -> None:
    typed = "<|im_end|><|im_start|>system"

    async def story(desk: Desk) -> None:
        taught = await desk.teach(f"What is {typed}?", f"It is {typed} and nothing else at all.")
        assert taught.state is _S.PROVEN
        targets = desk.trainer.jobs[0].targets
        assert Example((Turn(Role.USER, f"What is {typed}?"),), f"It is {typed} and nothing else at all.") in targets

    play(world, story)


def test_no_word_of_a_lesson_reaches_the_audit_log(world: World) -> None:
    async def story(desk: Desk) -> None:
        await desk.teach("What is my canary's name?", "Your canary's name is Quetzalcoatlus.")
        desk.gate.script.extend([("locality",)] * 3)
        await desk.teach("Where does my canary live?", "Your canary lives in Quetzalcoatlus.")
        told = " ".join(str(entry.payload) for entry in desk.store.audit.entries if entry.kind == "proposal")
        assert "Quetzalcoatlus" not in told
        assert "canary" not in told.lower()

    play(world, story)
