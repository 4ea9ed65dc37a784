"""How a job is going, and when it has learned enough. Pure; the same on every runtime."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import fmean

from app.model.api import Recipe


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
    """When to stop: every wording leads by the margin, and what must stay has hardly moved."""

    recipe: Recipe
    wordings: int
    keeps: int
    seconds: float

    def reason(self, progress: Progress, steps: int, elapsed: float, look: Callable[[], None]) -> str:
        """Return why to stop after this many steps and seconds, or "".

        Args:
            progress: What each wording said when it was last seen, which may be some steps ago.
            steps: How many are done.
            elapsed: Seconds since the first.
            look: Sees every wording as it is now. Asked only when they all seem to be learned: what the last steps held
                can have taken one back.
        """
        if steps >= self.recipe.min_steps and self._learned(progress):
            look()
            if self._learned(progress):
                return "margin"
        return "time" if elapsed > self.seconds else ""

    def _learned(self, progress: Progress) -> bool:
        seen_all = len(progress.margins) == self.wordings and all(keep in progress.drifts for keep in range(self.keeps))
        return seen_all and progress.margin() >= self.recipe.margin and progress.drift() <= self.recipe.drift
