"""What learning offers to views and to the command line: value types, events and one protocol."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from app.approvals.api import ProposalState
from app.errors import ErrorInfo
from app.model.api import Check, Kind, Stages, Verdict


@dataclass(frozen=True, slots=True)
class Conflict:
    """An earlier lesson that says something else about the same question."""

    lesson: str
    prompt: str
    answer: str


class Resolution(StrEnum):
    """What to do about a conflict. Cancelling is declining the card."""

    REPLACE = "replace"
    KEEP_BOTH = "keep_both"


@dataclass(frozen=True, slots=True)
class CardView:
    """An approval card, at any point of its life."""

    id: str
    """Proposal id."""
    chat: str
    after: str
    """Id of the message that the card stands below."""
    state: ProposalState
    why: str
    """What was noticed, in one plain sentence."""
    prompt: str
    answer: str
    conflict: Conflict | None
    stage: str = ""
    """Plain words for what is going on: "learning", "checking", "taking it into use"."""
    share: float = 0.0
    """Progress over all stages, 0..1."""
    seconds_left: float = 0.0
    title: str = ""
    """"Learned: your dog's name"."""
    outcome_words: str = ""
    """"Version 3 is in use. This chat carried on in it.", or why it was not learned."""
    checks: tuple[Check, ...] = ()
    suggestions: tuple[str, ...] = ()
    version: int | None = None
    commit: str | None = None
    seconds: float = 0.0
    can_undo: bool = False
    error: ErrorInfo | None = None


@dataclass(frozen=True, slots=True)
class VersionView:
    """One row of the timeline, newest first; rejected lessons stand in it too."""

    id: str
    """Commit id; for a rejected lesson the proposal id."""
    number: int | None
    """None for a rejected lesson."""
    title: str
    time: datetime
    source: str
    """Title of the conversation it came from, or ""."""
    note: str
    """"in use · 1 lesson · all checks passed", "would have changed three other capitals"."""
    active: bool
    rejected: bool
    base: bool
    available: bool
    """False if an object that it needs is missing or damaged."""


@dataclass(frozen=True, slots=True)
class LessonView:
    """One entry of the ledger."""

    id: str
    kind: Kind
    prompt: str
    answer: str
    learned: datetime
    commit: str
    active: bool
    """Whether the version in use holds it."""


@dataclass(frozen=True, slots=True)
class CardChanged:
    """A card appeared or moved on."""

    card: CardView


@dataclass(frozen=True, slots=True)
class VersionsChanged:
    """The timeline or the version in use changed."""

    active_number: int


LearningEvent = CardChanged | VersionsChanged


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a person approved."""

    prompt: str
    answer: str
    rejected: str | None = None
    """The answer that was corrected, if there was one."""


@dataclass(frozen=True, slots=True)
class Taught:
    """How one lesson ended, for scripts and tests."""

    proposal: str
    state: ProposalState
    commit: str | None
    verdict: Verdict | None
    stages: Stages
    error: ErrorInfo | None


class Learning(Protocol):
    """The learning use cases. Everything that would change weights asks developer mode first (DeniedError)."""

    async def cards(self, chat: str) -> list[CardView]:
        """Return every card of a conversation, oldest first."""
        ...

    async def opened(self, card: str) -> None:
        """A card is on screen: get ready to learn it, unless learning is locked."""
        ...

    async def wanted(self, card: str) -> None:
        """The person wants it learned and is on the way to unlocking: get ready meanwhile. No weights change."""
        ...

    async def approve(self, card: str, resolution: Resolution | None = None) -> CardView:
        """Queue the lesson. Raises DeniedError if locked or over budget, UserError if a conflict is unresolved."""
        ...

    async def reword(self, card: str, prompt: str, answer: str) -> CardView:
        """Change what would be learned, before approval; also revives a rejected card as a new proposal."""
        ...

    async def decline(self, card: str, *, never: bool = False) -> CardView:
        """Not now, or never for this."""
        ...

    async def cancel(self, card: str) -> CardView:
        """Stop a lesson that is being learned; nothing of it stays."""
        ...

    async def undo(self, card: str) -> CardView:
        """Go back to the version before this lesson, exactly."""
        ...

    async def versions(self) -> list[VersionView]:
        """Return the timeline, newest first, the base last."""
        ...

    async def use(self, commit: str) -> None:
        """Make this version the one in use; instant, logged, and itself reversible."""
        ...

    async def ask_version(self, commit: str, prompt: str) -> str:
        """Ask a past version one question, greedily, without changing the version in use."""
        ...

    async def lessons(self) -> list[LessonView]:
        """Return the ledger, oldest first."""
        ...

    async def forget(self, lesson: str) -> Taught:
        """Take a lesson out of the ledger and rebuild the weights without it."""
        ...

    async def teach(self, lesson: Lesson, *, approve: bool) -> Taught:
        """Propose a lesson from outside a conversation and, if asked, see it through to its end."""
        ...
