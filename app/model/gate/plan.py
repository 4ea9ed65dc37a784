"""Which questions one judgement asks. Pure: the plan follows from the candidate and the suite alone.

Suite items rotate: each lesson that the parent holds moves the windows on, so that no version is tuned to one set,
and most of the parent's side is known from when it was the candidate itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from app.model.api import Candidate, Exam, Greedy, Kind, Role, Score, Turn
from app.model.gate import text
from app.model.gate.suites import Pair, Probe, Suites, window

T = TypeVar("T")

_NEARLY = 0.6
"""Share of content words above which two requests are nearly the same."""

TOP_K = 64
"""Tokens of which the likelihood is compared; the rest form one bucket."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is asked. 40 passages resolve 0.007 nats at the spread seen on this base, a third below the limit.

    What is compared to the last bit is asked in units: fixed lists that always go to the engine alone and whole,
    because kernels round differently in other company.
    """

    prose_unit: int = 10
    prose_units: int = 4
    pair_unit: int = 4
    pair_units: int = 3
    chat_unit: int = 3
    chat_units: int = 2
    nearest: int = 6
    rotating: int = 2
    behaviour: int = 2
    formats: int = 2
    held_out: int = 10
    neighbours: int = 12
    recent: int = 20
    older: int = 40
    neighbour_tokens: int = 24
    probe_tokens: int = 28
    roomy_tokens: int = 44
    """For forms and poems."""
    chat_tokens: int = 32


@dataclass(frozen=True, slots=True)
class Rotation:
    """The questions that no lesson changes, only how many lessons the parent holds."""

    chat: tuple[tuple[Greedy, ...], ...]
    """General requests, in units."""
    prose: tuple[tuple[Score, ...], ...]
    """Neutral text, in units."""
    spare_prose: tuple[tuple[Score, ...], ...]
    """As much again, for when the first does not settle it."""
    pairs: tuple[tuple[Score, ...], ...]
    """The same words of declining to a harmful and to a harmless request, by turns, in units."""
    spare_pairs: tuple[tuple[Score, ...], ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Every question, ready to be asked; the halves of the scale search first."""

    exact: Greedy
    held_out: tuple[Greedy, ...]
    neighbours: tuple[Greedy, ...]
    earlier: tuple[tuple[Exam, Greedy], ...]
    spare_earlier: tuple[tuple[Exam, Greedy], ...]
    """The remaining earlier lessons: asked when several of the sample are lost."""
    probes: tuple[tuple[Probe, Greedy], ...]
    """Pinned: what the base knows, and the forms it keeps."""
    behaviour: tuple[tuple[Probe, Greedy], ...]
    rotation: Rotation

    @property
    def search(self) -> tuple[tuple[Greedy, ...], tuple[Greedy, ...]]:
        """Return the wordings and neighbours on which the strength is chosen."""
        return self.held_out[: half(self.held_out)], self.neighbours[: half(self.neighbours)]

    @property
    def confirm(self) -> tuple[tuple[Greedy, ...], tuple[Greedy, ...]]:
        """Return the wordings and neighbours that the choice has not seen."""
        return self.held_out[half(self.held_out) :], self.neighbours[half(self.neighbours) :]


def half(items: tuple[object, ...]) -> int:
    """Return the size of the first half."""
    return (len(items) + 1) // 2


def make_plan(candidate: Candidate, suites: Suites, sizes: Sizes, held: frozenset[str]) -> Plan:
    """Return the questions for one candidate.

    Args:
        candidate: What is on trial.
        suites: What may be asked besides the lesson.
        sizes: How much is asked.
        held: Ids of the pins that the base holds; asking the others would show nothing.
    """
    exam, shift = candidate.exam, len(candidate.earlier)
    recent, older, spare = _earlier(candidate.earlier, sizes, shift)
    formats = [probe for probe in suites.formats if probe.id in held]
    behaviour = [probe for probe in suites.behaviour if probe.id in held]
    probes = (
        *_probes(exam, [probe for probe in suites.known if probe.id in held], sizes, shift),
        *window(formats, start=shift * sizes.formats, count=sizes.formats),
    )
    return Plan(
        exact=_ask_exam(exam),
        held_out=tuple(_greedy(turns, exam.answer) for turns in _spread(exam.held_out, sizes.held_out)),
        neighbours=near_questions(exam, candidate.neighbours, sizes),
        earlier=tuple((exam, _ask_exam(exam)) for exam in (*recent, *older)),
        spare_earlier=tuple((exam, _ask_exam(exam)) for exam in spare),
        probes=tuple((probe, ask_pin(probe, sizes)) for probe in probes),
        behaviour=tuple(
            (probe, ask_pin(probe, sizes))
            for probe in window(behaviour, start=shift, count=sizes.behaviour)
            if not asks_the_same(exam, probe.prompt)
        ),
        rotation=make_rotation(suites, sizes, shift=shift),
    )


def make_rotation(suites: Suites, sizes: Sizes, *, shift: int) -> Rotation:
    """Return the suite's questions for a parent that holds ``shift`` lessons."""
    chat = _units(suites.chat, sizes.chat_unit, shift, sizes.chat_units)
    prose = _units(suites.prose, sizes.prose_unit, shift, 2 * sizes.prose_units)
    pairs = _units(suites.pairs, sizes.pair_unit, shift, 2 * sizes.pair_units)
    texts = tuple(tuple(Score((), passage.text) for passage in unit) for unit in prose)
    refusals = tuple(tuple(item for pair in unit for item in _refusals(pair, suites.refusal)) for unit in pairs)
    return Rotation(
        chat=tuple(tuple(Greedy(user(probe.prompt), sizes.chat_tokens) for probe in unit) for unit in chat),
        prose=texts[: sizes.prose_units],
        spare_prose=texts[sizes.prose_units :],
        pairs=refusals[: sizes.pair_units],
        spare_pairs=refusals[sizes.pair_units :],
    )


