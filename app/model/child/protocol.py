"""The framed protocol between the app and a child process: one JSON object a line, UTF-8.

To the child::

    {"id": 1, "method": "generate", "params": {...}}
    {"cancel": 1}

From the child::

    {"ready": {"protocol": 1, "pid": 4711}}         once, before anything else
    {"id": 1, "event": {...}}                       any number of times
    {"id": 1, "alive": true}                        now and then, while there is nothing to tell
    {"id": 1, "done": {...}}                        or "cancelled": true, or "failed": {...}: exactly once, last

Invariants:
- One object is one line, so a torn write is seen as a broken line, never as a wrong message.
- This module knows no process, no pipe and no method: it is shared by both sides.
"""

from __future__ import annotations

import json
from typing import Any

from app.errors import BugError, ErrorInfo

Json = dict[str, Any]

PROTOCOL = 1
"""Both sides come from one installation; a mismatch means a half-finished update."""

MAX_LINE_BYTES = 256 * 1024 * 1024
"""Longest line the parent accepts: far above any real message, far below what would exhaust memory."""

TERMINAL = ("done", "cancelled", "failed")
"""Keys of which the last message of a request carries exactly one."""


def encode(message: Json) -> bytes:
    """Return one message as a line. Raises BugError for values that JSON cannot hold, NaN included."""
    try:
        text = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "surrogatepass") + b"\n"
    except (TypeError, ValueError) as error:
        raise BugError("write a message to a child process", type(error).__name__) from error


def decode(line: bytes) -> Json:
    """Return the message of one line. Raises BugError if it is none."""
    try:
        message = json.loads(line.decode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise BugError("read a message of a child process", "not JSON") from error
    if not isinstance(message, dict):
        raise BugError("read a message of a child process", "not an object")
    return message


def error_from(failed: Json) -> ErrorInfo:
    """Rebuild the error value of a ``failed`` message."""
    return ErrorInfo(
        kind=str(failed.get("kind", "BugError")),
        what=str(failed.get("what", "could not finish")),
        subject=str(failed.get("subject", "")),
        hint=str(failed.get("hint", "")),
        retryable=bool(failed.get("retryable", False)),
    )
