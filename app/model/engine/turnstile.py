"""Lets one request through at a time, in order of arrival; whoever waits can give up."""

from __future__ import annotations

import asyncio


class Turnstile:
    """A fair lock whose waiting ends early when an event is set."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def enter(self, unless: asyncio.Event | None = None) -> bool:
        """Wait for the turn and return True; return False, without it, once ``unless`` is set."""
        if unless is None:
            await self._lock.acquire()
            return True
        entering = asyncio.create_task(self._lock.acquire())
        giving_up = asyncio.create_task(unless.wait())
        try:
            await asyncio.wait({entering, giving_up}, return_when=asyncio.FIRST_COMPLETED)
            entered = entering.done() and not unless.is_set()
        except asyncio.CancelledError:
            entered = False
            raise
        finally:
            giving_up.cancel()
            if not entered:
                await self._withdraw(entering)
        return entered

    async def _withdraw(self, entering: asyncio.Task[bool]) -> None:
        entering.cancel()
        await asyncio.wait({entering})
        if not entering.cancelled():
            self._lock.release()

    def leave(self) -> None:
        """Let the next one in."""
        self._lock.release()
