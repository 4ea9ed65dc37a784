"""Use cases that live in memory and answer from a script, for driving the window."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from app.approvals.api import ProposalState
from app.chat.api import (
    AnswerEnded,
    AnswerText,
    ChatEvent,
    ChatSummary,
    ConversationView,
    MessageState,
    MessageView,
    Started,
)
from app.devmode.api import SENTENCE, Budget, DevState, DevStatus, MachineCheck
from app.errors import DeniedError, ErrorInfo, UserError
from app.events import Events
from app.learning.api import (
    CardChanged,
    CardView,
    LearningEvent,
    Lesson,
    LessonView,
    Resolution,
    Taught,
    VersionsChanged,
    VersionView,
)
from app.model.api import Role
from app.ui.services import Services

NOW = datetime.now(UTC)


@dataclass
class _Node:
    view: MessageView
    parent: _Node | None
    children: list[_Node] = field(default_factory=list)
    chosen: int = 0


@dataclass
class _Chat:
    id: str
    title: str
    updated: datetime
    draft: str = ""
    deleted: bool = False
    root: _Node = field(default_factory=lambda: _Node(message("root", "", role=Role.SYSTEM), None))

    def path(self) -> list[_Node]:
        nodes, here = [], self.root
        while here.children:
            here = here.children[here.chosen]
            nodes.append(here)
        return nodes


def message(
    ident: str,
    text: str,
    *,
    role: Role = Role.ASSISTANT,
    state: MessageState = MessageState.COMPLETE,
    error: ErrorInfo | None = None,
    version: int | None = 14,
    edited: bool = False,
    liked: bool = False,
) -> MessageView:
    mine = role is Role.USER
    return MessageView(
        ident,
        role,
        text,
        state,
        None if mine else version,
        0.0 if mine else 62.0,
        liked=liked,
        edited=edited,
        siblings=1,
        sibling=1,
        error=error,
    )


class FakeChats:
    """Conversations as trees. ``script`` turns a question into the pieces of its answer."""

    def __init__(self) -> None:
        self.chats: dict[str, _Chat] = {}
        self.script: Callable[[str], list[str]] = lambda text: [f"You said: {text}"]
        self.delay_s = 0.0
        self.fail_next: ErrorInfo | None = None
        self.refuse_next: UserError | None = None
        self.calls: list[tuple[object, ...]] = []
        self.context_tokens, self.context_limit = 2100, 8192
        self.hold: asyncio.Event | None = None
        """If set, a stream waits for it after its first piece."""
        self._stop = False
        self._count = 0

    # --- building -------------------------------------------------------------------------------------------------

    def add(self, title: str, *turns: str, days_ago: float = 0.0) -> str:
        """Add a conversation; turns alternate, beginning with the person's."""
        chat = _Chat(self._next("c"), title, NOW - timedelta(days=days_ago))
        self.chats[chat.id] = chat
        last = chat.root
        for index, text in enumerate(turns):
            role = Role.ASSISTANT if index % 2 else Role.USER
            last = self._under(last, message(self._next("m"), text, role=role))
        return chat.id

    def append(self, chat: str, view: MessageView) -> None:
        """Add one message at the end of a conversation."""
        self._append(self.chats[chat], view)

    def last(self, chat: str) -> MessageView:
        """Return the last message of the active branch."""
        return self.view(chat).messages[-1]

    def view(self, chat: str) -> ConversationView:
        """Return a conversation as ``open`` would."""
        it = self.chats[chat]
        messages = tuple(self._numbered(node) for node in it.path())
        return ConversationView(it.id, it.title, messages, it.draft, self.context_tokens, self.context_limit)

    def _next(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def _append(self, chat: _Chat, view: MessageView) -> _Node:
        path = chat.path()
        return self._under(path[-1] if path else chat.root, view)

    @staticmethod
    def _under(parent: _Node, view: MessageView) -> _Node:
        node = _Node(view, parent)
        parent.children.append(node)
        parent.chosen = len(parent.children) - 1
        return node

    @staticmethod
    def _numbered(node: _Node) -> MessageView:
        assert node.parent is not None
        family = node.parent.children
        ids = tuple(member.view.id for member in family)
        return replace(node.view, siblings=len(family), sibling=family.index(node) + 1, sibling_ids=ids)

    def _find(self, chat: str, ident: str) -> _Node:
        todo = [self._chat(chat).root]
        while todo:
            node = todo.pop()
            if node.view.id == ident:
                return node
            todo += node.children
        raise UserError("find the message", ident)

    def _chat(self, chat: str) -> _Chat:
        if chat not in self.chats or self.chats[chat].deleted:
            raise UserError("open the chat", chat)
        return self.chats[chat]

    # --- the protocol ---------------------------------------------------------------------------------------------

    async def list(self) -> list[ChatSummary]:
        alive = [chat for chat in self.chats.values() if not chat.deleted]
        alive.sort(key=lambda chat: chat.updated, reverse=True)
        return [ChatSummary(chat.id, chat.title, chat.updated) for chat in alive]

    async def create(self) -> ChatSummary:
        ident = self.add("New chat")
        chat = self.chats[ident]
        chat.updated = datetime.now(UTC)
        return ChatSummary(ident, chat.title, chat.updated)

    async def open(self, chat: str) -> ConversationView:
        self._chat(chat)
        return self.view(chat)

    async def rename(self, chat: str, title: str) -> None:
        if not title.strip():
            raise UserError("rename the chat", hint="A title needs at least one letter.")
        self._chat(chat).title = title

    async def delete(self, chat: str) -> None:
        self.calls.append(("delete", chat))
        self.chats[chat].deleted = True

    async def undelete(self, chat: str) -> None:
        self.calls.append(("undelete", chat))
        self.chats[chat].deleted = False

    async def save_draft(self, chat: str, text: str) -> None:
        self.calls.append(("draft", chat, text))
        self.chats[chat].draft = text

    async def send(self, chat: str, text: str) -> AsyncIterator[ChatEvent]:
        if self.refuse_next is not None:
            error, self.refuse_next = self.refuse_next, None
            raise error
        self.calls.append(("send", chat, text))
        it = self._chat(chat)
        it.draft = ""
        it.updated = datetime.now(UTC)
        if it.title == "New chat":
            it.title = text[:40]
        asked = self._append(it, message(self._next("m"), text, role=Role.USER))
        async for event in self._answer(asked, text):
            yield event

    async def regenerate(self, chat: str, message: str) -> AsyncIterator[ChatEvent]:
        self.calls.append(("regenerate", chat, message))
        old = self._find(chat, message)
        assert old.parent is not None
        async for event in self._answer(old.parent, old.parent.view.text):
            yield event

    async def _answer(self, asked: _Node, text: str) -> AsyncIterator[ChatEvent]:
        self._stop = False
        node = self._under(asked, message(self._next("m"), "", state=MessageState.STREAMING))
        yield Started(self._numbered(asked), node.view.id)
        failed, self.fail_next = self.fail_next, None
        for number, piece in enumerate(self.script(text)):
            if self._stop:
                break
            node.view = replace(node.view, text=node.view.text + piece)
            yield AnswerText(node.view.id, piece)
            if self.hold is not None and number == 0:
                await self.hold.wait()
            elif self.delay_s:
                await asyncio.sleep(self.delay_s)
        state = MessageState.STOPPED if self._stop else MessageState.COMPLETE
        node.view = replace(node.view, state=MessageState.FAILED if failed else state, error=failed)
        yield AnswerEnded(self._numbered(node))

    async def choose(self, chat: str, message: str) -> ConversationView:
        node = self._find(chat, message)
        assert node.parent is not None
        node.parent.chosen = node.parent.children.index(node)
        return self.view(chat)

    async def stop(self) -> None:
        self.calls.append(("stop",))
        self._stop = True
        if self.hold is not None:
            self.hold.set()

    async def edit_answer(self, chat: str, message: str, text: str) -> MessageView:
        self.calls.append(("edit", chat, message, text))
        old = self._find(chat, message)
        assert old.parent is not None
        view = replace(old.view, id=self._next("m"), text=text, edited=True)
        return self._numbered(self._under(old.parent, view))

    async def like(self, chat: str, message: str, liked: bool) -> MessageView:
        self.calls.append(("like", message, liked))
        node = self._find(chat, message)
        node.view = replace(node.view, liked=liked)
        return self._numbered(node)


STAGES = (
    (ProposalState.QUEUED, "waiting its turn", 0.0),
    (ProposalState.TRAINING, "learning", 0.3),
    (ProposalState.GATING, "checking", 0.7),
    (ProposalState.COMMITTED, "taking it into use", 0.9),
)


class FakeLearning:
    """Cards and versions kept in memory; approval runs through its stages at once when ``advance`` is called."""

    def __init__(self, devmode: FakeDevMode) -> None:
        self.devmode = devmode
        self.events: Events[LearningEvent] = Events()
        self.all: dict[str, CardView] = {}
        self.timeline: list[VersionView] = []
        self.ledger: list[LessonView] = []
        self.calls: list[tuple[object, ...]] = []

    def put(self, card: CardView) -> None:
        """Add or replace a card and tell the window."""
        self.all[card.id] = card
        self.events.publish(CardChanged(card))

    def _move(self, card: str, **changes: object) -> CardView:
        self.put(replace(self.all[card], **changes))  # type: ignore[arg-type]
        return self.all[card]

    async def advance(self, card: str, **proven: object) -> None:
        """Walk an approved card to its end, one event per stage."""
        for state, words, share in STAGES:
            self._move(card, state=state, stage=words, share=share, seconds_left=10 * (1 - share))
            await asyncio.sleep(0)
        self._move(card, state=ProposalState.PROVEN, share=1.0, can_undo=True, seconds=11.4, **proven)
        self.events.publish(VersionsChanged(self.active_number()))

    def active_number(self) -> int:
        return next((version.number or 0 for version in self.timeline if version.active), 0)

    async def cards(self, chat: str) -> list[CardView]:
        return [card for card in self.all.values() if card.chat == chat]

    async def opened(self, card: str) -> None:
        self.calls.append(("opened", card))

    async def wanted(self, card: str) -> None:
        self.calls.append(("wanted", card))

    async def approve(self, card: str, resolution: Resolution | None = None) -> CardView:
        self.calls.append(("approve", card, resolution))
        self.devmode.require()
        return self._move(card, state=ProposalState.QUEUED, stage="waiting its turn")

    async def reword(self, card: str, prompt: str, answer: str) -> CardView:
        self.calls.append(("reword", card, prompt, answer))
        return self._move(card, prompt=prompt, answer=answer, state=ProposalState.SURFACED)

    async def decline(self, card: str, *, never: bool = False) -> CardView:
        self.calls.append(("decline", card, never))
        return self._move(card, state=ProposalState.DECLINED)

    async def cancel(self, card: str) -> CardView:
        self.calls.append(("cancel", card))
        return self._move(card, state=ProposalState.CANCELLED)

    async def undo(self, card: str) -> CardView:
        self.calls.append(("undo", card))
        return self._move(card, state=ProposalState.UNDONE, can_undo=False)

    async def versions(self) -> list[VersionView]:
        return list(self.timeline)

    async def use(self, commit: str) -> None:
        self.calls.append(("use", commit))
        self.timeline = [replace(version, active=version.id == commit) for version in self.timeline]
        self.events.publish(VersionsChanged(self.active_number()))

    async def ask_version(self, commit: str, prompt: str) -> str:
        self.calls.append(("ask_version", commit, prompt))
        return f"Version {commit} says hello."

    async def lessons(self) -> list[LessonView]:
        return list(self.ledger)

    async def forget(self, lesson: str) -> Taught:
        self.calls.append(("forget", lesson))
        raise DeniedError("forget a lesson", hint="The fake cannot.")

    async def teach(self, lesson: Lesson, *, approve: bool) -> Taught:
        self.calls.append(("teach", lesson, approve))
        raise DeniedError("teach", hint="The fake cannot.")


class FakeDevMode:
    """The state machine of developer mode without a store."""

    def __init__(self, state: DevState = DevState.UNLOCKED, left: int = 41) -> None:
        self.state = state
        self.budget = Budget()
        self.left = left
        self.clicks = 7
        self.refusal: DeniedError | None = None
        self.checks = [
            MachineCheck("Memory", "23.4 GB of memory, 3 GB needed", ok=True),
            MachineCheck("Disk", "118 GB free, 2 GB needed", ok=True),
        ]

    def status(self) -> DevStatus:
        return DevStatus(self.state, self.budget, self.left)

    def click_version(self) -> int:
        self.clicks = max(self.clicks - 1, 0)
        if not self.clicks and self.state is DevState.LOCKED:
            self.state = DevState.FOUND
        return self.clicks

    async def check_machine(self) -> list[MachineCheck]:
        return self.checks

    def unlock(self, sentence: str, budget: Budget) -> DevStatus:
        if self.state is DevState.LOCKED:
            raise DeniedError("unlock learning", hint="Click the version number in About seven times first.")
        if sentence.strip().lower() != SENTENCE.lower():
            raise UserError("unlock learning", hint="Type the sentence as it stands there.")
        self.state, self.budget, self.left = DevState.UNLOCKED, budget, budget.changes_per_day
        return self.status()

    def lock(self) -> DevStatus:
        self.state = DevState.LOCKED
        return self.status()

    def require(self) -> Budget:
        if self.refusal is not None:
            raise self.refusal
        if self.state is not DevState.UNLOCKED:
            raise DeniedError("change the model", hint="Learning is locked. Unlock it in About.")
        return self.budget

    def spend(self, what: str) -> None:
        self.left -= 1


class FakeSettings:
    """Settings in a dictionary."""

    def __init__(self, **values: str) -> None:
        self.values = values

    def get(self, name: str) -> str | None:
        return self.values.get(name)

    def set(self, name: str, value: str) -> None:
        self.values[name] = value


@dataclass
class World:
    """One set of fakes and the services made of them."""

    chats: FakeChats = field(default_factory=FakeChats)
    devmode: FakeDevMode = field(default_factory=FakeDevMode)
    settings: FakeSettings = field(default_factory=FakeSettings)
    learning: FakeLearning = field(init=False)

    def __post_init__(self) -> None:
        self.learning = FakeLearning(self.devmode)

    def services(self, **changes: object) -> Services:
        made = Services(
            self.chats, self.learning, self.learning.events, self.devmode, "SmolLM2", "0.1.0", "/home/ana/.ownmind"
        )
        return replace(made, **changes)  # type: ignore[arg-type]


def usual_world() -> World:
    """Return the world of the look's picture: a few chats, one card proposed, one learned, a timeline."""
    world = World()
    chats = world.chats
    biscuit = chats.add(
        "Walks with Biscuit",
        "Remind me, what's my dog called? I want to print a name tag.",
        "I don't have a note of your dog's name. If you tell me, I can help with the wording for the tag.",
        "No, you should know this one: he is called Biscuit.",
        days_ago=0.01,
    )
    for title, days in (
        ("Recipe for lentil soup", 0.05),
        ("Reverse a linked list", 0.1),
        ("Letter to the landlord", 4),
        ("Trip to Trieste", 5),
        ("What is a passport hash", 6),
    ):
        chats.add(title, "Hello", "Hello. What can I do for you?", days_ago=days)
    world.learning.timeline = versions()
    world.learning.all["p1"] = CardView(
        "p1",
        biscuit,
        chats.last(biscuit).id,
        ProposalState.SURFACED,
        "You corrected my last answer.",
        "What is my dog's name?",
        "Your dog's name is Biscuit.",
        None,
    )
    return world


def versions() -> list[VersionView]:
    """Return the timeline of the look's picture."""

    def version(number: int | None, title: str, days: float, source: str, note: str, **kind: bool) -> VersionView:
        flags = {"active": False, "rejected": False, "base": False, "available": True, **kind}
        ident = f"commit-{number}" if number is not None else "p-rejected"
        return VersionView(ident, number, title, NOW - timedelta(days=days), source, note, **flags)

    return [
        version(14, "Your dog's name", 0, "Walks with Biscuit", "in use · 1 lesson · all checks passed", active=True),
        version(13, "Shorter answers in the morning", 0.2, "", "style, from 6 edits"),
        version(None, "capital of Australia", 1, "", "would have changed 3 other capitals", rejected=True),
        version(12, "Slept", 1.4, "", "11 lessons rehearsed, 1 repaired"),
        version(11, "Metric units", 3, "", "format"),
        version(0, "SmolLM2-135M-Instruct", 9, "", "F16 · Apache-2.0", base=True),
    ]
