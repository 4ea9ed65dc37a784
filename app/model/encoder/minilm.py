"""Parent side of the sentence encoder: a child that starts at the first text and ends after a quiet while.

Runs on the core thread's loop only. Memory is why the child does not stay: it is used for seconds in an hour.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from app.model.child.process import ChildProcess
from app.tasks import TaskSet

_MODULE = "app.model.encoder.backends.minilm"
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_BATCH = 64
"""Texts per request: a cancelled caller waits for at most this many."""


class MiniLMEncoder:
    """all-MiniLM-L6-v2 in a child process; implements ``app.model.api.Encoder``.

    Args:
        idle_seconds: How long the child stays after its last text.
        nice: Priority of the child; the conversation comes first.
    """

    def __init__(self, *, idle_seconds: float = 120.0, nice: int = 10) -> None:
        self._idle_seconds = idle_seconds
        self._nice = nice
        self._child: ChildProcess | None = None
        self._turn = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._tasks = TaskSet()

    @property
    def pid(self) -> int | None:
        """Return the child's process id while it runs."""
        return self._child.pid if self._child is not None and self._child.alive else None

    async def encode(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one unit vector of 384 numbers per text.

        Raises:
            KnownError: the child cannot start, or died at its work.
        """
        if not texts:
            return []
        async with self._turn:
            self._stop_timer()
            child = await self._running()
            vectors: list[list[float]] = []
            try:
                for start in range(0, len(texts), _BATCH):
                    reply = await child.call("encode", {"texts": list(texts[start : start + _BATCH])})
                    vectors += reply["vectors"]
            finally:
                self._timer = asyncio.get_running_loop().call_later(self._idle_seconds, self._idle)
            return vectors

    async def close(self) -> None:
        """End the child. Safe to call twice."""
        async with self._turn:
            self._stop_timer()
            await self._end()
        await self._tasks.close()

    async def _running(self) -> ChildProcess:
        if self._child is not None and self._child.alive:
            return self._child
        await self._end()
        child = ChildProcess(_MODULE, name="encoder", nice=self._nice, env=_ONE_THREAD)
        await child.start()
        self._child = child
        return child

    async def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            await child.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _idle(self) -> None:
        self._timer = None
        self._tasks.start(self._end_if_idle(), "end the idle encoder")

    async def _end_if_idle(self) -> None:
        async with self._turn:
            if self._timer is None:
                await self._end()
