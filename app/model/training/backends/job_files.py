"""The two files of a job: the version that it stands on, and the change that it makes. Without any model library."""

from __future__ import annotations

import os
from pathlib import Path

from app.errors import KnownError


def read_parent(path: Path) -> bytes:
    """Return the bytes of a version. Raises KnownError if they cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise KnownError("read a version", path.name, "Run doctor --deep to see what is missing.") from error


def write_change(path: Path, data: bytes) -> None:
    """Write whole or not at all: the file appears under its name once every byte is there. Raises KnownError."""
    part = path.with_suffix(".part")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise KnownError("write what was learned", path.name, "Free some disk space and try again.") from error
