"""Which examples a step sees, and how large the step is. Pure and seeded; the same on every runtime."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random

from app.model.api import Recipe

_FLOOR = 0.2


@dataclass(frozen=True, slots=True)
class Counts:
    """How many examples of each kind a job has. What must stay is numbered through: keeps, standing, anchors, prose."""

    targets: int
    replay: int
    keeps: int
    standing: int
    anchors: int
    prose: int


@dataclass(frozen=True, slots=True)
class Step:
    """Numbers of the examples of one step."""

    targets: list[int]
    kept: list[int]
    replay: list[int]


class Schedule:
    """Chooses the examples of one step after another: everything in turn, and what is worst off more often.

    Of wordings, neighbours and anchors, half of a step's are the next in turn and half those that were worst when last
    seen.
    """

    def __init__(self, counts: Counts, recipe: Recipe, random: Random) -> None:
        self._targets = _HalfWorst(counts.targets, recipe.targets_per_step, random)
        self._keeps = _HalfWorst(counts.keeps, recipe.keeps_per_step, random)
        self._replay = cycle(counts.replay, recipe.replay_per_step, random)
        self._standing = list(range(counts.keeps, counts.keeps + counts.standing))
        self._first_anchor = counts.keeps + counts.standing
        self._anchors = _HalfWorst(counts.anchors, recipe.anchors_per_step, random)
        self._first_prose = self._first_anchor + counts.anchors
        self._prose = cycle(counts.prose, recipe.prose_per_step, random)
        self._begun = False

    def next(self, margins: Mapping[int, float], drifts: Mapping[int, float]) -> Step:
        """Return the next step. Before the first one nothing has moved, so nothing is held in it.

        Args:
            margins: By wording, how safely it was said when it was last seen, in nats.
            drifts: By what must stay, how far it had moved when it was last seen, in nats.
        """
        targets = self._targets.next(lambda index: -margins.get(index, -math.inf))
        kept = self._held(drifts) if self._begun else []
        self._begun = True
        return Step(targets, kept, next(self._replay))

    def _held(self, drifts: Mapping[int, float]) -> list[int]:
        first = self._first_anchor
        return [
            *self._keeps.next(lambda index: drifts.get(index, math.inf)),
            *self._standing,
            *(first + index for index in self._anchors.next(lambda index: drifts.get(first + index, math.inf))),
            *(self._first_prose + index for index in next(self._prose)),
        ]


class _HalfWorst:
    """Chooses ``per_step`` of ``count``: half in turn, half the worst; what was never seen counts as the worst."""

    def __init__(self, count: int, per_step: int, random: Random) -> None:
        self._count = count
        self._per_step = min(per_step, count)
        self._in_turn = cycle(count, (per_step + 1) // 2, random)

    def next(self, badness: Callable[[int], float]) -> list[int]:
        chosen = next(self._in_turn)
        worst = sorted(range(self._count), key=badness, reverse=True)
        return chosen + [index for index in worst if index not in chosen][: self._per_step - len(chosen)]


def learning_rate(recipe: Recipe, step: int) -> float:
    """Return the learning rate of a step (from 0): linear warm-up, then a cosine down to a fifth."""
    if step < recipe.warmup_steps:
        return recipe.learning_rate * (step + 1) / recipe.warmup_steps
    span = max(1, recipe.max_steps - recipe.warmup_steps)
    share = min(1.0, (step - recipe.warmup_steps) / span)
    return recipe.learning_rate * (_FLOOR + (1 - _FLOOR) * 0.5 * (1 + math.cos(math.pi * share)))


def cycle(count: int, per_step: int, random: Random) -> Iterator[list[int]]:
    """Yield ``per_step`` indices of ``count`` items for ever, every item once per round."""
    waiting: list[int] = []
    while True:
        chosen: list[int] = []
        while len(chosen) < min(per_step, count):
            if not waiting:
                waiting = list(range(count))
                random.shuffle(waiting)
            index = waiting.pop()
            if index not in chosen:
                chosen.append(index)
        yield chosen
