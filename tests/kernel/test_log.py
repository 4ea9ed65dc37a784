"""Logs say what happened and never what was said."""

from __future__ import annotations

import asyncio
import errno
import io
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path

import pytest

from app.errors import AppError, BugError, KnownError
from app.log import Plain, loop_crash, plain_sentence, start_logging, start_logging_if_writable, stop_logging

CANARY = "canary-7319 sings at dawn"


def choke() -> None:
    raise ValueError(CANARY)


def wrap(work: Callable[[], None]) -> None:
    try:
        work()
    except ValueError as error:
        raise BugError("read a message", "m1") from error


class Colour(StrEnum):
    RED = "red"


class Logged:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.app = logging.getLogger("app.something")
        self.foreign = logging.getLogger("sqlalchemy.engine")

    def text(self) -> str:
        return "".join(path.read_text() for path in sorted(self.folder.iterdir()))


@pytest.fixture
def logged(tmp_path: Path) -> Iterator[Logged]:
    root, ours = logging.getLogger().level, logging.getLogger("app").level
    handler = start_logging(tmp_path / "logs")
    yield Logged(tmp_path / "logs")
    stop_logging(handler)
    logging.getLogger().setLevel(root)
    logging.getLogger("app").setLevel(ours)


def test_numbers_identifiers_and_marked_words_are_kept(logged: Logged):
    logged.app.info("%s %d %s %s %s %s", 12, 3, "ab" * 16, Plain("engine"), Colour.RED, "ZeroDivisionError")
    assert f"12 3 {'ab' * 16} engine red ZeroDivisionError" in logged.text()


@pytest.mark.parametrize("value", [CANARY, [CANARY], {"text": CANARY}, ValueError(CANARY), CANARY.encode(), object()])
def test_any_other_argument_is_named_by_its_kind_or_length(logged: Logged, value: object):
    logged.app.warning("got %s", value)
    logged.app.warning("got %r", value)
    assert "canary" not in logged.text()
    assert "got <" in logged.text()


def test_named_arguments_are_covered_too(logged: Logged):
    logged.app.warning("got %(text)s", {"text": CANARY})
    assert "canary" not in logged.text()


def test_an_error_of_ours_is_logged_as_its_sentence(logged: Logged):
    logged.app.warning("%s", KnownError("load the model", "base.gguf", "It is missing."))
    assert "Could not load the model: base.gguf. It is missing." in logged.text()


def test_a_traceback_names_places_and_classes_but_not_the_texts_of_foreign_errors(logged: Logged):
    try:
        wrap(choke)
    except AppError:
        logged.app.exception("failed")
    text = logged.text()
    assert "canary" not in text
    assert "ValueError" in text
    assert "BugError: Could not read a message: m1." in text
    assert "test_log.py" in text
    assert "which led to" in text


def test_foreign_loggers_keep_their_first_line_without_arguments(logged: Logged):
    logged.foreign.error("INSERT failed\n[parameters: ('%s')]", CANARY)
    logged.foreign.error("Task exception was never retrieved\n%s" % CANARY)  # noqa: UP031 - as others do it
    assert "canary" not in logged.text()
    assert "INSERT failed" in logged.text()


def test_foreign_chatter_below_a_warning_is_not_kept(logged: Logged):
    logged.foreign.info("noise")
    logged.app.info("ours")
    assert "noise" not in logged.text()
    assert "ours" in logged.text()


def test_an_exception_text_that_another_handler_cached_is_not_reused(logged: Logged):
    other = logging.StreamHandler()
    try:
        choke()
    except ValueError:
        record = logged.app.makeRecord("app", logging.ERROR, "f", 1, "failed", (), sys.exc_info())
    other.format(record)
    assert CANARY in str(record.exc_text)
    logged.app.handle(record)
    assert "canary" not in logged.text()


def test_logs_rotate_and_stay_small(logged: Logged):
    for number in range(30_000):
        logged.app.warning("a line of some length, just to fill the file: %d", number)
    files = list(logged.folder.iterdir())
    assert 1 < len(files) <= 5
    assert sum(file.stat().st_size for file in files) < 6_000_000


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path):
    (tmp_path / "logs").write_text("in the way")
    with pytest.raises(KnownError):
        start_logging(tmp_path / "logs")


def test_a_sentence_for_people_holds_no_foreign_text():
    assert CANARY not in plain_sentence(ValueError(CANARY))
    assert plain_sentence(KnownError("load", "x", "Try again.")) == "Could not load: x. Try again."


def test_a_failing_task_is_logged_and_told(logged: Logged):
    told: list[str] = []

    async def fail() -> None:
        raise ValueError(CANARY)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(loop_crash(told.append))
        loop.call_exception_handler({"message": CANARY, "exception": ValueError(CANARY)})
        loop.call_exception_handler({"message": "no error"})

    asyncio.run(main())
    assert len(told) == 1
    assert "canary" not in logged.text() + told[0]
    assert "a task failed" in logged.text()


PROGRAM = """
import sys, threading
from pathlib import Path
from app.log import catch_crashes, start_logging
start_logging(Path(sys.argv[1]))
catch_crashes(lambda sentence: print(sentence, flush=True))
def fail():
    raise ValueError("canary in a thread")
thread = threading.Thread(target=fail)
thread.start()
thread.join()
raise RuntimeError("canary in main")
"""


def test_what_nobody_caught_is_logged_and_told_in_every_thread(tmp_path: Path):
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, cwd=root, check=False
    )
    log = (tmp_path / "ownmind.log").read_text()
    assert done.stdout.count("Something went wrong inside Ownmind") == 2
    assert done.returncode == 1
    assert ("ValueError" in log, "RuntimeError" in log) == (True, True)
    assert "canary" not in log + done.stdout + done.stderr


def test_a_full_disk_loses_the_line_and_prints_nothing_of_it(logged: Logged, capsys: pytest.CaptureFixture[str]):
    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    handler = next(each for each in logging.getLogger().handlers if isinstance(each, logging.FileHandler))
    stream, handler.stream = handler.stream, Full()  # type: ignore[assignment]
    logged.app.warning("heard %s", CANARY)
    handler.stream = stream
    assert capsys.readouterr().err == ""


def test_where_no_log_can_be_written_warnings_do_not_go_to_the_person(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "logs").touch()
    handler = start_logging_if_writable(tmp_path / "logs")
    logging.getLogger("app.something").warning("a detail")
    stop_logging(handler)
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_ending_the_log_on_a_full_disk_does_not_fail(tmp_path: Path):
    (tmp_path / "ownmind.log").symlink_to("/dev/full")
    handler = start_logging(tmp_path)
    logging.getLogger("app.something").warning("a detail")
    stop_logging(handler)
