"""The conversations as use cases: ``ChatService`` is what the window and the command line are given.

Runs on the core thread's loop. While one conversation streams, others can be opened, written in and deleted; answers
are given one after the other. Text that a person wrote is stored before anything else is tried: in the conversation,
or as its draft if it cannot be sent.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Protocol

from app.approvals.api import Signal
from app.chat import signals
from app.chat.answering import SAVE_EVERY_S, Answering, Running, Versions
from app.chat.api import ChatEvent, ChatSummary, ConversationView, MessageView, Started
from app.chat.context import ChatSettings, about, at_most, fit, room, too_long, turns_of, with_system
from app.chat.signals import SignalSink
from app.chat.transcripts import Transcripts
from app.chat.tree import Tree
from app.chat.views import message_view, summary
from app.clock import Clock
from app.errors import AppError, UserError
from app.model.api import Engine, Role, Sampling, Turn
from app.store.database import Database
from app.store.tables import ConversationRow
from app.tasks import TaskSet

_TEMPERATURE_AGAIN = 0.8
"""Asking again greedily would give the same answer."""


class Readiness(Protocol):
    """Says whether there is a model to talk to."""

    def require(self) -> None:
        """Raise KnownError, with what to do, if no model is loaded or on its way."""
        ...


class ChatService:
    """Implements ``app.chat.api.Chats``."""

    def __init__(
        self,
        database: Database,
        engine: Engine,
        versions: Versions,
        clock: Clock,
        *,
        sink: SignalSink,
        readiness: Readiness,
        settings: Callable[[], ChatSettings],
        context_tokens: int = 8192,
        save_every_s: float = SAVE_EVERY_S,
    ) -> None:
        """Use these parts.

        Args:
            database: Where conversations are kept.
            engine: The chat's engine.
            versions: Says which version answers.
            clock: Wall time for people, monotonic time for speeds.
            sink: Takes what the person does to answers.
            readiness: Says whether a model is there.
            settings: Asked before every answer.
            context_tokens: The window that the engine was loaded with.
            save_every_s: How often the text of a streaming answer is stored.
        """
        self._transcripts = Transcripts(database, clock)
        self._engine = engine
        self._answering = Answering(self._transcripts, engine, versions, clock, save_every_s=save_every_s)
        self._sink = sink
        self._readiness = readiness
        self._settings = settings
        self._limit = context_tokens
        self._tasks = TaskSet()
        self._measured: dict[str, int] = {}
        """Tokens of a branch by its leaf, where the engine has told; elsewhere a view shows an estimate."""
        self._latest: str | None = None

    # --- life

    async def recover(self) -> int:
        """Keep the text of answers that a crash cut off, as stopped answers; return how many. Call once at start."""
        return self._transcripts.recover()

    async def close(self) -> None:
        """Stop what is being written and store it."""
        with contextlib.suppress(AppError):  # an engine that died has nothing to stop
            await self._answering.stop()
        await self._tasks.close()

    # --- conversations

    async def list(self) -> list[ChatSummary]:
        """Return all conversations that are not deleted, most recently used first."""
        return [summary(row) for row in self._transcripts.list()]

    async def create(self) -> ChatSummary:
        """Start an empty conversation."""
        return summary(self._transcripts.create())

    async def open(self, chat: str) -> ConversationView:
        """Return one conversation; never waits for the model. Raises UserError if it does not exist."""
        row, tree = self._transcripts.open(chat)
        self._latest = chat
        return self._view(row, tree)

    async def rename(self, chat: str, title: str) -> None:
        """Set the title; blank titles are refused with UserError."""
        title = " ".join(title.split())
        if not title:
            raise UserError("rename the conversation", "", "A title needs at least one letter.")
        self._transcripts.rename(chat, title)

    async def delete(self, chat: str) -> None:
        """Hide a conversation and stop its answer; ``undelete`` brings it back whole."""
        self._transcripts.set_deleted(chat, deleted=True)
        if self._answering.running_in(chat):
            await self._answering.stop()

    async def undelete(self, chat: str) -> None:
        """Undo ``delete``."""
        self._transcripts.set_deleted(chat, deleted=False)

    async def save_draft(self, chat: str, text: str) -> None:
        """Keep what was typed but not sent."""
        self._transcripts.save_draft(chat, text)

    # --- answers

    async def send(self, chat: str, text: str) -> AsyncIterator[ChatEvent]:
        """Store the person's message, clear the draft, stream the answer.

        Raises: UserError for blank text or text that no window holds, KnownError if there is no model; what was typed
            is then the draft, and nothing was sent.
        """
        if not text.strip():
            raise UserError("send the message", "", "Write something first.")
        await self._require_sendable(chat, text)
        asked = self._transcripts.ask(chat, text)
        self._latest = chat
        tree = self._transcripts.tree(chat)
        turn = Running(asked, signals=signals.after_next_message(tree, asked.question))
        async for event in self._run(turn, message_view(tree, asked.question)):
            yield event

    async def regenerate(self, chat: str, message: str) -> AsyncIterator[ChatEvent]:
        """Answer the same point again, as a sibling of ``message``; the old answer is kept."""
        self._readiness.require()
        asked = self._transcripts.ask_again(chat, message)
        tree = self._transcripts.tree(chat)
        self._tell(signals.after_regenerate(tree, message))
        others = len(tree.siblings(tree.get(asked.answer))) - 1
        async for event in self._run(Running(asked, again=others), message_view(tree, asked.question)):
            yield event

    async def choose(self, chat: str, message: str) -> ConversationView:
        """Make this sibling the active branch, up to where it was last continued."""
        _, tree = self._transcripts.open(chat)
        self._transcripts.set_leaf(chat, tree.newest_leaf(tree.get(message)).id)
        return await self.open(chat)

    async def stop(self) -> None:
        """Stop the answer that is streaming; its text so far stays."""
        await self._answering.stop()

    async def edit_answer(self, chat: str, message: str, text: str) -> MessageView:
        """Put the person's own wording in place of an answer, as a new sibling; a signal for learning.

        The conversation goes on from the new wording. The same text again changes nothing.
        """
        if not text.strip():
            raise UserError("edit the answer", "", "An answer needs some text.")
        _, tree = self._transcripts.open(chat)
        if tree.get(message).text == text:
            return message_view(tree, message)
        edited = self._transcripts.replace_answer(chat, message, text)
        tree = self._transcripts.tree(chat)
        self._tell(signals.after_edit(tree, message, edited.id))
        return message_view(tree, edited.id)

    async def like(self, chat: str, message: str, liked: bool) -> MessageView:
        """Mark an answer as excellent, or take that back; a signal for learning."""
        _, tree = self._transcripts.open(chat)
        newly = liked and not tree.get(message).liked
        self._transcripts.set_liked(chat, message, liked=liked)
        tree = self._transcripts.tree(chat)
        if newly:
            self._tell(signals.after_like(tree, message))
        return message_view(tree, message)

    # --- for the learning loop

    async def open_turns(self) -> tuple[Turn, ...]:
        """Return what the model would see of the conversation opened last: what to restore after a swap."""
        if self._latest is None or not self._transcripts.is_alive(self._latest):
            return ()
        row, tree = self._transcripts.open(self._latest)
        settings = self._settings()
        turns = turns_of(tree.path(row.leaf))
        if not turns:
            return ()
        room_tokens = room(self._limit, settings.sampling)
        return (await fit(settings.system_prompt, turns, room_tokens=room_tokens, count=self._engine.count)).turns

    def title(self, chat: str) -> str:
        """Return the title of a conversation, deleted or not; "" if it has none or does not exist."""
        return self._transcripts.title(chat)

    # --- parts

    async def _require_sendable(self, chat: str, text: str) -> None:
        """Keep the text as the draft and raise if it cannot be sent."""
        try:
            self._readiness.require()
            settings = self._settings()
            alone = with_system(settings.system_prompt, [Turn(Role.USER, text)])
            room_tokens = room(self._limit, settings.sampling)
            if at_most(alone) > room_tokens:
                self._transcripts.save_draft(chat, text)
                if await self._engine.count(alone) > room_tokens:
                    raise too_long()
        except AppError:
            self._transcripts.save_draft(chat, text)
            raise

    async def _run(self, turn: Running, question: MessageView) -> AsyncIterator[ChatEvent]:
        self._tasks.start(self._answer(turn), "answer")
        async for event in turn.listen(Started(question, turn.asked.answer)):
            yield event

    async def _answer(self, turn: Running) -> None:
        await self._answering.run(turn, self._prepare)
        self._tell(turn.signals)
        if turn.branch_tokens:
            self._measured[turn.asked.answer] = turn.branch_tokens

    async def _prepare(self, turn: Running) -> tuple[Sequence[Turn], Sampling]:
        settings = self._settings()
        tree = self._transcripts.tree(turn.asked.chat)
        turns = turns_of(tree.path(turn.asked.question))
        room_tokens = room(self._limit, settings.sampling)
        context = await fit(settings.system_prompt, turns, room_tokens=room_tokens, count=self._engine.count)
        turn.whole_tokens = context.whole_tokens
        self._tell(turn.signals)
        turn.signals = []
        return context.turns, _varied(settings.sampling, turn)

    def _view(self, row: ConversationRow, tree: Tree) -> ConversationView:
        branch = tree.path(row.leaf)
        views = tuple(message_view(tree, message.id) for message in branch)
        measured = self._measured.get(row.leaf or "")
        used = measured or about(with_system(self._settings().system_prompt, turns_of(branch)))
        return ConversationView(row.id, summary(row).title, views, row.draft, used, self._limit)

    def _tell(self, found: Sequence[Signal]) -> None:
        """Hand signals on after this turn of the loop.

        Whatever happens to them cannot touch the conversation, and a question that they lead to stands behind the
        answer in the engine's queue.
        """
        loop = asyncio.get_running_loop()
        for signal in found:
            loop.call_soon(self._sink.on_signal, signal)


def _varied(sampling: Sampling, turn: Running) -> Sampling:
    if not turn.again:
        return sampling
    return replace(sampling, temperature=max(sampling.temperature, _TEMPERATURE_AGAIN), seed=sampling.seed + turn.again)
