"""A lesson as training and gate take it: read from its ledger row, with its exam. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from app.approvals.ledger import keys_of as stored_keys
from app.learning.wordings import Wordings, reword
from app.model.api import Exam, Kind
from app.store.tables import LessonRow


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


def lesson_of(row: LessonRow) -> Lesson:
    """Read a ledger row."""
    return Lesson(row.id, Kind(row.kind), row.prompt, row.answer, stored_keys(row), reword(row.prompt))
