"""Remembers across starts of the app which base crashed the engine while it was loaded.

At its start the app loads the last base by itself. If that base crashes the engine, it must not do so again unasked::

    if note.names(base.passport.id):
        ...  # say so, and load only when the person asks
"""

from __future__ import annotations

import contextlib
from pathlib import Path


class CrashNote:
    """One small file. Losing it costs one more crash of a child, so a disk error is no reason to fail."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def names(self, base: str) -> bool:
        """Return whether this base, by passport id, is noted."""
        try:
            return self._path.read_text(encoding="ascii") == base
        except (OSError, ValueError):
            return False

    def write(self, base: str) -> None:
        """Note that loading this base crashed."""
        with contextlib.suppress(OSError):
            self._path.write_text(base, encoding="ascii")

    def clear(self) -> None:
        """Forget it: a base was loaded."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
