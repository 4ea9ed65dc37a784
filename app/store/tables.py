"""The tables of ``ownmind.db``. Columns are added by migrations only; see ``docs/formats.md``."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Field, SQLModel


class ConversationRow(SQLModel, table=True):
    """A conversation; ``leaf`` names the last message of its active branch."""

    __tablename__ = "conversation"
    id: str = Field(primary_key=True)
    title: str = ""
    titled_by_person: bool = False
    created: datetime
    updated: datetime = Field(index=True)
    deleted: datetime | None = None
    leaf: str | None = None
    draft: str = ""


class MessageRow(SQLModel, table=True):
    """One message; ``parent`` makes the tree. Rows are never deleted, so nothing learned loses its source."""

    __tablename__ = "message"
    id: str = Field(primary_key=True)
    conversation: str = Field(foreign_key="conversation.id", index=True)
    parent: str | None = Field(default=None, index=True)
    position: int
    """Order of creation in the conversation: clocks may go backwards."""
    role: str
    text: str = ""
    state: str
    created: datetime
    commit: str | None = None
    """Version that answered."""
    version: int | None = None
    tokens: int = 0
    seconds: float = 0.0
    liked: bool = False
    edited: bool = False
    error: str | None = None
    """ErrorInfo as JSON."""


class SignalRow(SQLModel, table=True):
    """What the person did to an answer."""

    __tablename__ = "signal"
    id: str = Field(primary_key=True)
    message: str = Field(index=True)
    conversation: str
    kind: str
    created: datetime


class ProposalRow(SQLModel, table=True):
    """A candidate lesson and how far it got; the card is drawn from this row alone."""

    __tablename__ = "proposal"
    id: str = Field(primary_key=True)
    conversation: str = Field(index=True)
    message: str = Field(index=True)
    state: str = Field(index=True)
    created: datetime
    position: int
    """Order of creation over all proposals."""
    prompt: str
    answer: str
    rejected: str = ""
    why: str
    score: float = 0.0
    conflict: str | None = None
    """Lesson id that says something else."""
    resolution: str | None = None
    commit: str | None = None
    evidence: str | None = None
    """Verdict as JSON."""
    stages: str | None = None
    """Seconds of each stage as JSON."""
    error: str | None = None
    """ErrorInfo as JSON."""


class LessonRow(SQLModel, table=True):
    """One entry of the ledger: what the model is supposed to know."""

    __tablename__ = "lesson"
    id: str = Field(primary_key=True)
    proposal: str
    conversation: str
    kind: str
    prompt: str
    answer: str
    rejected: str = ""
    keys: str
    """Words that carry the lesson, JSON list."""
    learned: datetime
    position: int
    commit: str | None = None
    """Version that first held it."""
    supersedes: str | None = None
    """Lesson that this one replaced."""
    recipe_data: str | None = None
    """Object digest of the training and exam wordings used."""


class SettingRow(SQLModel, table=True):
    """One setting as JSON, by name."""

    __tablename__ = "setting"
    name: str = Field(primary_key=True)
    value: str


class SpendingRow(SQLModel, table=True):
    """One change of the weights, counted against the day's budget."""

    __tablename__ = "spending"
    id: int | None = Field(default=None, primary_key=True)
    day: str
    """ISO date, local time of the person."""
    what: str
