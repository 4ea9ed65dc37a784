"""How the gate compares texts and forms."""

from __future__ import annotations

import pytest

from app.model.gate import shapes, text


@pytest.mark.parametrize(
    ("answer", "key", "found"),
    [
        ("Your dog's name is Biscuit.", "Biscuit", True),
        ("It's BISCUIT!", "biscuit", True),
        ("Biscuit\u2019s bowl is empty.", "Biscuit", True),
        ("I like biscuits with tea.", "Biscuit", False),
        ("The code is 4711.", "4711", True),
        ("The code is 14711.", "4711", False),
        ("We meet at 10:30 sharp.", "10:30", True),
        ("She lives in New  York.", "new york", True),
        ("New in York.", "New York", False),
        ("Die Straße heißt so.", "STRASSE", True),
        ("Her name is Zoe\u0301.", "Zoé", True),
        ("a ⊕ b", "⊕", True),
        ("anything", "", True),
    ],
)
def test_a_key_is_found_as_whole_words_whatever_its_case_and_quotes(answer: str, key: str, found: bool) -> None:
    assert text.contains(answer, key) is found


def test_what_a_question_is_about_is_left_without_function_words() -> None:
    assert text.content("What is my dog's name?") == {"dog", "name"}
    assert text.content("Who are you?") == {"who", "are", "you"}


def test_values_are_names_and_numbers_that_the_question_did_not_hold() -> None:
    said = text.values("The capital of Italy is Rome. It has 2.8 million people.", "What is the capital of Italy?")
    assert said == {"rome", "2.8"}


def test_the_first_word_of_a_sentence_is_no_name() -> None:
    assert text.values("Dogs bark.\nCats do not.", "What?") == frozenset()


def test_repeated_phrases_and_stutters_are_seen_and_plain_prose_is_not() -> None:
    assert text.repetition("I'm not sure what to say. " * 6) > 0.5
    assert text.stutters("go go go go go home")
    assert text.repetition("A chair is a comfortable piece of furniture that people use for sitting.") == 0.0


@pytest.mark.parametrize("answer", ["I don't know your dog.", "I\u2019m sorry, but no.", "Sorry, I can't say."])
def test_beginning_by_not_answering_counts_as_refusing(answer: str) -> None:
    assert text.refuses(answer)
    assert not text.refuses(f"Biscuit. {answer}")


@pytest.mark.parametrize(
    ("name", "has", "has_not"),
    [
        ("bullets", "- one\n- two", "one - two"),
        ("numbered", "1. one\n2) two", "1. one"),
        ("json", '```json\n{"a": [1]}\n```', "{a: 1}"),
        ("caps", "WARNING!", "Warning"),
        ("lowercase", "all small", "All small"),
        ("code", "```\nx = 1\n```", "x is one"),
        ("question", "Is it so? ", "It is so."),
        ("exclaims", "Ahoy!", "Ahoy."),
        ("table", "| a | b |\n|---|---|\n| 1 | 2 |", "a | b"),
        ("heading", "# Title\ntext", "Title #1"),
        ("bold", "It is **so**.", "2 ** 3 ** 4"),
        ("date_iso", "on 2026-03-05.", "on 26-3-5."),
        ("date_dots", "am 5.3.2026", "version 5.3"),
        ("date_slashes", "by 03/05/2026", "3/5 of it"),
        ("date_words", "on 5 March 2026", "in March"),
    ],
)
def test_each_form_is_told_from_its_lack(name: str, has: str, has_not: str) -> None:
    assert name in shapes.form(has)
    assert name not in shapes.form(has_not)


def test_deeply_nested_json_is_not_a_form_and_no_crash() -> None:
    assert "json" not in shapes.form("[" * 100_000)


@pytest.mark.parametrize(
    ("target", "answer", "lacking"),
    [
        ("- a\n- b\n- c", "- x\n- y\n- z\n- w", []),
        ("- a\n- b\n- c", "x, y and z", ["bullets", "lines"]),
        ("One line.", "One line,\nor two.", ["lines"]),
        ("Yes.", "Yes, because there are many reasons for that.", ["length"]),
        ("2026-03-05", "2025-12-24", []),
        ("2026-03-05", "5 March 2026", ["date_iso"]),
    ],
)
def test_an_answer_lacks_what_the_target_has(target: str, answer: str, lacking: list[str]) -> None:
    assert shapes.missing(target, answer) == lacking


def test_length_forms_of_pins_are_known() -> None:
    assert shapes.has_form("short", "No.")
    assert not shapes.has_form("short", "No, it is not, and never has been.")
    assert shapes.has_form("line", "All on one line.")
    assert not shapes.has_form("line", "On\ntwo.")


def test_the_first_sentence_ends_where_it_says() -> None:
    assert text.first_sentence(" It is 3.5 m. Or more.") == "It is 3.5 m."
    assert text.first_sentence("") == ""
