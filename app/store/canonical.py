r"""Canonical JSON: one value, one sequence of bytes, so that a hash of it means something.

Keys sorted by code point, no spaces, everything outside ASCII escaped (so a line of it holds neither a newline nor a
NUL byte, and lone surrogates survive), no NaN or infinity. Example: ``{"a":1,"b":"\u00e9"}``.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from app.errors import BugError, VerificationError

LARGEST_INTEGER = 2**53
"""Beyond it, other readers of JSON silently round."""


def canonical(value: Any, *, floats: bool = True) -> bytes:
    """Return the canonical bytes of a JSON value.

    Args:
        value: dicts with string keys, lists, tuples, strings, numbers, booleans, None.
        floats: Whether floats may appear. Chained records say no: a float is not spelled the same everywhere.

    Raises: BugError for anything else, since only our own code calls this.
    """
    _check(value, floats=floats)
    return _dump(value)


def _dump(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def digest(data: bytes) -> str:
    """Return the SHA-256 of bytes in hex: the name of an object."""
    return hashlib.sha256(data).hexdigest()


def parse(data: bytes, what: str) -> Any:
    """Return the value that canonical bytes stand for; ``what`` names them in the error.

    Raises: VerificationError if they are not canonical JSON.
    """
    try:
        value = json.loads(data)
        if _dump(value) == data:
            return value
    except (ValueError, RecursionError) as error:
        raise _not_canonical(what) from error
    raise _not_canonical(what)


def _not_canonical(what: str) -> VerificationError:
    return VerificationError("read a record", what, "It is damaged or was changed by hand.")


def _check(value: Any, *, floats: bool) -> None:
    if value is None or isinstance(value, str | bool):
        return
    if isinstance(value, int):
        if abs(value) > LARGEST_INTEGER:
            raise BugError("write a record", "an integer above 2^53")
    elif isinstance(value, float):
        if not floats or value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
            raise BugError("write a record", "a number that has no one spelling")
    elif isinstance(value, list | tuple):
        for item in value:
            _check(item, floats=floats)
    elif isinstance(value, dict):
        _check_keys(value)
        for item in value.values():
            _check(item, floats=floats)
    else:
        raise BugError("write a record", f"a value of type {type(value).__name__}")


def _check_keys(value: dict[Any, Any]) -> None:
    if not all(isinstance(key, str) for key in value):
        raise BugError("write a record", "a key that is not a string")
