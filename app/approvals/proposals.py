"""The proposals of a home: which cards exist, and every move of theirs.

Invariants:
- At most one card that can still be decided stands for one answer, and for one prompt.
- A move follows ``TRANSITIONS``, is one row update and one audit entry; if either fails, neither is kept.
- What was declined "never for this" is not proposed again. Only a hash of the prompt is kept for that.

Knows no model: whether a lesson contradicts an earlier one is found out by the caller and stored with ``conflict``.
All methods run on the thread that owns the database, and raise KnownError if the disk refuses.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Collection
from typing import Any

from sqlmodel import Session, col, func, select

from app.approvals.api import TRANSITIONS, Draft, ProposalState, Signal
from app.approvals.drafts import may_hold
from app.approvals.words import tidy
from app.clock import Clock
from app.errors import BugError, ErrorInfo, UserError
from app.store.database import Database
from app.store.tables import LessonRow, ProposalRow, SettingRow, SignalRow

Audit = Callable[[str, dict[str, Any]], object]
"""Append one entry (kind, payload without message text) to the audit log; durable when it returns."""

_S = ProposalState
OPEN = frozenset({_S.SURFACED, _S.DECLINED})
"""Not decided for good: a better proposal may take their place."""
UNDER_WAY = frozenset({_S.APPROVED, _S.QUEUED, _S.TRAINING, _S.GATING, _S.COMMITTED, _S.ACTIVE})
LEARNED = frozenset({_S.PROVEN, _S.UNDONE})
ENDED_BADLY = frozenset({_S.REJECTED, _S.FAILED, _S.CANCELLED})


def same_words(text: str) -> str:
    """Return the form in which two prompts or answers count as the same."""
    return tidy(text).casefold().rstrip(" .!?…")


class Proposals:
    """Stores proposals and moves them from state to state."""

    def __init__(
        self,
        database: Database,
        audit: Audit,
        clock: Clock,
        *,
        held: Callable[[], Collection[str]] | None = None,
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        """Use these parts.

        Args:
            database: Where the rows are.
            audit: Takes one entry a move.
            clock: For the times that people read.
            held: Ids of the lessons that the version in use holds; without it all lessons count as known.
            new_id: Makes ids.
        """
        self._database = database
        self._audit = audit
        self._clock = clock
        self._held = held
        self._new_id = new_id

    # --- noticing

    def surface(self, draft: Draft, signal: Signal, *, conflict: str | None = None) -> ProposalRow | None:
        """Store what a signal suggests as a card, unless there is a reason not to; then return None.

        Reasons: it was declined for ever; it is on a card or learned already; something is being learned, or was
        learned, from the same answer. Older undecided cards for the same answer or prompt are superseded.

        Args:
            draft: The candidate.
            signal: Where it comes from; the card stands below ``signal.after`` or else below the answer.
            conflict: Id of an earlier lesson that says something else.
        """
        with self._database.session() as session:
            if self._is_unwanted(session, draft, signal):
                return None
            self._note_signal(session, signal)
            for old in _rivals(session, draft, signal):
                self._step(session, old, _S.SUPERSEDED)
            place = signal.after or signal.message
            return self._add(session, self._new_row(signal.chat, place, draft, conflict))

    def _is_unwanted(self, session: Session, draft: Draft, signal: Signal) -> bool:
        if session.get(SettingRow, _never(draft.prompt)) is not None:
            return True
        rows = _same_prompt(session, draft.prompt)
        if any(_says_same(row, draft) and row.state in {*OPEN, *UNDER_WAY} - {_S.DECLINED} for row in rows):
            return True
        if self._knows(session, draft):
            return True
        here = _at(session, signal)
        if any(row.state in {*UNDER_WAY, *LEARNED} for row in here):
            return True
        return any(row.state == _S.DECLINED and _says_same(row, draft) for row in here)

    def _knows(self, session: Session, draft: Draft) -> bool:
        """Whether the version in use was taught exactly this."""
        wanted = (same_words(draft.prompt), same_words(draft.answer))
        held = None if self._held is None else set(self._held())
        return any(
            (same_words(lesson.prompt), same_words(lesson.answer)) == wanted
            for lesson in session.exec(select(LessonRow))
            if held is None or lesson.id in held
        )

    def _note_signal(self, session: Session, signal: Signal) -> None:
        row = SignalRow(
            id=self._new_id(),
            message=signal.message,
            conversation=signal.chat,
            kind=signal.kind,
            created=self._clock.now(),
        )
        session.add(row)

    def _add(self, session: Session, row: ProposalRow, **more: str) -> ProposalRow:
        last = session.exec(select(func.max(ProposalRow.position))).one()
        row.position = (last or 0) + 1
        session.add(row)
        session.flush()
        self._audit("proposal", {"id": row.id, "from": "", "to": row.state, **more})
        return row

    def _new_row(self, chat: str, message: str, draft: Draft, conflict: str | None) -> ProposalRow:
        return ProposalRow(
            id=self._new_id(),
            conversation=chat,
            message=message,
            state=_S.SURFACED,
            created=self._clock.now(),
            position=0,
            prompt=draft.prompt,
            answer=draft.answer,
            rejected=draft.rejected,
            why=draft.why,
            score=draft.score,
            conflict=conflict,
        )

    # --- reading

    def get(self, proposal: str) -> ProposalRow:
        """Return one proposal. Raises UserError if it does not exist."""
        with self._database.session() as session:
            return _get(session, proposal)

    def of_chat(self, chat: str) -> list[ProposalRow]:
        """Return the proposals of a conversation that are still shown, oldest first."""
        with self._database.session() as session:
            query = select(ProposalRow).where(
                ProposalRow.conversation == chat, col(ProposalRow.state).not_in([_S.SUPERSEDED, _S.EXPIRED])
            )
            return list(session.exec(query.order_by(col(ProposalRow.position))))

    def in_states(self, states: Collection[ProposalState]) -> list[ProposalRow]:
        """Return all proposals in any of these states, oldest first."""
        with self._database.session() as session:
            query = select(ProposalRow).where(col(ProposalRow.state).in_(list(states)))
            return list(session.exec(query.order_by(col(ProposalRow.position))))

    def standing(self, prompt: str, answer: str) -> ProposalRow | None:
        """Return the card that asks for exactly this or is being learned; None if there is none."""
        wanted = Draft(prompt, answer, "", "", 0.0)
        with self._database.session() as session:
            rows = [row for row in _same_prompt(session, prompt) if row.state != _S.DECLINED]
            return next((row for row in rows if _says_same(row, wanted)), None)

    # --- deciding and moving on

    def move(
        self,
        proposal: str,
        to: ProposalState,
        *,
        commit: str | None = None,
        evidence: str | None = None,
        stages: str | None = None,
        error: ErrorInfo | None = None,
        resolution: str | None = None,
    ) -> ProposalRow:
        """Move a proposal on and record what came with it; what is None stays as it was.

        Args:
            proposal: Its id.
            to: The next state.
            commit: The version that the lesson became.
            evidence: The verdict as JSON.
            stages: Seconds of each stage as JSON.
            error: Why it failed. A move to QUEUED clears an earlier one.
            resolution: What the person chose about a conflict.

        Raises: UserError if it does not exist; BugError if ``TRANSITIONS`` does not allow the move.
        """
        found = {"commit": commit, "evidence": evidence, "stages": stages, "resolution": resolution}
        with self._database.session() as session:
            row = _get(session, proposal)
            for name, value in found.items():
                if value is not None:
                    setattr(row, name, value)
            if error is not None or to is _S.QUEUED:
                row.error = json.dumps(error.as_dict()) if error else None
            self._step(session, row, to)
            return row

    def decline(self, proposal: str, *, never: bool = False) -> ProposalRow:
        """Decline a card: for now, or for this prompt for ever. Declining twice changes nothing more."""
        with self._database.session() as session:
            row = _get(session, proposal)
            if never:
                session.merge(SettingRow(name=_never(row.prompt), value=json.dumps(row.id)))
            if row.state != _S.DECLINED:
                self._step(session, row, _S.DECLINED)
            return row

    def reword(self, proposal: str, prompt: str, answer: str, *, conflict: str | None = None) -> ProposalRow:
        """Change what would be learned.

        An undecided card changes in place. One that was rejected, failed or cancelled is superseded by a new card
        below the same message, which is returned.

        Raises: UserError if a text is empty or holds a secret, or if the card can no longer be changed.
        """
        require_lesson_text(prompt, answer)
        with self._database.session() as session:
            row = _get(session, proposal)
            if row.state in OPEN:
                row.prompt, row.answer, row.conflict = prompt.strip(), answer.strip(), conflict
                session.add(row)
                return row
            if row.state not in ENDED_BADLY:
                raise UserError("change the wording", "this lesson", "It has been decided already.")
            self._step(session, row, _S.SUPERSEDED)
            draft = Draft(prompt.strip(), answer.strip(), row.rejected, row.why, row.score)
            again = self._new_row(row.conversation, row.message, draft, conflict)
            return self._add(session, again, instead_of=row.id)

    def _step(self, session: Session, row: ProposalRow, to: ProposalState) -> None:
        before = ProposalState(row.state)
        if to not in TRANSITIONS[before]:
            raise BugError("move a proposal on", row.id, f"From {before} there is no way to {to}.")
        row.state = to
        session.add(row)
        session.flush()
        self._audit("proposal", {"id": row.id, "from": before.value, "to": to.value})


def require_lesson_text(prompt: str, answer: str) -> None:
    """Raise UserError, in plain words, if a prompt or an answer must not become a lesson."""
    op = "take this as a lesson"
    if not prompt.strip() or not answer.strip():
        raise UserError(op, "the wording", "Both the question and the answer need some text.")
    if not may_hold(prompt) or not may_hold(answer):
        hint = "It looks as if it held a password, a key or a number that should stay secret. A model cannot keep one."
        raise UserError(op, "the wording", hint)


# --- questions to the tables ----------------------------------------------------------------------------------------


def _never(prompt: str) -> str:
    return f"never-for/{hashlib.sha256(same_words(prompt).encode()).hexdigest()}"


def _get(session: Session, proposal: str) -> ProposalRow:
    row = session.get(ProposalRow, proposal)
    if row is None:
        raise UserError("find the card", proposal, "There is no such card.")
    return row


def _says_same(row: ProposalRow, draft: Draft) -> bool:
    return same_words(row.prompt) == same_words(draft.prompt) and same_words(row.answer) == same_words(draft.answer)


def _same_prompt(session: Session, prompt: str) -> list[ProposalRow]:
    """Return the proposals of any conversation that ask the same."""
    wanted = same_words(prompt)
    alive = {*OPEN, *UNDER_WAY}
    rows = session.exec(select(ProposalRow).where(col(ProposalRow.state).in_(list(alive))))
    return [row for row in rows if same_words(row.prompt) == wanted]


def _at(session: Session, signal: Signal) -> list[ProposalRow]:
    """Return the proposals that came from the same answer."""
    places = [place for place in (signal.message, signal.after) if place]
    return list(session.exec(select(ProposalRow).where(col(ProposalRow.message).in_(places)))) if places else []


def _rivals(session: Session, draft: Draft, signal: Signal) -> list[ProposalRow]:
    """Return what a new card takes the place of."""
    here = [row for row in _at(session, signal) if row.state in {*OPEN, *ENDED_BADLY}]
    elsewhere = [row for row in _same_prompt(session, draft.prompt) if row.state in OPEN]
    return list({row.id: row for row in (*here, *elsewhere)}.values())
