"""What happens when the person chats: opens, writes, stops, renames, deletes. Between views and use cases.

Invariants:
- What was typed stays in the field until the store has the message.
- An answer goes on streaming while another conversation is shown.
- The last one asked for is the one shown, however long opening takes.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Protocol

from app.chat.api import AnswerEnded, AnswerText, ChatEvent, Chats, ConversationView, MessageView, Started
from app.errors import AppError, UserError
from app.learning.api import CardView
from app.tasks import TaskSet
from app.ui.bridge import Bridge
from app.ui.header import Header
from app.ui.notices import announce
from app.ui.page import ConversationPage
from app.ui.problems import Problems
from app.ui.sidebar import Sidebar
from app.ui.transcript import Live, entries, with_live


class Cards(Protocol):
    """Where the cards of a conversation come from."""

    async def load(self, chat: str) -> list[CardView]:
        """Return the cards of a conversation."""
        ...


class Desk:
    """One per window. Every method that starts work returns at once; the work is a task of ``tasks``."""

    def __init__(
        self,
        *,
        bridge: Bridge,
        chats: Chats,
        tasks: TaskSet,
        problems: Problems,
        cards: Cards,
        page: ConversationPage,
        sidebar: Sidebar,
        header: Header,
    ) -> None:
        self._bridge, self._chats, self._tasks, self._problems = bridge, chats, tasks, problems
        self._cards, self._page, self._sidebar, self._header = cards, page, sidebar, header
        self._conversation: ConversationView | None = None
        self._shown_cards: dict[str, CardView] = {}
        self._wanted: str | None = None
        self._live: dict[str, Live] = {}
        self._sending: str | None = None
        self._deleted: str | None = None
        self.on_opened: Callable[[ConversationView], None] = _ignore
        self._connect()

    @property
    def current(self) -> str | None:
        """The id of the conversation that is shown."""
        return self._conversation.id if self._conversation is not None else None

    @property
    def streaming(self) -> bool:
        """Whether an answer is streaming in the conversation that is shown."""
        return self.current in self._live

    def _connect(self) -> None:
        page, composer, side = self._page, self._page.composer, self._sidebar
        composer.send_asked.connect(self.send)
        composer.stop_asked.connect(self.stop)
        composer.draft_changed.connect(self._keep_draft)
        composer.up_in_empty.connect(page.edit_last_answer)
        page.suggested.connect(self._suggest)
        page.liked.connect(self._like)
        page.edited.connect(self._edit)
        page.again.connect(self.regenerate)
        page.retry.connect(self.regenerate)
        page.chosen.connect(self._choose)
        page.toast.acted.connect(self._undelete)
        side.new_asked.connect(self.new_chat)
        side.chats.chosen.connect(self.open)
        side.chats.rename_asked.connect(self._rename)
        side.chats.delete_asked.connect(self.delete)

    # --- opening ----------------------------------------------------------------------------------------------------

    async def begin(self, last: str | None, *, keep_banner: bool = False) -> None:
        """Show the conversation that was open last, or the newest, or a new one."""
        listed = await self._bridge.call(self._chats.list())
        ids = [chat.id for chat in listed]
        chat = last if last in ids else (ids[0] if ids else None)
        if chat is None:
            chat = (await self._bridge.call(self._chats.create())).id
            listed = await self._bridge.call(self._chats.list())
        self._sidebar.chats.set_chats(listed)
        await self._open(chat, keep_banner=keep_banner)

    def open(self, chat: str) -> None:
        """Show a conversation."""
        self._run(self._open(chat), "open")

    def new_chat(self) -> None:
        """Start an empty conversation, unless this one is still empty."""
        conversation = self._conversation
        if conversation is not None and not conversation.messages and conversation.id not in self._live:
            self._page.composer.edit.setFocus()
            return
        self._run(self._new(), "new chat")

    async def refresh(self) -> None:
        """Read the conversation and the list again and show what is different."""
        chat = self.current
        if chat is not None:
            await self._load(chat, fresh=False)
        await self._refresh_list()

    def card_changed(self, card: CardView) -> None:
        """Show a card that came or changed, if it belongs here."""
        if card.chat == self.current:
            self._shown_cards[card.id] = card
            self._show()

    async def _new(self) -> None:
        chat = await self._bridge.call(self._chats.create())
        await self._open(chat.id)
        await self._refresh_list()
        self._page.composer.edit.setFocus()

    async def _open(self, chat: str, *, keep_banner: bool = False) -> None:
        self._wanted = chat
        if chat == self.current:
            return
        self._sidebar.chats.set_current(chat)
        if not keep_banner:
            self._page.banner.hide()
        await self._load(chat, fresh=True)

    async def _load(self, chat: str, *, fresh: bool) -> None:
        conversation = await self._bridge.call(self._chats.open(chat))
        cards = await self._cards.load(chat)
        if self._wanted != chat:
            return
        if fresh:
            self._leave()
        self._conversation = conversation
        self._shown_cards = {card.id: card for card in cards}
        if fresh:
            self._page.composer.set_text(conversation.draft)
        self._show(fresh=fresh)
        self.on_opened(conversation)

    def _leave(self) -> None:
        """Keep what is in the field, at the very moment when another conversation takes it over."""
        conversation, text = self._conversation, self._page.composer.text()
        if conversation is not None and self._sending != conversation.id and text != conversation.draft:
            self._keep_draft(text)

    async def _refresh_list(self) -> None:
        self._sidebar.chats.set_chats(await self._bridge.call(self._chats.list()))
        self._sidebar.chats.set_current(self.current)

    def _show(self, *, fresh: bool = False) -> None:
        conversation = self._conversation
        if conversation is None:
            return
        live = self._live.get(conversation.id)
        messages = with_live(conversation.messages, live)
        self._page.show_entries(entries(messages, self._shown_cards.values()), live, fresh=fresh)
        self._page.composer.set_streaming(live is not None)
        self._header.title.set_whole(conversation.title)
        self._header.show_context(conversation.context_tokens, conversation.context_limit)

    # --- answers ----------------------------------------------------------------------------------------------------

    def send(self, text: str) -> None:
        """Send a message in the conversation that is shown."""
        chat = self.current
        if chat is not None and chat not in self._live and self._sending is None:
            self._sending = chat
            self._page.composer.set_sending(True)
            self._run(self._send(chat, text), "send")

    def _suggest(self, text: str) -> None:
        composer = self._page.composer
        if composer.text().strip():
            composer.edit.appendPlainText(text)
            composer.edit.setFocus()
        else:
            composer.set_text(text)
            composer.submit()

    def regenerate(self, message: str) -> None:
        """Answer the same point again."""
        chat = self.current
        if chat is not None and chat not in self._live:
            self._run(self._answer(chat, self._chats.regenerate(chat, message), cut_at=message), "regenerate")

    def regenerate_last(self) -> None:
        """Answer the last point again."""
        view = self._page.last_answer()
        if view is not None:
            self.regenerate(view.id)

    def stop(self) -> None:
        """Stop the answer that is streaming here; what has come stays."""
        if self.current in self._live:
            self._run(self._bridge.call(self._chats.stop()), "stop")

    async def _send(self, chat: str, text: str) -> None:
        try:
            await self._answer(chat, self._chats.send(chat, text), cut_at=None)
        finally:
            if self._sending == chat:
                self._end_sending()
                if chat != self.current:
                    await self._store_draft(chat, text)

    def _end_sending(self) -> None:
        self._sending = None
        self._page.composer.set_sending(False)

    async def _answer(self, chat: str, events: AsyncIterator[ChatEvent], *, cut_at: str | None) -> None:
        try:
            async with contextlib.aclosing(self._bridge.stream(events)) as stream:  # type: ignore[type-var]
                async for event in stream:
                    self._take(chat, event, cut_at=cut_at)
        finally:
            self._live.pop(chat, None)
            if chat == self.current:
                self._page.composer.set_streaming(False)
        await self.refresh()

    def _take(self, chat: str, event: ChatEvent, *, cut_at: str | None) -> None:
        if isinstance(event, Started):
            self._started(chat, event, cut_at=cut_at)
        elif isinstance(event, AnswerText):
            live = self._live[chat]
            live.text += event.text
            if chat == self.current:
                self._page.feed(live, event.text)
        else:
            self._ended(chat, event)

    def _started(self, chat: str, event: Started, *, cut_at: str | None) -> None:
        self._live[chat] = Live(chat, event.answer_id)
        if cut_at is None:
            self._end_sending()
        if chat != self.current or self._conversation is None:
            return
        if cut_at is None:
            self._page.composer.set_text("")
            messages = (*self._conversation.messages, event.message)
        else:
            messages = _before(self._conversation.messages, cut_at)
        self._conversation = _with_messages(self._conversation, messages)
        self._show()
        self._page.scroller.to_end()

    def _ended(self, chat: str, event: AnswerEnded) -> None:
        self._live.pop(chat, None)
        if chat != self.current or self._conversation is None:
            return
        self._conversation = _with_messages(self._conversation, (*self._conversation.messages, event.message))
        self._show()
        announce(self._page, event.message.text[:500] or "The answer failed.")

    # --- what one does with messages --------------------------------------------------------------------------------

    def _like(self, message: str, liked: bool) -> None:
        self._change(lambda chat: self._chats.like(chat, message, liked))

    def _edit(self, message: str, text: str) -> None:
        self._change(lambda chat: self._chats.edit_answer(chat, message, text))

    def _choose(self, message: str) -> None:
        self._change(lambda chat: self._chats.choose(chat, message))

    def _change(self, work: Any) -> None:
        chat = self.current
        if chat is not None:
            self._run(self._changed(work(chat)), "change")

    async def _changed(self, work: Coroutine[Any, Any, object]) -> None:
        try:
            await self._bridge.call(work)
        finally:
            await self.refresh()

    # --- what one does with conversations ---------------------------------------------------------------------------

    def _rename(self, chat: str, title: str) -> None:
        self._run(self._changed(self._chats.rename(chat, title)), "rename")

    def delete(self, chat: str) -> None:
        """Delete a conversation; a toast offers to undo it."""
        self._run(self._delete(chat), "delete")

    def delete_current(self) -> None:
        """Delete the conversation that is shown."""
        if self.current is not None:
            self.delete(self.current)

    async def _delete(self, chat: str) -> None:
        if chat == self.current:
            await self.close()
        await self._bridge.call(self._chats.delete(chat))
        self._deleted = chat
        self._page.toast.say("Chat deleted", action="Undo")
        if chat == self.current:
            self._conversation = None
            await self.begin(None)
        else:
            await self._refresh_list()

    def _undelete(self) -> None:
        chat, self._deleted = self._deleted, None
        if chat is not None:
            self._run(self._bring_back(chat), "undelete")

    async def _bring_back(self, chat: str) -> None:
        await self._bridge.call(self._chats.undelete(chat))
        await self._open(chat)
        await self._refresh_list()

    # --- drafts -----------------------------------------------------------------------------------------------------

    def _keep_draft(self, text: str) -> None:
        if self.current is not None:
            self._run(self._store_draft(self.current, text), "draft")

    async def _store_draft(self, chat: str, text: str) -> None:
        with contextlib.suppress(UserError):  # the conversation may have been deleted meanwhile
            await self._bridge.call(self._chats.save_draft(chat, text))

    async def close(self) -> None:
        """Keep what is in the field."""
        composer = self._page.composer
        composer.forget_draft()
        if self.current is not None:
            await self._store_draft(self.current, composer.text())

    # --- running ----------------------------------------------------------------------------------------------------

    def _run(self, work: Coroutine[Any, Any, object], name: str) -> None:
        self._tasks.start(self._guarded(work), name)

    async def _guarded(self, work: Coroutine[Any, Any, object]) -> None:
        try:
            await work
        except AppError as error:
            self._problems.show(error)


def _before(messages: tuple[MessageView, ...], message: str) -> tuple[MessageView, ...]:
    ids = [view.id for view in messages]
    return messages[: ids.index(message)] if message in ids else messages


def _with_messages(conversation: ConversationView, messages: tuple[MessageView, ...]) -> ConversationView:
    return ConversationView(
        conversation.id,
        conversation.title,
        messages,
        conversation.draft,
        conversation.context_tokens,
        conversation.context_limit,
    )


def _ignore(_: object) -> None:
    """Nobody listens yet."""
