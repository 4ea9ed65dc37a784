"""What a start finds wrong, what it does about it, and what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.clock import FakeClock
from app.errors import KnownError, VerificationError
from app.model.api import Commit
from app.model.lineage import Lineage
from app.store.audit import AuditLog
from tests.lineage.made import QuickFiles, new_commit, open_lineage


@pytest.fixture(name="root")
def _root(tmp_path: Path) -> Path:
    lineage = open_lineage(tmp_path, QuickFiles())
    for seed in (1, 2, 3):
        made = lineage.commit(new_commit(lineage, seed))
        lineage.note_active(made, made.delta)
        lineage.note_proven(made)
    return tmp_path


def again(root: Path) -> Lineage:
    return open_lineage(root, QuickFiles())


def log_lines(root: Path) -> list[bytes]:
    return (root / "audit" / "log").read_bytes().splitlines(keepends=True)


def write_lines(root: Path, lines: list[bytes]) -> None:
    (root / "audit" / "log").write_bytes(b"".join(lines))


def blob_of(lineage: Lineage, commit: Commit) -> Path:
    return lineage._objects.path(commit.delta or "")


def test_when_all_is_well_nothing_is_said(root: Path):
    assert again(root).recover() == []


def test_a_commit_whose_head_was_not_moved_is_completed(root: Path):
    lineage = again(root)
    lineage._refs.replace(lineage.ref, lineage.get(2).id, "as if cut off")
    third = again(root)
    assert third.recover() == ["Taking version 3 into use had been cut off; it is done."]
    assert third._refs.get(third.ref) == third.get(3).id
    assert again(root).recover() == []


@pytest.mark.parametrize("content", [b"", bytes(65), b"f" * 64 + b"\n"])
def test_a_damaged_or_foreign_head_ref_follows_the_history(root: Path, content: bytes):
    lineage = again(root)
    (root / "refs" / lineage.ref).write_bytes(content)
    third = again(root)
    assert len(third.recover()) == 1
    assert third.head().number == 3
    assert third._refs.get(third.ref) == third.head().id


def test_a_version_in_use_but_never_proven_is_named(root: Path):
    lineage = again(root)
    made = lineage.commit(new_commit(lineage, 4))
    lineage.note_active(made, made.delta)
    third = again(root)
    assert third.recover() == ["Version 4 is in use but its checks did not finish; they run again."]
    assert third.unproven() == made


def test_a_failed_self_test_is_left_by_moving_head_back(root: Path):
    lineage = again(root)
    lineage.commit(new_commit(lineage, 4))
    lineage.move_head(lineage.get(3), "self-test failed")
    assert again(root).recover() == []
    assert again(root).head().number == 3


# --- row 31: a missing or damaged blob


@pytest.mark.parametrize("damage", [None, b"", b"other bytes"], ids=["missing", "empty", "damaged"])
def test_an_old_version_without_its_blob_is_unavailable_and_all_others_work(root: Path, damage: bytes | None):
    lineage = again(root)
    blob = blob_of(lineage, lineage.get(2))
    blob.unlink() if damage is None else blob.write_bytes(damage)
    third = again(root)
    assert third.recover() == []
    assert [(commit.number, third.available(commit)) for commit in third.log()] == [
        (3, True),
        (2, False),
        (1, True),
        (0, True),
    ]
    with pytest.raises(KnownError, match="version 2"):
        third.move_head(third.get(2), "use")
    with pytest.raises((KnownError, VerificationError)):
        third.delta(third.get(2))
    assert third.move_head(third.get(1), "use") == third.head()


def test_a_version_in_use_without_its_blob_is_left_for_the_nearest_sound_one(root: Path):
    lineage = again(root)
    for number in (2, 3):
        blob_of(lineage, lineage.get(number)).unlink()
    third = again(root)
    assert third.recover() == ["The weights of version 3 are missing or damaged; version 1 is in use."]
    assert third.head().number == 1
    entry = third._audit.entries[-1]
    assert (entry.kind, entry.payload["reason"]) == ("head", "weights missing or damaged")
    assert again(root).recover() == []


def test_with_every_blob_gone_the_base_is_in_use(root: Path):
    lineage = again(root)
    for number in (1, 2, 3):
        blob_of(lineage, lineage.get(number)).unlink()
    third = again(root)
    third.recover()
    assert third.head() == third.root()


# --- rows 28 and 32 seen from the versions


def test_a_commit_lost_with_the_end_of_the_history_is_said_and_the_one_before_is_in_use(root: Path):
    lines = log_lines(root)
    last_commit = max(index for index, line in enumerate(lines) if b'"kind":"commit"' in line)
    write_lines(root, [*lines[:last_commit], lines[last_commit][:50]])
    lineage = again(root)
    said = lineage.recover()
    assert lineage.head().number == 2
    assert "The version last in use is not in the history any more; version 2 is in use." in said
    assert any("end of the history was lost" in sentence for sentence in said)
    assert lineage.locked is None
    lineage.commit(new_commit(lineage, 5))


def change(line: bytes) -> bytes:
    return line.replace(b'"title":"lesson 2"', b'"title":"lesson X"')


@pytest.mark.parametrize("which", range(10))
def test_a_history_changed_anywhere_locks_commits_but_not_answers(root: Path, which: int):
    lines = log_lines(root)
    assert len(lines) == 10
    spoilt = lines[which][:40] + b"!" + lines[which][41:]
    write_lines(root, [*lines[:which], spoilt, *lines[which + 1 :]])
    lineage = again(root)
    (said,) = lineage.recover()
    assert f"at entry {which}" in said
    with pytest.raises(VerificationError, match=f"entry {which}"):
        lineage.commit(new_commit(lineage, 5))
    with pytest.raises(VerificationError, match=f"entry {which}"):
        lineage.move_head(lineage.root(), "undo")
    head = lineage.head()
    assert lineage.available(head)
    assert log_lines(root)[:which] == lines[:which]


def test_the_ref_still_says_what_is_in_use_when_the_move_of_head_was_edited(root: Path):
    lineage = again(root)
    lineage.move_head(lineage.get(1), "undo")
    lines = log_lines(root)
    write_lines(root, [*lines[:-1], lines[-1].replace(b"undo", b"redo")])
    assert again(root).head().number == 1


def test_a_version_written_into_the_history_by_hand_is_not_taken(root: Path):
    lineage = again(root)
    forged = lineage._audit.entries[-3]
    with (root / "audit" / "log").open("ab") as file:
        file.write(log_lines(root)[forged.seq])
    third = again(root)
    assert third.locked is not None
    assert third.head() == lineage.head()


def test_a_commit_entry_that_is_no_commit_is_not_a_version(root: Path):
    audit = AuditLog.open(root / "audit", QuickFiles(), FakeClock())
    for payload in ({}, {"commit": {}, "written_norm": "0"}, {"commit": [], "written_norm": "0"}):
        audit.append("commit", payload)
    lineage = again(root)
    assert [commit.number for commit in lineage.log()] == [3, 2, 1, 0]
    assert lineage._history.damaged == [10, 11, 12]


def test_a_home_copied_to_another_place_is_the_same_home(root: Path, tmp_path_factory: pytest.TempPathFactory):
    target = tmp_path_factory.mktemp("copy")
    for path in root.rglob("*"):
        if path.is_file():
            (target / path.relative_to(root)).parent.mkdir(parents=True, exist_ok=True)
            (target / path.relative_to(root)).write_bytes(path.read_bytes())
    assert again(target).log() == again(root).log()
