"""Tells, in development, when the window's thread was busy for longer than a frame or three. Never any content."""

from __future__ import annotations

import logging
import time

from PySide6.QtCore import QObject, Qt, QTimer

log = logging.getLogger(__name__)

BEAT_MS = 25
SLOW_S = 0.05


class SlowTurns(QObject):
    """Beats on the window's loop and reports beats that come late. ``worst_s`` is the longest delay so far."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.worst_s = 0.0
        self._last = time.perf_counter()
        timer = QTimer(self, interval=BEAT_MS, timerType=Qt.TimerType.PreciseTimer)
        timer.timeout.connect(self._beat)
        timer.start()

    def _beat(self) -> None:
        now = time.perf_counter()
        late = now - self._last - BEAT_MS / 1000
        self._last = now
        self.worst_s = max(self.worst_s, late)
        if late > SLOW_S:
            log.warning("the window's thread was busy for %.0f ms", 1000 * late)
