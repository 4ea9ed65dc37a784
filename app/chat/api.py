"""What the conversation offers to views: value types, events and one protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from app.errors import ErrorInfo
from app.model.api import Role


class MessageState(StrEnum):
    """How a message ended. NOTE: persisted, do not rename."""

    COMPLETE = "complete"
    STREAMING = "streaming"
    """Still coming; after a crash the next start turns it into STOPPED and keeps the text."""
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ChatSummary:
    """One row of the conversation list."""

    id: str
    title: str
    updated: datetime


@dataclass(frozen=True, slots=True)
class MessageView:
    """One message of the active branch."""

    id: str
    role: Role
    text: str
    state: MessageState
    version: int | None
    """Number of the version that answered; None for the person's messages."""
    tokens_per_second: float
    liked: bool
    edited: bool
    siblings: int
    """How many answers exist at this point, this one included."""
    sibling: int
    """Which of them this is, from 1."""
    error: ErrorInfo | None = None
    sibling_ids: tuple[str, ...] = ()
    """Ids of all answers at this point, oldest first: what ``choose`` takes."""


@dataclass(frozen=True, slots=True)
class ConversationView:
    """A conversation as it stands: the active branch, oldest first."""

    id: str
    title: str
    messages: tuple[MessageView, ...]
    draft: str
    context_tokens: int
    """What the whole branch takes; more than the limit means that the model no longer sees the oldest exchanges."""
    context_limit: int


@dataclass(frozen=True, slots=True)
class Started:
    """The person's message is stored, and the answer has an id."""

    message: MessageView
    answer_id: str


@dataclass(frozen=True, slots=True)
class AnswerText:
    """More text of the answer; ``text`` is the new piece only."""

    answer_id: str
    text: str


@dataclass(frozen=True, slots=True)
class AnswerEnded:
    """The answer as stored: complete, stopped or failed. Always the last event."""

    message: MessageView


ChatEvent = Started | AnswerText | AnswerEnded


class Chats(Protocol):
    """The conversations of this home. Every change is stored before the call returns."""

    async def list(self) -> list[ChatSummary]:
        """Return all conversations that are not deleted, most recently used first."""
        ...

    async def create(self) -> ChatSummary:
        """Start an empty conversation."""
        ...

    async def open(self, chat: str) -> ConversationView:
        """Return one conversation. Raises UserError if it does not exist."""
        ...

    async def rename(self, chat: str, title: str) -> None:
        """Set the title; blank titles are refused with UserError."""
        ...

    async def delete(self, chat: str) -> None:
        """Hide a conversation; ``undelete`` brings it back whole."""
        ...

    async def undelete(self, chat: str) -> None:
        """Undo ``delete``."""
        ...

    async def save_draft(self, chat: str, text: str) -> None:
        """Keep what was typed but not sent."""
        ...

    def send(self, chat: str, text: str) -> AsyncIterator[ChatEvent]:
        """Store the person's message, clear the draft, stream the answer. Raises UserError for blank text."""
        ...

    def regenerate(self, chat: str, message: str) -> AsyncIterator[ChatEvent]:
        """Answer the same point again, as a sibling of ``message``; the old answer is kept."""
        ...

    async def choose(self, chat: str, message: str) -> ConversationView:
        """Make this sibling the active branch."""
        ...

    async def stop(self) -> None:
        """Stop the answer that is streaming; its text so far stays."""
        ...

    async def edit_answer(self, chat: str, message: str, text: str) -> MessageView:
        """Replace an answer by the person's own wording, as a new sibling; a signal for learning."""
        ...

    async def like(self, chat: str, message: str, liked: bool) -> MessageView:
        """Mark an answer as excellent, or take that back; a signal for learning."""
        ...
