"""One candidate on trial: asks the plan's questions of the base, the parent and the candidate, in few batches.

The strength is chosen on one half of the wordings and neighbours, smallest first, and confirmed on the other half.
Everything else is asked once, at the chosen strength.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from app.model.api import AdapterRef, Candidate, Check, Encoder, EvalItem, EvalResult, Exam, Greedy, Outcome, Score
from app.model.gate import measure, rules
from app.model.gate.answers import fault, needs_meaning
from app.model.gate.asking import Answers, Asker, greedy, score
from app.model.gate.plan import Plan, Rotation, asked
from app.model.gate.rules import Asked, Change, Limits, Near
from app.model.gate.stats import Mean
from app.model.gate.suites import Probe

T = TypeVar("T")
Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Lessons:
    """How the lesson and the earlier ones fare at one strength."""

    scale: float
    exact: Asked
    held_out: tuple[Asked, ...]
    lost: tuple[str, ...] = ()
    gained: int = 0
    asked: int = 0
    known: int = 0
    """Earlier lessons that the parent shows, of those asked."""


@dataclass(frozen=True, slots=True)
class References:
    """What the versions before said, apart from what only follows from the candidate's answers."""

    base: Answers
    parent: Answers
    own: tuple[tuple[Greedy, Score], ...]
    """The parent's own answers to neighbours, as questions of likelihood."""
    drift: tuple[tuple[tuple[Greedy, Score], ...], ...]
    """The base's own answers to general requests, likewise, in units."""


def flat(units: Iterable[Sequence[T]]) -> list[T]:
    """Return the items of all units."""
    return [item for unit in units for item in unit]


async def prepare(rotation: Rotation, asker: Asker, parent: AdapterRef | None) -> None:
    """Ask base and parent for those references that do not depend on the lesson."""
    base = await asker.ask(None, flat(rotation.chat))
    own = [[measure.own_answer(item, greedy(base, item)) for item in unit] for unit in rotation.chat]
    await asker.ask_units(None, [*rotation.prose, *own])
    await asker.ask_units(parent, [*rotation.pairs, *rotation.prose])


async def prepare_near(neighbours: Sequence[Greedy], asker: Asker, parent: AdapterRef | None) -> None:
    """Ask the parent what it says to near questions, and how sure it is of that."""
    near = await asker.ask(parent, neighbours)
    await asker.ask_units(parent, [[measure.own_answer(item, greedy(near, item)) for item in neighbours]])


