"""The engine as the app sees it: any backend child behind the Engine protocol. Belongs to one asyncio loop.

Invariants:
- One request at a time; further ones wait in order, and may give up while they wait.
- A child that died is started again by the next request, with the same base and the same adapter, as far as the
  restart policy allows; the request that met the death ends as failed with the real reason.
- What is active is what the child itself reports, never what was asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass

import psutil

from app.errors import AppError, KnownError, from_info
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
from app.model.child.process import ChildProcess
from app.model.child.protocol import error_from
from app.model.child.restarts import Restarts
from app.model.engine import wire
from app.model.engine.crash_note import CrashNote
from app.model.engine.turnstile import Turnstile


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What to load again after a crash."""

    base: BaseFiles
    context_tokens: int
    threads: int


class ChildEngine:
    """An Engine whose work is done by one child process, whatever its runtime."""

    def __init__(self, child: ChildProcess, *, restarts: Restarts | None = None, note: CrashNote | None = None) -> None:
        self._child = child
        self._note = note
        self._restarts = restarts or Restarts("engine")
        self._turn = Turnstile()
        self._wanted: _Loaded | None = None
        self._refused: AppError | None = None
        self._info: EngineInfo | None = None
        self._adapter: AdapterRef | None = None
        self._active: str | None = None
        self._stops: set[asyncio.Event] = set()
        self._speeds = (0.0, 0.0)

    async def load(self, base: BaseFiles, *, context_tokens: int = 8192, threads: int = 0) -> EngineInfo:
        """Start the child and load the base; a base or an adapter from before is dropped."""
        async with self._my_turn():
            await self._child.close()
            self._restarts.asked()
            self._adapter = self._active = self._info = self._refused = None
            self._wanted = _Loaded(base, context_tokens, threads)
            return await self._load(self._wanted)

    async def _load(self, wanted: _Loaded) -> EngineInfo:
        await self._child.start()
        params = wire.load_json(wanted.base, context_tokens=wanted.context_tokens, threads=wanted.threads)
        try:
            result = await self._child.call("load", params)
        except AppError as error:
            if not self._child.alive:
                self._restarts.crashed(error, loading=True)
                if self._note is not None:
                    self._note.write(wanted.base.passport.id)
            elif not error.retryable:
                self._refused = error
            await self._child.close()
            raise
        if self._note is not None:
            self._note.clear()
        self._info = EngineInfo(base=wanted.base.passport.id, **result)
        return self._info

    async def _awake(self) -> None:
        """Return with a child that has the base and the adapter; start it again if it died and that is allowed.

        Raises: KnownError if nothing was loaded, or if it has to stay down.
        """
        if self._wanted is None:
            hint = "Choose a model first."
            raise KnownError("answer", "no model is loaded", hint, retryable=False)
        if self._refused is not None:
            raise self._refused
        self._restarts.check()
        if self._child.alive:
            return
        self._note_death()
        self._restarts.check()
        await self._load(self._wanted)
        try:
            self._active = await self._set(self._adapter)
        except AppError:  # never answer from the base where a version was in use
            self._info = None
            await self._child.close()
            raise

    def _note_death(self) -> None:
        """Count a crash once: after it, the engine knows of no loaded base until it is started again."""
        if self._info is not None and self._child.death is not None:
            self._info = self._active = None
            self._restarts.crashed(self._child.death)

    @contextlib.asynccontextmanager
    async def _my_turn(self) -> AsyncGenerator[None, None]:
        await self._turn.enter()
        try:
            yield
        finally:
            self._note_end()
            self._turn.leave()

    def _note_end(self) -> None:
        if not self._child.alive:
            self._note_death()

    async def generate(self, turns: Sequence[Turn], sampling: Sampling) -> AsyncGenerator[GenerateEvent, None]:
        """Stream one answer; the last event is Done, Cancelled or Failed."""
        stop = asyncio.Event()
        self._stops.add(stop)
        try:
            if not await self._turn.enter(stop):
                yield Cancelled()
                return
            try:
                async with contextlib.aclosing(self._answer(turns, sampling, stop)) as events:
                    async for event in events:
                        yield event
            finally:
                self._note_end()
                self._turn.leave()
        finally:
            self._stops.discard(stop)

    async def _answer(
        self, turns: Sequence[Turn], sampling: Sampling, stop: asyncio.Event
    ) -> AsyncGenerator[GenerateEvent, None]:
        try:
            await self._awake()
        except AppError as error:
            yield Failed(error.info())
            return
        if stop.is_set():
            yield Cancelled()
            return
        params = {"turns": wire.turns_json(turns), "sampling": wire.sampling_json(sampling)}
        texts: list[str] = []
        stopping = asyncio.create_task(self._cancel_when(stop))
        try:
            async with contextlib.aclosing(self._child.stream("generate", params)) as messages:
                async for message in messages:
                    yield self._event(message, texts)
        finally:
            stopping.cancel()

    async def _cancel_when(self, stop: asyncio.Event) -> None:
        await stop.wait()
        await self._child.cancel()

    def _event(self, message: wire.Json, texts: list[str]) -> GenerateEvent:
        if "text" in message:
            texts.append(message["text"])
            return Piece(message["text"], message["tokens"])
        if "cancelled" in message:
            return Cancelled()
        if "failed" in message:
            return Failed(error_from(message["failed"]))
        done = wire.done_from(message["done"], "".join(texts))
        self._speeds = _speeds(done, message["done"]["computed_tokens"])
        return done

    async def stop(self) -> None:
        """Stop the running answer, and those that wait for it."""
        for stop in list(self._stops):
            stop.set()

    async def activate(self, adapter: AdapterRef | None) -> str | None:
        """Swap to this adapter; if that fails, the one from before stays."""
        async with self._my_turn():
            await self._awake()
            self._active = await self._set(adapter)
            self._adapter = adapter
            return self._active

    async def _set(self, adapter: AdapterRef | None) -> str | None:
        result = await self._child.call("activate", {"adapter": wire.adapter_json(adapter)})
        active: str | None = result["active"]
        return active

    async def evaluate(
        self,
        items: Sequence[EvalItem],
        *,
        adapter: AdapterRef | None,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[EvalResult]:
        """Evaluate items; the results are in the order of the items."""
        async with self._my_turn():
            await self._awake()
            params = {"items": [wire.item_json(item) for item in items], "adapter": wire.adapter_json(adapter)}
            results: dict[int, EvalResult] = {}
            async with contextlib.aclosing(self._child.stream("evaluate", params)) as messages:
                async for message in messages:
                    if "failed" in message:
                        raise from_info(error_from(message["failed"]))
                    if "cancelled" in message:
                        raise asyncio.CancelledError
                    if "index" in message:
                        results[message["index"]] = wire.result_from(message["result"])
                        if progress is not None:
                            progress(len(results), len(items))
            return [results[index] for index in range(len(items))]

    async def prefill(self, turns: Sequence[Turn]) -> int:
        """Compute the state of an open conversation; return its tokens."""
        return await self._tokens("prefill", turns)

    async def count(self, turns: Sequence[Turn]) -> int:
        """Return how many tokens these turns take."""
        return await self._tokens("count", turns)

    async def _tokens(self, method: str, turns: Sequence[Turn]) -> int:
        async with self._my_turn():
            await self._awake()
            result = await self._child.call(method, {"turns": wire.turns_json(turns)})
            tokens: int = result["tokens"]
            return tokens

    async def stats(self) -> EngineStats:
        """Return memory now, and speed of the last answer; zeros while no child runs. Does not wait for its turn."""
        prompt, answer = self._speeds
        pid = self._child.pid
        return EngineStats(pid or 0, _memory_bytes(pid), prompt, answer, self._active)

    async def close(self) -> None:
        """End the child; requests that wait or run end as failed."""
        self._wanted = self._info = None
        self._adapter = self._active = None
        await self._child.close()


def _speeds(done: Done, computed_tokens: int) -> tuple[float, float]:
    """Tokens per second of prompt and answer; the first token belongs to the prompt's time."""
    answering = done.seconds - done.first_seconds
    prompt = computed_tokens / done.first_seconds if done.first_seconds > 0 else 0.0
    return prompt, (done.tokens - 1) / answering if answering > 0 and done.tokens > 1 else 0.0


def _memory_bytes(pid: int | None) -> int:
    if pid is None:
        return 0
    try:
        process = psutil.Process(pid)
        full = process.memory_full_info()
        return int(getattr(full, "pss", 0) or full.rss)
    except psutil.AccessDenied:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


_SHARED_CORES = {"GOMP_SPINCOUNT": "3000"}
"""Threads spin for a few microseconds while they wait for each other, then sleep. The default, spinning for much
longer, makes answers up to fifty times slower once anything else wants the cores; not spinning at all costs 40 % on an
idle machine."""


class LlamaEngine(ChildEngine):
    """The engine on llama.cpp."""

    def __init__(
        self,
        *,
        name: str = "engine",
        nice: int = 0,
        restarts: Restarts | None = None,
        note: CrashNote | None = None,
    ) -> None:
        """Set it up; nothing starts yet.

        Args:
            name: What people call it in errors.
            nice: More than 0 for the gate's engine, which gives way to the one that talks.
            restarts: When it may start again.
            note: Where a crash while loading is remembered.
        """
        child = ChildProcess("app.model.engine.backends.llama", name=name, nice=nice, env=_SHARED_CORES)
        super().__init__(child, restarts=restarts or Restarts(name), note=note)
