"""Disks that refuse: at any operation of a commit, whatever the code, either nothing happened or everything did."""

from __future__ import annotations

import errno
import itertools
import logging
from pathlib import Path

import pytest

from app.clock import FakeClock
from app.errors import KnownError
from app.model.api import Commit
from app.model.lineage import Lineage
from app.store.audit import AuditLog
from app.store.canonical import digest
from app.store.disk import from_os_error
from app.store.faults import FailingFiles
from app.store.objects import Objects
from app.store.refs import Refs
from tests.lineage.made import PASSPORT, QuickFiles, new_commit, open_lineage

CODES = {"no space left": errno.ENOSPC, "read-only": errno.EROFS, "input/output error": errno.EIO}


def prepared(root: Path) -> Lineage:
    lineage = open_lineage(root, QuickFiles())
    lineage.commit(new_commit(lineage, 1))
    return lineage


def check_whole(root: Path) -> Lineage:
    """A new start on a mended disk finds everything as it should be."""
    lineage = open_lineage(root, QuickFiles())
    lineage.recover()
    lineage._audit.verify()
    assert lineage.locked is None
    assert lineage._refs.get(lineage.ref) == lineage.head().id
    assert digest(lineage.delta(lineage.head())) == lineage.head().delta
    assert [commit.number for commit in lineage.log()] == list(range(len(lineage.log())))[::-1]
    return lineage


def attempt(lineage: Lineage) -> tuple[Commit | None, KnownError | None]:
    try:
        return lineage.commit(new_commit(lineage, 2)), None
    except KnownError as error:
        return None, error


def operations(root: Path) -> int:
    prepared(root)
    files = FailingFiles(QuickFiles(), at=None)
    lineage = open_lineage(root, files)
    start = files.count
    lineage.commit(new_commit(lineage, 2))
    return files.count - start


@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
@pytest.mark.parametrize("lasting", [True, False], ids=["from then on", "once"])
def test_a_disk_that_refuses_at_any_operation_leaves_no_half_version(
    tmp_path: Path, code: int, lasting: bool, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.ERROR)
    total = operations(tmp_path / "count")
    assert total > 25
    for at in range(total):
        root = tmp_path / str(at)
        before = prepared(root)
        files = FailingFiles(QuickFiles(), at=None, code=code, lasting=lasting)
        lineage = open_lineage(root, files)
        files._at = files.count + at
        made, error = attempt(lineage)
        # I4: what is in use can be read even from the refusing disk.
        assert lineage.head() == (made or before.head())
        assert lineage.delta(lineage.head())
        assert made or (error and error.hint)
        files._at = None
        again = check_whole(root)
        if made is not None:  # I1: what was acknowledged is there
            assert again.head() == made
        assert again.commit(new_commit(again, 3)).number == len(again.log()) - 1  # I5


def test_a_full_disk_says_so_and_the_same_session_goes_on_once_there_is_room(tmp_path: Path):
    """Row 29, at each operation that writes: the log is cut back at once, no restart is needed."""
    total = operations(tmp_path / "count")
    said = set()
    for at in range(total):
        root = tmp_path / str(at)
        prepared(root)
        files = FailingFiles(QuickFiles(), at=None, code=errno.ENOSPC)
        lineage = open_lineage(root, files)
        files._at = files.count + at
        _, error = attempt(lineage)
        files._at = None
        if error is not None:
            said.add(error.hint)
            assert error.retryable
            assert lineage.commit(new_commit(lineage, 2)) == lineage.head()
        check_whole(root)
    assert said == {"The disk is full. Free some space and try again; nothing was changed."}


def test_after_a_failed_write_nothing_is_appended_until_it_could_be_taken_back(tmp_path: Path):
    lineage = prepared(tmp_path)
    files = FailingFiles(QuickFiles(), at=None, code=errno.EIO)
    lineage = open_lineage(tmp_path, files)
    files._at = files.count
    with pytest.raises(KnownError):
        lineage.record("note", {})
    with pytest.raises(KnownError):
        lineage.record("note", {})
    files._at = None
    lineage.record("note", {})
    lineage._audit.verify()
    assert [entry.kind for entry in check_whole(tmp_path)._audit.entries][-1] == "note"


def test_a_head_that_could_not_be_moved_does_not_undo_a_commit(tmp_path: Path):
    """Past the commit point the version stands; its ref follows with the next start."""
    prepared(tmp_path)
    files = FailingFiles(QuickFiles(), at=None, code=errno.ENOSPC)
    lineage = open_lineage(tmp_path, files)
    start = files.count
    lineage.commit(new_commit(lineage, 2))
    last = files.count - start
    again = open_lineage(tmp_path, files)
    files._at = files.count + last - 3
    made = again.commit(new_commit(again, 3))
    assert again.head() == made
    assert again._refs.get(again.ref) != made.id
    files._at = None
    third = open_lineage(tmp_path, QuickFiles())
    said = third.recover()
    assert said[0] == "Taking version 3 into use had been cut off; it is done."
    assert third._refs.get(third.ref) == made.id


def test_the_next_commit_brings_a_ref_that_was_left_behind_up_to_date(tmp_path: Path):
    lineage = prepared(tmp_path)
    lineage._refs.replace(lineage.ref, lineage.root().id, "left behind")
    made = lineage.commit(new_commit(lineage, 2))
    assert lineage._refs.get(lineage.ref) == made.id


def test_somebody_else_writing_to_the_log_is_noticed_before_it_is_spoilt(tmp_path: Path):
    lineage = prepared(tmp_path)
    open_lineage(tmp_path, QuickFiles()).record("note", {"by": "another process"})
    with pytest.raises(KnownError, match="Something else wrote"):
        lineage.commit(new_commit(lineage, 2))
    AuditLog.open(tmp_path / "audit", QuickFiles(), lineage._clock).verify()


def test_in_a_read_only_home_answers_work_and_learning_says_why_not(tmp_path: Path):
    """Row 30."""
    made = prepared(tmp_path).head()
    lineage = read_only_lineage(tmp_path)
    assert lineage.recover() == []
    assert lineage.head() == made
    assert lineage.delta(made)
    with pytest.raises(KnownError, match="only be read"):
        lineage.commit(new_commit(lineage, 2))
    with pytest.raises(KnownError, match="only be read"):
        lineage.move_head(lineage.root(), "undo")


def test_an_empty_read_only_home_answers_with_the_base(tmp_path: Path):
    lineage = read_only_lineage(tmp_path)
    assert lineage.head() == lineage.root()
    assert list(tmp_path.iterdir()) == []


def read_only_lineage(root: Path) -> Lineage:
    files, clock = FailingFiles(QuickFiles(), at=0, code=errno.EROFS), FakeClock()
    audit = AuditLog.open(root / "audit", files, clock, read_only=True)
    return Lineage.open(Objects(root / "objects", files), Refs(root / "refs", files, clock), audit, PASSPORT, clock)


def test_every_code_has_words():
    for code in itertools.chain(errno.errorcode, [None]):
        error = from_os_error(OSError(code, "words of the system") if code else OSError(), "save", "a file")
        assert isinstance(error, KnownError)
        assert error.hint
