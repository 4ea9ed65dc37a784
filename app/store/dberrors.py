"""What SQLite's errors mean to a person: every one of them leaves the store as one of ours.

Decided by SQLite's result code, never by the text of a message. Locked, full and unwritable are the environment;
corrupt and not-a-database are a broken file; everything else is ours.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from app.errors import AppError, BugError, KnownError, UserError, VerificationError

_PRIMARY = 0xFF
"""Extended result codes carry the primary one in their low byte."""

LOCKED = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})

_KNOWN = {
    sqlite3.SQLITE_BUSY: "Another program is using the conversations file. Close it, or wait a moment and try again.",
    sqlite3.SQLITE_LOCKED: "The conversations file is in use. Wait a moment and try again.",
    sqlite3.SQLITE_FULL: "The disk is full. Free some space and try again; nothing was changed.",
    sqlite3.SQLITE_READONLY: "The conversations file can only be read. Nothing was changed.",
    sqlite3.SQLITE_IOERR: "The disk reports a fault. Copy your home folder to another disk soon.",
    sqlite3.SQLITE_CANTOPEN: "The conversations file cannot be opened. Give your account access to its folder.",
    sqlite3.SQLITE_PERM: "Ownmind may not use the conversations file. Give your account access to its folder.",
    sqlite3.SQLITE_AUTH: "Ownmind may not use the conversations file. Give your account access to its folder.",
    sqlite3.SQLITE_NOLFS: "The disk cannot hold a file of this size.",
    sqlite3.SQLITE_PROTOCOL: "Another program is using the conversations file. Close it and try again.",
    sqlite3.SQLITE_NOMEM: "The machine is out of memory. Close some programs and try again.",
    sqlite3.SQLITE_INTERRUPT: "It was interrupted. Try again.",
    sqlite3.SQLITE_TOOBIG: "The text is too long to be stored.",
}
_LASTING = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_TOOBIG})
_DAMAGED_HINT = "Start Ownmind again: it sets the damaged file aside and brings back the last good copy."


def code_of(error: BaseException) -> int | None:
    """Return SQLite's primary result code of an error, unwrapped if need be; None if it carries none."""
    origin = error.orig if isinstance(error, DBAPIError) else error
    code = getattr(origin, "sqlite_errorcode", None)
    return None if code is None else int(code) & _PRIMARY


def is_damage(error: BaseException) -> bool:
    """Return whether an error says that the file is broken."""
    code = code_of(error)
    # Without a code the driver itself could not read the file's content, such as text that is not UTF-8.
    return code in DAMAGED


def from_database_error(error: Exception, op: str, subject: str) -> AppError:
    """Return our error for one of SQLite's or SQLAlchemy's."""
    code = code_of(error)
    if code in DAMAGED:
        return VerificationError(op, subject, _DAMAGED_HINT)
    if code in _KNOWN:
        return KnownError(op, subject, _KNOWN[code], retryable=code not in _LASTING)
    name = type(error).__name__
    return BugError(op, subject, f"{name}, code {code}. Please report this.")


@contextmanager
def database_errors(op: str, subject: str) -> Iterator[None]:
    """Convert every database error of the block."""
    try:
        yield
    except (sqlite3.Error, SQLAlchemyError) as error:
        raise from_database_error(error, op, subject) from error
    except UnicodeEncodeError as error:  # the driver lets it through: half a surrogate pair, or bytes that are no text
        hint = "It holds half a character, which no file can keep. Type or paste it again; nothing was changed."
        raise UserError(op, "the text", hint) from error
