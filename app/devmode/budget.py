"""The day's budget of weight changes. Pure over the stored spendings.

A day is the person's local date. A clock that goes backwards never refunds: today is never earlier than the latest
day on which anything was spent.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime

from sqlmodel import Session, col, func, select

from app.clock import Clock
from app.store.tables import SpendingRow

LocalDay = Callable[[datetime], date]
"""Turns a moment into the person's date."""


def system_day(moment: datetime) -> date:
    """Return the date in the machine's time zone."""
    return moment.astimezone().date()


def today(session: Session, clock: Clock, local_day: LocalDay = system_day) -> str:
    """Return the day that spendings count for, as an ISO date."""
    latest = session.exec(select(func.max(SpendingRow.day))).one()
    return max(local_day(clock.now()).isoformat(), latest or "")


def spent(session: Session, day: str) -> int:
    """Return how many changes were made on a day."""
    return session.exec(select(func.count(col(SpendingRow.id))).where(SpendingRow.day == day)).one()
