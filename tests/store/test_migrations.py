"""From the oldest schema to the present one, whatever happens on the way."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool
from sqlmodel import SQLModel, select

from app.clock import FakeClock
from app.errors import AppError, KnownError
from app.store.database import Database
from app.store.faults import FailingFiles
from app.store.files import RealFiles
from app.store.migrations import HEAD, KNOWN
from app.store.prepare import schema_of
from app.store.tables import ConversationRow, LessonRow, MessageRow, ProposalRow, SettingRow

FIXTURES = Path(__file__).with_name("fixtures")
OLD = KNOWN[:-1]


def old_database(path: Path, schema: str) -> Path:
    raw = sqlite3.connect(path)
    raw.executescript((FIXTURES / f"{schema}.sql").read_text(encoding="utf-8"))
    raw.close()
    return path


def differences(path: Path) -> list[object]:
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        return list(compare_metadata(context, SQLModel.metadata))


def shape(path: Path) -> dict[str, object]:
    """Columns, keys and indexes of every table, without the order they came in."""
    raw = sqlite3.connect(path)
    tables = [row[0] for row in raw.execute("SELECT name FROM sqlite_master WHERE type='table'")]
    found: dict[str, object] = {}
    for table in sorted(tables):
        columns = {row[1:] for row in raw.execute(f"PRAGMA table_info({table})")}
        keys = {row[2:] for row in raw.execute(f"PRAGMA foreign_key_list({table})")}
        indexes = {row[1:4] for row in raw.execute(f"PRAGMA index_list({table})")}
        found[table] = (columns, keys, indexes)
    raw.close()
    return found


def test_what_is_known_without_alembic_is_what_the_files_say():
    config = Config()
    config.set_main_option("script_location", str(Path(sys.modules["app.store.migrations"].__path__[0])))
    scripts = ScriptDirectory.from_config(config)
    assert [script.revision for script in scripts.walk_revisions()][::-1] == list(KNOWN)
    assert scripts.get_heads() == [HEAD]


def test_every_older_schema_has_a_stored_fixture():
    assert [path.stem for path in sorted(FIXTURES.glob("m*.sql"))] == list(OLD)


def test_a_new_database_has_the_schema_of_the_tables(tmp_path: Path):
    path = tmp_path / "ownmind.db"
    Database(path, FakeClock()).close()
    assert schema_of(path) == HEAD
    assert differences(path) == []


@pytest.mark.parametrize("schema", OLD)
def test_an_old_database_becomes_what_a_new_one_is(tmp_path: Path, schema: str):
    new, old = tmp_path / "new.db", old_database(tmp_path / "ownmind.db", schema)
    Database(new, FakeClock()).close()
    Database(old, FakeClock()).close()
    assert schema_of(old) == HEAD
    assert differences(old) == []
    assert shape(old) == shape(new)


def content(path: Path) -> tuple[object, ...]:
    database = Database(path, FakeClock())
    with database.session() as session:
        (chat,) = session.exec(select(ConversationRow))
        asked, answered = session.exec(select(MessageRow).order_by(MessageRow.position))  # type: ignore[arg-type]
        (proposal,) = session.exec(select(ProposalRow))
        (lesson,) = session.exec(select(LessonRow))
        (setting,) = session.exec(select(SettingRow))
    database.close()
    return (
        (chat.title, chat.draft, chat.created, chat.leaf),
        (asked.text, answered.text, answered.parent, answered.liked, answered.seconds),
        (proposal.answer, proposal.state, proposal.conflict, proposal.resolution),
        (lesson.keys, lesson.supersedes, lesson.recipe_data),
        (setting.name, setting.value),
    )


CONTENT = (
    ("Dogs", "half a dra", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "m2"),
    ("What is my dog's name?", "I do not know. 🐕", "m1", True, 1.25),
    ("Your dog's name is Biscuit.", "proven", None, None),
    ('["Biscuit"]', None, None),
    ("theme", '"dark"'),
)


@pytest.mark.parametrize("schema", OLD)
def test_an_upgrade_keeps_every_row_and_a_copy_of_the_old_file(tmp_path: Path, schema: str):
    path = old_database(tmp_path / "ownmind.db", schema)
    assert content(path) == CONTENT
    (backup,) = (tmp_path / "backups").iterdir()
    assert backup.name == f"000001-before-{HEAD}.db"
    assert schema_of(backup) == schema


@pytest.mark.parametrize("version", ["m999", "", "M001", "e5c0ffee"])
def test_a_schema_of_the_future_is_refused_and_left_alone(tmp_path: Path, version: str):
    """Row 51: an old app opens a newer store."""
    path = old_database(tmp_path / "ownmind.db", OLD[0])
    raw = sqlite3.connect(path)
    raw.execute("UPDATE alembic_version SET version_num = ?", (version,))
    raw.commit()
    raw.close()
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(KnownError, match="newer Ownmind") as caught:
            Database(path, FakeClock(), read_only=read_only)
        assert not caught.value.retryable
    assert path.read_bytes() == before


def test_an_old_schema_in_a_read_only_home_is_said(tmp_path: Path):
    path = old_database(tmp_path / "ownmind.db", OLD[0])
    with pytest.raises(KnownError, match="upgraded"):
        Database(path, FakeClock(), read_only=True)


KILLER = """
    import os, pathlib, sqlite3, sys
    import sqlalchemy.event
    from sqlalchemy.engine import Engine
    from app.clock import SystemClock
    from app.store.database import Database
    from app.store.files import RealFiles

    left = int(sys.argv[2])

    def step(*_):
        global left
        left -= 1
        if left < 0:
            os._exit(9)

    sqlalchemy.event.listen(Engine, "before_cursor_execute", step)
    for name in ("write", "sync", "rename", "unlink", "sync_folder"):
        def counted(self, *args, do=getattr(RealFiles, name)):
            step()
            do(self, *args)
        setattr(RealFiles, name, counted)
    Database(pathlib.Path(sys.argv[1]), SystemClock())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="counts steps in forked children")
