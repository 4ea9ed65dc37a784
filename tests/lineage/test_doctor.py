"""What the doctor finds, and that it finds nothing where nothing is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.clock import FakeClock
from app.model.api import Commit
from app.model.lineage import Lineage, Problem, check
from app.model.lineage.records import derive_id
from app.store.home import Home, Store
from tests.lineage.made import PASSPORT, QuickFiles, adapter, new_commit


def opened(root: Path) -> tuple[Store, Lineage]:
    clock = FakeClock()
    store = Store.open(Home(root), clock, files=QuickFiles())
    return store, Lineage.open(store.objects, store.refs, store.audit, PASSPORT, clock)


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> Iterator[tuple[Store, Lineage]]:
    store, lineage = opened(tmp_path)
    lineage.commit(new_commit(lineage, 1))
    lineage.commit(new_commit(lineage, 2))
    lineage.move_head(lineage.get(1), "undo")
    lineage.commit(new_commit(lineage, 3))
    yield store, lineage
    store.close()


def same(_commit: Commit, _delta: bytes) -> str | None:
    return None


def test_a_sound_home_has_no_problems(home: tuple[Store, Lineage]):
    assert check(*home) == []
    assert check(*home, deep=True, rebuild=same) == []


def test_looking_changes_nothing(home: tuple[Store, Lineage], tmp_path: Path):
    def everything() -> dict[str, bytes]:
        paths = (path for folder in ("objects", "refs", "audit") for path in (tmp_path / folder).rglob("*"))
        return {str(path): path.read_bytes() for path in paths if path.is_file()}

    before = everything()
    check(*home, deep=True, rebuild=same)
    assert everything() == before


@dataclass(frozen=True)
class Case:
    harm: Callable[[Store, Lineage], object]
    rule: str
    subject: str
    says: str
    deep: bool = False


def blob(store: Store, lineage: Lineage, field: str = "delta") -> Path:
    return store.objects.path(getattr(lineage.get(2), field))


def edit_log(store: Store, _lineage: Lineage) -> None:
    log = store.home.audit / "log"
    log.write_bytes(log.read_bytes().replace(b"lesson 1", b"lesson X"))


CASES = {
    "an edited history": Case(edit_log, "history", "entry 1", "changed outside"),
    "a lost head ref": Case(
        lambda store, lineage: (store.home.refs / lineage.ref).unlink(), "head", "heads/", "does not agree"
    ),
    "a damaged head ref": Case(
        lambda store, lineage: (store.home.refs / lineage.ref).write_bytes(b"\0" * 65), "head", "heads/", "damaged"
    ),
    "a missing delta": Case(lambda store, lineage: blob(store, lineage).unlink(), "object", "version 2", "missing"),
    "a missing verdict": Case(
        lambda store, lineage: blob(store, lineage, "verdict").unlink(), "object", "version 2", "missing"
    ),
    "a damaged delta": Case(
        lambda store, lineage: blob(store, lineage).write_bytes(b"x"), "object", "", "damaged", deep=True
    ),
    "a damaged object that nothing names": Case(
        lambda store, _: store.objects.path(store.objects.put(b"orphan")).write_bytes(b"x"),
        "object",
        "",
        "damaged",
        deep=True,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_harm_is_found_and_named(home: tuple[Store, Lineage], name: str):
    case = CASES[name]
    case.harm(*home)
    if case.deep:
        assert check(*home) == [], "only deep reads every byte"
    (problem,) = check(*home, deep=case.deep, rebuild=same)
    assert problem.rule == case.rule
    assert problem.subject.startswith(case.subject)
    assert case.says in problem.words


def test_a_version_that_cannot_be_derived_again_is_named(home: tuple[Store, Lineage]):
    seen = []

    def rebuild(commit: Commit, delta: bytes) -> str | None:
        seen.append((commit.number, delta))
        return "The serving file differs." if commit.number == 2 else None

    assert check(*home, deep=True, rebuild=rebuild) == [Problem("rebuild", "version 2", "The serving file differs.")]
    lineage = home[1]
    assert seen == [(number, lineage.delta(lineage.get(number))) for number in (3, 2, 1)]


def test_versions_that_do_not_fit_together_are_named(home: tuple[Store, Lineage]):
    """As a bug of ours could have written them: through the log itself, with right hashes."""
    store, lineage = home
    delta = store.objects.put(adapter(1) + b"more")
    fields = {name: getattr(lineage.get(3), name) for name in Commit.__dataclass_fields__}
    commit = Commit(**{**fields, "parents": ("f" * 64,), "number": 9, "delta": delta})
    commit = Commit(**{**{name: getattr(commit, name) for name in fields}, "id": derive_id(commit)})
    lineage._history._commits[commit.id] = commit
    words = [problem.words for problem in check(store, lineage, deep=True)]
    assert "A version that it comes from is not in the history." in words
    assert "Its number is not the next one." in words
    assert any("longer or shorter than it says" in sentence for sentence in words)


def test_a_broken_database_is_a_problem_in_words(home: tuple[Store, Lineage], monkeypatch: pytest.MonkeyPatch):
    store, lineage = home
    monkeypatch.setattr(type(store.database), "faults", lambda _self, deep: ["Broken content: page 3."])
    assert check(store, lineage) == [Problem("database", "ownmind.db", "Broken content: page 3.")]
