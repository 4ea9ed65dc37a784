"""Logging to rotating files under the home's ``logs``; never message text.

Safe by default, since one forgotten argument is enough to leak a conversation:

- A string argument of our own log calls is replaced by its length, unless it is an identifier (hexadecimal, or the
  name of an error class) or marked as ``Plain``. Numbers, paths and enum values are kept, and so are errors of ours:
  by contract their sentence holds no message text. Of anything else the class is named.
- A traceback names files, lines, functions and classes. The text of a foreign exception is left out: databases and
  parsers quote what they choke on.
- Of foreign loggers only the first line is kept, without its arguments.

Format strings are literals in our code (a linter sees to it), so they are kept as they are.
"""

from __future__ import annotations

import contextlib
import enum
import logging
import logging.handlers
import re
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from app.errors import AppError, KnownError

_OURS = ("app", "__main__")
_IDENTIFIER = re.compile(r"[0-9a-f]{6,64}(?:-[0-9a-f]{4,12}){0,4}|[A-Z][A-Za-z]*(?:Error|Exception|Warning)")
_FILE_BYTES = 1_000_000
_FILES = 5
_log = logging.getLogger(__name__)


class Plain(str):
    """A string that our own code made and that holds nothing of the person's: a stage, a backend, a method."""

    __slots__ = ()


class SafeFormatter(logging.Formatter):
    """Formats records without what a person wrote; see the module."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(process)d %(threadName)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Format a copy of the record that holds safe arguments only."""
        safe = logging.makeLogRecord(record.__dict__)
        safe.exc_text = None
        safe.stack_info = None
        if record.name.split(".")[0] in _OURS:
            safe.args = _safe_args(record.args, named="%(" in str(record.msg))
        else:
            safe.msg, safe.args = _first_line(record), None
        return super().format(safe)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the base class's name
        """Return the traceback without the texts of foreign exceptions."""
        _, error, _ = ei
        return "\n".join(_chain(error)) if error is not None else ""


class _LogFile(logging.handlers.RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the base class's name
        """Lose the line: on a full disk the base class would print a traceback, with what was logged, to stderr."""


def start_logging(folder: Path, *, level: int = logging.INFO) -> logging.Handler:
    """Log everything from now on into ``folder``; return the handler, for ``stop_logging``.

    Raises: KnownError if the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handler = _LogFile(folder / "ownmind.log", maxBytes=_FILE_BYTES, backupCount=_FILES - 1, encoding="utf-8")
    except OSError as error:
        raise KnownError("write the log", folder.name, "The disk may be full, or the folder read-only.") from error
    handler.setFormatter(SafeFormatter())
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    for name in _OURS:
        logging.getLogger(name).setLevel(level)
    return handler


def start_logging_if_writable(folder: Path) -> logging.Handler:
    """As ``start_logging``; where nothing can be written the app works without a log, and stderr stays for people."""
    try:
        return start_logging(folder)
    except KnownError:
        handler = logging.NullHandler()
        logging.getLogger().addHandler(handler)
        return handler


def stop_logging(handler: logging.Handler) -> None:
    """Undo ``start_logging``."""
    logging.getLogger().removeHandler(handler)
    with contextlib.suppress(OSError):  # what it still held does not fit on a full disk
        handler.close()


def catch_crashes(tell: Callable[[str], None] | None = None) -> None:
    """Log what nobody caught, in any thread, and tell the person in one plain sentence.

    Args:
        tell: Shows a sentence; called on the thread that failed.
    """

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
            return
        _log.critical("not caught", exc_info=(kind, error, trace))
        if tell is not None:
            tell(plain_sentence(error))

    def thread_hook(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            hook(args.exc_type, args.exc_value, args.exc_traceback)

    sys.excepthook = hook
    threading.excepthook = thread_hook


def loop_crash(tell: Callable[[str], None] | None = None) -> Callable[[Any, dict[str, Any]], None]:
    """Return an exception handler for an asyncio loop that does the same as ``catch_crashes``."""

    def handle(_loop: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        _log.error("a task failed", exc_info=error if isinstance(error, BaseException) else None)
        if tell is not None and isinstance(error, BaseException):
            tell(plain_sentence(error))

    return handle


def plain_sentence(error: BaseException) -> str:
    """Return one sentence for a person; it holds no message text."""
    if isinstance(error, AppError):
        return error.sentence()
    return f"Something went wrong inside Ownmind ({type(error).__name__}). What you wrote is kept; the log says more."


def _safe_args(args: Any, *, named: bool) -> Any:
    """Return safe arguments. logging hands on a single dictionary as it is: named arguments, or one that was logged."""
    if isinstance(args, dict):
        return {name: _safe(value) for name, value in args.items()} if named else (_safe(args),)
    return tuple(map(_safe, args or ()))


def _safe(value: object) -> object:
    if value is None or isinstance(value, bool | int | float | Plain | Path | enum.Enum):
        return value
    if isinstance(value, AppError):
        return value.sentence()
    if isinstance(value, str):
        return value if _IDENTIFIER.fullmatch(value) else f"<{len(value)} characters>"
    return f"<{type(value).__name__}>"


def _first_line(record: logging.LogRecord) -> str:
    return str(record.msg).split("\n", 1)[0]


def _chain(error: BaseException) -> list[str]:
    lines: list[str] = []
    earlier = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if earlier is not None:
        lines += [*_chain(earlier), "which led to:"]
    for frame in traceback.extract_tb(error.__traceback__):
        lines.append(f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}')
    lines.append(f"{type(error).__name__}: {error.sentence()}" if isinstance(error, AppError) else type(error).__name__)
    return lines
