"""The history: append-only, verifiable by itself, mended at its end, locked if changed anywhere else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.clock import FakeClock
from app.errors import BugError, VerificationError
from app.store.audit import RECOVERED, AuditLog, Checkpoint
from app.store.entries import GENESIS, Entry, make_entry, read_log, to_line
from app.store.files import RealFiles


def opened(folder: Path, clock: FakeClock | None = None) -> AuditLog:
    return AuditLog.open(folder, RealFiles(), clock or FakeClock())


def filled(folder: Path, count: int) -> AuditLog:
    log = opened(folder)
    for number in range(count):
        log.append("note", {"number": number, "text": f"note {number} of some length, so that lines differ"})
    return log


def payloads(log: AuditLog) -> list[object]:
    return [entry.payload.get("number") for entry in log.entries]


def test_what_was_appended_is_there_after_closing(tmp_path: Path):
    filled(tmp_path, 3)
    log = opened(tmp_path)
    assert payloads(log) == [0, 1, 2]
    assert log.notes == []
    log.verify()


def test_entries_are_linked_from_the_first(tmp_path: Path):
    log = filled(tmp_path, 3)
    assert [entry.prev for entry in log.entries] == [GENESIS, log.entries[0].hash, log.entries[1].hash]
    assert [entry.seq for entry in log.entries] == [0, 1, 2]


def test_order_is_by_sequence_when_the_clock_goes_backwards(tmp_path: Path):
    clock = FakeClock(datetime(2026, 6, 1, tzinfo=UTC))
    log = opened(tmp_path, clock)
    for year in (2026, 2020, 1999):
        clock.wall = datetime(year, 1, 1, tzinfo=UTC)
        log.append("note", {"number": year})
    again = opened(tmp_path, clock)
    assert payloads(again) == [2026, 2020, 1999]
    again.verify()


@pytest.mark.parametrize("payload", [{"x": 0.5}, {"x": 2**53 + 1}, {1: "x"}, {"x": b""}, {"x": "a" * 70_000}])
def test_an_entry_has_no_floats_no_huge_integers_and_no_bulk(tmp_path: Path, payload: dict[str, object]):
    log = opened(tmp_path)
    with pytest.raises(BugError):
        log.append("note", payload)
    assert list(log.entries) == []


# --- row 28: torn and zeroed ends


def damage_every_end(tmp_path: Path, spoil: Callable[[bytes, int], bytes], most: int) -> None:
    data = (filled(tmp_path / "source", 24)._path).read_bytes()
    whole = [len(data)]
    ends = [index + 1 for index, byte in enumerate(data) if byte == ord("\n")]
    assert len(data) > most
    for count in range(1, most + 1):
        spoilt = spoil(data, count)
        reading = read_log(spoilt)
        assert reading.bad is None
        intact = sum(end <= len(data) - count for end in ends)
        assert len(reading.entries) == intact
        assert reading.size_bytes == ([0, *ends])[intact]
        assert reading.torn == (len(spoilt) != reading.size_bytes)
    assert whole


def test_a_log_cut_off_anywhere_holds_up_to_its_last_whole_entry(tmp_path: Path):
    damage_every_end(tmp_path, lambda data, count: data[:-count], 4096)


def test_a_log_zeroed_at_its_end_holds_up_to_its_last_whole_entry(tmp_path: Path):
    damage_every_end(tmp_path, lambda data, count: data[:-count] + bytes(count), 4096)


@pytest.mark.parametrize("spoil", [lambda d, k: d[:-k], lambda d, k: d[:-k] + bytes(k)], ids=["cut", "zeroed"])
@pytest.mark.parametrize("count", [1, 2, 57, 200, 1000, 4096])
def test_a_torn_end_is_cut_and_a_recovered_entry_says_so(
    tmp_path: Path, spoil: Callable[[bytes, int], bytes], count: int
):
    log = filled(tmp_path, 24)
    before = [entry.hash for entry in log.entries]
    log._path.write_bytes(spoil(log._path.read_bytes(), count))
    again = opened(tmp_path)
    *kept, last = again.entries
    assert [entry.hash for entry in kept] == before[: len(kept)]
    assert last.kind == RECOVERED
    assert last.payload == {"cut": True, "missing": 24 - len(kept)}
    assert len(again.notes) == 1
    assert again.locked is None
    again.verify()
    again.append("note", {"number": 99})
    third = opened(tmp_path)
    assert third.notes == []
    assert payloads(third)[-2:] == [None, 99]


def test_an_end_lost_exactly_between_two_entries_is_noticed_too(tmp_path: Path):
    log = filled(tmp_path, 5)
    lines = log._path.read_bytes().splitlines(keepends=True)
    log._path.write_bytes(b"".join(lines[:3]))
    again = opened(tmp_path)
    assert again.entries[-1].payload == {"cut": False, "missing": 2}
    assert again.notes == ["The end of the history was lost (2 entries). It continues from the last sound entry."]
    assert again.locked is None


def test_a_log_that_is_all_zeros_starts_again_and_says_so(tmp_path: Path):
    log = filled(tmp_path, 3)
    log._path.write_bytes(bytes(log._size_bytes))
    again = opened(tmp_path)
    assert [entry.kind for entry in again.entries] == [RECOVERED]
    assert again.entries[0].payload["missing"] == 3


@pytest.mark.parametrize(
    "mark", [b"", b"\0" * 134, b"9 short\n", b"2 " + b"a" * 64 + b" " + b"b" * 64 + b"\n", b"\xff"]
)
def test_a_torn_checkpoint_says_nothing(tmp_path: Path, mark: bytes):
    log = filled(tmp_path, 3)
    log._checkpoint_path.write_bytes(mark)
    again = opened(tmp_path)
    assert (again.locked, again.notes) == (None, [])
    log._checkpoint_path.unlink()
    assert opened(tmp_path).notes == []


def test_an_old_checkpoint_is_harmless(tmp_path: Path):
    log = filled(tmp_path, 2)
    old = log._checkpoint_path.read_bytes()
    log.append("note", {})
    log._checkpoint_path.write_bytes(old)
    assert opened(tmp_path).locked is None


# --- row 32: changed by hand


def edited(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], lines[2].replace(b"note 2", b"note X"), *lines[3:]]


def edited_with_hash(lines: list[bytes]) -> list[bytes]:
    reading = read_log(b"".join(lines))
    old = reading.entries[2]
    new = make_entry(old.seq, old.time, old.kind, {"number": 7}, old.prev)
    return [*lines[:2], to_line(new), *lines[3:]]


def appended_by_hand(lines: list[bytes]) -> list[bytes]:
    return [*lines, to_line(make_entry(len(lines), "now", "commit", {}, "f" * 64))]


def rewritten(lines: list[bytes]) -> list[bytes]:
    """All hashes made anew from the edited entry on: only the checkpoint can tell."""
    made: list[Entry] = []
    for index, old in enumerate(read_log(b"".join(lines)).entries):
        payload = {"number": 7} if index == 2 else old.payload
        made.append(make_entry(index, old.time, old.kind, payload, made[-1].hash if made else GENESIS))
    return [to_line(entry) for entry in made]


CHANGES: dict[str, tuple[Callable[[list[bytes]], list[bytes]], int]] = {
    "an entry is edited": (edited, 2),
    "an entry is edited and its own hash made anew": (edited_with_hash, 3),
    "an entry is removed": (lambda lines: [*lines[:2], *lines[3:]], 2),
    "the first entry is removed": (lambda lines: lines[1:], 0),
    "two entries are swapped": (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], 1),
    "an entry is doubled": (lambda lines: [*lines[:3], lines[2], *lines[3:]], 3),
    "an entry is appended by hand": (appended_by_hand, 6),
    "words are appended by hand": (lambda lines: [*lines, b"hello\n"], 6),
    "an entry is zeroed in the middle": (lambda lines: [*lines[:2], bytes(len(lines[2]) - 1) + b"\n", *lines[3:]], 2),
    "spaces are added": (lambda lines: [lines[0].replace(b":", b": ", 1), *lines[1:]], 0),
    "an empty line is added": (lambda lines: [*lines[:4], b"\n", *lines[4:]], 4),
    "the whole log is rewritten": (rewritten, 5),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_named_by_its_first_bad_index_and_locks(tmp_path: Path, change: str):
    log = filled(tmp_path, 6)
    apply, bad = CHANGES[change]
    spoilt = b"".join(apply(log._path.read_bytes().splitlines(keepends=True)))
    log._path.write_bytes(spoilt)
    again = opened(tmp_path)
    assert again.notes == [f"The history was changed outside the app at entry {bad}. Learning is locked."]
    for refused in (again.verify, again.require_unlocked, lambda: again.append("note", {})):
        with pytest.raises(VerificationError, match=f"entry {bad}"):
            refused()
    assert again._path.read_bytes() == spoilt, "a changed log is evidence: nothing repairs it"
    assert len(again.entries) >= 4, "what is sound by itself can still be read"


def test_a_change_while_the_app_runs_is_found_by_verify(tmp_path: Path):
    log = filled(tmp_path, 6)
    lines = log._path.read_bytes().splitlines(keepends=True)
    log._path.write_bytes(b"".join(lines[:-1]))
    with pytest.raises(VerificationError, match="entry 5"):
        log.verify()
    log._path.write_bytes(b"".join(lines) + b"torn")
    with pytest.raises(VerificationError, match="entry 6"):
        log.verify()


# --- row 33: two copies continued apart


def test_two_copies_continued_apart_fail_the_consistency_check_and_show_where_they_part(tmp_path: Path):
    common = filled(tmp_path / "a", 3).checkpoint()
    (tmp_path / "b").mkdir()
    for path in (tmp_path / "a").iterdir():
        (tmp_path / "b" / path.name).write_bytes(path.read_bytes())
    ours, theirs = opened(tmp_path / "a"), opened(tmp_path / "b")
    ours.append("note", {"on": "a"})
    theirs.append("note", {"on": "b"})
    theirs.append("note", {"on": "b"})
    ours.extends(common)
    theirs.extends(common)
    for one, other in ((ours, theirs), (theirs, ours)):
        with pytest.raises(VerificationError, match="two branches"):
            one.extends(other.checkpoint())
    assert ours.fork_point(theirs.entries) == 3
    assert theirs.fork_point(ours.entries) == 3


def test_an_earlier_state_is_extended_and_a_later_one_is_not(tmp_path: Path):
    log = opened(tmp_path)
    log.extends(Checkpoint(0, GENESIS))
    log.append("note", {})
    at = log.checkpoint()
    log.append("note", {})
    log.extends(at)
    with pytest.raises(VerificationError):
        log.extends(Checkpoint(9, at.hash))


def test_a_read_only_log_is_read_and_not_mended(tmp_path: Path):
    log = filled(tmp_path, 3)
    torn = log._path.read_bytes() + b'{"half'
    log._path.write_bytes(torn)
    again = AuditLog.open(tmp_path, RealFiles(), FakeClock(), read_only=True)
    assert payloads(again) == [0, 1, 2]
    assert log._path.read_bytes() == torn
    assert again.locked is not None
