"""Cards as views see them, drawn from a proposal's row and what the loop knows of it right now."""

from __future__ import annotations

import json
from dataclasses import dataclass

from app.approvals.api import ProposalState
from app.approvals.ledger import Ledger
from app.errors import ErrorInfo
from app.learning.api import CardView, Conflict
from app.learning.ledger_view import lessons_at
from app.learning.topics import topic_of
from app.model.api import Check, Stages, Verdict
from app.model.gate.verdicts import verdict_from_dict
from app.model.lineage.lineage import Lineage
from app.store.tables import ProposalRow

_S = ProposalState
_TITLES = {
    _S.PROVEN: "Learned: {topic}",
    _S.REJECTED: "Not learned: {topic}",
    _S.UNDONE: "Taken back: {topic}",
    _S.FAILED: "Not learned: {topic}",
    _S.CANCELLED: "Stopped: {topic}",
}


@dataclass(frozen=True, slots=True)
class Moment:
    """Where a lesson that is being learned stands."""

    stage: str
    share: float
    seconds_left: float


class Cards:
    """Draws cards."""

    def __init__(self, lineage: Lineage, ledger: Ledger) -> None:
        self._lineage = lineage
        self._ledger = ledger

    def view(self, row: ProposalRow, moment: Moment | None = None) -> CardView:
        """Return one card."""
        state = ProposalState(row.state)
        verdict = verdict_of(row)
        commit = None if row.commit is None else self._lineage.get(row.commit)
        head = self._lineage.head()
        return CardView(
            id=row.id,
            chat=row.conversation,
            after=row.message,
            state=state,
            why=row.why,
            prompt=row.prompt,
            answer=row.answer,
            conflict=self._conflict(row),
            stage=moment.stage if moment else "",
            share=moment.share if moment else 0.0,
            seconds_left=moment.seconds_left if moment else 0.0,
            title=_TITLES.get(state, "").format(topic=topic_of(row.prompt)),
            outcome_words=self._words(row, state, verdict),
            checks=_shown(verdict),
            suggestions=verdict.suggestions if verdict else (),
            version=commit.number if commit else None,
            commit=row.commit,
            seconds=stages_of(row).total,
            can_undo=state is _S.PROVEN and commit is not None and commit.id == head.id,
            error=_error(row),
        )

    def _conflict(self, row: ProposalRow) -> Conflict | None:
        if row.conflict is None:
            return None
        lesson = self._ledger.get(row.conflict)
        return Conflict(lesson.id, lesson.prompt, lesson.answer)

    def _words(self, row: ProposalRow, state: ProposalState, verdict: Verdict | None) -> str:
        if state is _S.PROVEN and row.commit is not None:
            return self._proven_words(row.commit)
        if state is _S.UNDONE:
            return f"Version {self._lineage.head().number} is in use, exactly as it was before."
        if state is _S.REJECTED and verdict is not None:
            error = _error(row)
            return verdict.reason or (f"It was taken back at once: {error.subject}." if error else "")
        return ""

    def _proven_words(self, commit: str) -> str:
        version, head = self._lineage.get(commit), self._lineage.head()
        if version.id == head.id:
            return f"Version {version.number} is in use. This chat carried on in it."
        held = {lesson.id for lesson in lessons_at(self._lineage, self._ledger, head)}
        if set(version.lessons) <= held:
            return f"Learned in version {version.number}. Version {head.number}, in use now, holds it too."
        return f"Learned in version {version.number}. Version {head.number}, in use now, does not hold it."


def verdict_of(row: ProposalRow) -> Verdict | None:
    """Return the stored verdict of a proposal, if it got one."""
    return None if row.evidence is None else verdict_from_dict(json.loads(row.evidence))


def stages_of(row: ProposalRow) -> Stages:
    """Return the stored seconds of each stage."""
    return Stages() if row.stages is None else Stages(**json.loads(row.stages))


def _shown(verdict: Verdict | None) -> tuple[Check, ...]:
    return verdict.checks if verdict else ()


def _error(row: ProposalRow) -> ErrorInfo | None:
    return None if row.error is None else ErrorInfo(**json.loads(row.error))
