"""Collecting what nothing names: in two phases, and never what something names."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from app.errors import KnownError
from app.store.collect import Collector
from app.store.faults import FailingFiles
from app.store.files import Files, RealFiles
from app.store.objects import Objects


def session(root: Path, name: str, files: Files | None = None) -> tuple[Objects, Collector]:
    objects = Objects(root / "objects", files or RealFiles())
    return objects, Collector(objects, root / "condemned", files or RealFiles(), name)


@pytest.fixture(name="orphan")
def _orphan(tmp_path: Path) -> str:
    objects, _ = session(tmp_path, "0")
    return objects.put(b"nothing names me")


def test_an_orphan_lives_through_the_session_that_condemned_it(tmp_path: Path, orphan: str):
    objects, collector = session(tmp_path, "1")
    for _ in range(3):
        assert collector.run(set()).removed == ()
    assert objects.has(orphan)


def test_an_orphan_is_removed_by_the_session_after(tmp_path: Path, orphan: str):
    _, first = session(tmp_path, "1")
    assert first.run(set()).condemned == (orphan,)
    objects, second = session(tmp_path, "2")
    assert second.run(set()).removed == (orphan,)
    assert not objects.has(orphan)


def test_what_is_named_by_then_is_spared(tmp_path: Path, orphan: str):
    session(tmp_path, "1")[1].run(set())
    objects, second = session(tmp_path, "2")
    assert second.run({orphan}).removed == ()
    assert objects.get(orphan)


def test_what_was_put_in_this_session_is_spared_even_if_it_was_condemned_before(tmp_path: Path, orphan: str):
    """A commit under way: its blobs are written, its entry is not yet."""
    session(tmp_path, "1")[1].run(set())
    objects, second = session(tmp_path, "2")
    objects.put(b"nothing names me")
    fresh = objects.put(b"a new one")
    assert second.run(set()).removed == ()
    assert objects.get(orphan)
    assert objects.get(fresh)


def test_named_objects_are_never_touched(tmp_path: Path, orphan: str):
    objects, _ = session(tmp_path, "0")
    named = {objects.put(bytes([number])) for number in range(5)}
    for number in range(1, 5):
        session(tmp_path, str(number))[1].run(named)
    assert set(objects.names()) == named


@pytest.mark.parametrize("content", [b"", b"\0" * 50, b"[]", b'{"session":"1"}', b'{"digests":5,"session":"1"}'])
def test_a_damaged_list_condemns_nothing(tmp_path: Path, orphan: str, content: bytes):
    (tmp_path / "condemned").write_bytes(content)
    objects, collector = session(tmp_path, "2")
    assert collector.run(set()).removed == ()
    assert objects.has(orphan)


def test_a_disk_that_refuses_at_any_operation_costs_nothing_named(tmp_path: Path, orphan: str):
    objects, _ = session(tmp_path, "0")
    named = objects.put(b"named")
    session(tmp_path, "1")[1].run({named})
    for at in range(4):
        files = FailingFiles(RealFiles(), at=at, code=errno.EIO)
        with pytest.raises(KnownError):
            session(tmp_path, f"2-{at}", files)[1].run({named})
        assert objects.get(named)
