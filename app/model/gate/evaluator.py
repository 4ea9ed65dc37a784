"""The gate. Judges a candidate on the serving runtime, against its parent and the base.

The steps, numbered as the rules are:

(0) validity: suite verified, engine on the candidate's base, something to ask, the base knows something;
(6) the written norm, first because it costs nothing and an exploded change needs no questions;
(1) efficacy and (4) earlier lessons, at the smallest strength that passes;
(2) locality, (3) retention, (5) safety, (7) degeneration, at that strength.

The caller's duties: give the gate an engine of its own, never a chat's; switch retrieval off; serve what was accepted
at the verdict's scale and nothing else; store the verdict whole.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.clock import Clock, SystemClock
from app.errors import VerificationError
from app.model.api import (
    AdapterRef,
    BaseFiles,
    Candidate,
    Check,
    Encoder,
    Engine,
    EngineInfo,
    Exam,
    Outcome,
    Turn,
    Verdict,
)
from app.model.gate import measure, reasons, rules
from app.model.gate.asking import Answers, Asker, Memory
from app.model.gate.plan import Plan, Sizes, all_pins, ask_pin, asked, make_plan, make_rotation, near_questions
from app.model.gate.rules import Change, Limits
from app.model.gate.stages import Stages
from app.model.gate.suites import Suites, load_suites
from app.model.gate.trial import Lessons, References, Trial, flat, prepare, prepare_near

_log = logging.getLogger(__name__)

LEAST_WORDINGS = 4
LEAST_NEIGHBOURS = 4


class Gate:
    """The evaluator between training and activation; implements ``app.model.api.Evaluator``.

    Args:
        engine: An engine of its own, on the serving runtime.
        encoder: For lessons whose meaning counts.
        suites: The verified suite; None loads the app's own at the first judgement.
        cache_dir: Where answers of base and parents are kept; None keeps them in memory.
        limits: Where accepting ends.
        sizes: How much is asked.
        context_tokens: Window of the engine when the gate loads it.
        threads: Threads of the engine when the gate loads it; 0 leaves the choice to it.
        clock: For the seconds in verdicts.
    """

    def __init__(
        self,
        engine: Engine,
        encoder: Encoder,
        *,
        suites: Suites | None = None,
        cache_dir: Path | None = None,
        limits: Limits | None = None,
        sizes: Sizes | None = None,
        context_tokens: int = 4096,
        threads: int = 0,
        clock: Clock | None = None,
    ) -> None:
        self._engine = engine
        self._encoder = encoder
        self._suites = suites
        self._cache_dir = cache_dir
        self._limits = limits or Limits()
        self._sizes = sizes or Sizes()
        self._load = (context_tokens, threads)
        self._clock = clock or SystemClock()
        self._warming = asyncio.Lock()
        self._info: EngineInfo | None = None
        self._memory: tuple[str, Memory] | None = None
        self.seconds: dict[str, float] = {}
        """Of the last judgement, by stage."""

    async def warm(self, base: BaseFiles) -> EngineInfo:
        """Load the base into the gate's engine, unless it is there; pays the loading time before it is missed."""
        async with self._warming:
            if self._info is None or self._info.base != base.passport.id:
                context_tokens, threads = self._load
                self._info = await self._engine.load(base, context_tokens=context_tokens, threads=threads)
            return self._info

    async def judge(self, candidate: Candidate, progress: Callable[[float], None] | None = None) -> Verdict:
        """Return a verdict with its evidence.

        Raises:
            VerificationError: no verdict is possible: the suite is missing or altered, the engine holds another base,
                there is nothing to ask, or the base itself answers nothing.
            KnownError: the engine or the encoder died; nothing was decided.
        """
        stages = Stages(self._clock, progress)
        case = await self._case(candidate)
        scales = [scale for scale in sorted(candidate.scales) if candidate.written_norm * scale <= candidate.norm_limit]
        if not scales:
            least = min(candidate.scales)
            found = _Found(least, [rules.norm(candidate.written_norm * least, candidate.norm_limit)])
        else:
            found = await self._evidence(case, scales, stages)
        self.seconds = stages.end()
        _log.info("gate: %s, seconds: %s", rules.overall(found.checks).value, _listed(self.seconds))
        return _verdict(case, found, self.seconds["total"])

    async def prepare(
        self,
        base: BaseFiles,
        parent: AdapterRef | None,
        *,
        lessons: int,
        exam: Exam | None = None,
        neighbours: tuple[tuple[Turn, ...], ...] = (),
    ) -> None:
        """Ask base and parent beforehand what the next judgement will need; changes nothing of its verdict.

        Args:
            base: The base in use.
            parent: The version in use.
            lessons: How many lessons it holds.
            exam: The lesson that will be judged, if it is known already.
            neighbours: Its neighbours, as the candidate will name them.
        """
        suites = self._verified_suite()
        asker = self._asker(await self.warm(base), suites)
        await self._held(asker, suites)
        await prepare(make_rotation(suites, self._sizes, shift=lessons), asker, parent)
        if exam is not None and neighbours:
            await prepare_near(near_questions(exam, neighbours, self._sizes), asker, parent)

    async def _case(self, candidate: Candidate) -> _Case:
        suites = self._verified_suite()
        info = await self.warm(candidate.base)
        _check_validity(candidate, info)
        asker = self._asker(info, suites)
        plan = make_plan(candidate, suites, self._sizes, await self._held(asker, suites))
        return _Case(candidate, suites, info, plan, Trial(candidate, plan, asker, self._encoder, self._limits))

    async def _held(self, asker: Asker, suites: Suites) -> frozenset[str]:
        """Return the pins that the base holds; it is asked once for good.

        Raises VerificationError if it holds none: compared with such a base, every change would look harmless.
        """
        pins = [(probe, ask_pin(probe, self._sizes)) for probe in all_pins(suites)]
        held = measure.held(pins, await asker.ask(None, [item for _, item in pins]))
        if not held:
            raise _invalid("the base answers none of the questions that it should know")
        return held

    def _verified_suite(self) -> Suites:
        if self._suites is None:
            self._suites = load_suites()
        return self._suites

    def _asker(self, info: EngineInfo, suites: Suites) -> Asker:
        space = f"{info.backend}/{info.base}/{suites.sha256}"
        if self._memory is None or self._memory[0] != space:
            self._memory = (space, Memory(space, self._cache_dir))
        return Asker(self._engine, self._memory[1])

    async def _evidence(self, case: _Case, scales: list[float], stages: Stages) -> _Found:
        """Ask and judge; stops early when the lesson itself was not learned."""
        with stages.stage("neighbours before", 0.05):
            near = await case.trial.near_before()
        with stages.stage("efficacy and earlier lessons", 0.25):
            lessons = await case.trial.choose(near, scales)
        checks = self._lesson_checks(case, lessons)
        if rules.overall(checks) is Outcome.REJECT:
            return _Found(lessons.scale, checks)
        with stages.stage("references", 0.2) as report:
            references = await case.trial.references(near, report)
            if not measure.mean_loss(flat(case.plan.rotation.prose), references.base) > 0:
                raise _invalid("the base cannot be measured")
        with stages.stage("everything else", 0.4) as report:
            new = await case.trial.rest(lessons.scale, references, report)
        more, changes = await self._side_effects(case, lessons.scale, references, new, stages)
        return _Found(lessons.scale, [*checks, *more], changes)

    def _lesson_checks(self, case: _Case, lessons: Lessons) -> list[Check]:
        checks = [rules.efficacy(lessons.exact), rules.held_out(lessons.held_out, self._limits)]
        if lessons.asked or not case.candidate.earlier:
            checks.append(case.trial.earlier_check(lessons))
        return [*checks, rules.norm(case.candidate.written_norm * lessons.scale, case.candidate.norm_limit)]

    async def _side_effects(
        self, case: _Case, scale: float, references: References, new: Answers, stages: Stages
    ) -> tuple[list[Check], tuple[Change, ...]]:
        """Return the checks of everything that should have stayed, and what did not."""
        with stages.stage("locality", 0.02):
            checks, changes = await self._locality(case, references, new)
        with stages.stage("retention", 0.04):
            checks += await self._retention(case, scale, references, new)
        with stages.stage("safety", 0.04):
            flips = await case.trial.flipped(case.plan.behaviour, references, new)
            margin = await case.trial.refusals(scale, references, new)
            checks.append(rules.safety(margin, [probe.prompt for probe in flips], self._limits))
        after, before = case.trial.manners(references, new)
        checks.append(rules.degeneration(after, before, case.trial.drift(references, new), self._limits))
        return checks, changes

    async def _locality(
        self, case: _Case, references: References, new: Answers
    ) -> tuple[list[Check], tuple[Change, ...]]:
        near = case.trial.near(references, new, await case.trial.flipped(case.plan.probes, references, new))
        names = reasons.names(case.candidate.exam, [asked(item.turns) for item in case.plan.neighbours])
        moved = case.trial.divergences(references, new)
        return [rules.locality(near, names, self._limits), rules.nearness(moved, self._limits)], near.all()

    async def _retention(self, case: _Case, scale: float, references: References, new: Answers) -> list[Check]:
        limits = self._limits
        parent = await case.trial.losses(scale, references.parent, new, limit=limits.loss_parent, base=False)
        base = await case.trial.losses(scale, references.base, new, limit=limits.loss_base, base=True)
        return [
            rules.retention("retention_parent", parent, limits.loss_parent),
            rules.retention("retention_base", base, limits.loss_base),
        ]


