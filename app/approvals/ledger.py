"""The ledger: every lesson a person approved, what the model is supposed to know.

Lessons are added once and never removed; which of them a version holds is the lineage's to say, so callers pass the
ids that the version in use holds. Order is ``position``, never time. Knows no model.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from sqlmodel import Session, col, func, select

from app.approvals.proposals import same_words
from app.approvals.words import alike
from app.clock import Clock
from app.errors import UserError
from app.store.database import Database
from app.store.tables import LessonRow, ProposalRow

_SAME_QUESTION = 0.99


@dataclass(frozen=True, slots=True)
class Entry:
    """What goes into the ledger beside the proposal it comes from."""

    kind: str
    """A value of ``model.api.Kind``."""
    keys: Sequence[str]
    """Words that carry the lesson."""
    supersedes: str | None = None
    """Lesson that this one replaces."""


class Ledger:
    """Reads and adds lessons."""

    def __init__(
        self, database: Database, clock: Clock, *, new_id: Callable[[], str] = lambda: uuid.uuid4().hex
    ) -> None:
        self._database = database
        self._clock = clock
        self._new_id = new_id

    def add(self, proposal: ProposalRow, entry: Entry) -> LessonRow:
        """Add the lesson of a proposal; adding it again returns the one that is there."""
        with self._database.session() as session:
            if (known := _of_proposal(session, proposal.id)) is not None:
                return known
            if entry.supersedes is not None:
                _get(session, entry.supersedes)
            last = session.exec(select(func.max(LessonRow.position))).one()
            row = LessonRow(
                id=self._new_id(),
                proposal=proposal.id,
                conversation=proposal.conversation,
                kind=entry.kind,
                prompt=proposal.prompt,
                answer=proposal.answer,
                rejected=proposal.rejected,
                keys=json.dumps(list(entry.keys), ensure_ascii=False),
                learned=self._clock.now(),
                position=(last or 0) + 1,
                supersedes=entry.supersedes,
            )
            session.add(row)
            return row

    def get(self, lesson: str) -> LessonRow:
        """Return one lesson. Raises UserError if it does not exist."""
        with self._database.session() as session:
            return _get(session, lesson)

    def all(self) -> list[LessonRow]:
        """Return every lesson ever approved, oldest first."""
        with self._database.session() as session:
            return list(session.exec(select(LessonRow).order_by(col(LessonRow.position))))

    def active(self, held: Collection[str]) -> list[LessonRow]:
        """Return the lessons among these ids, oldest first: those that a version holds."""
        wanted = set(held)
        return [row for row in self.all() if row.id in wanted]

    def of_proposal(self, proposal: str) -> LessonRow | None:
        """Return the lesson that a proposal became, if it did."""
        with self._database.session() as session:
            return _of_proposal(session, proposal)

    def attach_commit(self, lesson: str, commit: str) -> LessonRow:
        """Note the version that first held a lesson; a later one does not change it."""
        with self._database.session() as session:
            row = _get(session, lesson)
            row.commit = row.commit or commit
            session.add(row)
            return row

    def contradicting(self, prompt: str, answer: str, held: Collection[str]) -> LessonRow | None:
        """Return the newest of these lessons that answers the same question with something else.

        The same question means the same words of meaning; telling other wordings apart needs an encoder.
        """
        for row in reversed(self.active(held)):
            same = same_words(row.prompt) == same_words(prompt) or alike(row.prompt, prompt) > _SAME_QUESTION
            if same and same_words(row.answer) != same_words(answer):
                return row
        return None


def keys_of(lesson: LessonRow) -> tuple[str, ...]:
    """Return the words that carry a lesson."""
    return tuple(json.loads(lesson.keys))


def _get(session: Session, lesson: str) -> LessonRow:
    row = session.get(LessonRow, lesson)
    if row is None:
        raise UserError("find the lesson", lesson, "There is no such lesson.")
    return row


def _of_proposal(session: Session, proposal: str) -> LessonRow | None:
    return session.exec(select(LessonRow).where(LessonRow.proposal == proposal)).first()
