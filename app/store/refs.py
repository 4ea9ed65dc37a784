"""Named pointers to versions, moved by compare-and-swap, each with a log of its moves.

``refs/heads/<name>`` holds one digest and a newline. ``refs/log/heads/<name>`` gets a line per move, written before
the move: a power cut may leave a line too many, never one too few. The audit log has the last word on where a head
belongs; see the lineage.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.clock import Clock
from app.errors import BugError, KnownError, VerificationError
from app.store.canonical import canonical
from app.store.disk import disk_errors, from_os_error
from app.store.files import Files, make_folders, write_durably

_NAME = re.compile(r"(heads|tags)/[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_VALUE = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Move:
    """One line of a reflog."""

    old: str | None
    new: str
    reason: str
    time: str
    """ISO 8601, UTC; for people, not for order."""


class Refs:
    """The pointers of one home."""

    def __init__(self, root: Path, files: Files, clock: Clock) -> None:
        self._root = root
        self._files = files
        self._clock = clock

    def get(self, name: str) -> str | None:
        """Return where a ref points; None if there is no such ref.

        Raises: VerificationError if its file holds no digest, KnownError if it cannot be read.
        """
        try:
            data = self._files.read(self._path(name))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise from_os_error(error, "read a pointer", name) from error
        value = data.removesuffix(b"\n").decode("ascii", errors="replace")
        if not _VALUE.fullmatch(value):
            raise VerificationError("read a pointer", name, "Its file is damaged; the history says where it belongs.")
        return value

    def swap(self, name: str, *, expected: str | None, new: str, reason: str) -> None:
        """Move a ref if it still points to ``expected`` (None: if it does not exist).

        Raises: KnownError if it points elsewhere by now, or if the disk refuses; the ref is then where it was.
        """
        if self.get(name) != expected:
            raise KnownError("move a pointer", name, "Something else moved it first. Look again and retry.")
        self.replace(name, new, reason)

    def replace(self, name: str, new: str, reason: str) -> None:
        """Move a ref whatever it holds; only for recovery from the audit log. Raises KnownError as ``swap`` does."""
        if not _VALUE.fullmatch(new):
            raise BugError("move a pointer", "not a SHA-256 digest")
        path = self._path(name)
        with disk_errors("move a pointer", name):
            make_folders(self._files, path.parent)
            self._note(name, new, reason)
            write_durably(self._files, path, new.encode("ascii") + b"\n")

    def names(self) -> list[str]:
        """Return all refs, sorted."""
        found = (f"{kind}/{name}" for kind in ("heads", "tags") for name in self._files.list(self._root / kind))
        return [name for name in found if _NAME.fullmatch(name)]

    def reflog(self, name: str) -> list[Move]:
        """Return the moves of a ref, oldest first; lines damaged by a power cut are left out."""
        try:
            data = self._files.read(self._log_path(name))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise from_os_error(error, "read the log of a pointer", name) from error
        return list(_moves(data))

    def _note(self, name: str, new: str, reason: str) -> None:
        path = self._log_path(name)
        make_folders(self._files, path.parent)
        if not self._files.exists(path):
            self._files.write(path, b"")
            self._files.sync_folder(path.parent)
        line = {"old": self._last(name), "new": new, "reason": reason, "time": self._clock.now().isoformat()}
        # The newline comes first as well, so that a line torn by a power cut cannot spoil this one.
        self._files.append(path, b"\n" + canonical(line) + b"\n")
        self._files.sync(path)

    def _last(self, name: str) -> str | None:
        try:
            return self.get(name)
        except VerificationError:
            return None

    def _path(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise BugError("find a pointer", "not a name of a ref")
        return self._root / name

    def _log_path(self, name: str) -> Path:
        return self._root / "log" / self._path(name).relative_to(self._root)


def _moves(data: bytes) -> Iterator[Move]:
    for line in data.split(b"\n"):
        try:
            fields = json.loads(line)
            yield Move(fields["old"], fields["new"], fields["reason"], fields["time"])
        except (ValueError, KeyError, TypeError):
            continue
