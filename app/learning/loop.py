"""The loop: takes approved lessons one at a time through training, gate, commit, activation, self-test and restore.

Every transition is stored before the next step begins, so a start after a crash finds out where a lesson stood:

- before its commit point: it is queued again;
- after it: activation and self-test are run again (the commit is found by the decision that it names);
- a self-test that fails, or cannot be run, moves the head back by itself, and says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from app.approvals.api import ProposalState
from app.approvals.proposals import UNDER_WAY
from app.errors import AppError, BugError, DeniedError, ErrorInfo
from app.learning.api import CardChanged, CardView, VersionsChanged
from app.learning.attempt import Attempt, Judged, Progress, Start, Stopped
from app.learning.cards import Cards, Moment, stages_of
from app.learning.ledger_view import lessons_at
from app.learning.lesson import Lesson, entry_of, lesson_of
from app.learning.parts import Parts
from app.learning.planning import recipe_for
from app.learning.selftest import SelfTest, self_test
from app.learning.topics import title_of
from app.model.api import ROOT_ACTION, Commit, Outcome, Stages
from app.model.gate.verdicts import verdict_to_dict
from app.model.lineage.records import LEARN, NewCommit
from app.store.disk import disk_errors
from app.store.tables import ProposalRow
from app.tasks import TaskSet

_log = logging.getLogger(__name__)
_S = ProposalState

_TRAIN_SHARE = 0.6
_GATE_SHARE = 0.35
_GATE_GUESS_S = 10.0


class Loop:
    """Owns the queue of approved lessons. One lesson at a time; everything on the core loop."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._cards = Cards(parts.lineage, parts.ledger)
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._tasks = TaskSet()
        self._moments: dict[str, Moment] = {}
        self._begun: dict[str, float] = {}
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        self._running: asyncio.Task[None] | None = None
        self._running_id: str | None = None
        self._stopped: set[str] = set()
        """Those that the person stopped; others end early only because the app does."""
        self.busy = asyncio.Lock()
        """Held while the weights in use change: a lesson being learned, or a version being taken into use."""

    # --- life

    async def start(self, begin_engine: Callable[[], None]) -> list[str]:
        """Finish or undo what the last session left, and begin to work; return what to tell the person.

        ``begin_engine`` is called as soon as it is known which version is in use.
        """
        lineage = self._parts.lineage
        said = lineage.recover()
        begin_engine()
        if (newest := lineage.log()[0]).action != ROOT_ACTION:
            self._parts.devmode.spend(newest.id)  # the app may have ended between making a version and counting it
        for row in self._parts.proposals.in_states(UNDER_WAY):
            said += await self._recover(row)
        if (unproven := lineage.unproven()) is not None and not self._is_settling(unproven):
            self._tasks.start(self._prove_again(unproven), "prove")
        self._tasks.start(self._work(), "learning loop")
        return said

    async def close(self) -> None:
        """Stop at once; what is under way goes on at the next start."""
        await self._tasks.close()

    def view(self, row: ProposalRow) -> CardView:
        """Return a proposal as a card, with its progress."""
        return self._cards.view(row, self._moments.get(row.id))

    # --- the queue

    def enqueue(self, proposal: str) -> None:
        """Queue an approved lesson."""
        self._move(proposal, _S.QUEUED)
        self._begun[proposal] = self._parts.clock.monotonic()
        self._queue.put_nowait(proposal)

    async def ended(self, proposal: str) -> ProposalRow:
        """Wait until a lesson is through, however it ends."""
        if ProposalState(self._parts.proposals.get(proposal).state) in UNDER_WAY:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(proposal, []).append(future)
            await future
        return self._parts.proposals.get(proposal)

    async def cancel(self, proposal: str) -> None:
        """Stop a lesson that is not committed yet; one that is, is through in a moment."""
        row = self._parts.proposals.get(proposal)
        if row.state == _S.QUEUED:
            self._move(proposal, _S.CANCELLED)
            self._finish(proposal)
        elif proposal == self._running_id and self._running and row.state in (_S.TRAINING, _S.GATING):
            self._stopped.add(proposal)
            self._running.cancel()
            await self.ended(proposal)

    async def _work(self) -> None:
        while True:
            proposal = await self._queue.get()
            async with self.busy:
                if self._parts.proposals.get(proposal).state != _S.QUEUED:  # cancelled while it waited
                    continue
                self._running_id = proposal
                self._running = self._tasks.start(self._one(proposal), "lesson")
                await asyncio.wait([self._running])
                self._running = self._running_id = None
            self._finish(proposal)
            if self._queue.empty():
                self.get_ready()

    def get_ready(self, upcoming: Lesson | None = None, *, wanted: bool = False) -> None:
        """Begin to make ready for the next lesson, in the background.

        Args:
            upcoming: The lesson, if it is on a card already.
            wanted: The person wants it learned. Without that, nothing is begun while learning is locked.
        """
        with contextlib.suppress(DeniedError):
            if not wanted:
                self._parts.devmode.require()
            self._tasks.start(self._parts.prepared.warm(upcoming), "warm up")

    def _finish(self, proposal: str) -> None:
        self._moments.pop(proposal, None)
        self._begun.pop(proposal, None)
        self._stopped.discard(proposal)
        for future in self._waiting.pop(proposal, []):
            if not future.done():
                future.set_result(None)
        shutil.rmtree(self._parts.work / proposal, ignore_errors=True)

    async def _one(self, proposal: str) -> None:
        """Take one lesson through; every way it can end is stored."""
        try:
            with disk_errors("learn this", "the files of the lesson"):
                await self._learn(proposal)
        except (Stopped, asyncio.CancelledError) as stop:
            if isinstance(stop, asyncio.CancelledError) and proposal not in self._stopped:
                raise
            if self._parts.proposals.get(proposal).state in (_S.TRAINING, _S.GATING):
                self._move(proposal, _S.CANCELLED)
        except AppError as error:
            await self._fail(proposal, error)
        except Exception as error:  # the boundary of a lesson: a fault of ours must not leave it under way for ever
            await self._fail(proposal, BugError("learn this", type(error).__name__, "The log says where it happened."))
            raise

    async def _fail(self, proposal: str, error: AppError) -> None:
        """Store why a lesson ended; a version that was made of it does not stay in use without its checks."""
        _log.warning("lesson failed: %s", type(error).__name__)
        commit = self._commit_of(proposal)
        if commit is not None and commit.id == self._parts.lineage.head().id:
            await self.leave(commit, "checks not finished")
        self._move(proposal, _S.FAILED, error=error.info())

    # --- one lesson

    async def _learn(self, proposal: str) -> None:
        parts = self._parts
        budget = parts.devmode.require()
        self._moments[proposal] = Moment("getting ready", 0.0, 0.0)
        row = self._move(proposal, _S.TRAINING)
        lesson, earlier = self._lessons(row)
        folder = parts.work / proposal
        folder.mkdir(parents=True, exist_ok=True)
        head = parts.lineage.head()
        start = self._start(head, folder)
        planner = await parts.prepared.planner()
        recipe = recipe_for(lesson, parts.recipe)
        material = await planner.plan(lesson, earlier, parent=start.ref, recipe=recipe)
        attempt = Attempt(
            parts.base,
            parts.trainer,
            parts.gate,
            parts.serving,
            folder=folder,
            clock=parts.clock.monotonic,
            report=lambda progress: self._report(proposal, progress),
        )
        exams = tuple(item.exam() for item in earlier)
        judged = await attempt.climb(material, lesson.exam(), exams, start, recipe, limit=budget.size_limit)
        evidence = json.dumps(verdict_to_dict(judged.verdict))
        trained = judged.change.trained
        counts: dict[str, float] = {"rungs": judged.rungs, "steps": trained.steps, "tokens": trained.tokens}
        stages = Stages(train=judged.train_seconds, gate=judged.gate_seconds, extra=counts)
        if judged.verdict.outcome is not Outcome.ACCEPT:
            total = parts.clock.monotonic() - self._begun[proposal]
            self._ensure_gating(proposal)
            self._move(proposal, _S.REJECTED, evidence=evidence, stages=_json(replace(stages, total=total)))
            return
        parts.devmode.require()
        self._ensure_gating(proposal)
        commit = parts.lineage.commit(_new_commit(row, head, lesson, judged, material.manifest()))
        parts.devmode.spend(commit.id)
        parts.ledger.attach_commit(lesson.id, commit.id)
        row = self._move(proposal, _S.COMMITTED, commit=commit.id, evidence=evidence, stages=_json(stages))
        await self._settle(row, commit)

    def _lessons(self, row: ProposalRow) -> tuple[Lesson, list[Lesson]]:
        """Return the lesson, in the ledger from now on, and those that the version in use holds beside it."""
        parts = self._parts
        added = parts.ledger.add(row, entry_of(row))
        held = lessons_at(parts.lineage, parts.ledger, parts.lineage.head())
        return lesson_of(added), [lesson_of(each) for each in held if each.id != added.supersedes]

    def _start(self, head: Commit, folder: Path) -> Start:
        if head.delta is None:
            return Start(None, None, None)
        delta = self._parts.lineage.delta(head)
        path = folder / "parent.safetensors"
        path.write_bytes(delta)
        return Start(self._parts.versions.ref(head), delta, path, self._parts.lineage.written_norm(head))

    async def _settle(self, row: ProposalRow, commit: Commit) -> None:
        """After the commit point: activate, test, restore; back to the parent if the test fails."""
        parts, clock = self._parts, self._parts.clock.monotonic
        self._tell(row.id, Moment("taking it into use", _TRAIN_SHARE + _GATE_SHARE, 2.0))
        begun = clock()
        await parts.versions.activate(commit)
        if row.state != _S.ACTIVE:  # it is already, if the app ended during its test
            row = self._move(row.id, _S.ACTIVE)
        activated = clock()
        result = await self.test(commit)
        tested = clock()
        if not result.passed:
            await self._take_back(row, commit, result.reason)
            return
        await self._restore()
        ended = clock()
        stages = replace(
            stages_of(row),
            activate=activated - begun,
            self_test=tested - activated,
            restore=ended - tested,
            total=ended - self._begun.get(row.id, begun),
        )
        self._move(row.id, _S.PROVEN, stages=_json(stages))
        self.tell_versions()

    async def test(self, commit: Commit) -> SelfTest:
        """Test the version that the engine runs: its own lesson, and some of those that it holds beside it."""
        parts = self._parts
        lessons = [lesson_of(each).exam() for each in lessons_at(parts.lineage, parts.ledger, commit)]
        own = next((exam for exam in lessons if exam.lesson in commit.lessons), None)
        others = [exam for exam in lessons if exam is not own]
        result = await self_test(parts.engine, parts.encoder, parts.versions.ref(commit), own, others)
        if result.passed:
            parts.lineage.note_proven(commit)
        return result

    async def leave(self, commit: Commit, reason: str) -> None:
        """Take the version before into use; an engine that cannot follow now does when it is loaded again."""
        parent = self._parts.lineage.move_head(self._parts.lineage.get(commit.parents[0]), reason)
        try:
            await self._parts.versions.activate(parent)
        except AppError as error:
            _log.warning("version not activated: %s", type(error).__name__)
        self.tell_versions()

    async def _take_back(self, row: ProposalRow, commit: Commit, reason: str) -> None:
        await self.leave(commit, "self-test failed")
        error = ErrorInfo("KnownError", "could not keep this", reason, "The version before is in use again.", True)
        self._move(row.id, _S.REJECTED, error=error)

    async def _restore(self) -> None:
        """Carry the open conversation into the version in use; if that fails, the next answer does it."""
        try:
            turns = await self._parts.chat.open_turns()
            if turns:
                await self._parts.engine.prefill(turns)
        except AppError as error:
            _log.warning("conversation not restored: %s", type(error).__name__)

    # --- after a crash

    def _commit_of(self, proposal: str) -> Commit | None:
        return next((commit for commit in self._parts.lineage.log() if commit.decision == proposal), None)

    def _is_settling(self, commit: Commit) -> bool:
        return commit.decision is not None and commit.decision in self._begun

    async def _recover(self, row: ProposalRow) -> list[str]:
        commit = self._commit_of(row.id)
        if commit is None:
            return self._requeue(row)
        row = self._caught_up(row, commit)
        if self._parts.lineage.head().id != commit.id:
            self._move(row.id, _S.FAILED, error=_CUT_OFF)
            return [f"Version {commit.number} had not passed its checks when the app ended; it is not in use."]
        self._begun[row.id] = self._parts.clock.monotonic()
        self._tasks.start(self._settle_again(row, commit), "settle")
        return [f"Version {commit.number} was saved when the app ended; its checks run again."]

    def _caught_up(self, row: ProposalRow, commit: Commit) -> ProposalRow:
        """Move a row that the app's end left behind its version to where the version is."""
        parts = self._parts
        if row.state not in _BEFORE_COMMIT:
            return row
        for state in _BEFORE_COMMIT[_BEFORE_COMMIT.index(ProposalState(row.state)) + 1 :]:
            self._move(row.id, state)
        lesson = parts.ledger.of_proposal(row.id)
        if lesson is not None and lesson.id in commit.lessons:
            parts.ledger.attach_commit(lesson.id, commit.id)
        evidence = json.dumps(parts.lineage.document(commit.verdict)) if commit.verdict else None
        return self._move(row.id, _S.COMMITTED, commit=commit.id, evidence=evidence)

    async def _prove_again(self, commit: Commit) -> None:
        """Finish the checks of a version that no card waits for: one that forgets, or that was chosen by hand."""
        async with self.busy:
            try:
                if self._parts.lineage.head().id == commit.id:
                    await self._parts.versions.activate(commit)
                    await self.test(commit)
            except AppError as error:
                _log.warning("checks not finished: %s", type(error).__name__)

    async def _settle_again(self, row: ProposalRow, commit: Commit) -> None:
        async with self.busy:
            try:
                await self._settle(row, commit)
            except AppError as error:
                await self._fail(row.id, error)
            finally:
                self._finish(row.id)

    def _requeue(self, row: ProposalRow) -> list[str]:
        try:
            self._parts.devmode.require()
        except AppError as error:
            self._move(row.id, _S.FAILED, error=error.info())
            return ["A lesson was being learned when the app ended. Learning is locked now, so it was not continued."]
        if row.state == _S.QUEUED:
            self._begun[row.id] = self._parts.clock.monotonic()
            self._queue.put_nowait(row.id)
        else:
            self.enqueue(row.id)
        return ["A lesson was being learned when the app ended; it is being learned again."]

    # --- telling

    def _report(self, proposal: str, progress: Progress) -> None:
        if progress.stage == "train":
            share = _TRAIN_SHARE * progress.share
            self._tell(proposal, Moment("learning", share, progress.seconds_left + _GATE_GUESS_S))
            return
        self._ensure_gating(proposal)
        self._tell(proposal, Moment("checking", _TRAIN_SHARE + _GATE_SHARE * progress.share, progress.seconds_left))

    def _ensure_gating(self, proposal: str) -> None:
        if self._parts.proposals.get(proposal).state == _S.TRAINING:
            self._move(proposal, _S.GATING)

    def _tell(self, proposal: str, moment: Moment) -> None:
        self._moments[proposal] = moment
        self._parts.events.publish(CardChanged(self.view(self._parts.proposals.get(proposal))))

    def _move(self, proposal: str, to: ProposalState, **found: Any) -> ProposalRow:
        row = self._parts.proposals.move(proposal, to, **found)
        self._parts.events.publish(CardChanged(self.view(row)))
        return row

    def tell_versions(self) -> None:
        """Publish that the timeline or the version in use changed, and every card that this concerns."""
        self._parts.events.publish(VersionsChanged(self._parts.lineage.head().number))
        for row in self._parts.proposals.in_states({_S.PROVEN, _S.UNDONE}):
            self._parts.events.publish(CardChanged(self.view(row)))


_BEFORE_COMMIT = (_S.APPROVED, _S.QUEUED, _S.TRAINING, _S.GATING)
_CUT_OFF = ErrorInfo(
    "KnownError", "could not finish this lesson", "it was cut off", "Nothing of it is in use; learn it again.", True
)


def _new_commit(row: ProposalRow, head: Commit, lesson: Lesson, judged: Judged, data: dict[str, Any]) -> NewCommit:
    return NewCommit(
        parent=head.id,
        delta=judged.change.delta,
        scale=1.0,
        lessons=(lesson.id,),
        action=LEARN,
        title=title_of(row.prompt),
        recipe={"format": "ownmind-recipe-1", **asdict(judged.change.recipe), "used_share": judged.change.share},
        data=data,
        verdict=verdict_to_dict(judged.verdict),
        decision=row.id,
        conversation=row.conversation or None,
        written_norm=judged.change.written_norm,
    )


def _json(stages: Stages) -> str:
    return json.dumps(asdict(stages))
