"""The only way from the window's thread to the core thread and back.

Views hold value objects. Whatever they ask of a use case runs on the core's loop; results, streams and published events
come back on the window's loop, in order, through the loop's own queue.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from app.events import Events
from app.tasks import CoreThread

T = TypeVar("T")
E = TypeVar("E")


class Bridge:
    """Calls into the core, and what comes back. Made and used on the window's loop."""

    def __init__(self, core: CoreThread) -> None:
        self._core = core
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._endings: list[Callable[[], None]] = []

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` on the core and return its result; cancelling here cancels it there."""
        return await self._core.call(work)

    async def do(self, function: Callable[..., T], *args: object) -> T:
        """Call a plain function of a use case on the core, where the database lives."""

        async def work() -> T:
            return function(*args)

        return await self._core.call(work())

    async def stream(self, events: AsyncIterator[T]) -> AsyncIterator[T]:
        """Iterate ``events`` on the core and yield them here; closing here closes it there."""
        stream = self._core.stream(events)
        try:
            async for event in stream:
                yield event
        finally:
            await stream.aclose()  # type: ignore[attr-defined]

    def listen(self, events: Events[E], listener: Callable[[E], None]) -> None:
        """Call ``listener`` here for every event that the core publishes, until ``close``."""
        self._endings.append(events.listen(lambda event: self._hand_over(listener, event)))

    def close(self) -> None:
        """Stop listening; events that are on their way are dropped."""
        self._closed = True
        for end in self._endings:
            end()
        self._endings.clear()

    def _hand_over(self, listener: Callable[[E], None], event: E) -> None:
        with contextlib.suppress(RuntimeError):  # the window's loop may have closed since the event was published
            self._loop.call_soon_threadsafe(self._deliver, listener, event)

    def _deliver(self, listener: Callable[[E], None], event: E) -> None:
        if not self._closed:
            listener(event)
