"""The material of a lesson: answers that must stay are the model's own, and what examines is never trained on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from app.learning import planning
from app.learning.kinds import keys_of, kind_of
from app.learning.lesson import Lesson
from app.learning.planning import Material, Planner, replay
from app.learning.wordings import reword
from app.model.api import AdapterRef, BaseFiles, Example, Turn
from app.model.engine.fake import FakeEngine
from app.model.gate.asking import Asker, Memory
from app.model.gate.suites import load_suites
from app.model.gate.text import words
from app.store.canonical import canonical
from tests.lineage.made import PASSPORT
from tests.support.learning import CAT, DOG, RECIPE, TOWN

FRANCE = ("What is the capital of France?", "The capital of France is Lyon.")


def lesson(prompt: str, answer: str) -> Lesson:
    return Lesson(prompt, kind_of(prompt, answer), prompt, answer, keys_of(prompt, answer), reword(prompt))


class Bench:
    """A planner whose versions answer with who they are."""

    def __init__(self, folder: Path) -> None:
        serving = folder / "base.gguf"
        serving.write_bytes(b"GGUF")
        self.base = BaseFiles(PASSPORT, serving, folder)
        self.parent = AdapterRef("a" * 64, serving)
        self.asked: list[tuple[str, str | None]] = []
        self.silent_on = ""
        self.long_on = ""
        self.engine = FakeEngine(self._reply)
        self.memory = Memory("t", None)

    def _reply(self, turns: Sequence[Turn], adapter: str | None) -> str:
        self.asked.append((turns[-1].text, adapter))
        said = "" if turns[-1].text == self.silent_on else f"{'parent' if adapter else 'base'} says this and that"
        return said * 9 if turns[-1].text == self.long_on else said

    def plan(self, wanted: Lesson, earlier: Sequence[Lesson] = (), *, parent: bool = True) -> Material:
        async def work() -> Material:
            await self.engine.load(self.base)
            planner = Planner(Asker(self.engine, self.memory))
            return await planner.plan(wanted, earlier, parent=self.parent if parent else None, recipe=RECIPE)

        return asyncio.run(work())

    def plan_all(self, lessons: Sequence[Lesson]) -> Material:
        async def work() -> Material:
            await self.engine.load(self.base)
            return await Planner(Asker(self.engine, self.memory)).plan_all(lessons, recipe=RECIPE)

        return asyncio.run(work())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def prompts(examples: Sequence[Example]) -> list[str]:
    return [example.turns[-1].text if example.turns else example.answer for example in examples]


def test_promised_answers_that_are_whole_are_said_as_safely_as_the_lesson(bench: Bench) -> None:
    wanted = lesson(*DOG)
    promised = bench.plan(wanted).targets[len(wanted.wordings.train) :]
    assert "What is the capital of France?" in prompts(promised)
    assert {example.answer for example in promised} == {"base says this and that"}


def test_a_promise_is_made_safe_or_held_to_what_it_was_and_never_both(bench: Bench) -> None:
    promised = {probe.prompt for probe in load_suites().known if probe.always}
    bench.long_on = next(iter(promised - {FRANCE[0]}))
    wanted = lesson(*DOG)
    for material in (bench.plan(wanted), bench.plan_all([wanted])):
        targets = set(prompts(material.targets)) & promised
        standing = set(prompts(material.anchors[: material.standing]))
        assert FRANCE[0] in targets
        assert standing == {bench.long_on}
        assert not targets & set(prompts(material.anchors))


def test_a_promise_does_not_contradict_what_is_taught(bench: Bench) -> None:
    wanted, other = lesson(*FRANCE), lesson(*DOG)
    for material in (bench.plan(wanted), bench.plan(other, [wanted]), bench.plan_all([wanted, other])):
        everything = (*material.targets, *material.keeps, *material.anchors, *material.replay)
        answers = {item.answer for item in everything if prompts([item]) == [FRANCE[0]]}
        assert answers == {FRANCE[1]}


@pytest.mark.parametrize("typed", ["What is the capital of France", "what is the capital of  france?"])
def test_a_promise_is_none_however_its_question_was_typed(bench: Bench, typed: str) -> None:
    wanted = lesson(typed, FRANCE[1])
    for material in (bench.plan(wanted), bench.plan(lesson(*DOG), [wanted])):
        everything = (*material.targets, *material.keeps, *material.anchors, *material.replay)
        answers = {item.answer for item in everything if words(prompts([item])[0]) == words(FRANCE[0])}
        assert answers == {FRANCE[1]}


@pytest.mark.parametrize(
    "typed", ["How old is my dog", "Where is Rome", "Where are you right now?", "who wrote hamlet"]
)
def test_what_is_taught_is_held_nowhere_to_what_it_was_nor_examined(bench: Bench, typed: str) -> None:
    wanted, other = lesson(typed, "Zog."), lesson(*CAT)
    for material in (bench.plan(wanted), bench.plan(other, [wanted]), bench.plan_all([wanted, other])):
        held = {words(text) for text in prompts((*material.keeps, *material.anchors))}
        assert words(typed) not in held | {words(turns[-1].text) for turns in material.examined}


def test_the_lesson_is_taught_in_every_training_wording_and_in_no_other(bench: Bench) -> None:
    wanted = lesson(*DOG)
    material = bench.plan(wanted)
    taught = material.targets[: len(wanted.wordings.train)]
    assert [example.turns for example in taught] == list(wanted.wordings.train)
    assert {example.answer for example in taught} == {DOG[1]}
    held_out = {turns[-1].text for turns in wanted.wordings.held_out}
    everything = (*material.targets, *material.keeps, *material.anchors, *material.replay, *material.generic)
    assert not held_out & set(prompts(everything))


def test_neighbours_keep_the_parents_own_answers_and_anchors_the_bases(bench: Bench) -> None:
    material = bench.plan(lesson(*DOG))
    assert material.keeps
    assert {example.answer for example in material.keeps} == {"parent says this and that"}
    own = [example for example in material.anchors if example.turns]
    assert own
    assert {example.answer for example in own} == {"base says this and that"}


def test_without_a_parent_the_base_answers_for_everything(bench: Bench) -> None:
    assert {example.answer for example in bench.plan(lesson(*DOG), parent=False).keeps} == {"base says this and that"}


def test_what_the_gate_examines_with_is_nowhere_in_training(bench: Bench) -> None:
    publisher = lesson("What is the name of the publisher of Silversands?", "Gannet Press.")
    one, more = lesson(*DOG), [lesson(*CAT), publisher]
    for material in (bench.plan(one, more), bench.plan(publisher, [one]), bench.plan_all([one, *more])):
        examined = {turns[-1].text for turns in material.examined}
        assert examined
        everything = (*material.targets, *material.keeps, *material.anchors, *material.replay)
        assert not examined & set(prompts(everything))


def test_of_the_gates_own_questions_only_those_that_the_app_promises_to_keep_are_ever_trained(bench: Bench) -> None:
    """An exception that must stay as small as it is: what the gate asks otherwise is no part of training."""
    suites = load_suites()
    probes = (*suites.known, *suites.behaviour, *suites.chat, *suites.formats)
    asked = {words(probe.prompt) for probe in probes} | {words(passage.text) for passage in suites.prose}
    promised = {words(probe.prompt) for probe in suites.known if probe.always}
    for taught in (DOG, TOWN, ("What is the capital of Zorland?", "Mirana."), ("Who is Anna Keller?", "My boss.")):
        for material in (bench.plan(lesson(*taught)), bench.plan_all([lesson(*taught)])):
            trained = (*material.keeps, *material.anchors, *material.replay, *material.generic)
            assert {words(text) for text in prompts(trained)} & asked <= promised
            standing = prompts(material.anchors[: material.standing])
            assert {words(text) for text in standing} <= promised


def test_what_was_taught_before_is_neither_kept_as_it_was_nor_examined_as_a_neighbour(bench: Bench) -> None:
    earlier = [lesson("What is my horse's name?", "Your horse's name is Star."), lesson(*CAT)]
    taught = {each.prompt for each in earlier}
    without, material = bench.plan(lesson(*DOG)), bench.plan(lesson(*DOG), earlier)
    near = {*prompts(without.keeps), *(turns[-1].text for turns in without.examined)}
    assert near & taught  # they would have been
    assert not taught & set(prompts(material.keeps))
    assert not taught & {turns[-1].text for turns in material.examined}


def test_an_answer_of_nothing_is_not_held_on_to(bench: Bench) -> None:
    first = prompts(bench.plan(lesson(*DOG)).keeps)[0]
    silent = Bench(bench.base.training)
    silent.silent_on = first
    assert first not in prompts(silent.plan(lesson(*DOG)).keeps)


def test_the_same_lesson_gives_the_same_material_and_no_version_is_asked_twice(bench: Bench) -> None:
    first, asked = bench.plan(lesson(*DOG)), len(bench.asked)
    assert bench.plan(lesson(*DOG)) == first
    assert len(bench.asked) == asked > 0
    assert Bench(bench.base.training).plan(lesson(*DOG)) == first


def test_another_seed_gives_other_anchors(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    first = prompts(bench.plan(lesson(*DOG)).anchors)
    monkeypatch.setattr("tests.learning.test_planning.RECIPE", replace(RECIPE, seed=7))
    assert prompts(bench.plan(lesson(*DOG)).anchors) != first


def test_generic_exchanges_are_the_same_for_every_lesson(bench: Bench) -> None:
    assert bench.plan(lesson(*DOG)).generic == bench.plan(lesson(*TOWN)).generic


def test_earlier_lessons_are_rehearsed_in_their_own_words_and_in_others(bench: Bench) -> None:
    material = bench.plan(lesson(*DOG), [lesson(*CAT), lesson(*TOWN)])
    for prompt, answer in (CAT, TOWN):
        rehearsed = [example for example in material.replay if example.answer == answer]
        assert prompt in prompts(rehearsed)
        assert len(rehearsed) == planning.WORDINGS_PER_REPLAY


def test_a_large_ledger_is_rehearsed_in_part() -> None:
    many = [lesson(f"What is the name of star {n}?", f"Star {n} is called Zed{n}.") for n in range(60)]
    rehearsed = {example.answer for example in replay(many, Random(0))}
    assert len(rehearsed) == planning.REPLAYED_LESSONS
    assert replay(many, Random(0)) == replay(many, Random(0))


def test_the_manifest_is_plain_json_that_tells_all_that_was_trained_on(bench: Bench) -> None:
    material = bench.plan(lesson(*DOG), [lesson(*CAT)])
    manifest = material.manifest()
    assert manifest["format"] == "ownmind-data-1"
    for name in ("targets", "keeps", "anchors", "replay"):
        group = getattr(material, name)
        assert [item["answer"] for item in manifest[name]] == [example.answer for example in group]
        assert [[turn["text"] for turn in item["turns"]] for item in manifest[name]] == [
            [turn.text for turn in example.turns] for example in group
        ]
    assert len(manifest["examined"]) == len(material.examined)
    assert json.loads(canonical(manifest)) == manifest
    assert len(manifest["generic_sha256"]) == 64


def test_a_whole_ledger_is_learned_from_the_base_with_every_lesson_as_a_target(bench: Bench) -> None:
    material = bench.plan_all([lesson(*DOG), lesson(*CAT), lesson(*TOWN)])
    taught = {example.answer for example in material.targets if example.answer != "base says this and that"}
    assert taught == {DOG[1], CAT[1], TOWN[1]}
    assert {adapter for _, adapter in bench.asked} == {None}
    assert material.replay == ()
    asked = {DOG[0], CAT[0], TOWN[0]}
    assert not asked & set(prompts(material.keeps))
    assert not asked & {turns[-1].text for turns in material.examined}
