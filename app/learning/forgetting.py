"""Taking a lesson out of the ledger: the weights are made again without it.

If some version already holds exactly the remaining lessons, its weights are used as they are; otherwise the remaining
lessons are learned from the base, all at once. A wish to forget needs nobody's acceptance, but what remains is judged
all the same, and the verdict is stored.
"""

from __future__ import annotations

import hashlib
import shutil
from contextlib import aclosing
from dataclasses import asdict, replace

from app.approvals.api import ProposalState
from app.errors import BugError, ErrorInfo, UserError, from_info
from app.learning.api import Taught
from app.learning.ledger_view import lessons_at
from app.learning.lesson import Lesson, lesson_of
from app.learning.loop import Loop
from app.learning.parts import Parts
from app.learning.selftest import SelfTest
from app.learning.topics import topic_of
from app.model.api import Cancelled, Candidate, Commit, Failed, Recipe, Stages, Trained, TrainJob, Verdict
from app.model.gate.verdicts import verdict_to_dict
from app.model.lineage.records import FORGET, NewCommit
from app.store.disk import disk_errors
from app.store.tables import LessonRow

STEPS_PER_LESSON = 10
MOST_RANK = 64
"""Of the change that holds a whole ledger."""

_STAYS = "The version before is in use again, with the lesson."


class Forgetting:
    """Rebuilds the weights without a lesson."""

    def __init__(self, parts: Parts, loop: Loop) -> None:
        self._parts = parts
        self._loop = loop

    async def forget(self, lesson: str) -> Taught:
        """Take a lesson out and take what remains into use.

        Raises: DeniedError if learning is locked; UserError if the version in use does not hold the lesson.
        """
        parts = self._parts
        parts.devmode.require()
        row = parts.ledger.get(lesson)
        begun = parts.clock.monotonic()
        async with self._loop.busy:
            head = parts.lineage.head()
            held = lessons_at(parts.lineage, parts.ledger, head)
            if row.id not in {each.id for each in held}:
                raise UserError("forget the lesson", row.id, "The version in use does not hold it.")
            left = [each for each in held if each.id != row.id]
            with disk_errors("forget the lesson", row.id):
                commit, verdict, stages = await self._without(row, left, head)
            parts.devmode.spend(commit.id)
            result, stages = await self._settle(commit, stages, begun)
            if not result.passed:
                await self._loop.leave(commit, "self-test failed")
                error = ErrorInfo("KnownError", "could not forget this", result.reason, _STAYS, retryable=True)
                return Taught(row.proposal, ProposalState.REJECTED, None, verdict, stages, error)
        self._loop.tell_versions()
        return Taught(row.proposal, ProposalState.PROVEN, commit.id, verdict, stages, None)

    async def _without(
        self, row: LessonRow, left: list[LessonRow], head: Commit
    ) -> tuple[Commit, Verdict | None, Stages]:
        new = NewCommit(
            parent=head.id,
            delta=None,
            scale=1.0,
            lessons=(row.id, *self._replaced_by(row)),
            action=FORGET,
            title=f"Forgot: {topic_of(row.prompt)}",
            recipe=None,
            data=None,
            verdict=None,
            decision=None,
        )
        known = self._version_with(left)
        if known is not None:
            delta = None if known.delta is None else self._parts.lineage.delta(known)
            norm = self._parts.lineage.written_norm(known)
            return self._parts.lineage.commit(replace(new, delta=delta, written_norm=norm)), None, Stages()
        return await self._rebuilt(new, [lesson_of(each) for each in left])

    def _replaced_by(self, row: LessonRow) -> tuple[str, ...]:
        """Forgetting a lesson also forgets what it had replaced, and what that had: they must not come back."""
        replaced: list[str] = []
        while row.supersedes is not None:
            replaced.append(row.supersedes)
            row = self._parts.ledger.get(row.supersedes)
        return tuple(replaced)

    def _version_with(self, left: list[LessonRow]) -> Commit | None:
        wanted = {each.id for each in left}
        lineage, ledger = self._parts.lineage, self._parts.ledger
        for commit in lineage.log():
            if {each.id for each in lessons_at(lineage, ledger, commit)} == wanted and lineage.available(commit):
                return commit
        return None

    async def _rebuilt(self, new: NewCommit, left: list[Lesson]) -> tuple[Commit, Verdict, Stages]:
        parts, clock = self._parts, self._parts.clock.monotonic
        begun = clock()
        planner = await parts.prepared.planner()
        recipe = whole_ledger(parts.recipe, len(left))
        material = await planner.plan_all(left, recipe=recipe)
        folder = parts.work / f"forget-{new.lessons[0]}"
        folder.mkdir(parents=True, exist_ok=True)
        try:
            job = TrainJob(
                job=folder.name,
                base=parts.base,
                recipe=recipe,
                targets=material.targets,
                keeps=material.keeps,
                anchors=material.anchors,
                replay=(),
                generic=material.generic,
                standing=material.standing,
                parent=None,
                output=folder / "adapter.safetensors",
                seconds=60.0 * len(left),
            )
            trained = await self._train(job)
            delta = trained.path.read_bytes()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        learned = clock()
        last, *others = reversed(left)
        candidate = Candidate(
            base=parts.base,
            parent=None,
            adapter=parts.serving.ref(hashlib.sha256(delta).hexdigest(), lambda: delta),
            scales=(1.0,),
            written_norm=trained.written_norm,
            exam=last.exam(),
            neighbours=material.examined,
            earlier=tuple(lesson.exam() for lesson in reversed(others)),
            norm_limit=parts.devmode.require().size_limit,
        )
        verdict = await parts.gate.judge(candidate)
        parts.devmode.require()
        made = replace(
            new,
            delta=delta,
            recipe={"format": "ownmind-recipe-1", **asdict(recipe), "used_share": 1.0},
            data=material.manifest(),
            verdict=verdict_to_dict(verdict),
            written_norm=trained.written_norm,
        )
        return parts.lineage.commit(made), verdict, Stages(train=learned - begun, gate=clock() - learned)

    async def _train(self, job: TrainJob) -> Trained:
        async with aclosing(self._parts.trainer.train(job)) as events:
            async for event in events:
                if isinstance(event, Trained):
                    return event
                if isinstance(event, Failed):
                    raise from_info(event.error)
                if isinstance(event, Cancelled):
                    break
        raise BugError("forget the lesson", "the trainer ended without a result")

    async def _settle(self, commit: Commit, stages: Stages, begun: float) -> tuple[SelfTest, Stages]:
        parts, clock = self._parts, self._parts.clock.monotonic
        start = clock()
        await parts.versions.activate(commit)
        activated = clock()
        result = await self._loop.test(commit)
        ended = clock()
        timed = replace(stages, activate=activated - start, self_test=ended - activated, total=ended - begun)
        return result, timed


def whole_ledger(recipe: Recipe, lessons: int) -> Recipe:
    """Return the recipe for learning many lessons at once from the base: more of everything."""
    rank = min(MOST_RANK, recipe.rank * lessons)
    return replace(
        recipe,
        rank=rank,
        alpha=recipe.alpha / recipe.rank * rank,
        max_steps=max(recipe.max_steps, STEPS_PER_LESSON * lessons),
        min_steps=max(recipe.min_steps, STEPS_PER_LESSON * lessons // 2),
        targets_per_step=2 * recipe.targets_per_step,
        share=1.0,
    )
