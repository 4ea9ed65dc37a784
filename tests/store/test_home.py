"""Opening a home: one instance, cleaned up, read-only if need be, enough space."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlmodel import select

from app.clock import FakeClock
from app.errors import AppError, DeniedError, KnownError
from app.store.faults import FailingFiles
from app.store.files import RealFiles
from app.store.home import Home, Store
from app.store.lock import HomeLock
from app.store.tables import SettingRow

OPENED: list[Store] = []


def opened(root: Path, files: RealFiles | FailingFiles | None = None) -> Store:
    OPENED.append(Store.open(Home(root), FakeClock(), files=files))
    return OPENED[-1]


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


def test_a_home_has_the_layout_of_the_design(tmp_path: Path):
    store = opened(tmp_path / "home")
    assert sorted(path.name for path in store.home.root.iterdir()) == [
        "audit",
        "backups",
        "bases",
        "cache",
        "lock",
        "logs",
        "objects",
        "ownmind.db",
        "refs",
        "serving",
        "work",
    ]
    assert (store.read_only, store.notes) == (None, [])


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps profiles private by other means")
def test_a_home_is_its_owner_s_alone(tmp_path: Path):
    store = opened(tmp_path / "home")
    name = store.objects.put(b"private")
    store.audit.append("note", {})
    for path in (store.home.root, store.home.objects, store.objects.path(name).parent):
        assert path.stat().st_mode & 0o077 == 0
    for path in (store.objects.path(name), store.home.audit / "log", store.home.lock):
        assert path.stat().st_mode & 0o077 == 0


# --- one instance


def test_a_second_instance_is_turned_away_with_the_first_one_s_number(tmp_path: Path):
    first = opened(tmp_path)
    with pytest.raises(DeniedError, match=f"already open with it .process {os.getpid()}"):
        Store.open(Home(tmp_path), FakeClock())
    first.close()
    opened(tmp_path)


def test_the_lock_falls_with_its_holder_however_it_dies(tmp_path: Path):
    code = f"""
        import os, pathlib
        from app.store.lock import HomeLock
        lock = HomeLock(pathlib.Path({str(tmp_path / "lock")!r}))
        os.write(1, b"held")
        input()
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.read(4) == b"held"
        with pytest.raises(DeniedError, match=str(holder.pid)):
            HomeLock(tmp_path / "lock")
        holder.kill()
        holder.wait()
    HomeLock(tmp_path / "lock").release()


def test_a_store_that_fails_to_open_lets_go_of_the_home(tmp_path: Path):
    opened(tmp_path).close()
    (tmp_path / "ownmind.db").write_bytes(bytes(100))
    for path in (tmp_path / "backups").iterdir():
        path.unlink()
    with pytest.raises(AppError):
        Store.open(Home(tmp_path), FakeClock())
    HomeLock(tmp_path / "lock").release()


# --- cleaning up


def test_temporary_files_of_a_crash_are_removed_and_nothing_else(tmp_path: Path):
    store = opened(tmp_path)
    name = store.objects.put(b"data")
    store.close()
    kept = [store.objects.path(name), store.home.root / "notes-of-mine.txt"]
    kept[1].write_text("x", encoding="utf-8")
    folders = [store.objects.path(name).parent, store.home.audit, store.home.refs / "heads", store.home.root]
    folders[2].mkdir(parents=True)
    half = [folder / ".tmp-half" for folder in folders]
    for path in half:
        path.write_bytes(b"half")
    job = store.home.work / "proposal"
    job.mkdir()
    (job / "adapter.safetensors").write_bytes(b"half")
    (store.home.work / "note").write_bytes(b"")
    opened(tmp_path)
    assert list(store.home.work.iterdir()) == []
    assert not any(path.exists() for path in half)
    assert all(path.exists() for path in kept)


def test_what_opening_repaired_is_said(tmp_path: Path):
    store = opened(tmp_path)
    with store.database.session() as session:
        session.add(SettingRow(name="a", value="1"))
    store.close()
    store.home.database.write_bytes(bytes(8192))
    (said,) = opened(tmp_path).notes
    assert "last good copy" in said


# --- row 30: a home that cannot be written


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_a_home_that_cannot_be_written_opens_read_only_and_says_so(tmp_path: Path, code: int):
    store = opened(tmp_path)
    name = store.objects.put(b"data")
    store.audit.append("note", {})
    with store.database.session() as session:
        session.add(SettingRow(name="a", value="1"))
    store.close()
    reader = opened(tmp_path, FailingFiles(RealFiles(), at=0, code=code))
    assert reader.read_only == "This home can only be read: answers work, nothing is saved and nothing can be learned."
    assert reader.notes == [reader.read_only]
    assert reader.objects.get(name) == b"data"
    assert [entry.kind for entry in reader.audit.entries] == ["note"]
    with reader.database.session() as session:
        assert [row.name for row in session.exec(select(SettingRow))] == ["a"]
    with pytest.raises(KnownError, match="only be read"):
        reader.audit.append("note", {})
    assert reader.tidy(set()).condemned == ()


def as_nobody(act: Callable[[], None]) -> int:
    """Run ``act`` in a forked child without root's rights; return its exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setresuid(65534, 65534, 65534)
            act()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="needs another account to lose a permission")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # the child only reports and ends
def test_another_account_s_home_really_opens_read_only(tmp_path: Path):
    opened(tmp_path).close()
    for path in [tmp_path, *tmp_path.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    for folder in tmp_path.parents:
        if folder.name.startswith("pytest-"):
            folder.chmod(0o755)

    def act() -> None:
        store = Store.open(Home(tmp_path), FakeClock())
        assert store.read_only is not None
        with store.database.session() as session:
            assert list(session.exec(select(SettingRow))) == []

    assert as_nobody(act) == 0


# --- row 29: space


def test_twice_the_size_must_be_free_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    objects = opened(tmp_path).objects
    monkeypatch.setattr(RealFiles, "free_bytes", lambda _self, _folder: 10_000_000)
    objects.require_space(5_000_000)
    with pytest.raises(KnownError, match=r"10\.2 MB are needed and 10\.0 MB are free") as caught:
        objects.require_space(5_100_000)
    assert caught.value.retryable


def test_a_first_start_on_a_full_disk_is_refused_in_words(tmp_path: Path):
    with pytest.raises(KnownError, match="disk is full"):
        Store.open(Home(tmp_path), FakeClock(), files=FailingFiles(RealFiles(), at=0, code=errno.ENOSPC))


# --- a history that is not whole


@pytest.mark.parametrize("loss", ["changed", "end lost"])
def test_nothing_is_collected_once_entries_that_may_name_it_are_gone(tmp_path: Path, loss: str):
    store = opened(tmp_path)
    name = store.objects.put(b"weights of a version")
    for count in range(3):
        store.audit.append("note", {"object": name, "count": count})
    store.close()
    log = store.home.audit / "log"
    lines = log.read_bytes().splitlines(keepends=True)
    kept = [lines[0].replace(b"note", b"nota"), *lines[1:]] if loss == "changed" else lines[:1]
    log.write_bytes(b"".join(kept))
    for _ in range(3):
        store = opened(tmp_path)
        store.tidy(set())
        store.close()
    assert store.objects.get(name) == b"weights of a version"
