"""A lesson as training and gate take it: read from its ledger row, with its exam. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from app.approvals.ledger import Entry
from app.approvals.ledger import keys_of as stored_keys
from app.learning.kinds import keys_of, kind_of
from app.learning.wordings import Wordings, reword
from app.model.api import Exam, Kind
from app.store.tables import LessonRow, ProposalRow


@dataclass(frozen=True, slots=True)
class Lesson:
    """What was approved, in its own words and in others."""

    id: str
    kind: Kind
    prompt: str
    answer: str
    keys: tuple[str, ...]
    wordings: Wordings

    def exam(self) -> Exam:
        """Return what the gate asks about it."""
        return Exam(self.id, self.kind, self.wordings.train[0], self.answer, self.keys, self.wordings.held_out)


def lesson_on(card: ProposalRow) -> Lesson:
    """Return the lesson that a card proposes, as it would enter the ledger."""
    kind = kind_of(card.prompt, card.answer)
    return Lesson(card.id, kind, card.prompt, card.answer, _keys(kind, card), reword(card.prompt))


def entry_of(card: ProposalRow) -> Entry:
    """Return what goes into the ledger beside a card's words."""
    kind = kind_of(card.prompt, card.answer)
    replaced = card.conflict if card.resolution == "replace" else None
    return Entry(kind=kind.value, keys=_keys(kind, card), supersedes=replaced)


def _keys(kind: Kind, card: ProposalRow) -> tuple[str, ...]:
    return tuple(keys_of(card.prompt, card.answer)) if kind is Kind.FACT else ()


def lesson_of(row: LessonRow) -> Lesson:
    """Read a ledger row."""
    return Lesson(row.id, Kind(row.kind), row.prompt, row.answer, stored_keys(row), reword(row.prompt))
