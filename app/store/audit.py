"""The audit log: append-only, hash-linked, fsynced entry by entry; verifiable by itself.

``audit/log`` holds one entry a line (see ``entries.py``). ``audit/checkpoint`` says how many there were last and the
hash of the last one; it is written without fsync and may be behind, never ahead, of what an honest disk kept.

An appended entry is durable when ``append`` returns. A torn end is cut when the log is opened, and an entry
"recovered" says so. A changed log is never repaired: it is *locked*, every append is refused with the first index
that does not hold, and reading goes on. Order is ``seq``, never time.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.clock import Clock
from app.errors import AppError, KnownError, VerificationError
from app.store.canonical import digest
from app.store.disk import disk_errors, from_os_error
from app.store.entries import GENESIS, Entry, Reading, make_entry, read_log, to_line
from app.store.files import Files, make_folders

RECOVERED = "recovered"
"""Kind of the entry that says that a torn end was cut."""

_CHECKPOINT = re.compile(rb"(\d{1,15}) ([0-9a-f]{64}) [0-9a-f]{64}\n")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a log had come: what a second copy, or another device, can be held against."""

    count: int
    hash: str
    """Of entry ``count - 1``; GENESIS if there was none."""


class AuditLog:
    """The log of one home, read into memory; one writer.

    Attributes:
        notes: Plain sentences about what opening it has repaired or found.
    """

    def __init__(self, folder: Path, files: Files, clock: Clock, *, read_only: bool = False) -> None:
        """Use ``open``, which reads what is there.

        Args:
            folder: The home's ``audit``.
            files: The disk.
            clock: For the times that people read.
            read_only: Whether the home cannot be written: nothing is repaired, appends are refused.
        """
        self._path = folder / "log"
        self._checkpoint_path = folder / "checkpoint"
        self._files = files
        self._clock = clock
        self._read_only = read_only
        self._entries: list[Entry] = []
        self._size_bytes = 0
        self._spoilt = False
        self._locked: AppError | None = None
        self.notes: list[str] = []

    @classmethod
    def open(cls, folder: Path, files: Files, clock: Clock, *, read_only: bool = False) -> AuditLog:
        """Read the log, cut a torn end, lock a changed one. Raises KnownError if the disk refuses."""
        log = cls(folder, files, clock, read_only=read_only)
        log._load()
        return log

    @property
    def entries(self) -> Sequence[Entry]:
        """All entries that are sound by themselves, oldest first."""
        return self._entries

    @property
    def whole(self) -> bool:
        """Whether every entry that is known to have stood here is here, unchanged: what it names is all there is."""
        lost = (entry.payload.get("missing") for entry in self._entries if entry.kind == RECOVERED)
        return not isinstance(self._locked, VerificationError) and not any(lost)

    @property
    def locked(self) -> AppError | None:
        """Why nothing may be appended; None if it may."""
        return self._locked

    def checkpoint(self) -> Checkpoint:
        """Return how far this log has come."""
        return Checkpoint(len(self._entries), self._entries[-1].hash if self._entries else GENESIS)

    def require_unlocked(self) -> None:
        """Raise the reason if nothing may be appended."""
        if self._locked is not None:
            raise self._locked

    def append(self, kind: str, payload: dict[str, Any]) -> Entry:
        """Add an entry; it is durable when this returns.

        Raises: the reason of the lock, or KnownError if the disk refuses: then the entry is not in the log.
        """
        self.require_unlocked()
        at = self.checkpoint()
        entry = make_entry(at.count, self._clock.now().isoformat(), kind, payload, at.hash)
        line = to_line(entry)
        with disk_errors("write to the history", kind):
            if self._spoilt:
                self._cut_back()
            self._write_or_cut_back(line)
        self._entries.append(entry)
        self._size_bytes += len(line)
        self._note_checkpoint()
        return entry

    def verify(self) -> None:
        """Read the log again from disk and check it from its first entry.

        (1) Every line is a canonical entry whose hash is right, (2) whose ``seq`` is its index, (3) and that names
        the entry before it; (4) nothing stands behind the last one; (5) the last checkpoint is part of it;
        (6) it is what this process wrote.

        Raises: VerificationError naming the first index that does not hold, KnownError if it cannot be read.
        """
        reading = self._read()
        bad = _first_bad(reading, self._last_checkpoint())  # (1) (2) (3) (5)
        if bad is not None:
            raise _changed(bad)
        if reading.torn or len(reading.entries) < len(self._entries):  # (4)
            raise _changed(len(reading.entries))
        for ours, stored in zip(self._entries, reading.entries, strict=False):  # (6)
            if ours.hash != stored.hash:
                raise _changed(ours.seq)

    def extends(self, checkpoint: Checkpoint) -> None:
        """Check that this log is a continuation of the one that stood at ``checkpoint``.

        Raises: VerificationError if it is shorter, or went another way: two copies were continued apart.
        """
        ours = [GENESIS, *(entry.hash for entry in self._entries)]
        if checkpoint.count >= len(ours) or ours[checkpoint.count] != checkpoint.hash:
            raise VerificationError(
                "match this history with an earlier state of it",
                f"entry {checkpoint.count - 1}",
                "Two copies were continued apart. They stay two branches; nothing is merged.",
            )

    def fork_point(self, other: Sequence[Entry]) -> int:
        """Return how many entries this log and another have in common from the start."""
        same = 0
        for ours, theirs in zip(self._entries, other, strict=False):
            if ours.hash != theirs.hash:
                break
            same += 1
        return same

    # --- opening

    def _load(self) -> None:
        reading = self._read()
        mark = self._last_checkpoint()
        self._entries = list(reading.entries)
        self._size_bytes = reading.size_bytes
        bad = _first_bad(reading, mark)
        if bad is not None:
            self._locked = _changed(bad)
            self.notes.append(f"The history was changed outside the app at entry {bad}. Learning is locked.")
        elif self._read_only:
            self._locked = KnownError("write to the history", hint="This home can only be read.", retryable=False)
        else:
            self._repair(reading, missing=mark.count - len(reading.entries))

    def _repair(self, reading: Reading, *, missing: int) -> None:
        """Cut a torn end and say so in the log; ``missing`` entries are known to have stood there."""
        if reading.torn:
            with disk_errors("repair the history", "its last entry"):
                self._files.truncate(self._path, reading.size_bytes)
                self._files.sync(self._path)
        if reading.torn or missing > 0:
            self.append(RECOVERED, {"cut": reading.torn, "missing": max(missing, 0)})
            self.notes.append(_recovered_words(missing))

    def _read(self) -> Reading:
        try:
            return read_log(self._files.read(self._path))
        except FileNotFoundError:
            return read_log(b"")
        except OSError as error:
            raise from_os_error(error, "read the history", self._path.name) from error

    # --- writing

    def _write_or_cut_back(self, line: bytes) -> None:
        try:
            self._write(line)
        except OSError:
            with contextlib.suppress(OSError):
                self._cut_back()
            raise

    def _write(self, line: bytes) -> None:
        if not self._entries and not self._files.exists(self._path):
            make_folders(self._files, self._path.parent)
            self._files.write(self._path, b"")
        if not self._entries:
            self._files.sync_folder(self._path.parent)
        if self._files.size_bytes(self._path) != self._size_bytes:
            raise _foreign_write()
        self._files.append(self._path, line)
        self._files.sync(self._path)

    def _cut_back(self) -> None:
        """Cut off what a failed write may have left. Until that has worked, nothing more is appended."""
        self._spoilt = True
        if self._files.exists(self._path):
            self._files.truncate(self._path, self._size_bytes)
            self._files.sync(self._path)
        self._spoilt = False

    def _note_checkpoint(self) -> None:
        """Leave a mark of how far the log has come. Without fsync: it may be old or torn, and then says nothing."""
        at = self.checkpoint()
        with contextlib.suppress(OSError):
            self._files.write(self._checkpoint_path, _mark(at))

    def _last_checkpoint(self) -> Checkpoint:
        """Return the mark last left; one that a power cut damaged says nothing."""
        try:
            found = _CHECKPOINT.fullmatch(self._files.read(self._checkpoint_path))
        except OSError:
            found = None
        if found:
            at = Checkpoint(int(found[1]), found[2].decode("ascii"))
            if _mark(at) == found[0]:
                return at
        return Checkpoint(0, GENESIS)


def _mark(at: Checkpoint) -> bytes:
    """Return the checkpoint file's content; its last word tells a torn one, half old and half new, from a whole one."""
    words = f"{at.count} {at.hash}"
    return f"{words} {digest(words.encode('ascii'))}\n".encode("ascii")


def _first_bad(reading: Reading, mark: Checkpoint) -> int | None:
    """Return the first index that does not hold: within the log itself, or against the last checkpoint."""
    if reading.bad is not None:
        return reading.bad
    if 0 < mark.count <= len(reading.entries) and reading.entries[mark.count - 1].hash != mark.hash:
        return mark.count - 1
    return None


def _changed(index: int) -> VerificationError:
    hint = "It was changed outside the app. Answers still work; learning is locked. Bring back the audit folder."
    return VerificationError("verify the history", f"entry {index}", hint)


def _foreign_write() -> KnownError:
    hint = "Something else wrote to it. Close other programs that use this home, then start Ownmind again."
    return KnownError("write to the history", "audit/log", hint)


def _recovered_words(missing: int) -> str:
    if missing > 0:
        return f"The end of the history was lost ({missing} entries). It continues from the last sound entry."
    return "The history ended in an unfinished entry, which was removed."
