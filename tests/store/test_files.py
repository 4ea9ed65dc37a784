"""One contract for every disk, and what the disks for tests do when told to."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import pytest

from app.store.faults import FailingFiles, PowerCut, PowerLossFiles
from app.store.files import Files, RealFiles, make_folders, replace_patiently, write_durably

DISKS = ("real", "failing never", "power loss")


@pytest.fixture(name="disk", params=DISKS)
def _disk(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    if request.param == "power loss":
        return PowerLossFiles(tmp_path)
    return RealFiles() if request.param == "real" else FailingFiles(RealFiles(), at=None)


def test_what_was_written_is_read(disk: Files, tmp_path: Path):
    path = tmp_path / "file"
    assert not disk.exists(path)
    disk.write(path, b"one")
    disk.append(path, b"two")
    assert disk.read(path) == b"onetwo"
    assert disk.size_bytes(path) == 6
    disk.truncate(path, 4)
    assert disk.read(path) == b"onet"
    disk.write(path, b"new")
    disk.sync(path)
    assert disk.read(path) == b"new"
    assert disk.free_bytes(tmp_path) > 0


def test_names_are_listed_sorted_and_a_missing_folder_has_none(disk: Files, tmp_path: Path):
    assert disk.list(tmp_path / "none") == []
    for name in ("b", "a"):
        disk.write(tmp_path / name, b"")
    disk.make_folder(tmp_path / "c")
    disk.make_folder(tmp_path / "c")
    disk.sync_folder(tmp_path)
    assert disk.list(tmp_path) == ["a", "b", "c"]


def test_a_rename_replaces_and_an_unlink_removes(disk: Files, tmp_path: Path):
    disk.write(tmp_path / "old", b"old")
    disk.write(tmp_path / "new", b"new")
    disk.rename(tmp_path / "new", tmp_path / "old")
    assert disk.list(tmp_path) == ["old"]
    assert disk.read(tmp_path / "old") == b"new"
    disk.unlink(tmp_path / "old")
    assert disk.list(tmp_path) == []


def test_what_is_missing_is_said_by_the_system_s_own_error(disk: Files, tmp_path: Path):
    path = tmp_path / "none"
    for act in (disk.read, disk.sync, disk.unlink, disk.size_bytes):
        with pytest.raises(FileNotFoundError):
            act(path)
    with pytest.raises(FileNotFoundError):
        disk.append(path, b"")
    with pytest.raises(FileNotFoundError):
        disk.write(path / "below", b"")


def test_folders_are_made_with_their_parents(disk: Files, tmp_path: Path):
    make_folders(disk, tmp_path / "a" / "b" / "c")
    make_folders(disk, tmp_path / "a" / "b" / "c")
    assert disk.list(tmp_path / "a" / "b") == ["c"]


def test_a_durable_write_leaves_no_temporary_file(disk: Files, tmp_path: Path):
    write_durably(disk, tmp_path / "file", b"data")
    assert disk.list(tmp_path) == ["file"]


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_durable_write_that_fails_keeps_the_old_content_or_has_the_new(tmp_path: Path, at: int, code: int):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match=r".") as caught:
        write_durably(FailingFiles(RealFiles(), at=at, code=code, lasting=False), path, b"new")
    assert caught.value.errno == code
    assert path.read_bytes() == (b"new" if at == 3 else b"old")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_failing_write_leaves_half_of_its_data(tmp_path: Path):
    files = FailingFiles(RealFiles(), at=0, lasting=False)
    with pytest.raises(OSError, match="space"):
        files.write(tmp_path / "file", b"12345678")
    assert files.read(tmp_path / "file") == b"1234"
    files.write(tmp_path / "file", b"all of it")
    assert files.count == 2


# --- the power-loss model


def contents(disk: PowerLossFiles, path: Path) -> set[bytes | None]:
    return {left.read(path) if left.exists(path) else None for left in disk.disks()}


@pytest.fixture(name="model")
def _model(tmp_path: Path) -> PowerLossFiles:
    return PowerLossFiles(tmp_path)


def test_without_any_sync_a_file_may_be_there_empty_torn_zeroed_whole_or_not_at_all(
    model: PowerLossFiles, tmp_path: Path
):
    model.write(tmp_path / "file", b"abcd")
    assert contents(model, tmp_path / "file") == {None, b"", b"ab", b"\0\0\0\0", b"\0\0cd", b"abcd"}


def test_a_synced_file_in_an_unsynced_folder_may_be_gone(model: PowerLossFiles, tmp_path: Path):
    model.write(tmp_path / "file", b"abcd")
    model.sync(tmp_path / "file")
    assert contents(model, tmp_path / "file") == {None, b"abcd"}


def test_after_both_syncs_a_file_is_safe(model: PowerLossFiles, tmp_path: Path):
    model.write(tmp_path / "file", b"abcd")
    model.sync(tmp_path / "file")
    model.sync_folder(tmp_path)
    assert contents(model, tmp_path / "file") == {b"abcd"}
    model.append(tmp_path / "file", b"ef")
    assert contents(model, tmp_path / "file") == {b"abcd", b"abcde", b"abcd\0\0", b"abcd\0f", b"abcdef"}


def test_an_unsynced_rename_shows_the_old_or_the_new(model: PowerLossFiles, tmp_path: Path):
    write_durably(model, tmp_path / "file", b"old")
    model.write(tmp_path / "new", b"new")
    model.sync(tmp_path / "new")
    model.sync_folder(tmp_path)
    model.rename(tmp_path / "new", tmp_path / "file")
    assert contents(model, tmp_path / "file") == {b"old", b"new"}


def test_a_rename_of_unsynced_data_may_show_nothing_of_it(model: PowerLossFiles, tmp_path: Path):
    write_durably(model, tmp_path / "file", b"old")
    model.write(tmp_path / "new", b"new!")
    model.rename(tmp_path / "new", tmp_path / "file")
    assert {b"old", b"", b"new!"} <= contents(model, tmp_path / "file")


def test_a_durable_write_shows_the_old_or_the_new_whenever_the_power_goes(tmp_path: Path):
    for cut in range(5):
        model = PowerLossFiles(tmp_path)
        write_durably(model, tmp_path / "file", b"old")
        model.cut_at = model.count + cut
        if cut < 4:
            with pytest.raises(PowerCut):
                write_durably(model, tmp_path / "file", b"new")
        else:
            write_durably(model, tmp_path / "file", b"new")
        assert contents(model, tmp_path / "file") <= {b"old", b"new"}
        if cut == 4:
            assert contents(model, tmp_path / "file") == {b"new"}


def test_a_folder_whose_parent_was_not_synced_may_be_gone_with_all_in_it(model: PowerLossFiles, tmp_path: Path):
    model.make_folder(tmp_path / "a")
    write_durably(model, tmp_path / "a" / "file", b"data")
    assert contents(model, tmp_path / "a" / "file") == {None, b"data"}
    model.sync_folder(tmp_path)
    assert contents(model, tmp_path / "a" / "file") == {b"data"}


def test_what_happens_to_one_possible_disk_does_not_happen_to_another(model: PowerLossFiles, tmp_path: Path):
    write_durably(model, tmp_path / "file", b"data")
    one, other = next(model.disks()), next(model.disks())
    one.write(tmp_path / "file", b"changed")
    assert other.read(tmp_path / "file") == b"data"
    assert model.read(tmp_path / "file") == b"data"


# --- Windows


def test_a_rename_over_a_file_that_is_being_scanned_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tries = []

    def busy_twice(self: Path, target: Path) -> Path:
        tries.append(target)
        if len(tries) < 3:
            raise PermissionError(errno.EACCES, "in use")
        return self.rename(target)

    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(Path, "replace", busy_twice)
    (tmp_path / "new").write_bytes(b"new")
    replace_patiently(tmp_path / "new", tmp_path / "file")
    assert len(tries) == 3
    assert (tmp_path / "file").read_bytes() == b"new"


def test_elsewhere_a_refused_rename_is_an_error_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def never(_self: Path, _target: Path) -> Path:
        raise PermissionError(errno.EACCES, "no")

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(Path, "replace", never)
    with pytest.raises(PermissionError):
        replace_patiently(tmp_path / "new", tmp_path / "file")
