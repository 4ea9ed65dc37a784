"""The database: durable, one writer, and never silently wrong."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy.exc
from sqlmodel import Session, select

from app.clock import FakeClock
from app.errors import AppError, BugError, KnownError, UserError, VerificationError
from app.store.database import Database
from app.store.dberrors import code_of, from_database_error
from app.store.tables import ConversationRow, MessageRow, SettingRow

NOW = datetime(2026, 5, 4, 12, 30, tzinfo=UTC)


OPENED: list[Database] = []


def opened(path: Path, clock: FakeClock | None = None, **knobs: Any) -> Database:
    OPENED.append(Database(path, clock or FakeClock(), busy_timeout_ms=50, **knobs))
    return OPENED[-1]


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


def driver_of(session: Session) -> sqlite3.Connection:
    driver = session.connection().connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


def put(database: Database, name: str, value: str = "1") -> None:
    with database.session() as session:
        session.merge(SettingRow(name=name, value=value))


def names(database: Database) -> list[str]:
    with database.session() as session:
        return sorted(row.name for row in session.exec(select(SettingRow)))


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    return tmp_path / "ownmind.db"


def test_what_a_session_wrote_is_there_after_closing(path: Path):
    database = opened(path)
    put(database, "a")
    database.close()
    assert names(opened(path)) == ["a"]


def test_a_session_that_raises_leaves_nothing_behind(path: Path):
    database = opened(path)

    def body() -> None:
        with database.session() as session:
            session.add(SettingRow(name="a", value="1"))
            session.flush()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        body()
    assert names(database) == []


def test_rows_can_be_used_after_their_session(path: Path):
    database = opened(path)
    row = SettingRow(name="a", value="1")
    with database.session() as session:
        session.add(row)
    assert row.value == "1"


def test_sessions_do_not_nest(path: Path):
    database = opened(path)
    with database.session(), pytest.raises(BugError), database.session():
        pass
    assert names(database) == []


def test_sqlite_is_set_to_lose_nothing(path: Path):
    with opened(path).session() as session:
        driver = driver_of(session)
        asked = {name: driver.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")}
        asked["foreign_keys"] = driver.execute("PRAGMA foreign_keys").fetchone()[0]
    assert asked == {"journal_mode": "truncate", "synchronous": 2, "foreign_keys": 1}


def test_a_row_that_refers_to_nothing_is_refused(path: Path):
    database = opened(path)
    message = MessageRow(id="m", conversation="none", position=0, role="user", state="complete", created=NOW)
    with pytest.raises(BugError), database.session() as session:
        session.add(message)


def test_times_are_stored_in_utc_and_come_back_aware(path: Path):
    database = opened(path)
    elsewhere = NOW.astimezone(timezone(timedelta(hours=5, minutes=30)))
    with database.session() as session:
        session.add(ConversationRow(id="c", created=elsewhere, updated=NOW))
    with database.session() as session:
        session.expire_all()
        row = session.exec(select(ConversationRow).where(ConversationRow.updated >= elsewhere)).one()
    assert (row.created, row.updated, row.deleted) == (NOW, NOW, None)
    assert row.created.tzinfo is UTC


def test_a_current_database_opens_without_alembic(path: Path):
    opened(path).close()
    code = f"""
        import sys, pathlib
        from app.clock import SystemClock
        from app.store.database import Database
        Database(pathlib.Path({str(path)!r}), SystemClock()).close()
        assert "alembic" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=60)


# --- row 34: locked, hot side files


def test_a_lock_held_for_a_while_is_waited_for(path: Path, caplog: pytest.LogCaptureFixture):
    database = opened(path)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN EXCLUSIVE")
    release = threading.Timer(0.08, other.execute, ["ROLLBACK"])
    release.start()
    put(database, "a")
    release.join()
    other.close()
    assert names(database) == ["a"]
    assert "another program holds the database; waiting" in caplog.text


def test_a_lock_that_is_never_released_is_said_and_nothing_is_lost(path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.CRITICAL)
    database = opened(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    ran = []
    with pytest.raises(KnownError, match="Another program is using") as caught, database.session():
        ran.append("the body")
    assert caught.value.retryable
    assert ran == [], "nothing of the session ran, so the caller can do it again as a whole"
    other.close()
    put(database, "a")
    assert names(database) == ["a"]


def test_a_reader_elsewhere_is_waited_for_too(path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.CRITICAL)
    database = opened(path)
    put(database, "a")
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM setting").fetchall()
    with pytest.raises(KnownError, match="Another program is using"):
        put(database, "b")
    reader.close()
    put(database, "b")
    assert names(database) == ["a", "b"]


def killed_after(path: Path, code: str) -> None:
    """Run statements on ``db`` in another process, which then ends without closing anything."""
    start = "import os, sqlite3, sys\ndb = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
    whole = start + textwrap.dedent(code) + "os._exit(9)\n"
    done = subprocess.run([sys.executable, "-c", whole, str(path)], check=False, timeout=60)
    assert done.returncode == 9


def make_hot_wal(path: Path) -> None:
    """Leave the database as another program killed in WAL mode would: with pages that only the WAL has."""
    code = """
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA wal_autocheckpoint=0")
        db.execute("INSERT INTO setting VALUES ('in-wal', '1')")
    """
    killed_after(path, code)
    assert path.with_name(path.name + "-wal").stat().st_size > 0


@pytest.mark.parametrize("lost", ["", "-shm"])
def test_a_hot_wal_left_by_another_program_is_taken_in(path: Path, lost: str):
    database = opened(path)
    put(database, "a")
    database.close()
    make_hot_wal(path)
    if lost:
        path.with_name(path.name + lost).unlink()
    again = opened(path)
    assert names(again) == ["a", "in-wal"]
    with again.session() as session:
        driver = driver_of(session)
        assert driver.execute("PRAGMA journal_mode").fetchone() == ("truncate",)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="needs another account to lose a permission")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # the child only reports and ends
