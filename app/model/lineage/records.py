"""Commits as documents: how a version becomes JSON, an id, and an entry of the audit log, and back.

Pure: no file, no clock. A commit's id is the SHA-256 of the canonical JSON of all its other fields, so its parents,
its delta, its decision and its verdict are part of what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from app.errors import VerificationError
from app.model.api import Commit
from app.store.canonical import canonical, digest

COMMIT = "commit"
HEAD = "head"
ACTIVE = "active"
PROVEN = "proven"
RESERVED = frozenset({COMMIT, HEAD, ACTIVE, PROVEN})
"""Kinds of audit entries that only the lineage writes. NOTE: persisted, do not rename."""

LEARN = "learn"
FORGET = "forget"
REBUILD = "rebuild"
ACTIONS = frozenset({LEARN, FORGET, REBUILD})

_FIELDS = frozenset(field.name for field in fields(Commit))
_LISTS = ("parents", "lessons")


@dataclass(frozen=True, slots=True)
class NewCommit:
    """A version to be made: everything that is not known before its blobs are written."""

    parent: str
    """Commit id; must be head when it is committed."""
    delta: bytes | None
    """The canonical adapter, cumulative over the base; None for the base's own weights."""
    scale: float
    lessons: tuple[str, ...]
    action: str
    title: str
    recipe: Mapping[str, Any] | None
    data: Mapping[str, Any] | None
    verdict: Mapping[str, Any] | None
    """As the gate gave it: its ``outcome`` must be accept, its ``adapter_sha256`` must be that of ``delta``."""
    decision: str | None
    """Id of the approval."""
    conversation: str | None = None
    written_norm: float = 0.0
    """Largest ‖ΔW‖/‖W‖ over the written modules, relative to the base."""


def to_document(commit: Commit) -> dict[str, Any]:
    """Return a commit as JSON without floats: ``scale`` is the shortest decimal that reads back the same."""
    document = {name: getattr(commit, name) for name in _FIELDS}
    document["scale"] = repr(float(commit.scale))
    for name in _LISTS:
        document[name] = list(document[name])
    return document


def derive_id(commit: Commit) -> str:
    """Return the id that a commit with these fields must have."""
    document = to_document(commit)
    del document["id"]
    return digest(canonical(document, floats=False))


def from_document(document: Mapping[str, Any]) -> Commit:
    """Return the commit of a document. Raises VerificationError if fields are missing or its id is not its own."""
    if set(document) != _FIELDS:
        raise _not_a_commit()
    values = dict(document)
    try:
        values["scale"] = float(values["scale"])
        commit = Commit(**{**values, **{name: tuple(values[name]) for name in _LISTS}})
        derived = derive_id(commit)
    except (TypeError, ValueError) as error:
        raise _not_a_commit() from error
    if derived != commit.id:
        raise _not_a_commit()
    return commit


def blobs_of(commit: Commit) -> tuple[str, ...]:
    """Return the digests of all objects that a commit names."""
    return tuple(name for name in (commit.delta, commit.recipe, commit.data, commit.verdict) if name is not None)


def lessons_after(before: tuple[str, ...], commit: Commit) -> tuple[str, ...]:
    """Return the lessons in effect at a commit, given those at its parents."""
    if commit.action == FORGET:
        return tuple(lesson for lesson in before if lesson not in commit.lessons)
    return tuple(dict.fromkeys((*before, *commit.lessons)))


def _not_a_commit() -> VerificationError:
    return VerificationError("read a version", "an entry of the history", "It is damaged or was changed by hand.")
