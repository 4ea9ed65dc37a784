"""Blobs: what comes back is what was put, or an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.errors import BugError, KnownError, VerificationError
from app.store.canonical import digest
from app.store.faults import PowerLossFiles
from app.store.files import Files, RealFiles
from app.store.objects import Objects

DISKS = {"real": RealFiles, "model": None}


@pytest.fixture(name="disk", params=DISKS)
def _disk(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    return RealFiles() if request.param == "real" else PowerLossFiles(tmp_path)


@pytest.fixture(name="objects")
def _objects(disk: Files, tmp_path: Path) -> Objects:
    return Objects(tmp_path / "objects", disk)


def test_a_blob_comes_back_byte_for_byte(objects: Objects):
    for data in (b"", b"\0\n", b"x" * 100_000):
        name = objects.put(data)
        assert name == digest(data)
        assert objects.get(name) == data
        assert objects.has(name)
    assert objects.names() == sorted(digest(data) for data in (b"", b"\0\n", b"x" * 100_000))


def test_a_blob_stands_where_its_name_says(objects: Objects, tmp_path: Path):
    name = objects.put(b"data")
    assert objects.path(name) == tmp_path / "objects" / name[:2] / name[2:]


def test_putting_again_changes_nothing(objects: Objects):
    assert objects.put(b"data") == objects.put(b"data")
    assert len(objects.names()) == 1


def test_a_missing_blob_is_an_error_that_says_so(objects: Objects):
    with pytest.raises(KnownError, match="missing") as caught:
        objects.get("0" * 64)
    assert not caught.value.retryable
    assert not objects.intact("0" * 64)


@pytest.mark.parametrize("damage", [b"", b"dat", b"datA", b"\0\0\0\0", b"data more"])
def test_a_damaged_blob_is_never_returned(objects: Objects, disk: Files, damage: bytes):
    name = objects.put(b"data")
    disk.write(objects.path(name), damage)
    with pytest.raises(VerificationError, match="damaged"):
        objects.get(name)
    assert not objects.intact(name)


def test_a_blob_found_intact_that_vanishes_or_shrinks_later_is_noticed(objects: Objects, disk: Files):
    name = objects.put(b"data")
    assert objects.intact(name)
    assert objects.intact(name)
    disk.write(objects.path(name), b"dat")
    assert not objects.intact(name)
    disk.unlink(objects.path(name))
    assert not objects.intact(name)


def test_putting_a_damaged_blob_again_mends_it(objects: Objects, disk: Files):
    name = objects.put(b"data")
    disk.write(objects.path(name), b"dat")
    objects.put(b"data")
    assert objects.get(name) == b"data"


@pytest.mark.parametrize("name", ["", "..", "../../../etc/passwd", "A" * 64, "0" * 63, "0" * 65, "0" * 64 + "\n"])
def test_only_a_digest_is_a_name(objects: Objects, name: str):
    for use in (objects.get, objects.has, objects.remove):
        with pytest.raises(BugError):
            use(name)


def test_removing_twice_is_harmless(objects: Objects):
    name = objects.put(b"data")
    objects.remove(name)
    objects.remove(name)
    assert objects.names() == []


def test_strange_files_are_not_blobs(objects: Objects, disk: Files, tmp_path: Path):
    name = objects.put(b"data")
    disk.write(objects.path(name).with_name("README"), b"")
    disk.write(objects.path(name).with_name(".tmp-half"), b"")
    disk.write(tmp_path / "objects" / "stray", b"")
    assert objects.names() == [name]
    assert [path.name for path in objects.leftovers()] == [".tmp-half"]
