"""Which questions are asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.model.api import Kind
from app.model.gate.plan import Plan, Sizes, all_pins, answer_tokens, asked, asks_the_same, make_plan, outside
from app.model.gate.suites import Suites, load_suites
from tests.gate.scripted import EXAM, NEIGHBOURS, ask, candidate, earlier, write_suite

TIPS = replace(
    EXAM,
    kind=Kind.FORMAT,
    prompt=ask("Give me three tips for a job interview."),
    answer="- Arrive early.\n- Ask.\n- Say thank you.",
    keys=(),
)


@pytest.fixture(scope="module")
def suites(tmp_path_factory: pytest.TempPathFactory) -> Suites:
    return load_suites(write_suite(tmp_path_factory.mktemp("suite")))


def plan(suites: Suites, **changes: object) -> Plan:
    held = frozenset(probe.id for probe in all_pins(suites))
    return make_plan(candidate(**changes), suites, Sizes(), held)


def test_both_halves_of_wordings_and_neighbours_are_asked_once(suites: Suites) -> None:
    made = plan(suites)
    for half, other, whole in zip(made.search, made.confirm, (made.held_out, made.neighbours), strict=True):
        assert (*half, *other) == whole
        assert not set(half) & set(other)
        assert len(half) - len(other) in {0, 1}


def test_more_wordings_than_needed_are_thinned_evenly(suites: Suites) -> None:
    many = tuple(ask(f"wording {number}") for number in range(25))
    chosen = plan(suites, exam=replace(EXAM, held_out=many)).held_out
    assert len(chosen) == 10
    assert {asked(item.turns) for item in chosen} >= {"wording 0", "wording 22"}


def test_a_similar_request_is_outside_a_fact_and_within_reach_of_an_example() -> None:
    near, far = ask("Give me seven tips for a job interview."), ask("Give me one tip for better sleep.")
    assert outside(TIPS, (near, far)) == (far,)
    assert outside(EXAM, NEIGHBOURS) == NEIGHBOURS


def test_pins_that_the_base_does_not_hold_are_not_asked(suites: Suites) -> None:
    made = make_plan(candidate(), suites, Sizes(), frozenset({"k1", "b1"}))
    assert [probe.id for probe, _ in made.probes] == ["k1"]
    assert [probe.id for probe, _ in made.behaviour] == ["b1"]


def test_the_pins_nearest_to_the_lesson_come_after_those_that_are_always_asked() -> None:
    real = load_suites()
    exam = replace(EXAM, prompt=ask("What is the capital of Austria?"))
    made = make_plan(candidate(exam=exam), real, Sizes(), frozenset(probe.id for probe in real.known))
    prompts = [probe.prompt for probe, _ in made.probes]
    assert set(prompts[:2]) == {"What is the capital of France?", "Write a short poem about rain."}
    assert all("capital" in prompt for prompt in prompts[2:8])


def test_a_pin_that_is_the_lesson_in_other_words_is_not_asked(suites: Suites) -> None:
    exam = replace(EXAM, prompt=ask("Tell me the capital of France, please."))
    assert asks_the_same(exam, "What is the capital of France?")
    assert not asks_the_same(exam, "What is the capital of Italy?")
    assert "k1" not in [probe.id for probe, _ in plan(suites, exam=exam).probes]


def test_the_last_twenty_lessons_and_a_sample_of_all_ages_are_asked(suites: Suites) -> None:
    old = earlier(200)
    made = plan(suites, earlier=old)
    chosen = [int(exam.lesson.removeprefix("old-")) for exam, _ in made.earlier]
    assert chosen[:20] == list(range(180, 200))
    assert len(chosen) == 60
    assert min(chosen) < 10
    assert len({number // 45 for number in chosen[20:]}) == 4
    spare = [exam.lesson for exam, _ in made.spare_earlier]
    assert len({*spare, *(exam.lesson for exam, _ in made.earlier)}) == 200


def test_few_lessons_are_all_asked(suites: Suites) -> None:
    made = plan(suites, earlier=earlier(33))
    assert len(made.earlier) == 33
    assert made.spare_earlier == ()


def test_an_answer_gets_about_twice_its_length_and_never_without_end() -> None:
    assert 30 <= answer_tokens("Your dog's name is Biscuit.") <= 45
    assert answer_tokens("x" * 10_000) == 384


def test_preset_sizes_resolve_what_the_limits_ask() -> None:
    sizes = Sizes()
    assert sizes.prose_unit * sizes.prose_units >= 40
    assert sizes.pair_unit * sizes.pair_units >= 12


def test_the_app_suite_gives_every_lesson_full_windows() -> None:
    suites = load_suites()
    for count in (0, 7, 40):
        made = make_plan(candidate(earlier=earlier(count)), suites, Sizes(), frozenset())
        assert sum(map(len, made.rotation.prose)) == 40
        assert sum(map(len, made.rotation.spare_prose)) == 40
        assert sum(map(len, made.rotation.pairs)) == 24
        assert len({item for unit in (*made.rotation.prose, *made.rotation.spare_prose) for item in unit}) == 80
