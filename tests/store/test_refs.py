"""Pointers: moved only from where the mover thinks they are; every move is logged."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.clock import FakeClock
from app.errors import BugError, KnownError, VerificationError
from app.store.files import RealFiles
from app.store.refs import Refs

A, B, C = "a" * 64, "b" * 64, "c" * 64
HEAD = "heads/base"


@pytest.fixture(name="refs")
def _refs(tmp_path: Path) -> Refs:
    return Refs(tmp_path / "refs", RealFiles(), FakeClock())


def test_a_ref_that_was_never_made_points_nowhere(refs: Refs):
    assert refs.get(HEAD) is None
    assert refs.reflog(HEAD) == []
    assert refs.names() == []


def test_a_move_from_where_it_is_succeeds_and_is_logged(refs: Refs):
    refs.swap(HEAD, expected=None, new=A, reason="first")
    refs.swap(HEAD, expected=A, new=B, reason="second")
    assert refs.get(HEAD) == B
    assert [(move.old, move.new, move.reason) for move in refs.reflog(HEAD)] == [
        (None, A, "first"),
        (A, B, "second"),
    ]
    assert refs.names() == [HEAD]


@pytest.mark.parametrize("expected", [None, C])
def test_a_move_from_elsewhere_is_refused_and_moves_nothing(refs: Refs, expected: str | None):
    refs.swap(HEAD, expected=None, new=A, reason="first")
    with pytest.raises(KnownError, match="moved it first"):
        refs.swap(HEAD, expected=expected, new=B, reason="late")
    assert refs.get(HEAD) == A
    assert len(refs.reflog(HEAD)) == 1


@pytest.mark.parametrize("damage", [b"", b"\0" * 65, b"main\n", A.encode()[:40], b"\xff" * 64, A.encode() + b"\n\n"])
def test_a_damaged_ref_is_not_believed_and_can_be_replaced(refs: Refs, tmp_path: Path, damage: bytes):
    refs.swap(HEAD, expected=None, new=A, reason="first")
    (tmp_path / "refs" / HEAD).write_bytes(damage)
    with pytest.raises(VerificationError, match="damaged"):
        refs.get(HEAD)
    refs.replace(HEAD, B, "recovered")
    assert refs.get(HEAD) == B
    assert refs.reflog(HEAD)[-1].old is None


def test_a_torn_line_of_the_reflog_costs_only_itself(refs: Refs, tmp_path: Path):
    refs.swap(HEAD, expected=None, new=A, reason="first")
    log = tmp_path / "refs" / "log" / HEAD
    log.write_bytes(log.read_bytes()[:-20])
    refs.swap(HEAD, expected=A, new=B, reason="second")
    assert [move.new for move in refs.reflog(HEAD)] == [B]


NAMES = ["", "main", "heads/", "heads/../x", "/etc/passwd", "heads/a/b", "heads/.hidden", "x/y"]


@pytest.mark.parametrize("name", NAMES)
def test_only_heads_and_tags_are_refs(refs: Refs, name: str):
    with pytest.raises(BugError):
        refs.get(name)


def test_a_ref_points_to_digests_only(refs: Refs):
    with pytest.raises(BugError):
        refs.swap(HEAD, expected=None, new="main", reason="")
