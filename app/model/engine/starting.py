"""An engine that is still being started: requests wait until it is ready, and get the reason if it never is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from app.errors import AppError, BugError
from app.model.api import (
    AdapterRef,
    BaseFiles,
    Engine,
    EngineInfo,
    EngineStats,
    EvalItem,
    EvalResult,
    Failed,
    GenerateEvent,
    Sampling,
    Turn,
)


class StartingEngine:
    """An Engine in front of another one, so that the window can open before the base is loaded.

    ``begin`` loads the base and takes the version in use into it, in one piece: no request ever meets a base without
    its version.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._start: asyncio.Task[None] | None = None

    def begin(self, work: Awaitable[None]) -> None:
        """Start ``work``, which leaves the engine ready. Called once."""
        self._start = asyncio.ensure_future(work)

    def require(self) -> None:
        """Raise the reason if starting has failed; the chat asks this before it takes a message."""
        if self._start is not None and self._start.done() and not self._start.cancelled():
            error = self._start.exception()
            if error is not None:
                raise error

    async def ready(self) -> None:
        """Wait until the engine can answer. Raises the AppError of a failed start."""
        if self._start is None:
            raise BugError("answer", "the engine was never started")
        await asyncio.shield(self._start)

    async def load(self, base: BaseFiles, *, context_tokens: int = 8192, threads: int = 0) -> EngineInfo:
        """Load another base once the start is over."""
        await self.ready()
        return await self._engine.load(base, context_tokens=context_tokens, threads=threads)

    async def generate(self, turns: Sequence[Turn], sampling: Sampling) -> AsyncGenerator[GenerateEvent, None]:
        """Stream one answer; a failed start ends the stream with its reason."""
        try:
            await self.ready()
        except AppError as error:
            yield Failed(error.info())
            return
        async for event in self._engine.generate(turns, sampling):
            yield event

    async def stop(self) -> None:
        """Stop the running answer."""
        await self._engine.stop()

    async def activate(self, adapter: AdapterRef | None) -> str | None:
        """Swap to this adapter."""
        await self.ready()
        return await self._engine.activate(adapter)

    async def evaluate(
        self,
        items: Sequence[EvalItem],
        *,
        adapter: AdapterRef | None,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[EvalResult]:
        """Evaluate items under this adapter."""
        await self.ready()
        return await self._engine.evaluate(items, adapter=adapter, progress=progress)

    async def prefill(self, turns: Sequence[Turn]) -> int:
        """Compute the state of an open conversation."""
        await self.ready()
        return await self._engine.prefill(turns)

    async def count(self, turns: Sequence[Turn]) -> int:
        """Return how many tokens these turns take."""
        await self.ready()
        return await self._engine.count(turns)

    async def stats(self) -> EngineStats:
        """Return memory and speed."""
        await self.ready()
        return await self._engine.stats()

    async def close(self) -> None:
        """End the start, if it is still under way, and the child."""
        if self._start is not None and not self._start.done():
            self._start.cancel()
            await asyncio.wait([self._start])
        await self._engine.close()
