"""How long each stage of a judgement took, and how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.clock import Clock


class Stages:
    """Measures named stages and reports a share of the whole, which never goes back.

    Args:
        clock: Where seconds come from.
        progress: Gets a share in 0..1; None if nobody looks.
    """

    def __init__(self, clock: Clock, progress: Callable[[float], None] | None) -> None:
        self._clock = clock
        self._progress = progress
        self._begun = clock.monotonic()
        self._share = 0.0
        self._seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str, share: float) -> Iterator[Callable[[float], None]]:
        """Measure one stage that takes about ``share`` of the whole; yields what reports progress within it."""
        begun, start = self._clock.monotonic(), self._share

        def report(part: float) -> None:
            self._tell(start + share * min(max(part, 0.0), 1.0))

        yield report
        self._seconds[name] = self._clock.monotonic() - begun
        self._tell(start + share)

    def end(self) -> dict[str, float]:
        """Report the whole and return the seconds of each stage, with their total."""
        self._tell(1.0)
        return {**self._seconds, "total": self._clock.monotonic() - self._begun}

    def _tell(self, share: float) -> None:
        if self._progress is not None and share > self._share:
            self._progress(share)
        self._share = max(self._share, share)
