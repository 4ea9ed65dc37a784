"""An engine that answers from a script, for driving conversations: pieces, pauses, failures, a window of bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from app.errors import ErrorInfo, KnownError
from app.model.api import (
    AdapterRef,
    BaseFiles,
    Cancelled,
    Done,
    EngineInfo,
    EngineStats,
    EvalItem,
    EvalResult,
    Failed,
    GenerateEvent,
    Piece,
    Sampling,
    Turn,
)


class ScriptedEngine:
    """Answers with the next script, or echoes. Counts one token a byte."""

    def __init__(self) -> None:
        self.scripts: list[list[str]] = []
        self.asked: list[tuple[Turn, ...]] = []
        self.samplings: list[Sampling] = []
        self.counted = 0
        self.fail_next: ErrorInfo | None = None
        self.die_next = False
        """End the stream without a last event."""
        self.break_next: Exception | None = None
        self.count_error: KnownError | None = None
        self.hold: asyncio.Event | None = None
        """If set, the stream waits for it after its first piece."""
        self.loading: asyncio.Event | None = None
        """If set, every request waits for it, as while a base is loaded."""
        self.running = 0
        self.most_running = 0
        self._stopped = asyncio.Event()

    async def generate(self, turns: Sequence[Turn], sampling: Sampling) -> AsyncIterator[GenerateEvent]:
        self.asked.append(tuple(turns))
        self.samplings.append(sampling)
        self._stopped.clear()
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            async for event in self._events(turns):
                yield event
        finally:
            self.running -= 1

    async def _events(self, turns: Sequence[Turn]) -> AsyncIterator[GenerateEvent]:
        if self.loading is not None:
            await self.loading.wait()
        text = ""
        for number, piece in enumerate(self.scripts.pop(0) if self.scripts else [f"You said: {turns[-1].text}"]):
            text += piece
            yield Piece(piece, number + 1)
            await asyncio.sleep(0)
            if self.hold is not None and number == 0:
                await self._first_of(self.hold, self._stopped)
            if self._stopped.is_set():
                yield Cancelled()
                return
        if self.break_next is not None:
            error, self.break_next = self.break_next, None
            raise error
        if self.die_next:
            self.die_next = False
            return
        if self.fail_next is not None:
            failed, self.fail_next = self.fail_next, None
            yield Failed(failed)
            return
        yield Done(text, "end", await self.count(turns), len(text), 0.5, 0.5 + len(text) / 50, None)

    @staticmethod
    async def _first_of(*events: asyncio.Event) -> None:
        tasks = [asyncio.ensure_future(event.wait()) for event in events]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()

    async def stop(self) -> None:
        self._stopped.set()

    async def count(self, turns: Sequence[Turn]) -> int:
        self.counted += 1
        if self.count_error is not None:
            raise self.count_error
        return sum(len(turn.text.encode()) + 4 for turn in turns)

    async def load(self, base: BaseFiles, *, context_tokens: int = 8192, threads: int = 0) -> EngineInfo:
        return EngineInfo("scripted", base.passport.id, context_tokens, 0.0)

    async def activate(self, adapter: AdapterRef | None) -> str | None:
        return adapter.sha256 if adapter else None

    async def evaluate(
        self,
        items: Sequence[EvalItem],
        *,
        adapter: AdapterRef | None,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[EvalResult]:
        return []

    async def prefill(self, turns: Sequence[Turn]) -> int:
        return await self.count(turns)

    async def stats(self) -> EngineStats:
        return EngineStats(0, 0, 0.0, 0.0, None)

    async def close(self) -> None:
        self._stopped.set()
