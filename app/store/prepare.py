"""Making a database file ready to be opened: created, checked, brought back if damaged, upgraded if old.

Nothing is ever done to the file in place. A new, an upgraded and a restored database are each built beside it, checked,
fsynced and renamed over it, so a kill at any point leaves the old file or the new one. Before an upgrade the old
file is kept as a backup. Speaks plain ``sqlite3``: Alembic is imported only if there is something to upgrade.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool
from sqlmodel import SQLModel

import app.store.tables  # noqa: F401 - registers the tables
from app.errors import AppError, KnownError, VerificationError
from app.store.backups import Backups
from app.store.dberrors import database_errors, from_database_error, is_damage
from app.store.disk import disk_errors
from app.store.files import TEMPORARY_PREFIX, Files
from app.store.migrations import HEAD, KNOWN

OPEN = "open the conversations"
_MAGIC = b"SQLite format 3\0"
_LARGEST_CHECKED_BYTES = 64 << 20
"""Up to this size every start looks through the whole file (some 5 ms a megabyte); above it only ``doctor`` does."""

_VERSION_TABLE = (
    "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, "
    "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
)


def prepare(path: Path, files: Files, backups: Backups) -> list[str]:
    """Make sure that a sound database of the present schema stands at ``path``; return what there is to say.

    Raises: KnownError (newer schema, disk), VerificationError (damaged, and no good backup).
    """
    clear_leftovers(path, files)
    if not path.exists() or not path.stat().st_size:
        _create(path, files)
        return []
    said = []
    if (fault := find_fault(path)) is not None:
        said.append(_restore(path, files, backups, fault))
    version = schema_of(path)
    require_known(version, path.name)
    if version != HEAD:
        _upgrade(path, files, backups, version)
    return said


def clear_leftovers(path: Path, files: Files) -> None:
    """Remove what an interrupted creation, upgrade or restoration left beside the database."""
    for name in files.list(path.parent):
        if name.startswith(f"{TEMPORARY_PREFIX}{path.name}"):
            with contextlib.suppress(OSError):
                files.unlink(path.parent / name)


def find_fault(path: Path) -> str | None:
    """Return what is broken about a database file, or None. Raises KnownError if it cannot be looked at."""
    with disk_errors(OPEN, path.name), path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            return "It does not begin like a database."
    if path.stat().st_size > _LARGEST_CHECKED_BYTES:
        return None
    try:
        with plain(path) as connection:
            answers = [row[0] for row in connection.execute("PRAGMA quick_check(1)")]
    except sqlite3.Error as error:
        if is_damage(error):
            return "Its structure is broken."
        raise from_database_error(error, OPEN, path.name) from error
    return None if answers == ["ok"] else "Some of its content is broken."


def schema_of(path: Path) -> str:
    """Return the version of a database's schema; "" if it has none."""
    with database_errors(OPEN, path.name), plain(path) as connection:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if "alembic_version" not in tables:
            return ""
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return str(row[0]) if row else ""


def require_known(version: str, name: str) -> None:
    """Raise KnownError unless a schema is one that this app has ever had."""
    if version not in KNOWN:
        hint = "It was written by a newer Ownmind. Update Ownmind to open it; nothing was changed."
        raise KnownError(OPEN, name, hint, retryable=False)


@contextlib.contextmanager
def plain(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database with the driver alone, and close it again."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=5.0)
    try:
        yield connection
    finally:
        connection.close()


def beside(path: Path, purpose: str) -> Path:
    """Return the temporary name under which a database is built."""
    return path.with_name(f"{TEMPORARY_PREFIX}{path.name}-{purpose}")


def _create(path: Path, files: Files) -> None:
    """Make a database of the present schema. A test holds it equal to what all migrations together make."""
    new = beside(path, "new")
    with disk_errors("create the conversations", path.name), database_errors("create the conversations", path.name):
        engine = create_engine(f"sqlite:///{new}", poolclass=NullPool)
        SQLModel.metadata.create_all(engine)
        with plain(new) as connection:
            connection.execute(_VERSION_TABLE)
            connection.execute("INSERT INTO alembic_version VALUES (?)", (HEAD,))
        _swap_in(new, path, files)


def _upgrade(path: Path, files: Files, backups: Backups, version: str) -> None:
    with database_errors("upgrade the conversations", path.name), disk_errors("upgrade the conversations", path.name):
        new = beside(path, "upgraded")
        with plain(path) as connection:
            connection.execute("PRAGMA journal_mode=TRUNCATE")  # ends a WAL that an older app may have left
            backups.make(connection, f"before-{HEAD}")
            connection.execute("VACUUM INTO ?", (str(new),))
        _run_migrations(new)
        if (fault := find_fault(new)) is not None or schema_of(new) != HEAD:
            raise VerificationError("upgrade the conversations", path.name, f"{fault or ''} It stays at {version}.")
        _swap_in(new, path, files)


def _run_migrations(path: Path) -> None:
    from alembic import command  # noqa: PLC0415 - a tenth of a second that a current database need not pay
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _restore(path: Path, files: Files, backups: Backups, fault: str) -> str:
    """Set the damaged file aside, bring back the last good copy, and return what to tell the person."""
    for backup in backups.newest_first():
        if _usable(backup):
            break
    else:
        hint = f"{fault} There is no earlier copy. Move the file away to start afresh; the versions are kept."
        raise VerificationError(OPEN, path.name, hint)
    with disk_errors("bring back the conversations", path.name):
        aside = backups.set_aside(path)
        new = beside(path, "restored")
        files.write(new, files.read(backup))
        _swap_in(new, path, files)
    return (
        "The conversations file was damaged. The last good copy is back; what came after it is missing. "
        f"The damaged file is kept as {aside.name}."
    )


def _usable(backup: Path) -> bool:
    try:
        return find_fault(backup) is None and schema_of(backup) in KNOWN
    except AppError:
        return False


def _swap_in(new: Path, path: Path, files: Files) -> None:
    """Put a finished database in the place of another, without the other's journal: it would be played into it."""
    files.sync(new)
    for suffix in ("-journal", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            files.unlink(path.with_name(path.name + suffix))
    files.rename(new, path)
    files.sync_folder(path.parent)
