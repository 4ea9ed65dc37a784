from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from app.learning.kinds import kind_of
from benchmarks.loop import run
from benchmarks.teaching import read_lessons


@pytest.mark.real
def test_lessons_of_different_kinds_taught_in_a_row_are_accepted_and_all_still_hold_at_the_end(tmp_path: Path) -> None:
    lessons = read_lessons()
    kinds = {kind_of(lesson.prompt, lesson.answer).value for lesson in lessons}
    assert len(lessons) == 21  # the dog and twenty further ones
    assert kinds == {"fact", "format", "style", "long"}
    report: dict[str, Any] = asyncio.run(run(lessons, tmp_path / "home"))
    refused = [(row["prompt"], row["reason"]) for row in report["lessons"] if row["state"] != "proven"]
    assert report["lessons"][0]["state"] == "proven"
    assert len(refused) <= 1, refused
    assert report["lost"] == []