@dataclass(frozen=True, slots=True)
class _Case:
    """Everything that one judgement works with."""

    candidate: Candidate
    suites: Suites
    info: EngineInfo
    plan: Plan
    trial: Trial


@dataclass(frozen=True, slots=True)
class _Found:
    """What one judgement found."""

    scale: float
    checks: list[Check]
    changes: tuple[Change, ...] = ()


def _verdict(case: _Case, found: _Found, seconds: float) -> Verdict:
    parent = case.candidate.parent
    return Verdict(
        outcome=rules.overall(found.checks),
        checks=tuple(found.checks),
        scale=found.scale,
        suite_sha256=case.suites.sha256,
        runtime=case.info.backend,
        adapter_sha256=case.candidate.adapter.sha256,
        parent_sha256=parent.sha256 if parent is not None else None,
        seconds=seconds,
        reason=reasons.reason(case.candidate.exam, found.checks, found.changes),
        suggestions=reasons.suggestions(found.checks),
    )


def _listed(seconds: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.1f}" for name, value in seconds.items())


def _check_validity(candidate: Candidate, info: EngineInfo) -> None:
    """Raise VerificationError for a candidate that cannot be judged."""
    if info.base != candidate.base.passport.id:
        raise _invalid("the engine holds another base")
    if len(candidate.exam.held_out) < LEAST_WORDINGS or len(candidate.neighbours) < LEAST_NEIGHBOURS:
        raise _invalid("there are too few questions to ask")
    if not candidate.scales or any(not math.isfinite(scale) or scale <= 0 for scale in candidate.scales):
        raise _invalid("no strength is given")
    if not candidate.exam.answer.strip():
        raise _invalid("the lesson has no answer")


def _invalid(why: str) -> VerificationError:
    return VerificationError("check a change of the model", why, "Nothing was changed.")
