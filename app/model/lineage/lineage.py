"""The lineage: versions of the weights over objects, refs and audit log.

A commit goes through four steps, safe against a power cut at any point:

1. blobs (delta, recipe, data, verdict) are written and fsynced;
2. they are read back and verified;
3. ONE fsynced audit entry names parent, delta, decision and verdict: *this is the commit point*;
4. the head ref is moved by compare-and-swap.

Before step 3 nothing has happened; after it everything has, and ``recover`` finishes step 4 if that was cut off. The
caller goes on with activation (``note_active``), self-test (``note_proven``) and restore.

This module does not know engines, trainers, or what a lesson says. One thread.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.clock import Clock
from app.errors import AppError, BugError, KnownError, VerificationError
from app.model.api import ROOT_ACTION, Commit, Passport
from app.model.lineage.history import History
from app.model.lineage.records import ACTIVE, COMMIT, HEAD, PROVEN, RESERVED, NewCommit, derive_id, to_document
from app.model.lineage.rules import check_new
from app.store.audit import AuditLog
from app.store.canonical import canonical, parse
from app.store.objects import Objects
from app.store.refs import Refs

_REF_CHARS = 16
_log = logging.getLogger(__name__)


class Lineage:
    """The versions of one base in one home.

    Attributes:
        passport: The base.
        ref: Name of the head ref of this base.
    """

    def __init__(self, objects: Objects, refs: Refs, audit: AuditLog, passport: Passport, clock: Clock) -> None:
        """Use ``open``, which also makes the root."""
        self._objects = objects
        self._refs = refs
        self._audit = audit
        self.passport = passport
        self._clock = clock
        self.ref = f"heads/{passport.id[:_REF_CHARS]}"
        self._history = History(passport.id)
        for entry in audit.entries:
            self._history.apply(entry.seq, entry.kind, entry.payload)

    @classmethod
    def open(cls, objects: Objects, refs: Refs, audit: AuditLog, passport: Passport, clock: Clock) -> Lineage:
        """Read the versions of a base; on first sight of it, make the base itself version 0.

        Raises: KnownError if the disk refuses, the reason of the lock if version 0 cannot be written.
        """
        lineage = cls(objects, refs, audit, passport, clock)
        if lineage._history.root() is None:
            lineage._make_root()
        lineage._believe_ref_if_locked()
        return lineage

    # --- reading

    def head(self) -> Commit:
        """Return the version in use."""
        if self._history.head is None:
            raise BugError("find the version in use", "the history has no version")
        return self.get(self._history.head)

    def root(self) -> Commit:
        """Return the base itself as a version, number 0."""
        root = self._history.root()
        if root is None:
            raise BugError("find the base", "the history has no root")
        return root

    def get(self, name: str | int) -> Commit:
        """Return a version by id, number, or the start of its id. Raises UserError if none or several fit."""
        return self._history.find(name)

    def log(self) -> list[Commit]:
        """Return all versions, newest first in the order of the log, the base last."""
        return self._history.commits()[::-1]

    def holds(self, commit: Commit) -> tuple[str, ...]:
        """Return the ids of the lessons in effect at a version, oldest first."""
        return self._history.holds(commit.id)

    def written_norm(self, commit: Commit) -> float:
        """Return the largest ‖ΔW‖/‖W‖ that was recorded with a version."""
        return self._history.written_norm(commit.id)

    def delta(self, commit: Commit) -> bytes:
        """Return the canonical adapter of a version, verified. Raises BugError for one without: the base."""
        if commit.delta is None:
            raise BugError("read an adapter", f"version {commit.number} is the base itself")
        return self._objects.get(commit.delta)

    def available(self, commit: Commit) -> bool:
        """Return whether the weights of a version are there and undamaged."""
        return commit.delta is None or self._objects.intact(commit.delta)

    def document(self, name: str) -> dict[str, Any]:
        """Return a recipe, data manifest or verdict by digest. Raises VerificationError, KnownError as objects do."""
        value = parse(self._objects.get(name), name[:12])
        if not isinstance(value, dict):
            raise VerificationError("read a record", name[:12], "It is not what it should be.")
        return value

    def reachable(self) -> set[str]:
        """Return the digests of all objects that any version of any base names."""
        found: set[str] = set()
        for entry in self._audit.entries:
            if entry.kind == COMMIT and isinstance(document := entry.payload.get("commit"), dict):
                found |= {document[name] for name in ("delta", "recipe", "data", "verdict") if document.get(name)}
        return found

    def unproven(self) -> Commit | None:
        """Return the version in use if its self-test has never passed; None if all is well."""
        head = self.head()
        return None if head.action == ROOT_ACTION or head.id in self._history.proven else head

    @property
    def locked(self) -> AppError | None:
        """Why no version may be made or taken into use now; None if it may."""
        return self._audit.locked

    # --- changing

    def commit(self, new: NewCommit) -> Commit:
        """Make a version, steps 1 to 4. When this returns it survives anything.

        Raises: the audit log's lock; KnownError if parent is not head any more, or the disk refuses;
            VerificationError if delta or verdict are not what they must be. Then there is no version.
        """
        self._check(new)
        blobs = _blobs(new)
        self._objects.require_space(sum(map(len, blobs.values())))
        names = {field: self._objects.put(data) for field, data in blobs.items()}  # (1)
        for field, data in blobs.items():  # (2)
            if self._objects.get(names[field]) != data:
                raise VerificationError("read back an object", names[field][:12], "The disk gave back something else.")
        commit = self._made(new, names)
        self._append(COMMIT, {"commit": to_document(commit), "written_norm": repr(float(new.written_norm))})  # (3)
        self._publish(commit, before=new.parent, reason=new.action)  # (4)
        return commit

    def move_head(self, to: Commit, reason: str) -> Commit:
        """Take an existing version into use: undo, rollback, or back after a failed self-test. Exact and logged.

        Raises: the audit log's lock; KnownError if its weights are missing or the disk refuses.
        """
        target = self.get(to.id)
        self._require_weights(target)
        before = self.head()
        if target.id != before.id:
            self._append(HEAD, {"from": before.id, "to": target.id, "reason": reason})
            self._publish(target, before=before.id, reason=reason)
        return target

    def note_active(self, commit: Commit, adapter_sha: str | None) -> None:
        """Record that an engine reports to run this version. Raises VerificationError if it reports another one."""
        if adapter_sha != commit.delta:
            hint = "The engine runs other weights than those of this version."
            raise VerificationError("activate a version", f"version {commit.number}", hint)
        self._append(ACTIVE, {"commit": commit.id, "adapter": adapter_sha})

    def note_proven(self, commit: Commit) -> None:
        """Record that the self-test of this version has passed."""
        self._append(PROVEN, {"commit": commit.id})

    def record(self, kind: str, payload: Mapping[str, Any]) -> None:
        """Record something else that must not be lost: a proposal's transition, a move of developer mode.

        Raises: BugError for a kind that only the lineage writes, or floats; the lock; KnownError if the disk refuses.
        """
        if kind in RESERVED:
            raise BugError("write to the history", f"the kind {kind} belongs to the lineage")
        self._append(kind, dict(payload))

    def recover(self) -> list[str]:
        """After a start: finish or undo what was cut off, and say so in plain sentences.

        As ``mend``; besides, a version never proven is named: run its self-test again.
        """
        said = self.mend()
        if self.locked is None and (unproven := self.unproven()) is not None:
            said.append(f"Version {unproven.number} is in use but its checks did not finish; they run again.")
        return said

    def mend(self) -> list[str]:
        """See to it that a version is in use that works, and say in plain sentences what that took.

        A commit whose head was not moved is completed. A head that names nothing known, or whose weights are gone,
        goes back to the nearest version that works. Blobs that no entry names are left to the collector.
        """
        said = list(self._audit.notes)
        if self.locked is None:
            said += self._finish_head()
            said += self._leave_damaged()
        return said

    # --- parts

    def _make_root(self) -> None:
        """Make the base version 0; where nothing can be written, for this session only, so that answers work."""
        fields = {"base": self.passport.id, "title": self.passport.name, "action": ROOT_ACTION, "number": 0}
        root = _with_id(**fields, time=self._clock.now().isoformat())
        payload = {"commit": to_document(root), "written_norm": "0.0"}
        if self.locked is not None:
            self._history.apply(-1, COMMIT, payload)
        else:
            self._append(COMMIT, payload)
            self._publish(root, before=None, reason="the base")

    def _believe_ref_if_locked(self) -> None:
        """With entries missing from a changed log, the ref may know better which version was in use."""
        if isinstance(self.locked, VerificationError) and (known := self._ref_value()) and self._history.has(known):
            self._history.head = known

    def _check(self, new: NewCommit) -> None:
        self._audit.require_unlocked()
        check_new(new, head=self.head(), passport=self.passport)
        self._finish_head()

    def _made(self, new: NewCommit, names: Mapping[str, str]) -> Commit:
        return _with_id(
            number=self._history.next_number(),
            parents=(new.parent,),
            base=self.passport.id,
            scale=float(new.scale),
            lessons=tuple(new.lessons),
            action=new.action,
            title=new.title,
            decision=new.decision,
            conversation=new.conversation,
            time=self._clock.now().isoformat(),
            **names,
        )

    def _require_weights(self, target: Commit) -> None:
        try:
            if target.delta is not None:
                self._objects.get(target.delta)
        except (KnownError, VerificationError) as error:
            hint = "Its weights are missing or damaged. Every other version can still be used."
            raise KnownError("use a version", f"version {target.number}", hint, retryable=False) from error

    def _append(self, kind: str, payload: dict[str, Any]) -> None:
        entry = self._audit.append(kind, payload)
        self._history.apply(entry.seq, entry.kind, entry.payload)

    def _publish(self, target: Commit, *, before: str | None, reason: str) -> None:
        """Move the head ref. The log has decided already: a disk that refuses now only leaves the ref behind."""
        try:
            self._refs.swap(self.ref, expected=before, new=target.id, reason=reason)
        except (KnownError, VerificationError) as error:
            _log.warning("head ref left behind the history: %s", type(error).__name__)

    def _ref_value(self) -> str | None:
        try:
            return self._refs.get(self.ref)
        except VerificationError:
            return None

    def _finish_head(self) -> list[str]:
        """Bring the head ref to where the log says, and return what there is to say about it."""
        head, ref = self.head(), self._ref_value()
        if ref == head.id:
            return []
        self._refs.replace(self.ref, head.id, "recovered")
        if ref is None or self._history.has(ref):
            return [f"Taking version {head.number} into use had been cut off; it is done."]
        return [f"The version last in use is not in the history any more; version {head.number} is in use."]

    def _leave_damaged(self) -> list[str]:
        """If the weights in use are missing or damaged, go back to the nearest version whose weights are sound."""
        damaged = self.head()
        if self.available(damaged):
            return []
        sound = damaged
        while not self.available(sound):
            sound = self.get(sound.parents[0]) if sound.parents else self.root()
        self.move_head(sound, "weights missing or damaged")
        return [f"The weights of version {damaged.number} are missing or damaged; version {sound.number} is in use."]


def _with_id(**fields: Any) -> Commit:
    """Return a commit of these fields, the others empty, with its id derived from them."""
    empty: dict[str, Any] = dict.fromkeys(("delta", "recipe", "data", "verdict", "decision", "conversation"))
    commit = Commit(**{"id": "", "parents": (), "scale": 1.0, "lessons": (), **empty, **fields})
    return replace(commit, id=derive_id(commit))


def _blobs(new: NewCommit) -> dict[str, bytes]:
    """Return the bytes of everything a version names, by the name of its field."""
    found = {} if new.delta is None else {"delta": new.delta}
    documents = {"recipe": new.recipe, "data": new.data, "verdict": new.verdict}
    return found | {field: canonical(dict(value)) for field, value in documents.items() if value is not None}
