"""The checks after activation: the right weights, the lesson in several wordings, earlier lessons, no leftovers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from app.learning.selftest import SelfTest, self_test
from app.model.api import AdapterRef, BaseFiles, EvalItem, EvalResult, Exam, Kind, Role, Score, ScoreResult, Turn
from app.model.encoder.fake import FakeEncoder
from app.model.engine.fake import FakeEngine
from tests.lineage.made import PASSPORT

Says = dict[str, str]


def asks(text: str) -> tuple[Turn, ...]:
    return (Turn(Role.USER, text),)


DOG = Exam("l1", Kind.FACT, asks("dog?"), "It is Biscuit.", ("Biscuit",), tuple(asks(f"dog {n}?") for n in range(6)))
OLD = tuple(
    Exam(f"old{n}", Kind.FACT, asks(f"old {n}?"), f"It is Zed{n}.", (f"Zed{n}",), (asks(f"other {n}?"),))
    for n in range(5)
)
STYLE = Exam("s", Kind.STYLE, asks("greet?"), "Ahoy there, dear captain of the ship", (), (asks("hi?"),))
KNOWN: Says = {
    "dog?": "It is Biscuit.",
    **{f"dog {n}?": "Biscuit." for n in range(6)},
    **{f"old {n}?": f"Zed{n}." for n in range(5)},
    "greet?": "Ahoy there, dear captain of the ship",
    "hi?": "Ahoy there, dear captain of this ship",
}


class Trial:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.adapter: AdapterRef | None = AdapterRef("a" * 64, folder / "a.gguf")
        (folder / "a.gguf").write_bytes(b"x")
        (folder / "base.gguf").write_bytes(b"x")
        self.engine = FakeEngine(lambda turns, adapter: self.says.get(turns[-1].text, "Hm."))
        self.says = dict(KNOWN)
        self.runs: AdapterRef | None = self.adapter

    def test(self, exam: Exam | None = DOG, earlier: Sequence[Exam] = OLD) -> SelfTest:
        async def work() -> SelfTest:
            await self.engine.load(BaseFiles(PASSPORT, self.folder / "base.gguf", self.folder))
            await self.engine.activate(self.runs)
            return await self_test(self.engine, FakeEncoder(), self.adapter, exam, earlier)

        return asyncio.run(work())


@pytest.fixture
def tested(tmp_path: Path) -> Trial:
    return Trial(tmp_path)


def test_a_version_that_says_its_lesson_and_the_earlier_ones_passes(tested: Trial) -> None:
    assert tested.test().passed
    assert tested.test().reason == ""


def test_other_weights_in_the_engine_fail_it(tested: Trial) -> None:
    tested.runs = None
    assert tested.test().reason == "the engine does not run this version"


def test_the_base_passes_when_nothing_is_held(tested: Trial) -> None:
    tested.adapter = tested.runs = None
    assert tested.test(None, ()).passed


@pytest.mark.parametrize("said", ["Hm.", "", "I don't know, Biscuit.", "Biscuit " * 60])
def test_the_lessons_own_question_must_be_answered_with_it(tested: Trial, said: str) -> None:
    tested.says["dog?"] = said
    assert "same words" in tested.test().reason


def test_one_other_wording_may_fail_and_two_may_not(tested: Trial) -> None:
    del tested.says["dog 0?"]
    assert tested.test().passed
    del tested.says["dog 1?"]
    assert "other wordings" in tested.test().reason


def test_an_earlier_lesson_that_is_lost_fails_it(tested: Trial) -> None:
    del tested.says["old 4?"]
    assert "earlier lesson" in tested.test().reason


def test_only_the_latest_earlier_lessons_are_asked(tested: Trial) -> None:
    del tested.says["old 0?"]
    assert tested.test().passed


def test_a_style_is_judged_by_meaning(tested: Trial) -> None:
    assert tested.test(STYLE, ()).passed
    tested.says["greet?"] = "The weather will be fine."
    assert not tested.test(STYLE, ()).passed


def test_an_engine_that_gives_other_bits_the_second_time_fails_it(tested: Trial) -> None:
    real: Callable[..., object] = tested.engine._evaluated
    drift = iter((0.0, 1e-9))

    def unsteady(item: EvalItem, adapter: str | None) -> EvalResult:
        result = FakeEngine._evaluated(tested.engine, item, adapter)
        if isinstance(item, Score) and isinstance(result, ScoreResult):
            off = next(drift)
            return replace(result, logprobs=tuple(number + off for number in result.logprobs))
        return result

    tested.engine._evaluated = unsteady  # type: ignore[method-assign]
    assert "same way twice" in tested.test().reason
    assert real is not unsteady
