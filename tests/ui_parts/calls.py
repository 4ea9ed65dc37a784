"""Developer mode as the dialogs call it, with a gate to hold an answer back and a switch to make it fail."""

from __future__ import annotations

import asyncio

from app.devmode.api import SENTENCE, Budget, DevState, DevStatus, MachineCheck
from app.errors import AppError, UserError

CHECKS = [
    MachineCheck("Memory", "23.4 GB of memory, 3 GB needed", ok=True),
    MachineCheck("Disk", "118 GB free, 2 GB needed", ok=True),
    MachineCheck("Speed", "One trial step took 0.4 seconds; a lesson takes about 30 seconds", ok=True),
]


class FakeCalls:
    """Counts clicks, measures and unlocks in memory."""

    def __init__(self, state: DevState = DevState.FOUND) -> None:
        self.state = state
        self.budget = Budget()
        self.clicks = 7
        self.checks = list(CHECKS)
        self.fail: AppError | None = None
        self.hold: asyncio.Event | None = None
        self.measured = 0
        self.unlocks: list[tuple[str, Budget]] = []

    async def _answer(self) -> None:
        if self.hold is not None:
            await self.hold.wait()
        if self.fail is not None:
            raise self.fail

    async def status(self) -> DevStatus:
        return DevStatus(self.state, self.budget, 41)

    async def click_version(self) -> int:
        await self._answer()
        self.clicks = max(self.clicks - 1, 0)
        return self.clicks

    async def check_machine(self) -> list[MachineCheck]:
        self.measured += 1
        await self._answer()
        return self.checks

    async def unlock(self, sentence: str, budget: Budget) -> DevStatus:
        self.unlocks.append((sentence, budget))
        await self._answer()
        if sentence.strip().casefold() != SENTENCE.casefold():
            raise UserError("unlock learning", hint="Type the sentence as it stands there.")
        self.state, self.budget = DevState.UNLOCKED, budget
        return await self.status()

    async def lock(self) -> DevStatus:
        self.state = DevState.LOCKED
        return await self.status()


async def turns(count: int = 5) -> None:
    """Let the loop run what is due."""
    for _ in range(count):
        await asyncio.sleep(0)
