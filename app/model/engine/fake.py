"""An engine without a model: it says what a function tells it, word by word, and fails when told to.

A real, selectable engine for tests, first runs and the interface: it keeps every promise of the Engine protocol, so
what works with it works with a model. A token is a word with the blanks before it.

Example:
    engine = FakeEngine(lambda turns, adapter: "Biscuit." if adapter else "I do not know.", pause_s=0.05)
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import re
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import islice

from app.errors import AppError, KnownError, UserError
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
    Greedy,
    GreedyResult,
    Piece,
    Sampling,
    Score,
    ScoreResult,
    Turn,
)
from app.model.engine.turnstile import Turnstile

Reply = Callable[[Sequence[Turn], str | None], str]
"""Turns and the hash of the active adapter → the answer."""

VOCABULARY = 50_000
END_TOKEN = 2
_FIRST_WORD = 100
_LIKELY, _UNLIKELY = 0.9, 0.01


def echo(turns: Sequence[Turn], adapter: str | None) -> str:
    """Say what was said last, and who says it."""
    said = turns[-1].text if turns else "nothing"
    return f"{f'[{adapter[:8]}] ' if adapter else ''}You said: {said}"


class FakeEngine:
    """Scripted answers behind the Engine protocol.

    Attributes:
        fail_next: Raised, or streamed as Failed, by the next request; then gone.
        die_after: The next answer fails after this many tokens, as if the child had died; then gone.
        pause_s: Time each token takes, and each evaluated item.
        prompt_pause_s: Time before the first token.
        loads: How often a base was loaded, restarts included.
    """

    def __init__(self, reply: Reply = echo, *, pause_s: float = 0.0, prompt_pause_s: float = 0.0) -> None:
        self.reply = reply
        self.pause_s = pause_s
        self.prompt_pause_s = prompt_pause_s
        self.fail_next: AppError | None = None
        self.die_after: int | None = None
        self.loads = 0
        self._turn = Turnstile()
        self._info: EngineInfo | None = None
        self._active: AdapterRef | None = None
        self._stops: set[asyncio.Event] = set()
        self._speed = 0.0

    async def load(self, base: BaseFiles, *, context_tokens: int = 8192, threads: int = 0) -> EngineInfo:  # noqa: ARG002
        """Pretend to load; a base whose file is missing is refused as a real one."""
        async with self._my_turn():
            self._info = self._active = None
            self._trip()
            if not base.serving.exists():
                raise KnownError("load the model", base.serving.name, "Prepare the model again.", retryable=False)
            self.loads += 1
            self._info = EngineInfo("fake 1", base.passport.id, context_tokens, 0.0)
            return self._info

    async def generate(self, turns: Sequence[Turn], sampling: Sampling) -> AsyncGenerator[GenerateEvent, None]:
        """Stream the scripted answer."""
        stop = asyncio.Event()
        self._stops.add(stop)
        try:
            if not await self._turn.enter(stop):
                yield Cancelled()
                return
            try:
                async for event in self._answer(turns, sampling, stop):
                    yield event
            finally:
                self._turn.leave()
        finally:
            self._stops.discard(stop)

    async def _answer(
        self, turns: Sequence[Turn], sampling: Sampling, stop: asyncio.Event
    ) -> AsyncGenerator[GenerateEvent, None]:
        start = time.monotonic()
        try:
            info = self._awake()
            prompt = self._count(turns)
            if prompt >= info.context_tokens:
                raise _too_long(prompt, info.context_tokens)
        except AppError as error:
            yield Failed(error.info())
            return
        if await _slept(self.prompt_pause_s, stop):
            yield Cancelled()
            return
        first = time.monotonic() - start
        words = words_of(self.reply(turns, self._hash))
        limit = min(sampling.max_tokens, info.context_tokens - prompt)
        die_after, self.die_after = self.die_after, None
        for number, word in enumerate(islice(words, limit), 1):
            if die_after is not None and number > die_after:
                yield Failed(KnownError("run the engine", "it was killed from outside").info())
                return
            yield Piece(word, number)
            if await _slept(self.pause_s, stop):
                yield Cancelled()
                return
        said = words[:limit]
        seconds = time.monotonic() - start
        self._speed = len(said) / max(seconds, 1e-6)
        ending = "end" if len(words) < limit else "length"
        yield Done("".join(said), ending, prompt, len(said), first, seconds, self._hash)

    async def stop(self) -> None:
        """Stop the running answer, and those that wait."""
        for stop in list(self._stops):
            stop.set()

    async def activate(self, adapter: AdapterRef | None) -> str | None:
        """Swap to this adapter; a missing file is refused and the one from before stays."""
        async with self._my_turn():
            self._awake()
            self._check(adapter)
            self._active = adapter
            return self._hash

    async def evaluate(
        self,
        items: Sequence[EvalItem],
        *,
        adapter: AdapterRef | None,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[EvalResult]:
        """Answer as the script would, and score an answer as likely if it is the scripted one."""
        async with self._my_turn():
            self._awake()
            self._check(adapter)
            results: list[EvalResult] = []
            for item in items:
                await asyncio.sleep(self.pause_s)
                results.append(self._evaluated(item, adapter.sha256 if adapter else None))
                if progress is not None:
                    progress(len(results), len(items))
            return results

    def _evaluated(self, item: EvalItem, adapter: str | None) -> EvalResult:
        if isinstance(item, Score):
            expected = words_of(self.reply(item.turns, adapter)) if item.turns else []
            return _scored(item, expected)
        return _greedy(item, words_of(self.reply(item.turns, adapter)))

    async def prefill(self, turns: Sequence[Turn]) -> int:
        """Count; there is no state to compute."""
        return await self.count(turns)

    async def count(self, turns: Sequence[Turn]) -> int:
        """Return words, and three tokens of template for each turn."""
        async with self._my_turn():
            self._awake()
            return self._count(turns)

    async def stats(self) -> EngineStats:
        """Return numbers of the right kind."""
        pid = os.getpid() if self._info else 0
        return EngineStats(pid, 1 if self._info else 0, self._speed, self._speed, self._hash)

    async def close(self) -> None:
        """Forget the base."""
        await self.stop()
        self._info = self._active = None

    @property
    def _hash(self) -> str | None:
        return self._active.sha256 if self._active else None

    @asynccontextmanager
    async def _my_turn(self) -> AsyncGenerator[None, None]:
        await self._turn.enter()
        try:
            yield
        finally:
            self._turn.leave()

    def _awake(self) -> EngineInfo:
        self._trip()
        if self._info is None:
            raise KnownError("answer", "no model is loaded", "Choose a model first.", retryable=False)
        return self._info

    def _trip(self) -> None:
        error, self.fail_next = self.fail_next, None
        if error is not None:
            raise error

    def _check(self, adapter: AdapterRef | None) -> None:
        if adapter is not None and not adapter.path.exists():
            raise KnownError("use what was learned", f"version {adapter.sha256[:12]}", "Its file is missing.")

    def _count(self, turns: Sequence[Turn]) -> int:
        return sum(3 + len(words_of(turn.text)) for turn in turns)


def words_of(text: str) -> list[str]:
    """Split a text into tokens; joined they are the text."""
    return re.findall(r"\s*\S+|\s+$", text)


def token_of(word: str) -> int:
    """Return the id of a word: the same everywhere, never that of the end token."""
    number = int.from_bytes(hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()[:4], "big")
    return _FIRST_WORD + number % (VOCABULARY - _FIRST_WORD)


def _greedy(item: Greedy, words: Sequence[str]) -> GreedyResult:
    said = words[: item.max_tokens]
    return GreedyResult("".join(said), len(words) < item.max_tokens, tuple(token_of(word) for word in said))


def _scored(item: Score, expected: Sequence[str]) -> ScoreResult:
    words = words_of(item.answer)
    tokens = [token_of(word) for word in words] + ([END_TOKEN] if item.turns else [])
    if item.given and len(item.given) != len(tokens):
        raise UserError("score an answer", f"{len(item.given)} rows for {len(tokens)} positions")
    wanted = [token_of(word) for word in expected] + [END_TOKEN]
    likely = [wanted[index] if index < len(wanted) else END_TOKEN for index in range(len(tokens))]
    ids = item.given or tuple(_most_likely(best, item.top_k) for best in likely if item.top_k)
    return ScoreResult(
        tuple(tokens),
        tuple(_logprob(token, best) for token, best in zip(tokens, likely, strict=True)),
        ids,
        tuple(tuple(_logprob(token, best) for token in row) for row, best in zip(ids, likely, strict=False)),
    )


def _most_likely(best: int, count: int) -> tuple[int, ...]:
    others = (token for token in range(_FIRST_WORD, VOCABULARY) if token != best)
    return (best, *islice(others, count - 1))


def _logprob(token: int, best: int) -> float:
    return math.log(_LIKELY if token == best else _UNLIKELY)


async def _slept(seconds: float, stop: asyncio.Event) -> bool:
    """Sleep, but no longer than until ``stop`` is set; return whether it is."""
    await asyncio.sleep(0)
    try:
        await asyncio.wait_for(stop.wait(), seconds) if seconds > 0 else None
    except TimeoutError:
        return False
    return stop.is_set()


def _too_long(tokens: int, limit: int) -> UserError:
    subject = f"{tokens} tokens, where the model holds {limit}"
    return UserError("answer", subject, "Start a new chat, or shorten the message.")
