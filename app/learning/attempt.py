"""From material to a judged adapter: training, then the gate, then another rung of the ladder if that can help.

Rungs, each judged by the same gate, at most three in all:

1. the base's recipe, at the share of the change that the recipe names;
2. if the lesson was not learned well enough: the whole change; if something else changed too much: less of it;
3. another training: longer and with a wider margin if it was not learned, slower and with more near questions a step if
   it spoilt something.

A rung that is accepted ends the climb; otherwise, of those that show the lesson if any does, the verdict with the
fewest objections stands.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path

from app.errors import BugError, from_info
from app.learning.planning import Material
from app.model.adapters.serving import ServingFiles
from app.model.adapters.stack import stack
from app.model.api import (
    AdapterRef,
    BaseFiles,
    Cancelled,
    Candidate,
    Evaluator,
    Exam,
    Failed,
    Outcome,
    Recipe,
    Trained,
    Trainer,
    Training,
    TrainJob,
    Turn,
    Verdict,
)

SOFTER = 0.75
"""What remains of the share when something else changed too much."""
LONGER = 1.5
WIDER = 2.0
MOST_RUNGS = 3
_LEARNED = frozenset(("efficacy", "held_out", "earlier"))
"""Rules that fail when too little was learned, or not enough rehearsed."""


@dataclass(frozen=True, slots=True)
class Start:
    """The version that a change stands on."""

    ref: AdapterRef | None
    delta: bytes | None
    path: Path | None
    """Where the canonical bytes lie for the trainer."""
    written_norm: float = 0.0
    """Size of the change that the version itself is."""


@dataclass(frozen=True, slots=True)
class Change:
    """A trained change and how much of it is kept."""

    trained: Trained
    whole: bytes
    """All of it, without the version it stands on, canonical."""
    delta: bytes
    """That version and the share of the change that is judged, canonical."""
    share: float
    written_norm: float
    recipe: Recipe


@dataclass(frozen=True, slots=True)
class Judged:
    """A change with its verdict."""

    change: Change
    verdict: Verdict
    rungs: int
    train_seconds: float
    gate_seconds: float


@dataclass(frozen=True, slots=True)
class Progress:
    """Where an attempt is: 0..1 of its stage."""

    stage: str
    """"train" or "gate"."""
    share: float
    seconds_left: float


class Stopped(Exception):  # noqa: N818 - an outcome, not an error
    """The person stopped it."""


class Attempt:
    """One climb of the ladder for one lesson."""

    def __init__(
        self,
        base: BaseFiles,
        trainer: Trainer,
        gate: Evaluator,
        serving: ServingFiles,
        *,
        folder: Path,
        clock: Callable[[], float],
        report: Callable[[Progress], None],
    ) -> None:
        self._base = base
        self._trainer = trainer
        self._gate = gate
        self._serving = serving
        self._folder = folder
        self._clock = clock
        self._report = report
        self._train_seconds = 0.0
        self._gate_seconds = 0.0

    async def climb(
        self, material: Material, exam: Exam, earlier: tuple[Exam, ...], start: Start, recipe: Recipe, *, limit: float
    ) -> Judged:
        """Return the first accepted change, or the best of those that were tried.

        Raises: Stopped; the AppError of a failed training or gate.
        """
        tried: list[Judged] = []
        for rung in range(1, MOST_RUNGS + 1):
            change = await self._rung(rung, tried, material, start, recipe)
            if change is None:
                break
            candidate = self._candidate(change, material.examined, exam, start, limit=limit)
            verdict = await self._judge(replace(candidate, earlier=earlier))
            tried.append(Judged(change, verdict, rung, self._train_seconds, self._gate_seconds))
            if verdict.outcome is Outcome.ACCEPT:
                return tried[-1]
        best = min(tried, key=lambda judged: _shortcomings(judged.verdict))
        return replace(best, rungs=len(tried), train_seconds=self._train_seconds, gate_seconds=self._gate_seconds)

    async def _rung(
        self, rung: int, tried: list[Judged], material: Material, start: Start, recipe: Recipe
    ) -> Change | None:
        """Return the change of a rung, or None if none can help."""
        if not tried:
            return await self._train(rung, material, start, recipe)
        change, failing = tried[-1].change, _failing(tried[-1].verdict)
        first = len(tried) == 1
        if first and failing & _LEARNED and change.share < 1.0:
            return self._at(change, start, 1.0)
        if first and not failing & _LEARNED:
            return self._at(change, start, change.share * SOFTER)
        if change.recipe != recipe:
            return None
        spoilt = any(_failing(judged.verdict) - _LEARNED for judged in tried)
        return await self._train(rung, material, start, _gentler(recipe) if spoilt else _longer(recipe))

    def _at(self, change: Change, start: Start, share: float) -> Change:
        delta = stack(start.delta, change.whole, self._base.passport, share=share)
        # No larger than this, since a norm is convex.
        norm = (1 - share) * start.written_norm + share * change.trained.written_norm
        return replace(change, delta=delta, share=share, written_norm=norm)

    async def _train(self, rung: int, material: Material, start: Start, recipe: Recipe) -> Change:
        begun = self._clock()
        job = TrainJob(
            job=f"{self._folder.name}-{rung}",
            base=self._base,
            recipe=recipe,
            targets=material.targets,
            keeps=material.keeps,
            anchors=material.anchors,
            replay=material.replay,
            generic=material.generic,
            standing=material.standing,
            parent=start.path,
            output=self._folder / f"adapter-{rung}.safetensors",
        )
        trained: Trained | None = None
        async with aclosing(self._trainer.train(job)) as events:
            async for event in events:
                if isinstance(event, Training):
                    self._report(Progress("train", event.step / event.steps, event.seconds_left))
                elif isinstance(event, Failed):
                    raise from_info(event.error)
                elif isinstance(event, Cancelled):
                    raise Stopped
                else:
                    trained = event
        if trained is None:
            raise BugError("learn this", "the trainer ended without a result")
        whole = trained.path.read_bytes()
        change = self._at(Change(trained, whole, whole, 1.0, trained.written_norm, recipe), start, recipe.share)
        self._train_seconds += self._clock() - begun
        return change

    def _candidate(
        self, change: Change, neighbours: tuple[tuple[Turn, ...], ...], exam: Exam, start: Start, *, limit: float
    ) -> Candidate:
        sha256 = hashlib.sha256(change.delta).hexdigest()
        return Candidate(
            base=self._base,
            parent=start.ref,
            adapter=self._serving.ref(sha256, lambda: change.delta),
            scales=(1.0,),
            written_norm=change.written_norm,
            exam=exam,
            neighbours=neighbours,
            earlier=(),
            norm_limit=limit,
        )

    async def _judge(self, candidate: Candidate) -> Verdict:
        begun = self._clock()

        def report(share: float) -> None:
            spent = self._clock() - begun
            left = spent / share * (1 - share) if share > 0 else 0.0
            self._report(Progress("gate", share, left))

        verdict = await self._gate.judge(candidate, report)
        self._gate_seconds += self._clock() - begun
        return verdict


def _failing(verdict: Verdict) -> set[str]:
    return {check.rule for check in verdict.checks if check.outcome is not Outcome.ACCEPT}


def _shortcomings(verdict: Verdict) -> tuple[bool, int]:
    """Order verdicts, the best first. Where the lesson is not shown, nothing else was asked."""
    failing = _failing(verdict)
    return bool(failing & _LEARNED), len(failing)


def _gentler(recipe: Recipe) -> Recipe:
    """Return the recipe for a lesson that spoils what lies near: slower, with more of it in every step."""
    return replace(
        recipe,
        learning_rate=recipe.learning_rate / LONGER,
        max_steps=int(recipe.max_steps * LONGER),
        min_steps=int(recipe.min_steps * LONGER),
        keeps_per_step=int(recipe.keeps_per_step * WIDER),
        drift=recipe.drift / WIDER,
    )


def _longer(recipe: Recipe) -> Recipe:
    return replace(
        recipe,
        max_steps=int(recipe.max_steps * LONGER),
        min_steps=int(recipe.min_steps * LONGER),
        margin=recipe.margin * WIDER,
        share=1.0,
    )
