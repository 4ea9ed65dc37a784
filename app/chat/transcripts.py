"""Conversations and messages in the database: every change is durable when the method returns.

Runs on the thread that owns the database. Order is ``position``; clocks may go backwards, so the time a conversation
was last used never does.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlmodel import Session, col, func, select, update

from app.chat.api import MessageState
from app.chat.titles import title_from
from app.chat.tree import Tree
from app.clock import Clock
from app.errors import ErrorInfo, UserError
from app.model.api import Role
from app.store.database import Database
from app.store.tables import ConversationRow, MessageRow


@dataclass(frozen=True, slots=True)
class Asked:
    """A point of a conversation that is being answered."""

    chat: str
    question: str
    """Id of the person's message."""
    answer: str
    """Id of the answer, stored as STREAMING."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How an answer ended."""

    state: MessageState
    text: str
    tokens: int = 0
    seconds: float = 0.0
    """From the first token to the last."""
    error: ErrorInfo | None = None


class Transcripts:
    """Reads and writes conversations."""

    def __init__(
        self, database: Database, clock: Clock, *, new_id: Callable[[], str] = lambda: uuid.uuid4().hex
    ) -> None:
        self._database = database
        self._clock = clock
        self._new_id = new_id

    # --- conversations

    def list(self) -> list[ConversationRow]:
        """Return the conversations that are not deleted, most recently used first."""
        with self._database.session() as session:
            query = select(ConversationRow).where(col(ConversationRow.deleted).is_(None))
            return [*session.exec(query.order_by(col(ConversationRow.updated).desc()))]

    def create(self) -> ConversationRow:
        """Add an empty conversation."""
        with self._database.session() as session:
            row = ConversationRow(id=self._new_id(), created=self._clock.now(), updated=self._now_or_later(session))
            session.add(row)
            return row

    def open(self, chat: str) -> tuple[ConversationRow, Tree]:
        """Return a conversation with its messages. Raises UserError if it does not exist or is deleted."""
        with self._database.session() as session:
            return self._conversation(session, chat), self._tree(session, chat)

    def tree(self, chat: str) -> Tree:
        """Return the messages of a conversation, deleted or not."""
        with self._database.session() as session:
            return self._tree(session, chat)

    def title(self, chat: str) -> str:
        """Return the title of a conversation, deleted or not; "" if it has none or does not exist."""
        with self._database.session() as session:
            row = session.get(ConversationRow, chat)
            return row.title if row is not None else ""

    def is_alive(self, chat: str) -> bool:
        """Whether a conversation exists and is not deleted."""
        with self._database.session() as session:
            row = session.get(ConversationRow, chat)
            return row is not None and row.deleted is None

    def rename(self, chat: str, title: str) -> None:
        """Set the title that the person chose."""
        with self._database.session() as session:
            row = self._conversation(session, chat)
            row.title, row.titled_by_person = title, True
            session.add(row)

    def set_deleted(self, chat: str, *, deleted: bool) -> None:
        """Hide a conversation or show it again. Raises UserError if it does not exist."""
        with self._database.session() as session:
            row = session.get(ConversationRow, chat)
            if row is None:
                raise _missing(chat)
            row.deleted = (row.deleted or self._clock.now()) if deleted else None
            session.add(row)

    def save_draft(self, chat: str, text: str) -> None:
        """Keep what was typed; also in a deleted conversation, which may come back."""
        with self._database.session() as session:
            row = session.get(ConversationRow, chat)
            if row is None:
                raise _missing(chat)
            row.draft = text
            session.add(row)

    # --- messages

    def ask(self, chat: str, text: str) -> Asked:
        """Store the person's message and its answer to come, clear the draft, name an untitled conversation."""
        with self._database.session() as session:
            conversation = self._conversation(session, chat)
            position = self._tree(session, chat).last_position()
            question = self._row(chat, conversation.leaf, position + 1, Role.USER, text)
            session.add(question)
            conversation.draft = ""
            if not conversation.title and not conversation.titled_by_person:
                conversation.title = title_from(text)
            return self._await_answer(session, conversation, question, position + 2)

    def ask_again(self, chat: str, message: str) -> Asked:
        """Store another answer to come at the point of an answer, or at a message of the person's."""
        with self._database.session() as session:
            conversation = self._conversation(session, chat)
            tree = self._tree(session, chat)
            row = tree.get(message)
            question = row if row.role == Role.USER else tree.prompt_of(row)
            if question is None:
                raise UserError("answer again", "", "There is no message before this answer.")
            if row.state == MessageState.STREAMING:
                raise UserError("answer again", "", "This answer is still being written. Stop it first.")
            return self._await_answer(session, conversation, question, tree.last_position() + 1)

    def save_text(self, answer: str, text: str) -> None:
        """Keep the text so far of an answer that is being written."""
        with self._database.session() as session:
            row = session.get_one(MessageRow, answer)
            row.text = text
            session.add(row)

    def begin(self, answer: str, commit: str | None, version: int | None) -> None:
        """Note the version that answers."""
        with self._database.session() as session:
            row = session.get_one(MessageRow, answer)
            row.commit, row.version = commit, version
            session.add(row)

    def finish(self, answer: str, ending: Ending) -> None:
        """Store how an answer ended."""
        with self._database.session() as session:
            row = session.get_one(MessageRow, answer)
            row.state, row.text = ending.state, ending.text
            row.tokens, row.seconds = ending.tokens, ending.seconds
            row.error = json.dumps(ending.error.as_dict()) if ending.error else None
            session.add(row)

    def recover(self) -> int:
        """Turn answers that a crash cut off into stopped ones, their text kept; return how many there were."""
        with self._database.session() as session:
            cut = update(MessageRow).where(col(MessageRow.state) == MessageState.STREAMING)
            return session.exec(cut.values(state=MessageState.STOPPED)).rowcount

    def set_leaf(self, chat: str, leaf: str) -> None:
        """Make the branch of this message the active one."""
        with self._database.session() as session:
            conversation = self._conversation(session, chat)
            conversation.leaf = leaf
            session.add(conversation)

    def set_liked(self, chat: str, message: str, *, liked: bool) -> None:
        """Mark an answer as excellent or take that back."""
        with self._database.session() as session:
            row = _answer(self._tree(session, chat), message)
            row.liked = liked
            session.add(row)

    def replace_answer(self, chat: str, message: str, text: str) -> MessageRow:
        """Store the person's wording of an answer beside it; what followed the answer now follows the new wording."""
        with self._database.session() as session:
            conversation = self._conversation(session, chat)
            tree = self._tree(session, chat)
            old = _answer(tree, message)
            if old.state == MessageState.STREAMING:
                raise UserError("edit the answer", "", "It is still being written. Stop it first.")
            row = self._row(chat, old.parent, tree.last_position() + 1, Role.ASSISTANT, text)
            row.edited, row.commit, row.version = True, old.commit, old.version
            session.add(row)
            follower = tree.follower(old, conversation.leaf)
            if follower is None:
                conversation.leaf = row.id
            else:
                follower.parent = row.id
                session.add(follower)
            session.add(conversation)
            return row

    # --- parts

    def _await_answer(self, session: Session, conversation: ConversationRow, question: MessageRow, at: int) -> Asked:
        answer = self._row(conversation.id, question.id, at, Role.ASSISTANT, "")
        answer.state = MessageState.STREAMING
        conversation.leaf = answer.id
        conversation.updated = self._now_or_later(session)
        session.add(answer)
        session.add(conversation)
        return Asked(conversation.id, question.id, answer.id)

    def _row(self, chat: str, parent: str | None, position: int, role: Role, text: str) -> MessageRow:
        return MessageRow(
            id=self._new_id(),
            conversation=chat,
            parent=parent,
            position=position,
            role=role,
            text=text,
            state=MessageState.COMPLETE,
            created=self._clock.now(),
        )

    def _now_or_later(self, session: Session) -> datetime:
        """Return the time, or just after the latest use if the clock went backwards."""
        now = self._clock.now()
        latest = session.exec(select(func.max(ConversationRow.updated))).one()
        return now if latest is None or latest < now else latest + timedelta(microseconds=1)

    @staticmethod
    def _conversation(session: Session, chat: str) -> ConversationRow:
        row = session.get(ConversationRow, chat)
        if row is None or row.deleted is not None:
            raise _missing(chat)
        return row

    @staticmethod
    def _tree(session: Session, chat: str) -> Tree:
        return Tree(session.exec(select(MessageRow).where(MessageRow.conversation == chat)))


def _missing(chat: str) -> UserError:
    return UserError("open the conversation", chat, "It does not exist, or it was deleted.")


def _answer(tree: Tree, message: str) -> MessageRow:
    row = tree.get(message)
    if row.role != Role.ASSISTANT:
        raise UserError("change the answer", message, "This message is yours, not an answer.")
    return row
