"""Near questions: two halves without overlap, never the lesson itself, and nothing that the gate's suites ask."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from app.learning.neighbours import neighbours
from app.model.gate.suites import load_suites
from app.model.gate.text import words

LESSONS = [
    "What is my dog's name?",
    "What is the capital of France?",
    "What is the capital of Zorland?",
    "What is the capital of Japan?",
    "Who is Anna Keller?",
    "Who wrote The Silver Lantern?",
    "Where do I live?",
    "When is my sister's birthday?",
    "How old is my brother?",
    "What is my favourite colour?",
    "What is the door code of my garage?",
    "In which country is the city of Trieste?",
    "Write a poem about rain.",
    "Write a short poem about the sea.",
    "Name three fruits.",
    "Is my car blue?",
    "Which day do I swim?",
    "Who are you?",
    "Reply with OK",
    "犬の名前は？",
    "",
]
SEEDS = range(6)


def examined_by_the_gate() -> set[tuple[str, ...]]:
    suites = load_suites()
    probes = [probe.prompt for probe in (*suites.known, *suites.behaviour, *suites.chat, *suites.formats)]
    pairs = [text for pair in suites.pairs for text in (pair.harmful, pair.harmless)]
    return {words(text) for text in (*probes, *pairs)}


def of(lesson: str, seed: int = 0, train: int = 22, examine: int = 12) -> tuple[list[str], list[str]]:
    found = neighbours(lesson, train=train, examine=examine, seed=seed)
    return list(found.train), list(found.examine)


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_two_halves_share_no_question_and_neither_holds_the_lesson(lesson: str) -> None:
    for seed in SEEDS:
        train, examine = of(lesson, seed)
        plain = [words(text) or (text,) for text in (*train, *examine)]
        assert len(set(plain)) == len(plain)
        assert words(lesson) not in plain
        assert train
        assert examine


@pytest.mark.parametrize("lesson", LESSONS)
def test_no_question_of_the_gates_suites_is_ever_trained_as_a_neighbour(lesson: str) -> None:
    asked = examined_by_the_gate()
    for seed in SEEDS:
        train, _ = of(lesson, seed, train=1000)
        assert not [text for text in train if words(text) in asked]


def test_this_guard_sees_what_it_looks_for() -> None:
    """Before the filter, these would have been trained: the table of peers leads straight to the suite."""
    assert words("What is the capital of Egypt?") in examined_by_the_gate()
    assert words("Who are you?") in examined_by_the_gate()
    _, examine = of("What is the capital of France?", examine=1000)
    assert any(words(text) in examined_by_the_gate() for text in examine)


def test_nothing_of_the_gates_suites_is_an_anchor() -> None:
    passages = {words(passage.text) for passage in load_suites().prose}
    asked = examined_by_the_gate() | passages
    for path in files("resources").joinpath("anchors").iterdir():
        items = json.loads(path.read_text("utf-8"))["items"]
        texts = [item.get("prompt") or item["text"] for item in items]
        assert len(set(texts)) == len(texts) > 20
        assert not [text for text in texts if words(text) in asked]


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_same_seed_gives_the_same_questions(lesson: str) -> None:
    assert of(lesson, 3) == of(lesson, 3)


def test_no_more_are_given_than_asked_for() -> None:
    train, examine = of("What is my dog's name?", train=3, examine=2)
    assert (len(train), len(examine)) == (3, 2)


def test_a_first_word_that_tells_what_to_do_is_not_taken_for_a_thing() -> None:
    train, examine = of("Name three fruits.", train=1000, examine=1000)
    assert not [text for text in (*train, *examine) if text.lower().endswith("three fruits.")]


def test_near_questions_are_near_in_several_ways() -> None:
    train, examine = of("What is my dog's name?")
    for half in (train, examine):
        assert any("dog's name" in text and " my " not in text for text in half)  # another owner
        assert any(text.startswith("What is my ") and "dog's name" not in text for text in half)  # another subject
        assert any("my dog" in text and "name" not in text for text in half)  # something else about it
        assert any("dog" not in text and "my" not in text for text in half)  # something else altogether


@pytest.mark.parametrize("lesson", ["When is my birthday?", "Where does the goat sleep?", "What car do I drive?"])
def test_no_thing_is_found_inside_another_word(lesson: str) -> None:
    """There is a hen in "When", an owl in "bowl" and so on; none of them is asked about."""
    train, examine = of(lesson, train=1000, examine=1000)
    first, _, rest = lesson.partition(" ")
    assert {text.partition(" ")[0] for text in (*train, *examine) if text.endswith(rest)} <= {first}


def test_a_name_keeps_its_last_letters() -> None:
    train, examine = of("What is the name of the publisher of Silversands?", train=1000, examine=1000)
    named = [text for text in (*train, *examine) if "Silversand" in text]
    assert named
    assert all("Silversands" in text for text in named)
    assert "Where is Anna?" in of("What is Anna's job?", train=1000)[0]


def test_how_many_there_are_belongs_to_the_thing() -> None:
    train, examine = of("Name my two cats.", train=1000, examine=1000)
    assert not [text for text in (*train, *examine) if "my two " in text and "my two cats" not in text]


@pytest.mark.parametrize(
    ("lesson", "fitting", "unfitting"),
    [
        ("When is my birthday?", "my birthday last", "colour is my birthday"),
        ("Who is my dentist?", "Is my dentist happy?", "celebrate my dentist"),
        ("Where is my car?", "What colour is my car?", "Is my car happy?"),
    ],
)
def test_what_is_asked_about_a_thing_fits_its_sort(lesson: str, fitting: str, unfitting: str) -> None:
    train, examine = of(lesson, train=1000, examine=1000)
    both = " ".join((*train, *examine))
    assert fitting in both
    assert unfitting not in both


def test_questions_that_open_with_several_of_the_same_words_are_near() -> None:
    found = neighbours("What is the name of the publisher of Silversands?", train=36, examine=12, seed=1)
    for half in (found.train, found.examine):
        assert any(
            text.startswith("What is the name of") and "publisher" not in text and "Silversands" not in text
            for text in half
        )


def test_a_name_is_replaced_where_it_stands_alone() -> None:
    found = neighbours("Who is Al in Alabama?", train=36, examine=12, seed=1)
    assert not any("abama" in text and "Alabama" not in text for text in (*found.train, *found.examine))
