"""``ownmind.db``: one connection, one writer, durable at every commit.

SQLite in TRUNCATE journal mode with synchronous FULL: the standard library's SQLite is often one whose WAL mode can
lose commits. Every session takes the file's lock at its beginning, so that waiting for another program happens before
anything was done, and a session that begins also ends. Sessions are short and never held over an ``await``.

Datetimes are stored in UTC and come back aware. Example::

    with database.session() as session:
        session.add(SettingRow(name="theme", value='"dark"'))
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, event
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import StaticPool
from sqlmodel import Session

from app.clock import Clock
from app.errors import AppError, BugError, KnownError
from app.store.backups import Backups
from app.store.dberrors import LOCKED, code_of, database_errors
from app.store.disk import disk_errors
from app.store.files import Files, RealFiles
from app.store.migrations import HEAD
from app.store.prepare import OPEN, prepare, require_known, schema_of
from app.store.utc import store_in_utc

BUSY_TIMEOUT_MS = 5000
_TRIES = 3
_BACKUP_EVERY_S = 3600.0
_SUBJECT = "the conversations file"
_log = logging.getLogger(__name__)

_PRAGMAS = {"foreign_keys": ("ON", 1), "journal_mode": ("TRUNCATE", "truncate"), "synchronous": ("FULL", 2)}
"""What is set, and what SQLite must say afterwards."""


class Database:
    """The database of one home, open.

    Attributes:
        notes: Plain sentences about what opening it has repaired.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        *,
        files: Files | None = None,
        read_only: bool = False,
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
    ) -> None:
        """Open the database; create, upgrade or bring it back first if need be.

        Args:
            path: Where it stands; backups go to ``backups/`` beside it.
            clock: Says when a backup is due.
            files: The disk for everything but SQLite's own pages.
            read_only: Open what is there and change nothing.
            busy_timeout_ms: How long one try waits for another program's lock; there are three tries.

        Raises: KnownError (locked, disk, newer schema), VerificationError (damaged, no good copy).
        """
        files = files or RealFiles()
        self._path = path
        self._clock = clock
        self._read_only = read_only
        self._busy_timeout_ms = busy_timeout_ms
        self._in_session = False
        self._closed = False
        self._changes_saved = 0
        self._saved_at = clock.monotonic()
        self._backups = Backups(path.parent / "backups", files)
        self.notes: list[str] = []
        if read_only:
            self._require_current()
        else:
            with disk_errors(OPEN, path.name):
                self.notes += prepare(path, files, self._backups)
        self._engine = self._make_engine()
        with self.session():
            pass

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Run one transaction: committed and durable at the end of the block, rolled back if it raises.

        Raises: KnownError (locked, disk full, read-only), VerificationError (damaged); BugError if sessions nest.
        """
        if self._in_session:
            raise BugError("use the database", _SUBJECT, "A session began inside another.")
        self._in_session = True
        try:
            with database_errors("use the database", _SUBJECT), self._begun() as session:
                yield session
                session.commit()
        finally:
            self._in_session = False

    def faults(self, *, deep: bool = False) -> list[str]:
        """Return what is broken in the file, in plain sentences; ``deep`` also compares indexes and references."""
        with self.session() as session:
            driver = _driver(session.connection())
            rows = driver.execute("PRAGMA integrity_check" if deep else "PRAGMA quick_check").fetchall()
            orphans = driver.execute("PRAGMA foreign_key_check").fetchall() if deep else []
        found = [f"Broken content: {row[0]}." for row in rows if row[0] != "ok"]
        return found + [f"A row of {row[0]} refers to a missing row of {row[2]}." for row in orphans]

    def backup(self) -> Path:
        """Keep a copy of the database as it is now. Raises KnownError, VerificationError."""
        op = "back up the conversations"
        with disk_errors(op, _SUBJECT), database_errors(op, _SUBJECT), self._engine.connect() as connection:
            driver = _driver(connection)
            copy = self._backups.make(driver)
            self._changes_saved = driver.total_changes
        self._saved_at = self._clock.monotonic()
        return copy

    def backup_if_due(self, *, now: bool = False) -> bool:
        """Back up if anything changed since the last copy, at most once an hour unless ``now``; return whether."""
        late = self._clock.monotonic() - self._saved_at >= _BACKUP_EVERY_S or not self._backups.newest_first()
        if self._read_only or not self._changed() or not (now or late):
            return False
        self.backup()
        return True

    def close(self) -> None:
        """Back up what changed and let go of the file. Safe to call twice. A failing backup does not stop it."""
        if self._closed:
            return
        self._closed = True
        try:
            self.backup_if_due(now=True)
        except AppError as error:
            _log.warning("no backup at close: %s", error)
        self._engine.dispose()

    # --- parts

    def _require_current(self) -> None:
        if not self._path.exists():
            raise KnownError(OPEN, self._path.name, "There are none yet, and this home can only be read.")
        version = schema_of(self._path)
        require_known(version, self._path.name)
        if version != HEAD:
            hint = "It is of an older Ownmind and must be upgraded, but this home can only be read."
            raise KnownError(OPEN, self._path.name, hint, retryable=False)

    def _make_engine(self) -> Engine:
        mode = "?mode=ro&uri=true" if self._read_only else ""
        address = f"sqlite:///file:{self._path}{mode}" if mode else f"sqlite:///{self._path}"
        engine = create_engine(address, poolclass=StaticPool, connect_args={"check_same_thread": False})
        store_in_utc(engine)
        event.listen(engine, "connect", self._set_pragmas)
        event.listen(engine, "begin", self._lock)
        return engine

    def _set_pragmas(self, driver: sqlite3.Connection, _record: object) -> None:
        driver.isolation_level = None  # we say BEGIN ourselves
        driver.execute(f"PRAGMA busy_timeout={self._busy_timeout_ms}")
        driver.execute("PRAGMA fullfsync=1")  # macOS; elsewhere it does nothing
        if self._read_only:
            return
        for name, (value, expected) in _PRAGMAS.items():
            driver.execute(f"PRAGMA {name}={value}")
            (answer,) = driver.execute(f"PRAGMA {name}").fetchone()
            if answer != expected:
                hint = f"SQLite answers {answer} for {name}. Close other programs that use the file."
                raise KnownError(OPEN, self._path.name, hint)

    def _lock(self, connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN" if self._read_only else "BEGIN EXCLUSIVE")

    @contextmanager
    def _begun(self) -> Iterator[Session]:
        """Return a session that holds the lock: nothing of the caller's has run while we waited for it."""
        with Session(self._engine, expire_on_commit=False) as session:
            for attempt in range(1, _TRIES + 1):
                try:
                    session.connection()
                    break
                except OperationalError as error:
                    if code_of(error) not in LOCKED or attempt == _TRIES:
                        raise
                    session.rollback()
                    _log.warning("another program holds the database; waiting (%d of %d)", attempt, _TRIES)
            yield session

    def _changed(self) -> bool:
        with database_errors("use the database", _SUBJECT), self._engine.connect() as connection:
            return _driver(connection).total_changes != self._changes_saved


def _driver(connection: Connection) -> sqlite3.Connection:
    driver: Any = connection.connection.driver_connection
    if not isinstance(driver, sqlite3.Connection):
        raise BugError("use the database", "no connection")
    return driver