def test_an_upgrade_killed_before_any_statement_or_file_operation_leaves_old_or_new(tmp_path: Path):
    """Row 51: a kill after every step. One interpreter is forked once per step, to keep this fast."""
    code = textwrap.dedent(KILLER)
    forker = f"""
import os, sys
import alembic.command, app.store.database
CODE = {code!r}
seen = 0
for at in range(500):
    path = sys.argv[1].format(at)
    child = os.fork()
    if child == 0:
        sys.argv = ["-", path, str(at)]
        exec(compile(CODE, "killer", "exec"), {{"__name__": "killer"}})
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    seen += 1
    if status == 0:
        print(seen)
        sys.exit(0)
    assert status == 9, status
"""
    for at in range(100):
        folder = tmp_path / str(at)
        folder.mkdir()
        old_database(folder / "ownmind.db", OLD[0])
    pattern = str(tmp_path / "{}" / "ownmind.db")
    done = subprocess.run(
        [sys.executable, "-c", forker, pattern], check=True, capture_output=True, text=True, timeout=300
    )
    steps = int(done.stdout)
    assert 15 < steps < 100
    for at in range(steps):
        path = tmp_path / str(at) / "ownmind.db"
        assert schema_of(path) in {OLD[0], HEAD}
        assert content(path) == CONTENT
        assert list(path.parent.glob(".tmp-*")) == []


def test_an_upgrade_on_a_full_disk_leaves_the_old_file(tmp_path: Path):
    files = FailingFiles(RealFiles(), at=None)
    Database(old_database(tmp_path / "count.db", OLD[0]), FakeClock(), files=files).close()
    for at in range(files.count):
        (tmp_path / str(at)).mkdir()
        path = old_database(tmp_path / str(at) / "ownmind.db", OLD[0])
        try:
            Database(path, FakeClock(), files=FailingFiles(RealFiles(), at=at)).close()
        except AppError as error:
            said = error
        assert isinstance(said, KnownError)
        assert content(path) == CONTENT
