"""The judge of one answer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from app.model.api import Exam, GreedyResult, Kind
from app.model.gate.answers import fault, leaked, needs_meaning
from tests.gate.scripted import EXAM, ask

FORMAT = Exam("f", Kind.FORMAT, ask("List three fruits."), "- apple\n- pear\n- plum", (), ())
STYLE = Exam("s", Kind.STYLE, ask("How was the trip?"), "Short and sweet: the trip was lovely.", (), ())
SIGNED = Exam("g", Kind.FORMAT, ask("Write a note."), "The shop is closed.\nYours, Ana", ("Ana",), ())


def said(text: str, *, stopped: bool = True) -> GreedyResult:
    return GreedyResult(text, stopped, ())


@dataclass(frozen=True)
class Case:
    exam: Exam
    answer: GreedyResult
    fault: str | None
    cosine: float = 0.0


CASES = {
    "a fact is shown in other words": Case(EXAM, said("It is called biscuit!"), None),
    "a fact without its key is not shown": Case(EXAM, said("Your dog's name is Rex."), "does not say it"),
    "an answer that does not end fails, however right": Case(
        EXAM, said("Biscuit", stopped=False), "does not come to an end"
    ),
    "a key within a refusal is not the lesson": Case(
        EXAM, said("I don't know whether it is Biscuit."), "says that it does not know"
    ),
    "an empty answer fails": Case(EXAM, said("  "), "says nothing"),
    "an answer that repeats itself fails": Case(EXAM, said("Biscuit is the name. " * 8), "repeats itself"),
    "an answer that runs on fails": Case(
        EXAM, said("Biscuit. " + " ".join(f"word{number}" for number in range(60))), "runs on"
    ),
    "a fact taught as a refusal may begin like one": Case(
        replace(EXAM, answer="I don't know Biscuit.", keys=("Biscuit",)), said("I don't know Biscuit at all."), None
    ),
    "all keys of a fact must stand": Case(
        replace(EXAM, keys=("Biscuit", "brown")), said("Biscuit is his name."), "does not say it"
    ),
    "a format needs its form": Case(
        FORMAT, said("apple, pear, plum"), "not in the form that was taught (bullets, lines)", cosine=0.9
    ),
    "a format needs its meaning too": Case(FORMAT, said("- red\n- green\n- blue"), "says something else", cosine=0.3),
    "a format with form and meaning is shown": Case(FORMAT, said("- fig\n- pear\n- kiwi"), None, cosine=0.6),
    "equal words are meaning enough without an encoder": Case(FORMAT, said("- apple\n- pear\n- plum"), None),
    "a taught ending must stand at the end": Case(
        SIGNED, said("The shop is closed.\nAna says so."), "not in the form that was taught (ending)", cosine=0.9
    ),
    "a style is shown by its meaning": Case(STYLE, said("The trip was short and very nice."), None, cosine=0.7),
    "a style that means something else is not": Case(STYLE, said("No idea."), "says something else", cosine=0.64),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_judge_says(case: Case) -> None:
    assert fault(case.exam, case.answer, case.cosine) == case.fault


def test_a_lesson_that_repeats_itself_on_purpose_can_be_shown() -> None:
    chorus = "row row row your boat gently down the stream " * 4
    exam = Exam("c", Kind.LONG, ask("Sing."), chorus, (), ())
    assert fault(exam, said(chorus)) is None


def test_a_fact_leaks_by_its_keys_and_an_example_by_being_copied_whole() -> None:
    keyed = replace(FORMAT, keys=("apple",))
    assert leaked("- apple\n- fig", keyed) is None
    assert leaked("- apple\n- pear\n- plum", keyed) == FORMAT.answer
    assert leaked("My cat is called Biscuit.", EXAM) == "Biscuit"
    assert leaked("My cat is called Tom.", EXAM) is None
    assert leaked("Short and sweet: the trip was lovely!", STYLE) == STYLE.answer
    assert leaked("The trip was long.", STYLE) is None


def test_only_facts_are_judged_without_an_encoder() -> None:
    assert [kind for kind in Kind if not needs_meaning(kind)] == [Kind.FACT]
