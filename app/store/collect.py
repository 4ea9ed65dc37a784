"""Removing objects that nothing names, in two phases: condemned in one session, removed in a later one.

A blob is written before the entry that names it. So a blob without a name may be one whose entry is about to come;
by the next session it has come, or never will. The condemned list is only a hint: what is named by then, or was put
again since, is spared.
"""

from __future__ import annotations

import json
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from app.store.canonical import canonical
from app.store.disk import disk_errors
from app.store.files import Files, write_durably
from app.store.objects import Objects


@dataclass(frozen=True, slots=True)
class Collected:
    """What one run did."""

    removed: tuple[str, ...]
    condemned: tuple[str, ...]


class Collector:
    """Collects the objects of one home.

    Args:
        objects: What to collect.
        path: Where the condemned list stands.
        files: The disk.
        session: Differs in every session; what this session condemns, it does not remove.
    """

    def __init__(self, objects: Objects, path: Path, files: Files, session: str) -> None:
        self._objects = objects
        self._path = path
        self._files = files
        self._session = session

    def run(self, named: AbstractSet[str]) -> Collected:
        """Remove what an earlier session condemned and still nothing names; condemn the rest of the unnamed.

        Args:
            named: Digests that something names. Must be complete: history, lessons, jobs under way.

        Raises: KnownError if the disk refuses; then nothing named was touched.
        """
        unnamed = sorted(set(self._objects.names()) - named - self._objects.fresh)
        session, condemned = self._read()
        removed = [name for name in unnamed if name in condemned] if session != self._session else []
        for name in removed:
            self._objects.remove(name)
        rest = [name for name in unnamed if name not in removed]
        with disk_errors("save the list of unused objects", self._path.name):
            write_durably(self._files, self._path, canonical({"session": self._session, "digests": rest}))
        return Collected(tuple(removed), tuple(rest))

    def _read(self) -> tuple[str, set[str]]:
        """Return which session condemned what; a damaged list condemns nothing."""
        try:
            found = json.loads(self._files.read(self._path))
            return str(found["session"]), {str(name) for name in found["digests"]}
        except (OSError, ValueError, KeyError, TypeError):
            return "", set()
