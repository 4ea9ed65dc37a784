"""How a job is going, and when it has learned enough. Pure; the same on every runtime."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import fmean

from app.model.api import Recipe

STEADY_CHECKS = 2
"""How often in a row the margin must hold on every wording."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How training went."""

    steps: int
    tokens: int
    loss: float
    margin: float
    stopped: str
    """"margin" (it is learned), "steps" or "time"."""


@dataclass(slots=True)
class Progress:
    """What changes from step to step."""

    margins: dict[int, float] = field(default_factory=dict)
    """By wording, the smallest lead of its target tokens when it was last seen, in nats."""
    drifts: dict[int, float] = field(default_factory=dict)
    """By what must stay, the mean KL from before when it was last seen, in nats."""
    steady: int = 0
    tokens: int = 0
    loss: float = 0.0

    def margin(self) -> float:
        """Return the smallest lead over all wordings."""
        return min(self.margins.values(), default=-math.inf)

    def drift(self) -> float:
        """Return the mean drift of what must stay."""
        return fmean(self.drifts.values()) if self.drifts else 0.0

    def outcome(self, steps: int, stopped: str) -> Outcome:
        """Return it as a result."""
        return Outcome(steps, self.tokens, self.loss, self.margin(), stopped)


@dataclass(frozen=True, slots=True)
class Stopping:
    """When to stop: every wording leads by the margin, twice in a row, and what must stay has hardly moved."""

    recipe: Recipe
    wordings: int
    keeps: int
    seconds: float

    def reason(self, progress: Progress, steps: int, elapsed: float) -> str:
        """Return why to stop after this many steps and seconds, or ""."""
        recipe = self.recipe
        seen_all = len(progress.margins) == self.wordings and len(progress.drifts) >= self.keeps
        good = seen_all and progress.margin() >= recipe.margin and progress.drift() <= recipe.drift
        progress.steady = progress.steady + 1 if good else 0
        if steps >= recipe.min_steps and progress.steady >= STEADY_CHECKS:
            return "margin"
        return "time" if elapsed > self.seconds else ""
