"""The format of the audit log: one line of canonical JSON per entry, each naming the hash of the one before.

Pure: no file, no clock. ``read_log`` tells three things apart:

- a log that holds;
- a *torn* end, as a power cut leaves it: the last bytes are cut off or zero. What stands before is sound;
- a log that was *changed*: an entry is edited, removed, swapped or added by hand. ``bad`` is the first index that
  does not hold. Entries that are sound by themselves are still returned, so that reading can go on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.errors import BugError, VerificationError
from app.store.canonical import canonical, digest, parse

GENESIS = "0" * 64
"""What the first entry names as the one before."""

LARGEST_ENTRY_BYTES = 65_535
"""Larger payloads are stored as objects and named by digest."""

_FIELDS = {"hash", "kind", "payload", "prev", "seq", "time"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened. ``seq`` gives the order; ``time`` is for people, clocks go backwards."""

    seq: int
    time: str
    """ISO 8601, UTC."""
    kind: str
    payload: dict[str, Any]
    """JSON without floats."""
    prev: str
    """Hash of the entry before, or GENESIS."""
    hash: str
    """SHA-256 over the canonical JSON of the other fields."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What the bytes of a log turned out to be."""

    entries: tuple[Entry, ...]
    size_bytes: int
    """Length of the part before any torn end."""
    torn: bool
    """Whether something incomplete stands behind the last entry."""
    bad: int | None
    """First index that does not hold; None if the log, but for a torn end, is sound."""


def make_entry(seq: int, time: str, kind: str, payload: dict[str, Any], prev: str) -> Entry:
    """Return an entry with its hash. Raises BugError if the payload is not JSON, has floats, or is too large."""
    body = {"seq": seq, "time": time, "kind": kind, "payload": payload, "prev": prev}
    data = canonical(body, floats=False)
    if len(data) > LARGEST_ENTRY_BYTES:
        raise BugError("write to the history", kind, "The entry is too large: store its payload as an object.")
    return Entry(seq, time, kind, payload, prev, digest(data))


def to_line(entry: Entry) -> bytes:
    """Return the entry as it stands in the log, newline included."""
    fields = {name: getattr(entry, name) for name in _FIELDS}
    return canonical(fields, floats=False) + b"\n"


def from_line(line: bytes) -> Entry | None:
    """Return the entry of a line without its newline; None unless it is canonical and its hash is right."""
    try:
        fields = parse(line, "an entry of the history")
        if not isinstance(fields, dict) or set(fields) != _FIELDS or not isinstance(fields["payload"], dict):
            return None
    except VerificationError:
        return None
    entry = Entry(**fields)
    del fields["hash"]
    return entry if digest(canonical(fields)) == entry.hash else None


def read_log(data: bytes) -> Reading:
    """Return what a log holds, and where it stops holding."""
    whole, torn = _split_torn_end(data)
    entries: list[Entry] = []
    bad: int | None = None
    prev = GENESIS
    for index, line in enumerate(whole.split(b"\n")[:-1]):
        entry = from_line(line)
        if bad is None and (entry is None or entry.seq != index or entry.prev != prev):
            bad = index
        if entry is not None:
            entries.append(entry)
            prev = entry.hash
    return Reading(tuple(entries), len(whole), torn, bad)


def _split_torn_end(data: bytes) -> tuple[bytes, bool]:
    """Return the part that ends with a newline and holds no NUL byte at its end, and whether anything follows it.

    Canonical JSON has no NUL bytes. Whatever begins in a line with NULs and holds no sound line behind it was torn;
    a NUL in the middle, with sound entries behind it, stays in and is found as a change.
    """
    end = data.rfind(b"\n") + 1
    first_nul = data.find(b"\0")
    if first_nul >= 0:
        start = data.rfind(b"\n", 0, first_nul) + 1
        behind = data[start:end].split(b"\n")
        if not any(from_line(line) for line in behind):
            end = min(end, start)
    return data[:end], end < len(data)
