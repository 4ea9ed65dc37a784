"""Time as a seam, so that tests can stop it, move it and turn it back."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time for records that people read, monotonic time for durations."""

    def now(self) -> datetime:
        """Return the wall time, in UTC. It may jump backwards: never order records by it."""
        ...

    def monotonic(self) -> float:
        """Return seconds from an arbitrary start; never goes backwards."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        """Return the wall time, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the monotonic clock, in seconds."""
        return time.monotonic()


class FakeClock:
    """A clock that only moves when told to."""

    def __init__(self, start: datetime | None = None) -> None:
        self.wall = start or datetime(2026, 1, 1, tzinfo=UTC)
        self.seconds = 0.0

    def now(self) -> datetime:
        """Return the wall time last set."""
        return self.wall

    def monotonic(self) -> float:
        """Return the seconds last set."""
        return self.seconds
