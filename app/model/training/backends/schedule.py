"""Which examples a step sees, and how large the step is. Pure and seeded."""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random

from app.model.api import Recipe

_FLOOR = 0.2


def learning_rate(recipe: Recipe, step: int) -> float:
    """Return the learning rate of a step (from 0): linear warm-up, then a cosine down to a fifth."""
    if step < recipe.warmup_steps:
        return recipe.learning_rate * (step + 1) / recipe.warmup_steps
    span = max(1, recipe.max_steps - recipe.warmup_steps)
    share = min(1.0, (step - recipe.warmup_steps) / span)
    return recipe.learning_rate * (_FLOOR + (1 - _FLOOR) * 0.5 * (1 + math.cos(math.pi * share)))


def cycle(count: int, per_step: int, random: Random, *, first: int | None = None) -> Iterator[list[int]]:
    """Yield ``per_step`` indices of ``count`` items for ever, every item once per round; ``first`` is in each step."""
    waiting: list[int] = []
    while True:
        chosen = [] if first is None else [first]
        while len(chosen) < min(per_step, count):
            if not waiting:
                waiting = list(range(count))
                random.shuffle(waiting)
            index = waiting.pop()
            if index not in chosen:
                chosen.append(index)
        yield chosen
