"""One instance a home: a lock that the system drops by itself when its holder dies, however it dies."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from app.errors import DeniedError
from app.store.disk import disk_errors

_PRIVATE = 0o600


class HomeLock:
    """The lock on one home, held until ``release``. The file itself stays: removing it would race."""

    def __init__(self, path: Path) -> None:
        """Take the lock.

        Raises: DeniedError if another instance holds it, with its process id if it wrote one; KnownError (disk).
        """
        with disk_errors("lock the home folder", path.parent.name):
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, _PRIVATE)
        if not _try_lock(self._descriptor):
            holder = os.pread(self._descriptor, 32, 1).decode("ascii", errors="ignore") if hasattr(os, "pread") else ""
            os.close(self._descriptor)
            who = f" (process {holder.strip()})" if holder.strip() else ""
            hint = f"Ownmind is already open with it{who}. Use that window, or close it first."
            raise DeniedError("open the home folder", path.parent.name, hint, retryable=True)
        # The first byte is what Windows locks, so the number behind it stays readable there too. If it cannot be
        # written, the lock holds all the same.
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, f" {os.getpid()}\n".encode("ascii"))

    def release(self) -> None:
        """Let go. Safe to call twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _try_lock(descriptor: int) -> bool:
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415 - only there

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl  # noqa: PLC0415 - not there on Windows

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
