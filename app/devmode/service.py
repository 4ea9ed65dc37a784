"""Developer mode: locked, found, unlocked. The one place that says whether the weights may change.

Invariants:
- Every move is a settings row and an audit entry; if either fails, nothing changed. Locking alone always works: if it
  cannot be stored it holds until the app ends, and the error is raised.
- ``require`` reads what is stored, so locking takes effect at once, also for a lesson that is being learned.
- Clicks are not stored: they count within one session only, like on a phone.

Runs on the thread that owns the database.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from sqlmodel import Session, select

from app.clock import Clock
from app.devmode.api import SENTENCE, Budget, DevState, DevStatus, MachineCheck
from app.devmode.budget import LocalDay, spent, system_day, today
from app.devmode.machine import Machine, Probes, check_machine
from app.errors import DeniedError, UserError
from app.store.database import Database
from app.store.tables import SettingRow, SpendingRow

Audit = Callable[[str, dict[str, Any]], object]
"""Append one entry (kind, payload without floats) to the audit log; durable when it returns."""

CLICKS = 7
MOST_CHANGES_PER_DAY = 1000
LARGEST_SIZE_LIMIT = 0.5

_STATE = "devmode/state"
_BUDGET = "devmode/budget"
_LOCKED_HINT = "Open About and click the version number seven times."
_SPENT_HINT = "Today's {count} changes are used. Go on tomorrow, or raise the limit in developer mode."


class DeveloperMode:
    """Implements ``app.devmode.api.DevMode``."""

    def __init__(
        self,
        database: Database,
        audit: Audit,
        clock: Clock,
        *,
        machine: Machine,
        probes: Probes,
        local_day: LocalDay = system_day,
    ) -> None:
        self._database = database
        self._audit = audit
        self._clock = clock
        self._machine = machine
        self._probes = probes
        self._local_day = local_day
        self._clicks = 0
        self._locked_now = False
        """Locked by hand in this session, whether or not that could be stored."""

    def status(self) -> DevStatus:
        """Return the present state."""
        with self._database.session() as session:
            return self._status(session)

    def click_version(self) -> int:
        """Count one click on the version number; return how many are left before the wizard (0: open it)."""
        self._clicks = min(self._clicks + 1, CLICKS)
        left = CLICKS - self._clicks
        if left == 0:
            with self._database.session() as session:
                if self._state(session) is DevState.LOCKED:
                    self._move(session, DevState.FOUND)
            self._locked_now = False
        return left

    async def check_machine(self) -> list[MachineCheck]:
        """Measure what the wizard shows: memory, disk, backup, the store, the trainer."""
        return await check_machine(self._machine, self._probes)

    def unlock(self, sentence: str, budget: Budget) -> DevStatus:
        """Unlock with a budget; unlocked already, it changes the budget.

        Raises: UserError if the sentence differs or the budget makes no sense, DeniedError if the wizard was never
            found.
        """
        with self._database.session() as session:
            if self._state(session) is DevState.LOCKED:
                raise DeniedError("unlock learning", "developer mode", _LOCKED_HINT)
            if _bare(sentence) != _bare(SENTENCE):
                raise UserError("unlock learning", "the sentence", f"Type exactly: {SENTENCE}")
            _require_sane(budget)
            _put(session, _BUDGET, {"changes_per_day": budget.changes_per_day, "size_limit": budget.size_limit})
            self._move(session, DevState.UNLOCKED, f"{budget.changes_per_day} a day, size {budget.size_limit!r}")
            return self._status(session)

    def lock(self) -> DevStatus:
        """Lock at once. The wizard must be found again. Raises KnownError if that holds for this session only."""
        self._clicks = 0
        self._locked_now = True
        with self._database.session() as session:
            if _state(session) is not DevState.LOCKED:
                self._move(session, DevState.LOCKED)
        return self.status()

    def require(self) -> Budget:
        """Return the budget if one more change is allowed now.

        Raises: DeniedError if learning is locked or today's changes are used; it says what to do.
        """
        status = self.status()
        if status.state is not DevState.UNLOCKED:
            raise DeniedError("change the model", "learning is locked", _LOCKED_HINT)
        if status.changes_left_today <= 0:
            hint = _SPENT_HINT.format(count=status.budget.changes_per_day)
            raise DeniedError("change the model", "today's limit is reached", hint)
        return status.budget

    def spend(self, what: str) -> None:
        """Count one change of the weights against today's budget; one that is counted already stays as it is.

        Args:
            what: What it was for, such as a commit id; no message text.
        """
        with self._database.session() as session:
            if session.exec(select(SpendingRow).where(SpendingRow.what == what)).first() is None:
                day = today(session, self._clock, self._local_day)
                session.add(SpendingRow(day=day, what=what))

    def _status(self, session: Session) -> DevStatus:
        budget = _budget(session)
        used = spent(session, today(session, self._clock, self._local_day))
        return DevStatus(self._state(session), budget, max(budget.changes_per_day - used, 0))

    def _state(self, session: Session) -> DevState:
        return DevState.LOCKED if self._locked_now else _state(session)

    def _move(self, session: Session, to: DevState, budget: str = "") -> None:
        before = _state(session)
        _put(session, _STATE, to.value)
        session.flush()
        self._audit("devmode", {"from": before.value, "to": to.value, "budget": budget})


def _bare(sentence: str) -> str:
    return " ".join(sentence.split()).rstrip(".").rstrip().casefold()


def _require_sane(budget: Budget) -> None:
    if not 1 <= budget.changes_per_day <= MOST_CHANGES_PER_DAY:
        raise UserError("set the budget", "changes a day", f"Choose from 1 to {MOST_CHANGES_PER_DAY}.")
    if not math.isfinite(budget.size_limit) or not 0 < budget.size_limit <= LARGEST_SIZE_LIMIT:
        raise UserError("set the budget", "size of a change", f"Choose a number above 0, up to {LARGEST_SIZE_LIMIT}.")


def _put(session: Session, name: str, value: object) -> None:
    session.merge(SettingRow(name=name, value=json.dumps(value)))


def _state(session: Session) -> DevState:
    """Return the stored state. What cannot be read is locked: it fails closed."""
    row = session.get(SettingRow, _STATE)
    try:
        return DevState(json.loads(row.value)) if row else DevState.LOCKED
    except ValueError:
        return DevState.LOCKED


def _budget(session: Session) -> Budget:
    """Return the stored budget. What cannot be read allows nothing."""
    row = session.get(SettingRow, _BUDGET)
    if row is None:
        return Budget()
    try:
        fields = json.loads(row.value)
        return Budget(int(fields["changes_per_day"]), float(fields["size_limit"]))
    except (ValueError, TypeError, KeyError):
        return Budget(changes_per_day=0)
