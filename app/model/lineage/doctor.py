"""Whether everything on disk is as it should be: what ``doctor`` and ``doctor --deep`` look at.

It only looks: nothing is repaired, moved or removed. ``missing`` means that no file is there, ``damaged`` that its
bytes do not match their hash, ``unknown`` that something stands there that nothing names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from app.errors import AppError
from app.model.adapters.canonical import read_adapter
from app.model.api import Commit
from app.model.lineage.lineage import Lineage
from app.model.lineage.records import blobs_of, derive_id
from app.store.home import Store

Rebuild = Callable[[Commit, bytes], "str | None"]
"""Gets a version and its canonical adapter, derives the serving file again, compares it with the one that is kept,
and returns what is wrong in a plain sentence, or None."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is not as it should be."""

    rule: str
    """Stable name: history, head, version, object, database, rebuild."""
    subject: str
    words: str
    """One plain sentence."""


def check(store: Store, lineage: Lineage, *, deep: bool = False, rebuild: Rebuild | None = None) -> list[Problem]:
    """Check the structure of a home; ``deep`` also reads every byte and derives everything again.

    (1) The history verifies from its first entry; (2) the head ref is where the history says; (3) each version's id,
    parents and number fit; (4) each object that a version names is there; (5) the database is sound.
    Deep: (6) every object's bytes match its name; (7) every version's adapter is a sound change of its base;
    (8) ``rebuild`` finds the serving file of every version equal to what it derives.
    """
    problems = [*_history(store), *_head(store, lineage), *_versions(store, lineage), *_database(store, deep=deep)]
    if deep:
        problems += [*_objects(store), *_weights(lineage, rebuild)]
    return problems


def _history(store: Store) -> Iterator[Problem]:  # (1)
    try:
        store.audit.verify()
    except AppError as error:
        yield Problem("history", error.subject, error.sentence())


def _head(store: Store, lineage: Lineage) -> Iterator[Problem]:  # (2)
    try:
        where = store.refs.get(lineage.ref)
    except AppError as error:
        yield Problem("head", lineage.ref, error.sentence())
        return
    if where != lineage.head().id:
        yield Problem("head", lineage.ref, "The pointer to the version in use does not agree with the history.")


def _versions(store: Store, lineage: Lineage) -> Iterator[Problem]:  # (3) (4)
    known: set[str] = set()
    for number, commit in enumerate(reversed(lineage.log())):
        subject = f"version {commit.number}"
        if commit.id != derive_id(commit):
            yield Problem("version", subject, "Its id is not that of its content.")
        if not known.issuperset(commit.parents) or bool(commit.parents) != bool(number):
            yield Problem("version", subject, "A version that it comes from is not in the history.")
        if commit.number != number:
            yield Problem("version", subject, "Its number is not the next one.")
        for name in blobs_of(commit):
            if not store.objects.has(name):
                yield Problem("object", subject, f"The object {name[:12]} is missing.")
        known.add(commit.id)


def _database(store: Store, *, deep: bool) -> Iterator[Problem]:  # (5)
    try:
        faults = store.database.faults(deep=deep)
    except AppError as error:
        faults = [error.sentence()]
    for fault in faults:
        yield Problem("database", store.home.database.name, fault)


def _objects(store: Store) -> Iterator[Problem]:  # (6)
    for name in store.objects.names():
        try:
            store.objects.get(name)
        except AppError as error:
            yield Problem("object", name[:12], error.sentence())


def _weights(lineage: Lineage, rebuild: Rebuild | None) -> Iterator[Problem]:  # (7) (8)
    for commit in lineage.log():
        if commit.delta is None or not lineage.available(commit):
            continue  # the base, or already reported by (4) or (6)
        subject = f"version {commit.number}"
        data = lineage.delta(commit)
        try:
            read_adapter(data, lineage.passport, subject)
        except AppError as error:
            yield Problem("version", subject, error.sentence())
            continue
        fault = rebuild(commit, data) if rebuild is not None else None
        if fault is not None:
            yield Problem("rebuild", subject, fault)
