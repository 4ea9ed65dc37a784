"""Streams one answer from the engine into its row: the text so far is stored every half second and at the end.

A turn runs as a task of its own: closing the view that listens does not end the answer. Whatever happens, its row
ends as complete, stopped or failed, and its last event is ``AnswerEnded``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from app.approvals.api import Signal
from app.chat.api import AnswerEnded, AnswerText, ChatEvent, MessageState, MessageView, Started
from app.chat.transcripts import Asked, Ending, Transcripts
from app.chat.views import message_view, unsaved_view
from app.clock import Clock
from app.errors import AppError, BugError, ErrorInfo
from app.model.api import Cancelled, Done, Engine, Failed, GenerateEvent, Piece, Sampling, Turn

_log = logging.getLogger(__name__)

SAVE_EVERY_S = 0.5


class Versions(Protocol):
    """Says which version answers."""

    def current(self) -> tuple[str, int]:
        """Return the commit id and the number of the version in use."""
        ...


@dataclass(slots=True)
class Running:
    """One turn from its question to the end of its answer."""

    asked: Asked
    again: int = 0
    """How many answers stand at this point already: another one should differ from them."""
    events: asyncio.Queue[ChatEvent] = field(default_factory=asyncio.Queue)
    text: str = ""
    saved: str = ""
    tokens: int = 0
    first_at: float | None = None
    """Monotonic time of the first piece."""
    stopping: bool = False
    signals: list[Signal] = field(default_factory=list)
    """What the person's message says about the answer before; told once this answer is on its way."""
    whole_tokens: int = 0
    """Of the whole branch, if it was longer than the window."""
    branch_tokens: int = 0
    """Of the branch up to the end of this answer, once the engine has told."""

    async def listen(self, started: Started) -> AsyncIterator[ChatEvent]:
        """Yield the events of this turn up to its end."""
        yield started
        while True:
            event = await self.events.get()
            yield event
            if isinstance(event, AnswerEnded):
                return


Prepare = Callable[[Running], Awaitable[tuple[Sequence[Turn], Sampling]]]
"""Builds what the engine is given; raises AppError if that is impossible."""


class Answering:
    """Runs turns one after the other, in the order in which they were asked."""

    def __init__(
        self,
        transcripts: Transcripts,
        engine: Engine,
        versions: Versions,
        clock: Clock,
        *,
        save_every_s: float = SAVE_EVERY_S,
    ) -> None:
        self._transcripts = transcripts
        self._engine = engine
        self._versions = versions
        self._clock = clock
        self._save_every_s = save_every_s
        self._order = asyncio.Lock()
        self._running: Running | None = None

    async def run(self, turn: Running, prepare: Prepare) -> None:
        """Wait for the turn's place, stream its answer, store how it ended and say so."""
        ending: Ending | None = None
        try:
            async with self._order:
                ending = await self._answer(turn, prepare)
        except AppError as error:
            ending = self._ending(turn, MessageState.FAILED, error.info())
        except asyncio.CancelledError:
            ending = self._ending(turn, MessageState.STOPPED)
            raise
        finally:
            turn.events.put_nowait(AnswerEnded(self._finish(turn, ending or self._ours(turn))))

    def running_in(self, chat: str) -> bool:
        """Whether an answer of this conversation is being written now."""
        return self._running is not None and self._running.asked.chat == chat

    async def stop(self) -> None:
        """Stop the answer that is being written; its text so far stays."""
        if self._running is not None:
            self._running.stopping = True
            await self._engine.stop()

    async def _answer(self, turn: Running, prepare: Prepare) -> Ending:
        if not self._transcripts.is_alive(turn.asked.chat):
            return Ending(MessageState.STOPPED, "")
        self._running = turn
        saving = asyncio.create_task(self._keep_saving(turn), name="save the answer")
        try:
            turns, sampling = await prepare(turn)
            if turn.stopping:
                return Ending(MessageState.STOPPED, "")
            self._transcripts.begin(turn.asked.answer, *self._versions.current())
            return await self._stream(turn, self._engine.generate(turns, sampling))
        finally:
            self._running = None
            saving.cancel()
            await asyncio.gather(saving, return_exceptions=True)

    async def _stream(self, turn: Running, events: AsyncIterator[GenerateEvent]) -> Ending:
        async for event in events:
            match event:
                case Piece():
                    self._take(turn, event)
                    if turn.stopping:  # asked before the engine had begun
                        await self._engine.stop()
                case Done():
                    turn.branch_tokens = (turn.whole_tokens or event.prompt_tokens) + event.tokens
                    seconds = max(event.seconds - event.first_seconds, 0.0)
                    return Ending(MessageState.COMPLETE, event.text, event.tokens, seconds)
                case Cancelled():
                    return self._ending(turn, MessageState.STOPPED)
                case Failed():
                    return self._ending(turn, MessageState.FAILED, event.error)
        raise BugError("answer", "", "The model stopped without saying why. Try again.", retryable=True)

    def _take(self, turn: Running, piece: Piece) -> None:
        if turn.first_at is None:
            turn.first_at = self._clock.monotonic()
        turn.text += piece.text
        turn.tokens = piece.tokens
        turn.events.put_nowait(AnswerText(turn.asked.answer, piece.text))

    def _ending(self, turn: Running, state: MessageState, error: ErrorInfo | None = None) -> Ending:
        seconds = 0.0 if turn.first_at is None else self._clock.monotonic() - turn.first_at
        return Ending(state, turn.text, turn.tokens, seconds, error)

    def _ours(self, turn: Running) -> Ending:
        """Return the ending for an error that is none of ours to name: it goes on to the loop's handler."""
        error = BugError("answer", "", "Something went wrong inside Ownmind. Your text is kept.", retryable=True)
        return self._ending(turn, MessageState.FAILED, error.info())

    async def _keep_saving(self, turn: Running) -> None:
        """Store new text at a steady interval. A disk that refuses is tried again; the end of the answer reports it."""
        while True:
            await asyncio.sleep(self._save_every_s)
            if turn.text == turn.saved:
                continue
            try:
                self._transcripts.save_text(turn.asked.answer, turn.text)
                turn.saved = turn.text
            except AppError as error:
                _log.warning("an answer could not be saved yet: %s", error)

    def _finish(self, turn: Running, ending: Ending) -> MessageView:
        """Store the ending and return the answer as it now stands; if the disk refuses, as it should have stood."""
        try:
            self._transcripts.finish(turn.asked.answer, ending)
            return message_view(self._transcripts.tree(turn.asked.chat), turn.asked.answer)
        except AppError as error:
            _log.warning("an answer could not be stored: %s", error)
            return unsaved_view(turn.asked.answer, ending.text, error.info())
