"""What the dialogs ask of developer mode, awaited on the window's loop."""

from __future__ import annotations

from typing import Protocol

from app.devmode.api import Budget, DevMode, DevStatus, MachineCheck
from app.ui.bridge import Bridge


class DevCalls(Protocol):
    """Developer mode as the window sees it. Every call raises what ``DevMode`` raises."""

    async def status(self) -> DevStatus:
        """Return the present state."""
        ...

    async def click_version(self) -> int:
        """Count one click; return how many are left before the wizard."""
        ...

    async def check_machine(self) -> list[MachineCheck]:
        """Measure the machine."""
        ...

    async def unlock(self, sentence: str, budget: Budget) -> DevStatus:
        """Unlock learning."""
        ...

    async def lock(self) -> DevStatus:
        """Lock it."""
        ...


class BridgedDevMode:
    """Developer mode on the core thread."""

    def __init__(self, bridge: Bridge, devmode: DevMode) -> None:
        self._bridge = bridge
        self._devmode = devmode

    async def status(self) -> DevStatus:
        """Return the present state."""
        return await self._bridge.do(self._devmode.status)

    async def click_version(self) -> int:
        """Count one click; return how many are left before the wizard."""
        return await self._bridge.do(self._devmode.click_version)

    async def check_machine(self) -> list[MachineCheck]:
        """Measure the machine."""
        return await self._bridge.call(self._devmode.check_machine())

    async def unlock(self, sentence: str, budget: Budget) -> DevStatus:
        """Unlock learning."""
        return await self._bridge.do(self._devmode.unlock, sentence, budget)

    async def lock(self) -> DevStatus:
        """Lock it."""
        return await self._bridge.do(self._devmode.lock)
