"""What the system's file errors mean to a person: every OSError of the store leaves as one of ours."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from app.errors import AppError, KnownError

_HINTS = {
    errno.ENOSPC: "The disk is full. Free some space and try again; nothing was changed.",
    errno.EDQUOT: "Your share of the disk is used up. Free some space and try again; nothing was changed.",
    errno.EROFS: "The disk can only be read. Nothing was changed.",
    errno.EACCES: "Ownmind may not write there. Give your account access to the folder; nothing was changed.",
    errno.EPERM: "Ownmind may not write there. Give your account access to the folder; nothing was changed.",
    errno.EIO: "The disk reports a fault. Copy your home folder to another disk soon.",
    errno.ENOENT: "The file is missing.",
    errno.EMFILE: "Too many files are open. Close some programs and try again.",
}
_LASTING = {errno.EROFS, errno.ENOENT}
READ_ONLY_CODES = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
"""Codes that mean: this folder cannot be written by us."""


def from_os_error(error: OSError, op: str, subject: str) -> AppError:
    """Return the KnownError for a file error."""
    fallback = f"The system says: {error.strerror or type(error).__name__}."
    hint = _HINTS.get(error.errno or 0, fallback)
    return KnownError(op, subject, hint, retryable=error.errno not in _LASTING)


@contextmanager
def disk_errors(op: str, subject: str) -> Iterator[None]:
    """Convert every OSError of the block into a KnownError that says what failed on what."""
    try:
        yield
    except OSError as error:
        raise from_os_error(error, op, subject) from error