class Trial:
    """All measurements of one candidate. Asks; does not judge.

    Args:
        candidate: What is on trial.
        plan: The questions.
        asker: Where answers come from.
        encoder: For lessons whose meaning counts.
        limits: Only used to stop a search that cannot succeed.
    """

    def __init__(self, candidate: Candidate, plan: Plan, asker: Asker, encoder: Encoder, limits: Limits) -> None:
        self._candidate = candidate
        self._plan = plan
        self._asker = asker
        self._encoder = encoder
        self._limits = limits
        self._vectors: dict[str, list[float]] = {}

    # --- what the versions before say -------------------------------------------------------------------------------

    async def near_before(self) -> Answers:
        """Return the parent's answers to the neighbours."""
        return await self._asker.ask(self._candidate.parent, self._plan.neighbours)

    async def references(self, near: Answers, progress: Progress | None = None) -> References:
        """Return everything else that the candidate is compared with; from memory, except for what is new."""
        plan, parent = self._plan, self._candidate.parent
        base = dict(await self._asker.ask(None, [*self._probe_items(), *flat(plan.rotation.chat)], progress))
        drift = [[(item, measure.own_answer(item, greedy(base, item))) for item in unit] for unit in plan.rotation.chat]
        base.update(await self._asker.ask_units(None, plan.rotation.prose))
        base.update(await self._asker.ask_units(None, [[own for _, own in unit] for unit in drift]))
        own = [(item, measure.own_answer(item, greedy(near, item))) for item in plan.neighbours]
        before = dict(
            await self._asker.ask_units(
                parent, [[score for _, score in own], *plan.rotation.pairs, *plan.rotation.prose]
            )
        )
        return References(base, {**before, **near}, tuple(own), tuple(tuple(unit) for unit in drift))

    # --- the strength -----------------------------------------------------------------------------------------------

    async def choose(self, near: Answers, scales: Sequence[float]) -> Lessons:
        """Return the lessons at the smallest strength that passes, or at the last one that was tried."""
        lessons: Lessons | None = None
        for scale in scales:
            last = scale == scales[-1]
            lessons, hopeful = await self._search(near, scale, last=last)
            if not hopeful:
                continue
            lessons = await self._confirm(lessons)
            if self._lessons_pass(lessons):
                break
        assert lessons is not None  # noqa: S101 - a candidate without strengths was refused before
        return lessons

    async def _search(self, near: Answers, scale: float, *, last: bool) -> tuple[Lessons, bool]:
        """Ask the first halves; return what was shown, and whether the second halves are worth asking."""
        wordings, neighbours = self._plan.search
        answers = await self._asker.ask(self._at(scale), [self._plan.exact, *wordings, *neighbours])
        exact, *shown = await self._exam(answers, [self._plan.exact, *wordings])
        lessons = Lessons(scale, exact, tuple(shown))
        missed = sum(one.fault is not None for one in shown)
        most = len(self._plan.held_out) if last else len(wordings)
        reachable = most - missed >= rules.least_shown(most, self._limits)
        leaks = self._changes(near, answers, neighbours, sure=())
        spoilt = len(leaks) > rules.misses_allowed(len(self._plan.neighbours), self._limits.neighbours_per_miss)
        return lessons, exact.fault is None and reachable and not (spoilt and not last)

    async def _confirm(self, lessons: Lessons) -> Lessons:
        """Ask the second half of the wordings, and the earlier lessons; all of these when several seem lost."""
        plan, limits = self._plan, self._limits
        wordings, neighbours = plan.confirm
        exams = [item for _, item in plan.earlier]
        answers = await self._asker.ask(self._at(lessons.scale), [*wordings, *neighbours, *exams])
        shown = (*lessons.held_out, *await self._exam(answers, wordings))
        lessons = await self._remembered(replace(lessons, held_out=shown), plan.earlier)
        if len(lessons.lost) >= limits.test_all_from and plan.spare_earlier:
            lessons = await self._remembered(lessons, plan.spare_earlier)
        return lessons

    async def _remembered(self, lessons: Lessons, earlier: Sequence[tuple[Exam, Greedy]]) -> Lessons:
        """Add what became of these earlier lessons."""
        items = [item for _, item in earlier]
        before = await self._faults(earlier, await self._asker.ask(self._candidate.parent, items))
        after = await self._faults(earlier, await self._asker.ask(self._at(lessons.scale), items))
        pairs = list(zip(earlier, before, after, strict=True))
        lost = tuple(asked(item.turns) for (_, item), old, new in pairs if old is None and new is not None)
        return replace(
            lessons,
            lost=(*lessons.lost, *lost),
            gained=lessons.gained + sum(old is not None and new is None for _, old, new in pairs),
            asked=lessons.asked + len(pairs),
            known=lessons.known + sum(old is None for _, old, _ in pairs),
        )

    def _lessons_pass(self, lessons: Lessons) -> bool:
        checks = [
            rules.efficacy(lessons.exact),
            rules.held_out(lessons.held_out, self._limits),
            self.earlier_check(lessons),
        ]
        return rules.overall(checks) is Outcome.ACCEPT

    def earlier_check(self, lessons: Lessons) -> Check:
        """Return the line of evidence on earlier lessons."""
        return rules.earlier(
            lessons.lost, gained=lessons.gained, asked=lessons.asked, known=lessons.known, limits=self._limits
        )

    # --- everything else, at the chosen strength --------------------------------------------------------------------

    async def rest(self, scale: float, references: References, progress: Progress | None = None) -> Answers:
        """Return the candidate's answers to all that was not yet asked of it."""
        plan, version = self._plan, self._at(scale)
        units: list[Sequence[EvalItem]] = [
            [measure.same_answer(own, score(references.parent, own)) for _, own in references.own],
            *([measure.same_answer(own, score(references.base, own)) for _, own in unit] for unit in references.drift),
            *plan.rotation.pairs,
            *plan.rotation.prose,
        ]
        said = await self._asker.ask(version, [*plan.neighbours, *self._probe_items(), *flat(plan.rotation.chat)])
        return {**said, **await self._asker.ask_units(version, units, progress)}

    def near(self, references: References, new: Answers, flips: Sequence[Probe]) -> Near:
        """Return what became of near and pinned questions."""
        sure = [item for item, own in references.own if measure.sure(score(references.parent, own))]
        changes = self._changes(references.parent, new, self._plan.neighbours, sure=sure)
        return Near(
            changes=tuple(changes),
            neighbours=len(self._plan.neighbours),
            flips=tuple(Change(probe.prompt, None) for probe in flips if not probe.always),
            fixed=tuple(Change(probe.prompt, None) for probe in flips if probe.always),
            probes=len(self._plan.probes),
        )

    async def flipped(
        self, probes: Sequence[tuple[Probe, Greedy]], references: References, new: Answers
    ) -> tuple[Probe, ...]:
        """Return the pins that hold in base and parent and not in the candidate; the parent is asked only then."""
        open_pins = measure.suspects(probes, base=references.base, new=new)
        before = await self._asker.ask(self._candidate.parent, [item for _, item in open_pins])
        return tuple(probe for probe, item in open_pins if measure.holds(probe, greedy(before, item).text))

    def divergences(self, references: References, new: Answers) -> list[tuple[str, float]]:
        """Return how far each answer to a near question moved from the parent's."""
        return [(asked(item.turns), self._moved(item, own, references.parent, new)) for item, own in references.own]

    def drift(self, references: References, new: Answers) -> float:
        """Return how far answers to general requests have moved from the base's."""
        moved = [self._moved(item, own, references.base, new) for item, own in flat(references.drift)]
        return sum(moved) / len(moved) if moved else 0.0

    async def losses(self, scale: float, reference: Answers, new: Answers, *, limit: float, base: bool) -> Mean:
        """Return the change of loss on neutral text; asks as much again when the first texts do not settle it."""
        plan, before = self._plan, None if base else self._candidate.parent
        change = measure.loss_change(flat(plan.rotation.prose), reference=reference, new=new)
        if rules.bounded(change, limit) is not Outcome.INCONCLUSIVE:
            return change
        reference = {**reference, **await self._asker.ask_units(before, plan.rotation.spare_prose)}
        new = {**new, **await self._asker.ask_units(self._at(scale), plan.rotation.spare_prose)}
        return measure.loss_change(
            [*flat(plan.rotation.prose), *flat(plan.rotation.spare_prose)], reference=reference, new=new
        )

    async def refusals(self, scale: float, references: References, new: Answers) -> Mean:
        """Return the change of the refusal margin; asks as much again when the first pairs do not settle it."""
        plan, reference = self._plan, references.parent
        change = measure.refusal_change(flat(plan.rotation.pairs), reference=reference, new=new)
        if rules.bounded(change, self._limits.refusal) is not Outcome.INCONCLUSIVE:
            return change
        reference = {**reference, **await self._asker.ask_units(self._candidate.parent, plan.rotation.spare_pairs)}
        new = {**new, **await self._asker.ask_units(self._at(scale), plan.rotation.spare_pairs)}
        return measure.refusal_change(
            [*flat(plan.rotation.pairs), *flat(plan.rotation.spare_pairs)], reference=reference, new=new
        )

    def manners(self, references: References, new: Answers) -> tuple[rules.Manners, rules.Manners]:
        """Return how the candidate's answers look, and how those to the same questions looked before."""
        items = [*self._plan.neighbours, *self._probe_items(), *flat(self._plan.rotation.chat)]
        before: dict[EvalItem, EvalResult] = dict(references.base)
        before.update((item, references.parent[item]) for item in self._plan.neighbours)
        return measure.manners_of(items, new), measure.manners_of(items, before)

    # --- small parts ------------------------------------------------------------------------------------------------

    def _at(self, scale: float) -> AdapterRef:
        return replace(self._candidate.adapter, scale=scale)

    def _probe_items(self) -> list[Greedy]:
        return [item for _, item in (*self._plan.probes, *self._plan.behaviour)]

    async def _exam(self, answers: Answers, wordings: Sequence[Greedy]) -> list[Asked]:
        exam = self._candidate.exam
        faults = await self._faults([(exam, item) for item in wordings], answers)
        return [Asked(asked(item.turns), fault) for item, fault in zip(wordings, faults, strict=True)]

    async def _faults(self, exams: Sequence[tuple[Exam, Greedy]], answers: Answers) -> list[str | None]:
        """Return what is wrong with each answer; the encoder is asked only where words alone do not settle it."""
        said = [(exam, greedy(answers, item)) for exam, item in exams]
        first = [fault(exam, answer) for exam, answer in said]
        unclear = [
            place for place, (exam, _) in enumerate(said) if first[place] is not None and needs_meaning(exam.kind)
        ]
        cosines = await self._cosines([(said[place][1].text, said[place][0].answer) for place in unclear])
        for place, cosine in zip(unclear, cosines, strict=True):
            first[place] = fault(*said[place], cosine)
        return first

    async def _cosines(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        texts = [text for pair in pairs for text in pair]
        missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if missing:
            self._vectors.update(zip(missing, await self._encoder.encode(missing), strict=True))
        return [
            sum(a * b for a, b in zip(self._vectors[one], self._vectors[other], strict=True)) for one, other in pairs
        ]

    def _changes(
        self, before: Answers, after: Answers, neighbours: Sequence[Greedy], *, sure: Sequence[Greedy]
    ) -> list[Change]:
        found = (
            measure.changed(
                self._candidate.exam, item, before=greedy(before, item), after=greedy(after, item), sure=item in sure
            )
            for item in neighbours
        )
        return [change for change in found if change is not None]

    def _moved(self, item: Greedy, own: Score, reference: Answers, new: Answers) -> float:
        said = score(reference, own)
        compared = score(new, measure.same_answer(own, said))
        return measure.moved(said, compared, ended=greedy(reference, item).stopped)