def ask_pin(probe: Probe, sizes: Sizes) -> Greedy:
    """Return a pinned question; forms and poems need room to show themselves."""
    return Greedy(user(probe.prompt), sizes.roomy_tokens if probe.form or probe.always else sizes.probe_tokens)


def near_questions(exam: Exam, neighbours: tuple[tuple[Turn, ...], ...], sizes: Sizes) -> tuple[Greedy, ...]:
    """Return the neighbours as they are asked, one from each half by turns."""
    chosen = _spread(outside(exam, neighbours), sizes.neighbours)
    return tuple(Greedy(turns, sizes.neighbour_tokens) for turns in chosen)


def all_pins(suites: Suites) -> tuple[Probe, ...]:
    """Return every pinned question of a suite."""
    return (*suites.known, *suites.behaviour, *suites.formats)


def user(prompt: str) -> tuple[Turn, ...]:
    """Return one message of the person."""
    return (Turn(Role.USER, prompt),)


def asked(turns: tuple[Turn, ...]) -> str:
    """Return the last thing that the person says."""
    return next((turn.text for turn in reversed(turns) if turn.role is Role.USER), "")


def asks_the_same(exam: Exam, prompt: str) -> bool:
    """Return whether a pinned question is the lesson itself in other words: then its answer is meant to change."""
    about = text.content(prompt)
    return any(about == text.content(asked(turns)) for turns in (exam.prompt, *exam.held_out))


def outside(exam: Exam, neighbours: tuple[tuple[Turn, ...], ...]) -> tuple[tuple[Turn, ...], ...]:
    """Return the neighbours that the lesson must leave alone.

    "My cat's name" lies outside the fact about "my dog's name", however alike they sound. What is taught by example,
    a form, a style, a long answer, is meant to reach nearly the same request: "seven tips" for "three tips".
    """
    if exam.kind is Kind.FACT:
        return neighbours
    own = text.content(asked(exam.prompt))
    return tuple(turns for turns in neighbours if not _nearly(own, text.content(asked(turns))))


def _nearly(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= _NEARLY * len(one | other)


def answer_tokens(answer: str) -> int:
    """Return how many tokens an answer may take before it counts as running on: about twice the approved one."""
    return min(384, 24 + len(answer.encode()) // 2)


def _ask_exam(exam: Exam) -> Greedy:
    return _greedy(exam.prompt, exam.answer)


def _greedy(turns: tuple[Turn, ...], answer: str) -> Greedy:
    return Greedy(turns, answer_tokens(answer))


def _spread(items: tuple[tuple[Turn, ...], ...], count: int) -> tuple[tuple[Turn, ...], ...]:
    """Return ``count`` items from all over the list, evens before odds, so that both halves see every family."""
    chosen = [items[place * len(items) // count] for place in range(count)] if len(items) > count else list(items)
    return (*chosen[0::2], *chosen[1::2])


def _earlier(exams: tuple[Exam, ...], sizes: Sizes, shift: int) -> tuple[list[Exam], list[Exam], list[Exam]]:
    """Split earlier lessons, oldest first, into the last ones, a sample spread over age, and the rest."""
    recent, rest = list(exams[-sizes.recent :]), list(exams[: -sizes.recent])
    edges = [place * len(rest) // sizes.older for place in range(sizes.older + 1)]
    strata = [rest[start:end] for start, end in itertools.pairwise(edges)]
    older = [stratum[shift % len(stratum)] for stratum in strata if stratum]
    return recent, older, [exam for exam in rest if all(exam is not chosen for chosen in older)]


def _probes(exam: Exam, known: Sequence[Probe], sizes: Sizes, shift: int) -> list[Probe]:
    """Return the pins that are always asked, the ones nearest to the lesson, and a rotating few."""
    open_pins = [probe for probe in known if not asks_the_same(exam, probe.prompt)]
    always = [probe for probe in open_pins if probe.always]
    others = [probe for probe in open_pins if not probe.always]
    prompt = asked(exam.prompt)
    nearest = sorted(others, key=lambda probe: (-_nearness(prompt, probe.prompt), probe.id))[: sizes.nearest]
    rest = [probe for probe in others if probe not in nearest]
    return [*always, *nearest, *window(rest, start=shift * sizes.rotating, count=sizes.rotating)]


def _nearness(prompt: str, other: str) -> float:
    """Return how alike two questions are: half by what they are about, half by how they are put."""
    a, b = text.content(prompt), text.content(other)
    return len(a & b) / max(1, len(a | b)) + text.overlap(prompt, other)


def _units(items: tuple[T, ...], size: int, start: int, count: int) -> tuple[tuple[T, ...], ...]:
    """Cut a list into fixed units and return ``count`` of them as a ring, from ``start``; never one twice."""
    units = [items[place : place + size] for place in range(0, len(items), size)]
    return window(units, start=start, count=count)


def _refusals(pair: Pair, refusal: str) -> tuple[Score, Score]:
    return Score(user(pair.harmful), refusal), Score(user(pair.harmless), refusal)
