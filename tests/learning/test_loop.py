"""The life of a lesson: every way from approval to its end, and that only a proven lesson changes the weights."""

from __future__ import annotations

import asyncio

import pytest

from app.approvals.api import ProposalState
from app.errors import AppError, BugError, ErrorInfo, KnownError, VerificationError
from app.learning.api import VersionsChanged
from app.learning.planning import Planner
from app.model.api import AdapterRef, Done, Outcome, Piece, Role, Sampling, Turn
from app.model.gate.suites import load_suites
from tests.support.learning import CAT, DOG, Desk, FakeTrainer, World

_S = ProposalState
PROMISED = {probe.prompt for probe in load_suites().known if probe.always}


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

    world.play(story)


def test_every_move_of_a_lesson_is_in_the_audit_log_in_order(world: World) -> None:
    async def story(desk: Desk) -> None:
        taught = await desk.teach(*DOG)
        assert desk.states_of(taught.proposal) == [
            *("surfaced", "approved", "queued", "training", "gating", "committed", "active", "proven"),
        ]
        kinds = desk.kinds()
        assert kinds.index("commit", kinds.index("commit") + 1) < kinds.index("active") < kinds.index("proven")

    world.play(story)


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
        taught_answers = [item["answer"] for item in data["targets"] if item["turns"][-1]["text"] not in PROMISED]
        assert taught_answers
        assert set(taught_answers) == {DOG[1]}
        assert desk.lineage.document(commit.verdict or "")["outcome"] == "accept"
        assert (lesson.prompt, lesson.answer, lesson.commit, lesson.active) == (*DOG, commit.id, True)

    world.play(story)


def test_what_was_judged_is_what_is_committed_and_served_at_full_strength(world: World) -> None:
    async def story(desk: Desk) -> None:
        await desk.teach(*DOG)
        (candidate,) = desk.gate.judged
        assert candidate.adapter.sha256 == desk.head.delta
        assert candidate.scales == (1.0,)
        assert desk.head.scale == 1.0
        assert candidate.parent is None

    world.play(story)


def test_each_accepted_lesson_counts_once_against_the_budget(world: World) -> None:
    async def story(desk: Desk) -> None:
        first = await desk.teach(*DOG)
        second = await desk.teach(*CAT)
        assert desk.spendings() == [first.commit, second.commit]
        assert desk.devmode.status().changes_left_today == 48

    world.play(story)


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

    world.play(story)


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

    world.play(story)


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

    world.play(story)


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

    world.play(story)


def test_a_conversation_that_cannot_be_restored_now_does_not_undo_the_lesson(world: World) -> None:
    async def story(desk: Desk) -> None:
        desk.chat.error = KnownError("read the conversation")
        assert (await desk.teach(*DOG)).state is _S.PROVEN

    world.play(story)


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

    world.play(story)


# --- not accepted ---------------------------------------------------------------------------------------------------


def test_a_rejected_lesson_changes_nothing_and_says_why(world: World) -> None:
    async def story(desk: Desk) -> None:
        desk.gate.script.extend([("locality",)] * 5)
        taught = await desk.teach(*DOG)
        assert taught.state is _S.REJECTED
        assert taught.commit is None
        assert taught.verdict is not None
        assert taught.verdict.outcome is Outcome.REJECT
        desk.has_changed_nothing()
        view = desk.loop.view(desk.parts.proposals.get(taught.proposal))
        assert view.outcome_words == "would have changed: locality"
        assert view.suggestions == ("rephrase",)
        assert [check.rule for check in view.checks if check.outcome is Outcome.REJECT] == ["locality"]
        assert await desk.learning.lessons() == []
        assert [row.rejected for row in await desk.learning.versions()] == [True, False]

    world.play(story)


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
        desk.has_changed_nothing()
        assert (await desk.teach(*CAT)).state is _S.PROVEN

    world.play(story)


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
        desk.has_changed_nothing()

    world.play(story)


def test_a_gate_engine_that_does_not_start_ends_the_lesson_with_its_reason(world: World) -> None:
    async def story(desk: Desk) -> None:
        desk.examiner.fail_next = KnownError("get enough memory")
        taught = await desk.teach(*DOG)
        assert taught.state is _S.FAILED
        assert taught.error is not None
        assert "memory" in taught.error.what
        desk.has_changed_nothing()

    world.play(story)


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
        desk.has_changed_nothing()

    world.play(story)


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
        desk.has_changed_nothing()

    world.play(story)


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

    world.play(story)


def test_a_version_that_forgot_more_than_it_should_is_left_and_says_so(world: World) -> None:
    async def story(desk: Desk) -> None:
        await desk.teach(*DOG)
        await desk.teach(*CAT)
        before = desk.head
        dog = (await desk.learning.lessons())[0]
        world.brain.forgetful = True
        taught = await desk.learning.forget(dog.id)
        world.brain.forgetful = False
        assert taught.state is _S.REJECTED
        assert taught.commit is None
        assert taught.error is not None
        assert desk.head.id == before.id
        assert [lesson.active for lesson in await desk.learning.lessons()] == [True, True]

    world.play(story)


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

    world.play(story)


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

    world.play(story)


def test_a_fault_of_our_own_ends_the_lesson_and_not_the_loop(world: World) -> None:
    async def story(desk: Desk) -> None:
        async def broken() -> Planner:
            raise ZeroDivisionError

        planner, desk.prepared.planner = desk.prepared.planner, broken  # type: ignore[method-assign]
        faults: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context["exception"]))
        failed = await desk.teach(*DOG)
        assert failed.state is ProposalState.FAILED
        assert failed.error is not None
        assert failed.error.kind == "BugError"
        assert [type(fault) for fault in faults] == [ZeroDivisionError]
        desk.prepared.planner = planner  # type: ignore[method-assign]
        assert (await desk.teach(*CAT)).state is ProposalState.PROVEN

    world.play(story)