def test_a_wal_that_may_not_be_written_is_said(path: Path):
    opened(path).close()
    make_hot_wal(path)
    for part in path.parent.iterdir():
        os.chown(part, 65534, 65534)
    for folder in path.parents:
        if folder.name.startswith("pytest-"):
            folder.chmod(0o755)
    os.chown(path.parent, 65534, 65534)
    wal = path.with_name(path.name + "-wal")
    os.chown(wal, 0, 0)
    wal.chmod(0o444)
    assert as_nobody(lambda: opened(path)).startswith(("KnownError", "VerificationError"))
    wal.chmod(0o600)
    assert "in-wal" in names(opened(path))


def as_nobody(act: Callable[[], object]) -> str:
    """Run ``act`` in a forked child without root's rights; return what it raised."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = b"nothing"
        try:
            os.setresuid(65534, 65534, 65534)
            act()
        except AppError as error:
            said = f"{type(error).__name__}: {error}".encode()
        except BaseException as error:  # noqa: BLE001 - the child only reports
            said = f"other: {type(error).__name__}: {error}".encode()
        os.write(writing, said)
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    return os.read(reading, 4096).decode()


def test_a_write_killed_half_way_is_rolled_back_at_the_next_start(path: Path):
    database = opened(path)
    put(database, "a")
    database.close()
    code = """
        db.execute("PRAGMA journal_mode=TRUNCATE")
        db.execute("PRAGMA cache_size=1")
        db.execute("BEGIN IMMEDIATE")
        for i in range(500):
            db.execute("INSERT INTO setting VALUES (?, ?)", (f"half-{i}", "x" * 500))
    """
    killed_after(path, code)
    assert path.with_name(path.name + "-journal").stat().st_size > 0
    assert names(opened(path)) == ["a"]


# --- row 7: damage


def damaged_after_backup(path: Path, spoil: Callable[[bytes], bytes]) -> Database:
    database = opened(path)
    put(database, "a")
    database.close()
    assert list((path.parent / "backups").iterdir())
    path.write_bytes(spoil(path.read_bytes()))
    return opened(path)


SPOILS: dict[str, Callable[[bytes], bytes]] = {
    "all bytes are NUL": lambda data: bytes(len(data)),
    "the first page is NUL": lambda data: bytes(4096) + data[4096:],
    "a page in the middle is NUL": lambda data: data[:8192] + bytes(4096) + data[12288:],
    "it is text": lambda _data: b"<html>not a database at all</html>" * 100,
    "it is cut in half": lambda data: data[: len(data) // 2],
    "a page is noise": lambda data: data[:4096] + bytes(range(256)) * 16 + data[8192:],
}


@pytest.mark.parametrize("name", SPOILS)
def test_a_damaged_file_is_set_aside_and_the_last_good_copy_comes_back(path: Path, name: str):
    database = damaged_after_backup(path, SPOILS[name])
    assert names(database) == ["a"]
    (said,) = database.notes
    assert "damaged" in said
    assert "damaged-000001.db" in said
    assert (path.parent / "backups" / "damaged-000001.db").exists()
    database.close()
    assert opened(path).notes == []


def test_the_journal_of_a_damaged_file_is_not_played_into_the_good_copy(path: Path):
    database = opened(path)
    put(database, "a")
    database.close()
    path.write_bytes(bytes(8192))
    path.with_name(path.name + "-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(5000))
    assert names(opened(path)) == ["a"]


def test_a_damaged_backup_is_passed_over(path: Path):
    database = opened(path)
    put(database, "old")
    database.backup()
    put(database, "new")
    newest = database.backup()
    database.close()
    newest = max((path.parent / "backups").iterdir())
    newest.write_bytes(bytes(newest.stat().st_size))
    path.write_bytes(bytes(4096))
    assert "old" in names(opened(path))


def test_damage_without_any_good_copy_is_refused_and_nothing_is_touched(path: Path):
    opened(path).close()
    shutil.rmtree(path.parent / "backups", ignore_errors=True)
    path.write_bytes(bytes(8192))
    with pytest.raises(VerificationError, match="no earlier copy"):
        opened(path)
    assert path.read_bytes() == bytes(8192)


def test_an_empty_file_is_a_database_yet_to_be_made(path: Path):
    path.write_bytes(b"")
    put(opened(path), "a")


def test_leftovers_of_a_killed_start_are_removed(path: Path):
    leftover = path.with_name(".tmp-ownmind.db-upgraded")
    leftover.write_bytes(b"half")
    opened(path)
    assert not leftover.exists()


def test_faults_are_found_in_words(path: Path):
    database = opened(path)
    assert database.faults() == []
    assert database.faults(deep=True) == []
    database.close()
    raw = sqlite3.connect(path)
    raw.execute("INSERT INTO message VALUES ('m','gone',NULL,0,'user','','complete','x',NULL,NULL,0,0,0,0,NULL)")
    raw.commit()
    raw.close()
    assert opened(path).faults(deep=True) == ["A row of message refers to a missing row of conversation."]


# --- backups


def test_a_backup_is_made_when_something_changed_and_at_most_hourly(path: Path):
    clock = FakeClock()
    database = opened(path, clock)
    put(database, "a")
    assert database.backup_if_due()
    assert not database.backup_if_due()
    put(database, "b")
    assert not database.backup_if_due()
    clock.seconds += 3601
    assert database.backup_if_due()


def test_only_the_newest_backups_are_kept_and_order_is_by_number(path: Path):
    database = opened(path)
    for number in range(8):
        put(database, f"s{number}")
        database.backup()
    kept = sorted(entry.name for entry in (path.parent / "backups").iterdir())
    assert kept == [f"{number:06d}.db" for number in range(4, 9)]


# --- a full disk, a read-only home


def test_a_full_disk_is_said_and_undoes_the_session(path: Path):
    database = opened(path)
    put(database, "a")
    with database.session() as session:
        driver = driver_of(session)
        pages = driver.execute("PRAGMA page_count").fetchone()[0]
        driver.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(KnownError, match="disk is full") as caught:
        put(database, "b", "x" * 100_000)
    assert caught.value.retryable
    assert names(database) == ["a"]


def test_a_read_only_database_can_be_read_and_says_why_it_is_not_written(path: Path):
    database = opened(path)
    put(database, "a")
    database.close()
    before = path.read_bytes()
    reader = opened(path, read_only=True)
    assert names(reader) == ["a"]
    with pytest.raises(KnownError, match="only be read"):
        put(reader, "b")
    assert names(reader) == ["a"]
    reader.close()
    assert path.read_bytes() == before


def test_a_read_only_home_without_a_database_says_so(path: Path):
    with pytest.raises(KnownError, match="only be read"):
        opened(path, read_only=True)
    assert not path.exists()


# --- every error of SQLite becomes one of ours


def errors_of(module: object, root: type[Exception]) -> list[type[Exception]]:
    found = (getattr(module, name) for name in dir(module))
    return sorted((c for c in found if isinstance(c, type) and issubclass(c, root)), key=lambda c: c.__name__)


@pytest.mark.parametrize("cls", errors_of(sqlite3, sqlite3.Error))
def test_every_class_of_the_driver_becomes_one_of_ours(cls: type[Exception]):
    assert isinstance(from_database_error(cls("words"), "use", "x"), AppError)


@pytest.mark.parametrize("cls", [sqlalchemy.exc.SQLAlchemyError, *sqlalchemy.exc.SQLAlchemyError.__subclasses__()])
def test_every_class_of_the_mapper_becomes_one_of_ours(cls: type[Exception]):
    assert isinstance(from_database_error(cls.__new__(cls), "use", "x"), AppError)


CODES = [name for name in dir(sqlite3) if name.startswith("SQLITE_") and isinstance(getattr(sqlite3, name), int)]


@pytest.mark.parametrize("code", sorted({getattr(sqlite3, name) & 0xFF for name in CODES if "_" in name}))
def test_every_result_code_becomes_one_of_ours(code: int):
    error = sqlite3.OperationalError("words of a person that must not appear")
    error.sqlite_errorcode = code | 0x300
    made = from_database_error(error, "use", "x")
    assert isinstance(made, KnownError | VerificationError | BugError)
    assert "words" not in made.sentence()
    assert code_of(error) == code


def test_a_current_database_opens_fast(path: Path):
    opened(path).close()
    best = min(_seconds_to_open(path) for _ in range(5))
    assert best < 0.15


def _seconds_to_open(path: Path) -> float:
    start = time.perf_counter()
    database = opened(path)
    spent = time.perf_counter() - start
    database.close()
    return spent


def store_in_one_go(database: Database, *values: str) -> None:
    with database.session() as session:
        for value in values:
            session.add(SettingRow(name=value.encode("utf-8", "replace").hex(), value=value))
            session.flush()


def test_half_a_character_is_refused_and_nothing_of_it_is_kept(path: Path):
    database = opened(path)
    with pytest.raises(UserError, match="half a character"):
        store_in_one_go(database, "whole", "caf\udce9")
    with database.session() as session:
        assert list(session.exec(select(SettingRow))) == []
