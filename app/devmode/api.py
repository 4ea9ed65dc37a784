"""What developer mode offers: its status, its wizard, and the question every weight change must ask."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

SENTENCE = "I understand that my model will change"
"""What a person types to unlock. Compared without case and surrounding space."""


class DevState(StrEnum):
    """NOTE: persisted, do not rename."""

    LOCKED = "locked"
    FOUND = "found"
    """Seven clicks done: the wizard may open."""
    UNLOCKED = "unlocked"


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits a person sets on changes of the weights."""

    changes_per_day: int = 50
    size_limit: float = 0.05
    """Largest ‖ΔW‖/‖W‖ of any written module, in total against the base."""


@dataclass(frozen=True, slots=True)
class DevStatus:
    """The whole state, for the indicator and the wizard."""

    state: DevState
    budget: Budget
    changes_left_today: int


@dataclass(frozen=True, slots=True)
class MachineCheck:
    """One line of the wizard's second page."""

    name: str
    words: str
    """"23.4 GB of memory, 3 GB needed"."""
    ok: bool


class DevMode(Protocol):
    """Unlock state machine; every move is stored and in the audit log."""

    def status(self) -> DevStatus:
        """Return the present state."""
        ...

    def click_version(self) -> int:
        """Count one click on the version number; return how many are left before the wizard (0: open it)."""
        ...

    async def check_machine(self) -> list[MachineCheck]:
        """Measure what the wizard shows: memory, disk, the store, the trainer."""
        ...

    def unlock(self, sentence: str, budget: Budget) -> DevStatus:
        """Unlock. Raises UserError if the sentence differs, DeniedError if the wizard was never found."""
        ...

    def lock(self) -> DevStatus:
        """Lock at once; a lesson that is being learned is cancelled by the loop, which asks again before committing."""
        ...

    def require(self) -> Budget:
        """Return the budget if one more change is allowed now. Raises DeniedError with what to do otherwise."""
        ...

    def spend(self, what: str) -> None:
        """Count one change of the weights against today's budget, once however often it is told."""
        ...
