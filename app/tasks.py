"""The core thread: one asyncio loop beside the window's, where everything but the window runs.

The window's thread never waits for disk, database or a child process: it hands a coroutine to the core thread and
awaits the result, or iterates a stream of events, on its own loop. The command line runs the same coroutines without
this module.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

OnCrash = Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]
"""A loop's exception handler."""

_END = object()


class TaskSet:
    """Owns background tasks: holds them strongly, cancels and awaits them at the end."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Run ``work`` as a task of this set; an exception it raises reaches the loop's exception handler."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            context = {"message": f"task {task.get_name()} failed", "exception": error, "task": task}
            task.get_loop().call_exception_handler(context)

    async def close(self) -> None:
        """Cancel everything and wait until it has ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class CoreThread:
    """A thread that runs one asyncio loop until it is closed; ``on_crash`` hears of background tasks that fail."""

    def __init__(self, on_crash: OnCrash | None = None) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(on_crash)
        self._thread = threading.Thread(target=self._run, name="core", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` on the core thread and await its result here; cancelling here cancels it there."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def stream(self, events: AsyncIterator[T]) -> AsyncIterator[T]:
        """Iterate ``events`` on the core thread and yield them here, in order; closing here closes it there."""
        here = asyncio.get_running_loop()
        queue: asyncio.Queue[Any] = asyncio.Queue()

        def hand_over(item: object) -> None:
            here.call_soon_threadsafe(queue.put_nowait, item)

        async def pump() -> None:
            try:
                async for event in events:
                    hand_over(event)
            finally:
                # From the core thread like the events, or it could overtake them on Qt's loop.
                hand_over(_END)

        pumping = asyncio.run_coroutine_threadsafe(pump(), self._loop)
        try:
            while (item := await queue.get()) is not _END:
                yield item
            await asyncio.wrap_future(pumping)
        finally:
            pumping.cancel()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` on the core thread and block for its result. For start and end only, never from a loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """Let cancelled work end, stop the loop and end the thread. The owner has closed its parts before."""
        self.run(_end_all_tasks())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _end_all_tasks() -> None:
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
