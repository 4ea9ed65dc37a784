"""The home folder: where everything stands, and the store that opens it.

``Home`` only knows paths. ``Store`` is an opened home: one instance, temporary files cleared away, a torn history
mended, a damaged database brought back. If the folder cannot be written, it opens read-only and says why.
"""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from app.clock import Clock
from app.store.audit import AuditLog
from app.store.collect import Collected, Collector
from app.store.database import Database
from app.store.disk import READ_ONLY_CODES, disk_errors
from app.store.files import TEMPORARY_PREFIX, Files, RealFiles, make_folders
from app.store.lock import HomeLock
from app.store.objects import Objects
from app.store.refs import Refs


@dataclass(frozen=True, slots=True)
class Home:
    """The paths of one home; see ``docs/formats.md``."""

    root: Path

    @property
    def database(self) -> Path:
        """Conversations, messages, signals, proposals, lessons, settings."""
        return self.root / "ownmind.db"

    @property
    def backups(self) -> Path:
        """Copies of the database, and damaged ones set aside."""
        return self.root / "backups"

    @property
    def objects(self) -> Path:
        """Immutable blobs named by SHA-256."""
        return self.root / "objects"

    @property
    def refs(self) -> Path:
        """Heads, tags, reflogs."""
        return self.root / "refs"

    @property
    def audit(self) -> Path:
        """The hash-linked history."""
        return self.root / "audit"

    @property
    def bases(self) -> Path:
        """One folder a base, named by passport."""
        return self.root / "bases"

    @property
    def serving(self) -> Path:
        """Adapter files as the engine loads them; rebuildable."""
        return self.root / "serving"

    @property
    def cache(self) -> Path:
        """Prefix states and indexes; rebuildable."""
        return self.root / "cache"

    @property
    def logs(self) -> Path:
        """Rotating logs; never message text."""
        return self.root / "logs"

    @property
    def work(self) -> Path:
        """Files of jobs under way; emptied at start."""
        return self.root / "work"

    @property
    def lock(self) -> Path:
        """Held by the running instance."""
        return self.root / "lock"

    @property
    def condemned(self) -> Path:
        """Objects that the next session may remove."""
        return self.root / "condemned"

    def folders(self) -> tuple[Path, ...]:
        """Return the folders that a home has."""
        return (
            *(self.backups, self.objects, self.refs, self.audit, self.bases),
            *(self.serving, self.cache, self.logs, self.work),
        )


class Store:
    """An opened home.

    Attributes:
        home: Where everything stands.
        files: The disk.
        objects: The blobs.
        refs: The pointers.
        audit: The history.
        database: The database.
        read_only: Why nothing can be written, in a plain sentence; None if it can.
        notes: Plain sentences about what opening has repaired or found, for the person.
    """

    def __init__(self, home: Home, clock: Clock, *, files: Files, read_only: str | None, lock: HomeLock | None) -> None:
        """Use ``open``, which takes the lock and finds out whether the home can be written."""
        self.home = home
        self.files = files
        self.read_only = read_only
        self._lock = lock
        self.objects = Objects(home.objects, files)
        self.refs = Refs(home.refs, files, clock)
        self.audit = AuditLog.open(home.audit, files, clock, read_only=read_only is not None)
        self.database = Database(home.database, clock, files=files, read_only=read_only is not None)
        self._collector = Collector(self.objects, home.condemned, files, uuid.uuid4().hex)
        self.notes = [*([read_only] if read_only else []), *self.database.notes]

    @classmethod
    def open(cls, home: Home, clock: Clock, *, files: Files | None = None) -> Store:
        """Open a home, or make one.

        Raises: DeniedError if another instance has it open; KnownError (disk, newer schema); VerificationError
            (a damaged database without a good copy).
        """
        files = files or RealFiles()
        read_only = _why_read_only(home, files)
        if read_only is not None:
            return cls(home, clock, files=files, read_only=read_only, lock=None)
        lock = HomeLock(home.lock)
        try:
            _clear_leftovers(home, files)
            return cls(home, clock, files=files, read_only=None, lock=lock)
        except BaseException:
            lock.release()
            raise

    def tidy(self, named: AbstractSet[str]) -> Collected:
        """Do what can wait until the window is up: back up the database, collect unused objects.

        Nothing is collected once entries of the history were lost or changed.

        Args:
            named: Digests of all objects that history, lessons or jobs name.

        Raises: KnownError if the disk refuses.
        """
        if self.read_only is not None:
            return Collected((), ())
        self.database.backup_if_due()
        if not self.audit.whole:  # lost entries name objects too, and may be brought back
            return Collected((), ())
        return self._collector.run(named)

    def close(self) -> None:
        """Close the database and let another instance in. Safe to call twice."""
        self.database.close()
        if self._lock is not None:
            self._lock.release()


def _why_read_only(home: Home, files: Files) -> str | None:
    """Make the folders and try to write; return why not, in a plain sentence, or None."""
    probe = home.root / f"{TEMPORARY_PREFIX}probe"
    try:
        for folder in (home.root, *home.folders()):
            make_folders(files, folder)
        files.write(probe, b"")
        files.unlink(probe)
    except OSError as error:
        if error.errno in READ_ONLY_CODES and files.exists(home.root):
            return "This home can only be read: answers work, nothing is saved and nothing can be learned."
        with disk_errors("open the home folder", home.root.name):
            raise
    return None


def _clear_leftovers(home: Home, files: Files) -> None:
    """Remove what a crash left and nothing names: temporary files, and the files of jobs, which begin anew."""
    folders = (home.root, home.refs / "heads", home.refs / "tags", home.audit, home.backups)
    standing = [folder / name for folder in folders for name in files.list(folder) if name.startswith(TEMPORARY_PREFIX)]
    for path in (*standing, *Objects(home.objects, files).leftovers()):
        with contextlib.suppress(OSError):
            files.unlink(path)
    for path in home.work.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
