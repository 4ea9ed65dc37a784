"""One question in many wordings: grammatical, in two halves that share neither a text nor a family."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from importlib.resources import files

import pytest

from app.learning.wordings import Prompt, Wordings, _read, is_question, reword
from app.model.api import Role

TABLE = [
    ("What is my dog's name?", "noun", "my dog's name"),
    ("What's my dog's name?", "noun", "my dog's name"),
    ("what is my dogs name", "noun", "my dogs name"),
    ("Who is my dentist?", "noun", "my dentist"),
    ("What are my children's names?", "noun", "my children's names"),
    ("What was the name of my first school?", "noun", "the name of my first school"),
    ("What is the capital of Zorland?", "noun", "the capital of Zorland"),
    ("What is Anna's phone number?", "noun", "Anna's phone number"),
    ("What is Quillborough?", "noun", "Quillborough"),
    ("What is happening?", "question", ""),
    ("What is wrong with it?", "question", ""),
    ("Where do I live?", "clause", "where I live"),
    ("What time do I start work?", "clause", "what time I start work"),
    ("How do I make coffee?", "clause", "how I make coffee"),
    ("When do people eat here?", "clause", "when people eat here"),
    ("When is my sister's birthday?", "clause", "when my sister's birthday is"),
    ("Where is my brother's wife's office?", "clause", "where my brother's wife's office is"),
    ("How old is my brother?", "clause", "how old my brother is"),
    ("How tall is the Eiffel Tower?", "clause", "how tall the Eiffel Tower is"),
    ("Where am I from?", "clause", "where I am from"),
    ("When is my brother in town?", "clause", "when my brother is in town"),
    ("When is the next train?", "question", ""),
    ("Where is my spare key?", "question", ""),
    ("Why is the sky blue?", "question", ""),
    ("Which tea is best?", "question", ""),
    ("Is my car blue?", "question", ""),
    ("Who wrote The Silver Lantern?", "question", ""),
    ("What does ACME stand for?", "question", ""),
    ("犬の名前は？", "question", ""),
    ("2+2?", "question", ""),
    ("Write a poem about rain.", "request", "write a poem about rain"),
    ("Write a poem about rain", "request", "write a poem about rain"),
    ("Explain DNA to me.", "request", "explain DNA to me"),
    ("NASA in one line", "request", "NASA in one line"),
    ("List {three} fruits!", "request", "list {three} fruits"),
]
PROMPTS = [prompt for prompt, _, _ in TABLE]


def texts(prompts: Iterable[Prompt]) -> list[str]:
    return [turns[-1].text for turns in prompts]


@pytest.mark.parametrize(("prompt", "form", "phrase"), TABLE, ids=PROMPTS)
def test_a_prompt_is_read_as_what_it_is_and_its_indirect_form_is_grammatical(
    prompt: str, form: str, phrase: str
) -> None:
    found, slots = _read(prompt)
    assert found == form
    said = {"noun": slots.get("np", ""), "clause": slots.get("clause", ""), "request": slots.get("r_low", "")}
    assert said.get(form, "").rstrip(".!") == phrase


@pytest.mark.parametrize("prompt", PROMPTS)
def test_the_two_halves_share_no_wording(prompt: str) -> None:
    train, held_out = (
        {re.sub(r"\W+", " ", text).casefold().strip() for text in texts(half)} for half in halves(reword(prompt))
    )
    assert not train & held_out
    assert train
    assert len(held_out) >= 3


def halves(wordings: Wordings) -> tuple[list[Prompt], list[Prompt]]:
    return list(wordings.train), list(wordings.held_out)


def test_the_two_halves_share_no_family() -> None:
    table = json.loads(files("resources").joinpath("wordings/en.json").read_text("utf-8"))

    def frames(half: str) -> set[str]:
        every = [template for templates in table[half].values() for template in templates]
        bare = {re.sub(r"\W+", " ", re.sub(r"\{\w+\}", " … ", text)).casefold().strip() for text in every}
        return {frame for frame in bare if frame}

    train, held_out = frames("train"), frames("held_out")
    assert len(train) > 10
    assert len(held_out) > 10
    assert not train & held_out


@pytest.mark.parametrize("prompt", PROMPTS)
def test_the_exact_prompt_comes_first_and_nothing_comes_twice(prompt: str) -> None:
    wordings = reword(prompt)
    assert wordings.train[0][-1].text == prompt
    for half in halves(wordings):
        assert len(set(half)) == len(half)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_every_wording_is_well_formed(prompt: str) -> None:
    for half in halves(reword(prompt)):
        for text in texts(half):
            bare = text.replace("{three}", "three")
            assert not re.search(r"[{}]|  |\s[?.!,]|\?\?|\.\.|\?\.|!\.|^\W*$", bare), text
            assert text == text.strip()
            assert not re.search(r"[a-z] (?:Please|Thanks|Thank you|Tell me)\b", text), text


@pytest.mark.parametrize("prompt", PROMPTS)
def test_every_wording_holds_the_words_that_matter(prompt: str) -> None:
    wanted = re.findall(r"\w+", prompt.rsplit(maxsplit=1)[-1].casefold())
    for half in halves(reword(prompt)):
        for text in texts(half):
            assert set(wanted) <= set(re.findall(r"\w+", text.casefold())), text


def test_some_wordings_come_in_the_middle_of_a_conversation() -> None:
    longer = [turns for turns in reword("Where do I live?").train if len(turns) > 1]
    assert longer
    for turns in longer:
        assert [turn.role for turn in turns] == [Role.USER, Role.ASSISTANT, Role.USER]
        assert turns[-1].text == "Where do I live?"


def test_the_same_prompt_always_gives_the_same_wordings_whatever_blanks_surround_it() -> None:
    assert reword("Where do I live?") == reword("  Where do I live?\n")


@pytest.mark.parametrize("prompt", ["", " ", "?", "I", "{", "{q}", "{0}", "a\nb", "x" * 5000, "¿Qué?", "\ud800"])
def test_odd_prompts_are_reworded_without_harm(prompt: str) -> None:
    wordings = reword(prompt)
    assert wordings.train[0][-1].text == prompt.strip()


@pytest.mark.parametrize(
    ("prompt", "asks"),
    [
        ("Where do I live", True),
        ("What's up", True),
        ("Is it raining", True),
        ("You live where?", True),
        ("犬？", True),
        ("Write a poem", False),
        ("Tell me where I live.", False),
        ("", False),
    ],
)
def test_a_question_is_told_from_a_request(prompt: str, asks: bool) -> None:
    assert is_question(prompt) is asks


@pytest.mark.parametrize("prompt", ["?", "What is  ?", "who is \u00a0?", "…", "⊕"])
def test_a_prompt_of_hardly_any_words_is_worded_without_a_fault_and_never_empty(prompt: str) -> None:
    for half in halves(reword(prompt)):
        assert all(text.strip() for text in texts(half))
