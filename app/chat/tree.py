"""The messages of one conversation as a tree. Pure: rows in, rows out.

A branch is the path from a leaf up to a message without parent. Damaged links end a path early, and a loop is never
walked twice: what can be reached is shown, whatever happened to the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from app.errors import UserError
from app.model.api import Role
from app.store.tables import MessageRow


class Tree:
    """All messages of a conversation, by id and by parent."""

    def __init__(self, rows: Iterable[MessageRow]) -> None:
        self._rows = {row.id: row for row in sorted(rows, key=lambda row: row.position)}
        self._children: dict[str | None, list[MessageRow]] = {}
        for row in self._rows.values():
            self._children.setdefault(row.parent, []).append(row)

    def get(self, message: str) -> MessageRow:
        """Return one message. Raises UserError if it is not in this conversation."""
        if message not in self._rows:
            raise UserError("find the message", message, "It does not belong to this conversation.")
        return self._rows[message]

    def path(self, leaf: str | None) -> list[MessageRow]:
        """Return the branch that ends in ``leaf``, oldest first."""
        branch: list[MessageRow] = []
        seen: set[str] = set()
        while leaf in self._rows and leaf not in seen:
            seen.add(leaf)
            branch.append(self._rows[leaf])
            leaf = self._rows[leaf].parent
        return branch[::-1]

    def siblings(self, row: MessageRow) -> list[MessageRow]:
        """Return all messages at the same point, oldest first, this one included.

        An answer that failed without a word counts only while nothing better stands beside it.
        """
        family = [other for other in self._children.get(row.parent, []) if other.role == row.role]
        return [other for other in family if other is row or other.text or other.state != "failed"]

    def newest_leaf(self, row: MessageRow) -> MessageRow:
        """Return the newest message below this one, or itself: where its branch was last continued."""
        newest, todo, seen = row, [row], set[str]()
        while todo:
            here = todo.pop()
            if here.id not in seen:
                seen.add(here.id)
                todo += self._children.get(here.id, [])
                newest = max(newest, here, key=lambda other: other.position)
        return newest

    def follower(self, row: MessageRow, leaf: str | None) -> MessageRow | None:
        """Return the message right after this one on the branch of ``leaf``."""
        branch = self.path(leaf)
        return next((after for before, after in pairwise(branch) if before is row), None)

    def prompt_of(self, row: MessageRow) -> MessageRow | None:
        """Return the person's message that an answer replied to."""
        parent = self._rows.get(row.parent or "")
        return parent if parent is not None and parent.role == Role.USER else None

    def last_position(self) -> int:
        """Return the highest position, 0 if there is no message."""
        return max((row.position for row in self._rows.values()), default=0)
