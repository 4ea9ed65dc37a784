"""The ladder: at most three tries, each for a reason, each judged by the same gate, and the best one stands."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from app.errors import ErrorInfo, KnownError
from app.learning.attempt import LONGER, MOST_RUNGS, SOFTER, WIDER, Attempt, Judged, Progress, Start
from app.learning.planning import Material
from app.model.adapters.serving import ServingFiles
from app.model.adapters.stack import stack
from app.model.api import BaseFiles, Candidate, Exam, Example, Kind, Outcome, Recipe, Role, Turn
from tests.lineage.made import PASSPORT, QuickFiles
from tests.support.learning import RECIPE, Brain, FakeGate, FakeTrainer

ASKED = (Turn(Role.USER, "What is my dog's name?"),)
EXAM = Exam("l1", Kind.FACT, ASKED, "Your dog's name is Biscuit.", ("Biscuit",), ())
OLD = replace(EXAM, lesson="l0", prompt=(Turn(Role.USER, "Where do I live?"),), answer="You live in Trieste.")
MATERIAL = Material(
    targets=(Example(ASKED, EXAM.answer),),
    keeps=(Example((Turn(Role.USER, "What is my cat's name?"),), "I do not know."),),
    anchors=(),
    replay=(Example(OLD.prompt, OLD.answer),),
    generic=(Example((Turn(Role.USER, "Hello"),), "Hi"),),
    examined=((Turn(Role.USER, "What is my horse's name?"),),),
)


@dataclass
class Climb:
    """One attempt and what it was seen to do."""

    folder: Path
    recipe: Recipe = RECIPE
    trainer: FakeTrainer = field(default_factory=FakeTrainer)
    gate: FakeGate = field(default_factory=lambda: FakeGate(Brain()))
    told: list[Progress] = field(default_factory=list)

    def run(self, *script: tuple[str, ...], start: Start | None = None) -> Judged:
        self.gate.script.extend(script)
        base = BaseFiles(PASSPORT, self.folder / "base.gguf", self.folder)
        ticks = itertools.count()
        attempt = Attempt(
            base,
            self.trainer,
            self.gate,
            ServingFiles(self.folder / "serving", base, files=QuickFiles()),
            folder=self.folder,
            clock=lambda: float(next(ticks)),
            report=self.told.append,
        )
        begin = start or Start(None, None, None)
        return asyncio.run(attempt.climb(MATERIAL, EXAM, (OLD,), begin, self.recipe, limit=0.05))

    @property
    def judged(self) -> list[Candidate]:
        return self.gate.judged


@pytest.fixture
def climb(tmp_path: Path) -> Climb:
    return Climb(tmp_path)


def parent_of(climb: Climb) -> Start:
    """A version to start from, as the loop gives it."""
    first = climb.run()
    path = climb.folder / "parent.safetensors"
    path.write_bytes(first.change.delta)
    climb.trainer.jobs.clear()
    climb.gate.judged.clear()
    return Start(None, first.change.delta, path, written_norm=0.02)


def test_an_accepted_first_try_is_the_only_one(climb: Climb) -> None:
    judged = climb.run()
    assert judged.verdict.outcome is Outcome.ACCEPT
    assert (judged.rungs, len(climb.trainer.jobs), len(climb.judged)) == (1, 1, 1)
    assert judged.change.share == RECIPE.share


def test_what_is_judged_is_the_recipes_share_of_what_was_trained(climb: Climb) -> None:
    judged = climb.run()
    assert judged.change.delta == stack(None, judged.change.whole, PASSPORT, share=RECIPE.share)
    assert climb.judged[0].adapter.sha256 == judged.verdict.adapter_sha256
    assert judged.change.written_norm == pytest.approx(judged.change.trained.written_norm * RECIPE.share)
    assert climb.judged[0].written_norm == judged.change.written_norm


def test_a_share_of_the_change_is_put_on_the_parent(climb: Climb) -> None:
    start = parent_of(climb)
    judged = climb.run(start=start)
    assert judged.change.delta == stack(start.delta, judged.change.whole, PASSPORT, share=RECIPE.share)
    assert climb.trainer.jobs[0].parent == start.path
    whole = judged.change.trained.written_norm
    wanted = (1 - RECIPE.share) * start.written_norm + RECIPE.share * whole  # an upper bound: a norm is convex
    assert judged.change.written_norm == pytest.approx(wanted)


def test_the_trainer_and_the_gate_get_all_of_the_material(climb: Climb) -> None:
    climb.run()
    (job,), (candidate,) = climb.trainer.jobs, climb.judged
    assert (job.targets, job.keeps, job.replay) == (MATERIAL.targets, MATERIAL.keeps, MATERIAL.replay)
    assert (job.anchors, job.generic, job.recipe) == (MATERIAL.anchors, MATERIAL.generic, RECIPE)
    assert (candidate.exam, candidate.earlier, candidate.neighbours) == (EXAM, (OLD,), MATERIAL.examined)
    assert (candidate.norm_limit, candidate.scales) == (0.05, (1.0,))


@pytest.mark.parametrize("rule", ["efficacy", "held_out", "earlier"])
def test_too_little_learned_takes_the_whole_change_without_training_again(climb: Climb, rule: str) -> None:
    judged = climb.run((rule,), ())
    assert judged.verdict.outcome is Outcome.ACCEPT
    assert (judged.rungs, len(climb.trainer.jobs)) == (2, 1)
    assert judged.change.share == 1.0
    assert judged.change.delta == judged.change.whole


def test_still_too_little_trains_longer_and_wider(climb: Climb) -> None:
    judged = climb.run(("efficacy",), ("efficacy",), ())
    assert (judged.rungs, len(climb.trainer.jobs)) == (3, 2)
    first, second = (job.recipe for job in climb.trainer.jobs)
    assert second.max_steps == int(first.max_steps * LONGER)
    assert second.margin == first.margin * WIDER
    assert (judged.change.recipe, judged.change.share) == (second, 1.0)
    assert climb.trainer.jobs[0].output != climb.trainer.jobs[1].output


def test_a_recipe_that_starts_with_the_whole_change_trains_longer_at_once(climb: Climb) -> None:
    climb.recipe = replace(RECIPE, share=1.0)
    judged = climb.run(("held_out",), ())
    assert (judged.rungs, len(climb.trainer.jobs)) == (2, 2)


@pytest.mark.parametrize("rule", ["locality", "retention_parent", "safety", "norm"])
def test_too_much_changed_takes_less_of_the_same_change(climb: Climb, rule: str) -> None:
    judged = climb.run((rule,), ())
    assert (judged.rungs, len(climb.trainer.jobs)) == (2, 1)
    assert judged.change.share == pytest.approx(RECIPE.share * SOFTER)


def test_still_too_much_changed_trains_slower_with_more_near_questions(climb: Climb) -> None:
    judged = climb.run(("locality",), ("locality",), ())
    assert (judged.rungs, len(climb.trainer.jobs)) == (3, 2)
    first, second = (job.recipe for job in climb.trainer.jobs)
    assert second.learning_rate == first.learning_rate / LONGER
    assert second.keeps_per_step == first.keeps_per_step * WIDER
    assert second.drift < first.drift
    assert (judged.change.recipe, judged.change.share) == (second, RECIPE.share)


@pytest.mark.parametrize("tries", [("efficacy", "locality"), ("locality", "efficacy")])
def test_what_is_either_not_learned_or_spoils_something_is_trained_slower(climb: Climb, tries: tuple[str, str]) -> None:
    climb.run(*((rule,) for rule in tries), ())
    first, second = (job.recipe for job in climb.trainer.jobs)
    assert second.learning_rate < first.learning_rate


def test_a_try_that_was_not_learned_is_not_the_best_for_having_been_asked_less(climb: Climb) -> None:
    judged = climb.run(("locality", "safety"), ("efficacy",), ("efficacy",))
    assert judged.verdict.adapter_sha256 == climb.judged[0].adapter.sha256


def test_too_little_and_too_much_at_once_first_tries_to_learn_it(climb: Climb) -> None:
    assert climb.run(("efficacy", "locality"), ()).change.share == 1.0


def test_there_are_never_more_than_three_tries(climb: Climb) -> None:
    judged = climb.run(*[("locality",)] * 5)
    assert len(climb.judged) == judged.rungs == MOST_RUNGS == 3
    assert judged.verdict.outcome is Outcome.REJECT


def test_the_climb_ends_where_nothing_more_can_help(climb: Climb) -> None:
    climb.recipe = replace(RECIPE, share=1.0)
    judged = climb.run(*[("efficacy",)] * 5)
    assert (judged.rungs, len(climb.trainer.jobs)) == (2, 2)


def test_of_several_rejected_tries_the_one_with_the_fewest_objections_stands(climb: Climb) -> None:
    judged = climb.run(("locality", "safety"), ("locality",), ("locality", "safety", "retention_base"))
    assert judged.verdict.adapter_sha256 == climb.judged[1].adapter.sha256
    assert judged.change.share == pytest.approx(RECIPE.share * SOFTER)
    assert judged.rungs == 3


def test_every_try_is_judged_by_itself_and_under_its_own_hash(climb: Climb) -> None:
    climb.run(("efficacy",), ("efficacy",), ("efficacy",))
    assert len({candidate.adapter.sha256 for candidate in climb.judged}) == 3
    assert all(candidate.exam == EXAM for candidate in climb.judged)


def test_all_seconds_count_also_those_of_tries_that_failed(climb: Climb) -> None:
    once = climb.run()
    other = Climb(climb.folder)
    thrice = other.run(("efficacy",), ("efficacy",), ())
    assert thrice.train_seconds > once.train_seconds
    assert thrice.gate_seconds > once.gate_seconds


def test_progress_tells_the_stage_its_share_and_the_time_left(climb: Climb) -> None:
    climb.run()
    assert [progress.stage for progress in climb.told] == ["train"] * 3 + ["gate"] * 2
    for stage in ("train", "gate"):
        shares = [progress.share for progress in climb.told if progress.stage == stage]
        assert shares == sorted(shares)
        assert shares[-1] == 1.0
    assert all(progress.seconds_left >= 0 for progress in climb.told)


def test_a_training_that_fails_raises_its_own_error(climb: Climb) -> None:
    climb.trainer.endings.append(ErrorInfo("KnownError", "could not learn this", "training", "It ran away.", True))
    with pytest.raises(KnownError, match="It ran away"):
        climb.run()
    assert climb.judged == []


def test_a_second_training_that_fails_raises_instead_of_settling_for_less(climb: Climb) -> None:
    climb.recipe = replace(RECIPE, share=1.0)
    climb.trainer.endings.extend([None, ErrorInfo("KnownError", "could not learn this", "", "It ran away.", True)])
    with pytest.raises(KnownError, match="It ran away"):
        climb.run(("efficacy",))
