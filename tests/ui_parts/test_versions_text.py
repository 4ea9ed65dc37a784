from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from app.learning.api import VersionView
from app.ui.versions_text import Dot, relative_time, version_face

NOW = datetime(2026, 11, 30, 10, 30, tzinfo=UTC)  # a Monday


def version(number: int | None = 13, **changes: object) -> VersionView:
    values: dict[str, object] = {
        "id": f"c{number}",
        "number": number,
        "title": "Metric units",
        "time": NOW,
        "source": "",
        "note": "",
        "active": False,
        "rejected": False,
        "base": False,
        "available": True,
    }
    return VersionView(**{**values, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ago", "words"),
    [
        (timedelta(seconds=20), "just now"),
        (timedelta(minutes=2), "10:28"),
        (timedelta(hours=10), "00:30"),
        (timedelta(hours=11), "yesterday"),
        (timedelta(days=1), "yesterday"),
        (timedelta(days=2), "Saturday"),
        (timedelta(days=6), "Tuesday"),
        (timedelta(days=7), "23 November"),
        (timedelta(days=400), "26 October 2025"),
        (timedelta(seconds=-3), "just now"),
        (timedelta(hours=-2), "30 November, 12:30"),
    ],
)
def test_times_are_said_as_one_says_them(ago: timedelta, words: str) -> None:
    assert relative_time(NOW - ago, now=NOW) == words


def test_days_are_counted_where_the_reader_is() -> None:
    here = NOW.astimezone(timezone(timedelta(hours=14)))  # there it is 00:30 on Tuesday
    assert relative_time(NOW - timedelta(hours=1), now=here) == "yesterday"


def test_the_version_in_use_can_be_asked_but_not_used_again() -> None:
    shown = version_face(version(active=True, note="1 lesson"), now=NOW)
    assert (shown.dot, shown.can_use, shown.can_ask) == (Dot.ACTIVE, False, True)
    assert shown.note == "in use · 1 lesson"


def test_in_use_is_not_said_twice() -> None:
    assert version_face(version(active=True, note="in use · 1 lesson"), now=NOW).note == "in use · 1 lesson"


def test_a_rejected_lesson_is_no_version_to_go_to() -> None:
    shown = version_face(version(None, rejected=True, title="capital of Australia"), now=NOW)
    assert shown.title == "Not learned: capital of Australia"
    assert (shown.dot, shown.can_use, shown.can_ask) == (Dot.REJECTED, False, False)


def test_a_damaged_version_says_so_and_offers_nothing() -> None:
    shown = version_face(version(available=False), now=NOW)
    assert shown.dot is Dot.MISSING
    assert "missing or damaged" in shown.note
    assert not shown.can_use
    assert not shown.can_ask


def test_the_base_is_named_and_can_be_gone_back_to() -> None:
    shown = version_face(version(0, base=True, title="SmolLM2-135M-Instruct"), now=NOW)
    assert (shown.title, shown.when, shown.dot) == ("Base · SmolLM2-135M-Instruct", "", Dot.BASE)
    assert shown.can_use
