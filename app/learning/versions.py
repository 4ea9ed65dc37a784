"""Versions as engines take them: from a commit to an adapter file, and into use."""

from __future__ import annotations

from app.errors import VerificationError
from app.model.adapters.serving import ServingFiles
from app.model.api import AdapterRef, Commit, Engine
from app.model.lineage.lineage import Lineage


class Versions:
    """The versions of one base, and the one that the chat's engine runs."""

    def __init__(self, lineage: Lineage, serving: ServingFiles, engine: Engine) -> None:
        self._lineage = lineage
        self._serving = serving
        self._engine = engine

    def current(self) -> tuple[str, int]:
        """Return id and number of the version in use."""
        head = self._lineage.head()
        return head.id, head.number

    def ref(self, commit: Commit) -> AdapterRef | None:
        """Return a version as the engine takes it, its file made if need be; None for the base.

        Raises: VerificationError or KnownError if its weights are damaged or missing.
        """
        if commit.delta is None:
            return None
        return self._serving.ref(commit.delta, lambda: self._lineage.delta(commit), scale=commit.scale)

    async def activate(self, commit: Commit) -> None:
        """Let the chat's engine run this version and record what it reports.

        Raises: VerificationError if it reports another one.
        """
        reported = await self._engine.activate(self.ref(commit))
        self._lineage.note_active(commit, reported)

    async def resume(self, engine: Engine) -> None:
        """Let a freshly loaded engine run the version in use, as it did before the app ended; not a change, not logged.

        Raises: VerificationError if it reports another one.
        """
        head = self._lineage.head()
        if await engine.activate(self.ref(head)) != head.delta:
            hint = "The engine runs other weights than those of this version."
            raise VerificationError("activate a version", f"version {head.number}", hint)

    async def use(self, commit: Commit, reason: str) -> None:
        """Make a version the one in use: head first, so that a crash in between is finished at the next start."""
        self._lineage.move_head(commit, reason)
        await self.activate(commit)
