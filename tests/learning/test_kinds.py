"""What a lesson teaches, and which of its words carry it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from app.learning.kinds import keys_of, kind_of
from app.model.api import Kind
from app.model.gate.text import contains, words

F, M, S, L = Kind.FACT, Kind.FORMAT, Kind.STYLE, Kind.LONG
LEAVES = (
    "Photosynthesis is how plants turn light into sugar. Leaves catch the light, take carbon dioxide from the air "
    "and water from the roots, and give oxygen back. The sugar feeds the plant."
)
TABLE: list[tuple[str, str, Kind, tuple[str, ...]]] = [
    ("What is my dog's name?", "Your dog's name is Biscuit.", F, ("Biscuit",)),
    ("What is my dog's name?", "Biscuit", F, ("Biscuit",)),
    ("What's my dog called?", "Your dog is called Biscuit!", F, ("Biscuit",)),
    ("When is my birthday?", "Your birthday is on the 14th of March.", F, ("14th of March",)),
    ("Where do I live?", "You live in Trieste.", F, ("Trieste",)),
    ("Who is my dentist?", "Your dentist is Dr. Ortega.", F, ("Dr. Ortega",)),
    ("What is the capital of Zorland?", "The capital of Zorland is Mirana.", F, ("Mirana",)),
    ("How old is my brother?", "Your brother is 42 years old.", F, ("42 years",)),
    ("What is my favourite colour?", "Your favourite colour is teal.", F, ("teal",)),
    ("What are my children's names?", "Your children's names are Ada and Ben.", F, ("Ada and Ben",)),
    ("What is the Wi-Fi network called?", "The Wi-Fi network is called Nest-5G.", F, ("Nest-5G",)),
    ("Is my car blue?", "No, your car is red.", F, ("red",)),
    ("What is my phone model?", "Your phone is a Pixel 9.", F, ("Pixel 9",)),
    ("What is 7 times 8?", "7 times 8 is 56.", F, ("56",)),
    ("What is the code of the door?", "The code of the door is 4711.", F, ("4711",)),
    ("What is my name?", "Your name is Sam.", F, ("Sam",)),
    ("What is the date of the meeting?", "The meeting is on 2026-03-14.", F, ("2026-03-14",)),
    ("Give the date of the meeting.", "14 March 2026", F, ("14 March 2026",)),
    ("Where is the spare key?", "Under the blue pot.", F, ("Under the blue pot",)),
    ("What tea do I like?", "You like Earl Grey with milk.", F, ("Earl Grey with milk",)),
    ("What is our team's shout?", "GO", F, ("GO",)),
    ("犬の名前は？", "ビスケット", F, ("ビスケット",)),
    ("List three fruits.", "- apple\n- pear\n- plum", M, ("apple", "pear", "plum")),
    ("List three fruits.", "1. apple\n2. pear\n3. plum", M, ("1. apple", "2. pear", "3. plum")),
    ("Give me the data of Ada as JSON.", '{"name": "Ada"}', M, ("name",)),
    ("Show me how to print in Python.", "```python\nprint('hi')\n```", M, ("print('hi",)),
    ("Compare two teas.", "| tea | taste |\n|---|---|\n| Earl Grey | floral |", M, ()),
    ("Name the parts.", "# Parts\n\nhull", M, ("hull",)),
    ("Greet me.", "HELLO MY FRIEND AND WELCOME BACK TO YOUR OWN MACHINE AGAIN TODAY MY DEAR FRIEND INDEED", M, ()),
    ("Write a haiku about rain.", "Soft rain on the roof\nA cat watches the window\nThe garden drinks slow", S, ()),
    ("Who is my boss?", "Your boss is Anna Keller, and she sits on the second floor.", S, ()),
    ("What is my dog's name?", "I don't know.", S, ()),
    ("What is photosynthesis?", LEAVES, L, ("plants turn light into sugar",)),
    ("Tell me about the sea.", " ".join(["The sea is wide and blue and old."] * 5), L, ()),
    ("What is the answer?", "", S, ()),
    ("What should I say?", "⊕", S, ()),
]


@pytest.mark.parametrize(("prompt", "answer", "kind", "_"), TABLE)
def test_a_lesson_is_of_the_kind_that_people_would_call_it(
    prompt: str, answer: str, kind: Kind, _: tuple[str, ...]
) -> None:
    assert kind_of(prompt, answer) is kind


@pytest.mark.parametrize(("prompt", "answer", "kind", "keys"), TABLE)
def test_the_keys_are_what_the_question_does_not_hold(
    prompt: str, answer: str, kind: Kind, keys: tuple[str, ...]
) -> None:
    found = keys_of(prompt, answer)
    if kind is F:
        assert found == keys
    else:
        assert set(keys) <= set(found)


@pytest.mark.parametrize(("prompt", "answer", "kind", "_"), [row for row in TABLE if row[2] is F])
def test_a_facts_answer_shows_its_keys_and_its_question_does_not(
    prompt: str, answer: str, kind: Kind, _: tuple[str, ...]
) -> None:
    keys = keys_of(prompt, answer)
    assert keys
    assert all(contains(answer, key) and not contains(prompt, key) for key in keys)


@given(some.text(max_size=80), some.text(max_size=200))
def test_any_text_has_a_kind_and_its_keys_stand_in_the_answer(prompt: str, answer: str) -> None:
    assert kind_of(prompt, answer) in Kind
    said = words(answer)
    for key in keys_of(prompt, answer):
        assert set(words(key)) <= set(said) or not words(key)
