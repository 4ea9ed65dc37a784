"""What the audit log says about versions: the log replayed into a state, entry by entry.

Pure: no file, no clock. The log is the authority: a ref that says otherwise is behind. One ``History`` sees the
versions of one base; those of other bases in the same log are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.errors import UserError, VerificationError
from app.model.api import ROOT_ACTION, Commit
from app.model.lineage.records import ACTIVE, COMMIT, HEAD, PROVEN, from_document, lessons_after

SHORTEST_PREFIX = 4


class History:
    """The versions of one base, in the order they came.

    Attributes:
        head: Id of the version in use, as the log has it; None before the root is there.
        active: Versions that an engine has reported to run, at least once.
        proven: Versions whose self-test has passed, at least once.
        damaged: Indices of entries that should hold a version and do not.
    """

    def __init__(self, base: str) -> None:
        self._base = base
        self._commits: dict[str, Commit] = {}
        self._numbers: dict[int, str] = {}
        self._lessons: dict[str, tuple[str, ...]] = {}
        self._norms: dict[str, float] = {}
        self.head: str | None = None
        self.active: set[str] = set()
        self.proven: set[str] = set()
        self.damaged: list[int] = []

    def apply(self, seq: int, kind: str, payload: Mapping[str, Any]) -> None:
        """Take in one entry; kinds that do not concern versions do nothing."""
        if kind == COMMIT:
            self._apply_commit(seq, payload)
        elif kind == HEAD and payload.get("to") in self._commits:
            self.head = payload["to"]
        elif kind == ACTIVE and payload.get("commit") in self._commits:
            self.active.add(payload["commit"])
        elif kind == PROVEN and payload.get("commit") in self._commits:
            self.proven.add(payload["commit"])

    def _apply_commit(self, seq: int, payload: Mapping[str, Any]) -> None:
        try:
            commit = from_document(payload["commit"])
            norm = float(payload["written_norm"])
        except (VerificationError, KeyError, TypeError, ValueError):
            self.damaged.append(seq)
            return
        if commit.base == self._base:
            self._commits[commit.id] = commit
            self._numbers.setdefault(commit.number, commit.id)
            self._norms[commit.id] = norm
            before = tuple(dict.fromkeys(lesson for parent in commit.parents for lesson in self.holds(parent)))
            self._lessons[commit.id] = lessons_after(before, commit)
            self.head = commit.id

    def root(self) -> Commit | None:
        """Return the base itself as a version."""
        return next((commit for commit in self._commits.values() if commit.action == ROOT_ACTION), None)

    def commits(self) -> list[Commit]:
        """Return all versions, oldest first, in the order of the log."""
        return list(self._commits.values())

    def has(self, commit_id: str) -> bool:
        """Return whether this id is a version of this base."""
        return commit_id in self._commits

    def next_number(self) -> int:
        """Return the number that no version has had yet."""
        return max(self._numbers, default=-1) + 1

    def holds(self, commit_id: str) -> tuple[str, ...]:
        """Return the lessons in effect at a version; none for one that is not known."""
        return self._lessons.get(commit_id, ())

    def written_norm(self, commit_id: str) -> float:
        """Return the written norm that was recorded with a version."""
        return self._norms.get(commit_id, 0.0)

    def find(self, name: str | int) -> Commit:
        """Return a version by id, by number ("3", "#3", 3) or by the start of its id.

        Raises: UserError if there is none, or if the start fits several.
        """
        text = str(name).strip().removeprefix("#").lower()
        if text in self._commits:
            return self._commits[text]
        if text.isascii() and text.isdecimal() and int(text) in self._numbers:
            return self._commits[self._numbers[int(text)]]
        fitting = [commit for key, commit in self._commits.items() if key.startswith(text)]
        if len(text) < SHORTEST_PREFIX or not fitting:
            raise UserError("find a version", text[:64], "Take a number or an id from the list of versions.")
        if len(fitting) > 1:
            raise UserError("find a version", text[:64], "Several versions begin like this: give more of the id.")
        return fitting[0]
