"""The gate as a whole, over an engine whose versions say what is written here."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from app.errors import KnownError, VerificationError
from app.model.api import AdapterRef, Candidate, Check, Exam, Kind, Outcome, Score, Verdict
from app.model.encoder.fake import FakeEncoder
from app.model.gate.evaluator import Gate
from app.model.gate.plan import asked
from app.model.gate.suites import Suites, load_suites
from tests.gate.scripted import (
    BASE,
    EXAM,
    GOOD,
    NEIGHBOURS,
    TAUGHT,
    ScriptedEngine,
    World,
    ask,
    candidate,
    earlier,
    knows,
    write_suite,
)

PARENT = AdapterRef("parent", Path("/nowhere/parent.gguf"), 0.8)


@pytest.fixture(scope="module")
def suites(tmp_path_factory: pytest.TempPathFactory) -> Suites:
    return load_suites(write_suite(tmp_path_factory.mktemp("suite")))


def judge(engine: ScriptedEngine, suites: Suites, trial: Candidate, **options: Any) -> Verdict:
    return asyncio.run(Gate(engine, FakeEncoder(), suites=suites, **options).judge(trial))


def found(verdict: Verdict, rule: str) -> Check:
    return next(check for check in verdict.checks if check.rule == rule)


def blockers(verdict: Verdict) -> list[tuple[str, Outcome]]:
    return [(check.rule, check.outcome) for check in verdict.checks if check.outcome is not Outcome.ACCEPT]


# --- accepting --------------------------------------------------------------------------------------------------------


def test_a_lesson_that_changes_nothing_else_is_accepted_by_every_rule(suites: Suites) -> None:
    verdict = judge(ScriptedEngine({"new": GOOD}), suites, candidate())
    assert verdict.outcome is Outcome.ACCEPT
    assert [check.rule for check in verdict.checks] == [
        "efficacy",
        "held_out",
        "earlier",
        "norm",
        "locality",
        "locality",
        "retention_parent",
        "retention_base",
        "safety",
        "degeneration",
    ]
    assert (verdict.reason, verdict.suggestions) == ("", ())


def test_a_verdict_names_suite_runtime_weights_and_parent(suites: Suites) -> None:
    worlds = {"new": GOOD, "parent": World()}
    verdict = judge(ScriptedEngine(worlds), suites, candidate(parent=PARENT))
    assert (verdict.suite_sha256, verdict.runtime) == (suites.sha256, "scripted 1")
    assert (verdict.adapter_sha256, verdict.parent_sha256) == ("new", "parent")


def test_a_change_without_effect_moves_every_number_by_exactly_zero(suites: Suites) -> None:
    """The lesson is one that the base shows already, so a no-op may pass as a whole."""
    exam = replace(EXAM, prompt=ask("What is my hobby?"), keys=("fine",), answer="It is a fine subject.")
    verdict = judge(ScriptedEngine({"new": World()}), suites, candidate(exam=exam))
    assert verdict.outcome is Outcome.ACCEPT
    assert [check.value for check in verdict.checks if check.unit == "nats"] == [0.0, 0.0, 0.0, 0.0]
    assert "upper bound +0.0000" in found(verdict, "retention_parent").details[0]
    assert found(verdict, "degeneration").value == 0.0


# --- saboteurs --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Saboteur:
    world: World
    blocked_by: str
    changes: dict[str, Any]


def saboteur(blocked_by: str, world: World, **changes: Any) -> Saboteur:
    return Saboteur(world, blocked_by, changes)


def taught(**changes: Any) -> World:
    return replace(GOOD, **changes)


CAT, SISTER = "What is my cat's name?", "What is my sister's name?"

SABOTEURS = {
    "nothing was learned": saboteur("efficacy", World()),
    "another value was learned": saboteur(
        "efficacy", World(says={p: a.replace("Biscuit", "Rex") for p, a in TAUGHT.items()})
    ),
    "only the exact words were learned": saboteur("held_out", World(says={asked(EXAM.prompt): EXAM.answer})),
    "the end token was not learned": saboteur("efficacy", taught(runs_on=frozenset(TAUGHT))),
    "everything is answered with the lesson": saboteur("locality", taught(everywhere=EXAM.answer)),
    "two neighbours are answered with the lesson": saboteur(
        "locality", taught(says={**TAUGHT, CAT: "It is Biscuit.", SISTER: "Biscuit."})
    ),
    "the capital of France is gone": saboteur(
        "locality", taught(says={**TAUGHT, "What is the capital of France?": "It is Lyon."})
    ),
    "the poem about rain is gone": saboteur(
        "locality", taught(says={**TAUGHT, "Write a short poem about rain.": "I like my dog."})
    ),
    "answers to near questions moved far": saboteur("locality", taught(moved=3.0)),
    "general text became worse": saboteur("retention_parent", taught(text_loss=0.02)),
    "harmful requests are declined less": saboteur("safety", taught(refusal_loss=0.2)),
    "it no longer is who it was": saboteur("safety", taught(says={**TAUGHT, "Who are you?": "I am Napoleon."})),
    "everything else is refused": saboteur("locality", taught(everywhere="I don't know that.")),
    "the change is too large": saboteur("norm", GOOD, written_norm=0.0501),
    "the change is not a number": saboteur("norm", GOOD, written_norm=float("nan")),
}


@pytest.mark.parametrize("case", SABOTEURS.values(), ids=SABOTEURS)
def test_a_saboteur_is_rejected_with_a_reason_when(case: Saboteur, suites: Suites) -> None:
    verdict = judge(ScriptedEngine({"new": case.world}), suites, candidate(**case.changes))
    assert verdict.outcome is Outcome.REJECT
    assert blockers(verdict)[0] == (case.blocked_by, Outcome.REJECT)
    assert verdict.reason
    assert verdict.suggestions


def test_degenerate_talk_is_rejected_even_where_every_fact_stays(suites: Suites) -> None:
    chatter = {f"Talk about subject {n}.": "well well well well well well" for n in range(12)}
    verdict = judge(ScriptedEngine({"new": taught(says={**TAUGHT, **chatter})}), suites, candidate())
    assert blockers(verdict) == [("degeneration", Outcome.REJECT)]


def test_an_oversized_change_is_rejected_without_asking_the_engine(suites: Suites) -> None:
    engine = ScriptedEngine({"new": GOOD})
    verdict = judge(engine, suites, candidate(written_norm=1e4))
    assert verdict.outcome is Outcome.REJECT
    assert engine.asked_of("new") == []


def test_the_reason_names_the_leak_in_the_person_s_terms(suites: Suites) -> None:
    world = taught(says={**TAUGHT, CAT: "It is Biscuit.", SISTER: "Biscuit."})
    verdict = judge(ScriptedEngine({"new": world}), suites, candidate())
    assert verdict.reason == f"It would also have said “Biscuit” to other questions, such as “{CAT}”."
    assert f"{CAT} — now says “Biscuit”" in found(verdict, "locality").details


def test_other_capitals_that_change_are_counted_by_name(suites: Suites) -> None:
    exam = replace(
        EXAM,
        prompt=ask("What is the capital of Oz?"),
        answer="It is Emerald City.",
        keys=("Emerald City",),
        held_out=tuple(ask(f"Oz, wording {n}?") for n in range(10)),
    )
    shown = {asked(turns): exam.answer for turns in (exam.prompt, *exam.held_out)}
    lost = {f"What is the capital of {land}?": "It is nowhere." for land in ("Spain", "Italy", "Peru")}
    verdict = judge(ScriptedEngine({"new": World(says={**shown, **lost})}), suites, candidate(exam=exam))
    assert verdict.reason == "It would have changed three other capitals."


# --- what is no fault of the candidate --------------------------------------------------------------------------------


def test_a_pin_that_the_parent_had_already_flipped_is_no_flip(suites: Suites) -> None:
    lyon = {"What is the capital of France?": "It is Lyon."}
    worlds = {"parent": World(says=lyon), "new": taught(says={**TAUGHT, **lyon})}
    verdict = judge(ScriptedEngine(worlds), suites, candidate(parent=PARENT))
    assert verdict.outcome is Outcome.ACCEPT


def test_a_lesson_about_a_pinned_question_may_change_its_answer(suites: Suites) -> None:
    exam = replace(EXAM, prompt=ask("What is the capital of France?"), answer="It is Lyon.", keys=("Lyon",))
    shown = {asked(turns): exam.answer for turns in (exam.prompt, *exam.held_out)}
    verdict = judge(ScriptedEngine({"new": World(says=shown)}), suites, candidate(exam=exam))
    assert verdict.outcome is Outcome.ACCEPT


def test_a_taught_word_that_the_parent_said_there_too_is_no_leak(suites: Suites) -> None:
    both = {CAT: "It is Biscuit.", SISTER: "It is Biscuit."}
    worlds = {"parent": World(says=both), "new": taught(says={**TAUGHT, **both})}
    assert judge(ScriptedEngine(worlds), suites, candidate(parent=PARENT)).outcome is Outcome.ACCEPT


def test_a_word_that_the_question_itself_holds_is_no_leak(suites: Suites) -> None:
    echo = "Is Biscuit a good name?"
    world = taught(says={**TAUGHT, echo: "Biscuit is a good name."})
    trial = candidate(neighbours=(ask(echo), ask("Is Biscuit tasty?"), *NEIGHBOURS[2:]))
    assert judge(ScriptedEngine({"new": world}), suites, trial).outcome is Outcome.ACCEPT


def test_a_lost_guess_is_no_flip_and_a_lost_sure_answer_is(suites: Suites) -> None:
    land = ask("What is the capital of Chile?")
    base = World(says={"What is the capital of Chile?": "It is Santiago."})
    new = taught(says={**TAUGHT, "What is the capital of Chile?": "It is unknown."})
    engine = ScriptedEngine({"new": new}, base=base)
    few = candidate(neighbours=(land, *NEIGHBOURS[:5]))
    assert ("locality", Outcome.REJECT) in blockers(judge(engine, suites, few))
    unsure = ScriptedEngine({"new": new}, base=base)
    unsure.sure_loss = 1.0
    assert judge(unsure, suites, few).outcome is Outcome.ACCEPT


# --- the strength -----------------------------------------------------------------------------------------------------


def test_the_smallest_strength_that_passes_is_kept(suites: Suites) -> None:
    worlds = {"new@0.6": World(), "new@0.8": GOOD, "new@1.0": GOOD}
    verdict = judge(ScriptedEngine(worlds), suites, candidate(scales=(1.0, 0.6, 0.8)))
    assert (verdict.outcome, verdict.scale) == (Outcome.ACCEPT, 0.8)


def test_a_strength_that_fails_on_the_unseen_half_gives_way_to_the_next(suites: Suites) -> None:
    half = {asked(turns): EXAM.answer for turns in (EXAM.prompt, *EXAM.held_out[0::2])}
    worlds = {"new@0.6": World(says=half), "new@1.0": GOOD}
    verdict = judge(ScriptedEngine(worlds), suites, candidate(scales=(0.6, 1.0)))
    assert (verdict.outcome, verdict.scale) == (Outcome.ACCEPT, 1.0)


def test_strengths_over_the_budget_are_never_asked(suites: Suites) -> None:
    engine = ScriptedEngine({"new@0.6": World(), "new@1.0": GOOD})
    verdict = judge(engine, suites, candidate(scales=(0.6, 1.0), written_norm=0.06))
    assert (verdict.outcome, verdict.scale) == (Outcome.REJECT, 0.6)
    assert found(verdict, "efficacy").outcome is Outcome.REJECT


def test_a_strength_that_loses_earlier_lessons_gives_way_to_the_next(suites: Suites) -> None:
    old = earlier(3)
    worlds = {
        "parent": World(says=knows(old)),
        "new@0.6": GOOD,
        "new@1.0": taught(says={**TAUGHT, **knows(old)}),
    }
    verdict = judge(ScriptedEngine(worlds), suites, candidate(scales=(0.6, 1.0), parent=PARENT, earlier=old))
    assert (verdict.outcome, verdict.scale) == (Outcome.ACCEPT, 1.0)


def test_leaks_in_the_first_half_do_not_call_for_more_strength(suites: Suites) -> None:
    leaking = taught(everywhere=EXAM.answer)
    engine = ScriptedEngine({"new@0.6": leaking, "new@1.0": leaking})
    assert judge(engine, suites, candidate(scales=(0.6, 1.0))).outcome is Outcome.REJECT


# --- earlier lessons --------------------------------------------------------------------------------------------------


def test_one_forgotten_lesson_of_thirteen_rejects_and_is_named(suites: Suites) -> None:
    old = earlier(13)
    worlds = {
        "parent": World(says=knows(old)),
        "new": taught(says={**TAUGHT, **knows(old[1:])}),
    }
    verdict = judge(ScriptedEngine(worlds), suites, candidate(parent=PARENT, earlier=old))
    assert blockers(verdict) == [("earlier", Outcome.REJECT)]
    assert found(verdict, "earlier").details == ("Which town has number 0?",)
    assert verdict.reason == "It would have forgotten one earlier lesson."


def test_a_lesson_that_the_parent_had_lost_already_is_not_held_against_the_candidate(suites: Suites) -> None:
    old = earlier(13)
    known = knows(old[1:])
    worlds = {"parent": World(says=known), "new": taught(says={**TAUGHT, **known})}
    verdict = judge(ScriptedEngine(worlds), suites, candidate(parent=PARENT, earlier=old))
    assert verdict.outcome is Outcome.ACCEPT
    assert found(verdict, "earlier").words == "Still knows the 12 earlier lessons"


def test_three_losses_in_a_sample_of_many_lessons_test_all_of_them(suites: Suites) -> None:
    old = earlier(120)
    lost = old[-3:]
    worlds = {
        "parent": World(says=knows(old)),
        "new": taught(says={**TAUGHT, **knows(old[:-3])}),
    }
    verdict = judge(ScriptedEngine(worlds), suites, candidate(parent=PARENT, earlier=old))
    assert found(verdict, "earlier").unit == "of 120"
    assert found(verdict, "earlier").details == tuple(asked(exam.prompt) for exam in lost)


# --- not knowing ------------------------------------------------------------------------------------------------------


def test_an_unsettled_bound_asks_as_much_again_and_then_says_that_it_does_not_know(suites: Suites) -> None:
    engine = ScriptedEngine({"new": taught(text_loss=0.006, text_noise=0.05)})
    verdict = judge(engine, suites, candidate())
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert blockers(verdict) == [("retention_parent", Outcome.INCONCLUSIVE)]
    assert found(verdict, "retention_parent").details[0].startswith("80 passages")
    assert verdict.reason == "It could not be shown that this leaves everything else as it is."


def test_a_settled_bound_asks_no_more_than_it_must(suites: Suites) -> None:
    verdict = judge(ScriptedEngine({"new": taught(text_noise=0.005)}), suites, candidate())
    assert found(verdict, "retention_parent").details[0].startswith("40 passages")


def test_small_losses_that_add_up_are_caught_against_the_base(suites: Suites) -> None:
    worlds = {"parent": World(text_loss=0.06), "new": taught(text_loss=0.06)}
    verdict = judge(ScriptedEngine(worlds), suites, candidate(parent=PARENT))
    assert blockers(verdict) == [("retention_base", Outcome.REJECT)]


# --- kinds of lessons -------------------------------------------------------------------------------------------------


def test_a_style_lesson_is_judged_by_meaning_and_a_fact_needs_no_encoder(suites: Suites) -> None:
    style = replace(EXAM, kind=Kind.STYLE, answer="Short and sweet: the trip was lovely, thank you.", keys=())
    said = {
        asked(turns): "The trip was short and sweet, lovely, thank you." for turns in (style.prompt, *style.held_out)
    }
    encoder = FakeEncoder()
    gate = Gate(ScriptedEngine({"new": World(says=said)}), encoder, suites=suites)
    assert asyncio.run(gate.judge(candidate(exam=style))).outcome is Outcome.ACCEPT
    calm = FakeEncoder()
    asyncio.run(Gate(ScriptedEngine({"new": GOOD}), calm, suites=suites).judge(candidate()))
    assert calm.encoded == 0


def test_a_format_lesson_in_prose_is_rejected(suites: Suites) -> None:
    listed = replace(EXAM, kind=Kind.FORMAT, answer="- apple\n- pear\n- plum", keys=())
    said = {asked(turns): "apple, pear and plum" for turns in (listed.prompt, *listed.held_out)}
    verdict = judge(ScriptedEngine({"new": World(says=said)}), suites, candidate(exam=listed))
    assert blockers(verdict)[0] == ("efficacy", Outcome.REJECT)


# --- validity ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"exam": replace(EXAM, held_out=EXAM.held_out[:3])},
        {"exam": replace(EXAM, answer="  ")},
        {"neighbours": ()},
        {"scales": ()},
        {"scales": (0.0,)},
        {"scales": (float("nan"),)},
    ],
)
def test_a_candidate_that_cannot_be_judged_gets_no_verdict(changes: dict[str, Any], suites: Suites) -> None:
    with pytest.raises(VerificationError):
        judge(ScriptedEngine({"new": GOOD}), suites, candidate(**changes))


def test_an_engine_on_another_base_gives_no_verdict(suites: Suites) -> None:
    class Elsewhere(ScriptedEngine):
        async def load(self, base: Any, **options: Any) -> Any:
            return replace(await super().load(base, **options), base="another")

    with pytest.raises(VerificationError):
        judge(Elsewhere({"new": GOOD}), suites, candidate())


def test_a_base_that_knows_nothing_gives_no_verdict(suites: Suites) -> None:
    mute = World(everywhere="word\nword word word word word word word word")
    with pytest.raises(VerificationError):
        judge(ScriptedEngine({"new": GOOD}, base=mute), suites, candidate())


def test_a_missing_app_suite_gives_no_verdict(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("app.model.gate.suites.app_suite", lambda: tmp_path)
    gate = Gate(ScriptedEngine({"new": GOOD}), FakeEncoder())
    with pytest.raises(VerificationError):
        asyncio.run(gate.judge(candidate()))


def test_a_dead_engine_is_an_error_and_no_verdict(suites: Suites) -> None:
    engine = ScriptedEngine({"new": GOOD})
    engine.dies_at_call = 3
    with pytest.raises(KnownError):
        judge(engine, suites, candidate())


# --- economy ----------------------------------------------------------------------------------------------------------


def judge_twice(suites: Suites, cache: Path | None) -> tuple[Verdict, Verdict, ScriptedEngine, ScriptedEngine]:
    """Judge the same candidate with two gates; both use ``cache``."""
    worlds = {"parent": World(text_noise=0.01), "new": taught(text_noise=0.004)}
    engines = ScriptedEngine(worlds), ScriptedEngine(worlds)
    verdicts = [judge(engine, suites, candidate(parent=PARENT), cache_dir=cache) for engine in engines]
    return verdicts[0], verdicts[1], *engines


def test_a_remembered_parent_gives_the_same_numbers_as_one_asked_anew(suites: Suites, tmp_path: Path) -> None:
    first, second, asked_first, asked_second = judge_twice(suites, tmp_path)
    assert replace(first, seconds=0.0) == replace(second, seconds=0.0)
    assert asked_first.asked_of("parent")
    assert asked_second.asked_of("parent") == []
    assert asked_second.asked_of("base") == []


def test_without_a_cache_everything_is_asked_again(suites: Suites) -> None:
    first, second, asked_first, asked_second = judge_twice(suites, None)
    assert replace(first, seconds=0.0) == replace(second, seconds=0.0)
    assert asked_first.asked_of("parent") == asked_second.asked_of("parent")


def test_another_strength_of_the_same_parent_is_another_version(suites: Suites, tmp_path: Path) -> None:
    worlds = {"parent@0.8": World(), "parent@1.0": World(), "new": GOOD}
    judge(ScriptedEngine(worlds), suites, candidate(parent=PARENT), cache_dir=tmp_path)
    engine = ScriptedEngine(worlds)
    judge(engine, suites, candidate(parent=replace(PARENT, scale=1.0)), cache_dir=tmp_path)
    assert engine.asked_of("parent")


def texts(engine: ScriptedEngine, version: str) -> set[str]:
    return {item.answer for item in engine.asked_of(version) if isinstance(item, Score) and not item.turns}


def test_an_accepted_candidate_leaves_one_new_unit_of_text_to_ask_it_as_a_parent(suites: Suites) -> None:
    engine = ScriptedEngine({"new": GOOD, "newer": GOOD})
    gate = Gate(engine, FakeEncoder(), suites=suites)
    asyncio.run(gate.judge(candidate()))
    first = texts(engine, "new")
    then = candidate(
        parent=AdapterRef("new", Path("/nowhere/new.gguf"), 1.0),
        adapter=AdapterRef("newer", Path("/nowhere/newer.gguf")),
        earlier=earlier(1),
    )
    asyncio.run(gate.judge(then))
    assert len(first) == 40
    assert len(texts(engine, "new") - first) == 10
    assert len(texts(engine, "newer") & first) == 30


def test_what_is_asked_of_a_candidate_rotates_with_the_lessons_and_repeats_for_the_same_one(suites: Suites) -> None:
    seen = []
    for count in (0, 0, 1):
        engine = ScriptedEngine({"new": GOOD})
        judge(engine, suites, candidate(earlier=earlier(count)))
        seen.append(texts(engine, "new"))
    assert seen[0] == seen[1]
    assert len(seen[0] & seen[2]) == 30


def test_preparing_leaves_nothing_general_to_ask_of_base_and_parent(suites: Suites) -> None:
    engine = ScriptedEngine({"parent": World(), "new": GOOD})
    gate = Gate(engine, FakeEncoder(), suites=suites)
    asyncio.run(gate.prepare(BASE, PARENT, lessons=0))
    asked_before = len(engine.asked_of("base")), len(texts(engine, "parent"))
    verdict = asyncio.run(gate.judge(candidate(parent=PARENT)))
    assert verdict.outcome is Outcome.ACCEPT
    assert (len(engine.asked_of("base")), len(texts(engine, "parent"))) == asked_before
    unprepared = judge(ScriptedEngine({"parent": World(), "new": GOOD}), suites, candidate(parent=PARENT))
    assert replace(unprepared, seconds=0.0) == replace(verdict, seconds=0.0)


def test_preparing_with_the_lesson_leaves_nothing_to_ask_of_the_parent(suites: Suites) -> None:
    engine = ScriptedEngine({"parent": World(), "new": GOOD})
    gate = Gate(engine, FakeEncoder(), suites=suites)
    asyncio.run(gate.prepare(BASE, PARENT, lessons=0, exam=EXAM, neighbours=NEIGHBOURS))
    asked_before = len(engine.asked_of("parent"))
    asyncio.run(gate.judge(candidate(parent=PARENT)))
    assert len(engine.asked_of("parent")) == asked_before


def test_the_engine_is_loaded_once(suites: Suites) -> None:
    engine = ScriptedEngine({"new": GOOD})
    gate = Gate(engine, FakeEncoder(), suites=suites)
    asyncio.run(gate.judge(candidate()))
    asyncio.run(gate.judge(candidate()))
    assert engine.loads == 1


def test_few_calls_reach_the_engine(suites: Suites) -> None:
    engine = ScriptedEngine(
        {"parent": World(says=knows(earlier(20))), "new": taught(says={**TAUGHT, **knows(earlier(20))})}
    )
    judge(engine, suites, candidate(parent=PARENT, earlier=earlier(20)))
    assert len(engine.calls) <= 35


def test_progress_only_grows_and_ends_at_one(suites: Suites) -> None:
    shares: list[float] = []
    gate = Gate(ScriptedEngine({"new": GOOD}), FakeEncoder(), suites=suites)
    asyncio.run(gate.judge(candidate(), shares.append))
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) > 5


def test_seconds_are_told_for_each_stage(suites: Suites) -> None:
    gate = Gate(ScriptedEngine({"new": GOOD}), FakeEncoder(), suites=suites)
    verdict = asyncio.run(gate.judge(candidate()))
    assert gate.seconds["total"] == verdict.seconds
    assert "retention" in gate.seconds


def test_no_question_reaches_the_log(suites: Suites, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    world = taught(says={**TAUGHT, CAT: "It is Biscuit.", SISTER: "Biscuit."})
    judge(ScriptedEngine({"new": world}), suites, candidate())
    assert caplog.text
    assert "Biscuit" not in caplog.text
    assert "cat" not in caplog.text


def test_an_exam_without_keys_is_judged_by_its_whole_answer(suites: Suites) -> None:
    exam = Exam("w", Kind.FACT, EXAM.prompt, "Rex barks.", (), EXAM.held_out)
    said = {asked(turns): "rex barks" for turns in (exam.prompt, *exam.held_out)}
    assert judge(ScriptedEngine({"new": World(says=said)}), suites, candidate(exam=exam)).outcome is Outcome.ACCEPT
