"""Copies of the database, numbered in the order they were made, and damaged files set aside.

``backups/000012.db`` are whole databases made by ``VACUUM INTO``; a word behind the number says what a copy was made
before. The newest few are kept. ``backups/damaged-000003.db`` were set aside; nothing removes them but a person.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from pathlib import Path

from app.store.files import TEMPORARY_PREFIX, Files, make_folders, write_durably

_KEPT = 5
_NAME = re.compile(r"(\d{6})(-[a-z0-9-]+)?\.db")
_ASIDE = re.compile(r"damaged-(\d{6})\.db")


class Backups:
    """The folder of copies of one database."""

    def __init__(self, folder: Path, files: Files) -> None:
        self._folder = folder
        self._files = files

    def make(self, connection: sqlite3.Connection, purpose: str = "") -> Path:
        """Copy the database behind a connection that is in no transaction; return the copy, durable.

        Raises: sqlite3.Error, OSError; then there is no new copy.
        """
        make_folders(self._files, self._folder)
        name = f"{self._next(_NAME):06d}{'-' if purpose else ''}{purpose}.db"
        target, temporary = self._folder / name, self._folder / f"{TEMPORARY_PREFIX}{name}"
        with contextlib.suppress(FileNotFoundError):
            self._files.unlink(temporary)
        connection.execute("VACUUM INTO ?", (str(temporary),))
        self._files.sync(temporary)
        self._files.rename(temporary, target)
        self._files.sync_folder(self._folder)
        self._prune()
        return target

    def newest_first(self) -> list[Path]:
        """Return all copies, the last made first. By number: clocks go backwards."""
        names = [name for name in self._files.list(self._folder) if _NAME.fullmatch(name)]
        return [self._folder / name for name in reversed(names)]

    def set_aside(self, path: Path) -> Path:
        """Keep a copy of a damaged file. Raises OSError."""
        make_folders(self._files, self._folder)
        aside = self._folder / f"damaged-{self._next(_ASIDE):06d}.db"
        write_durably(self._files, aside, self._files.read(path))
        return aside

    def _next(self, pattern: re.Pattern[str]) -> int:
        found = (pattern.fullmatch(name) for name in self._files.list(self._folder))
        return max((int(match[1]) for match in found if match), default=0) + 1

    def _prune(self) -> None:
        for old in self.newest_first()[_KEPT:]:
            with contextlib.suppress(OSError):
                self._files.unlink(old)
