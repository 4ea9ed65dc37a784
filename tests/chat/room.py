"""Builds a chat on a real database with a scripted engine, and drives it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from app.approvals.api import Signal
from app.chat.api import AnswerEnded, ChatEvent, MessageView
from app.chat.context import ChatSettings
from app.chat.service import ChatService
from app.clock import FakeClock
from app.errors import KnownError
from app.store.database import Database
from tests.chat.scripted import ScriptedEngine

T = TypeVar("T")
WINDOW = 2000


@dataclass
class Sink:
    signals: list[Signal] = field(default_factory=list)
    error: Exception | None = None
    told: Callable[[], None] | None = None

    def on_signal(self, signal: Signal) -> None:
        self.signals.append(signal)
        if self.told is not None:
            self.told()
        if self.error is not None:
            raise self.error


@dataclass
class Head:
    commit: str = "c" * 64
    number: int = 3

    def current(self) -> tuple[str, int]:
        return self.commit, self.number


@dataclass
class Readiness:
    error: KnownError | None = None

    def require(self) -> None:
        if self.error is not None:
            raise self.error


class Room:
    """Everything of one chat. ``run`` closes the chat when the story is over."""

    def __init__(
        self, folder: Path, *, window: int = WINDOW, save_every_s: float = 0.01, engine: ScriptedEngine | None = None
    ) -> None:
        self.clock = FakeClock()
        self.database = Database(folder / "ownmind.db", self.clock)
        self.engine = engine or ScriptedEngine()
        self.sink = Sink()
        self.head = Head()
        self.readiness = Readiness()
        self.settings = ChatSettings()
        self.chats = ChatService(
            self.database,
            self.engine,
            self.head,
            self.clock,
            sink=self.sink,
            readiness=self.readiness,
            settings=lambda: self.settings,
            context_tokens=window,
            save_every_s=save_every_s,
        )

    def run(self, story: Coroutine[Any, Any, T]) -> T:
        async def whole() -> T:
            try:
                return await story
            finally:
                await self.chats.close()

        try:
            return asyncio.run(whole())
        finally:
            self.database.close()

    async def new(self) -> str:
        return (await self.chats.create()).id

    async def say(self, chat: str, text: str, *answer: str) -> MessageView:
        """Send a message, answered by this script, and return the answer."""
        if answer:
            self.engine.scripts.append(list(answer))
        return await ended(self.chats.send(chat, text))

    async def again(self, chat: str, message: str, *answer: str) -> MessageView:
        if answer:
            self.engine.scripts.append(list(answer))
        return await ended(self.chats.regenerate(chat, message))

    async def texts(self, chat: str) -> list[str]:
        return [message.text for message in (await self.chats.open(chat)).messages]


async def ended(events: AsyncIterator[ChatEvent]) -> MessageView:
    """Listen to the end and return the answer as stored."""
    last = [event async for event in events][-1]
    assert isinstance(last, AnswerEnded)
    return last.message
