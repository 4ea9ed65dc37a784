"""Which examples a step sees: everything in turn, nothing twice in a step, the same for the same seed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from app.model.training.backends.progress import Progress, Stopping
from app.model.training.backends.schedule import Counts, Schedule, cycle, learning_rate
from tests.training.tiny import RECIPE

SIZES = some.tuples(some.integers(1, 30), some.integers(1, 12), some.integers(0, 99))


@pytest.mark.parametrize(("count", "per_step"), [(12, 4), (24, 6), (5, 1), (3, 3)])
def test_every_item_comes_exactly_once_in_every_round(count: int, per_step: int) -> None:
    steps = list(islice(cycle(count, per_step, Random(1)), 5 * count // per_step))
    rounds = [steps[start : start + count // per_step] for start in range(0, len(steps), count // per_step)]
    assert len(rounds) == 5
    assert all(sorted(index for step in part for index in step) == list(range(count)) for part in rounds)


@given(SIZES)
def test_nothing_comes_twice_in_a_step_and_every_step_is_full(sizes: tuple[int, int, int]) -> None:
    count, per_step, seed = sizes
    for step in islice(cycle(count, per_step, Random(seed)), 40):
        assert len(set(step)) == len(step) == min(count, per_step)
        assert set(step) <= set(range(count))


@given(SIZES)
def test_nothing_is_left_out_for_longer_than_two_rounds(sizes: tuple[int, int, int]) -> None:
    count, per_step, seed = sizes
    window = 2 * -(-count // per_step)
    steps = list(islice(cycle(count, per_step, Random(seed)), 6 * window))
    for start in range(len(steps) - window + 1):
        assert {index for step in steps[start : start + window] for index in step} == set(range(count))


@given(SIZES)
def test_no_item_is_preferred(sizes: tuple[int, int, int]) -> None:
    count, per_step, seed = sizes
    seen = Counter(index for step in islice(cycle(count, per_step, Random(seed)), 20 * count) for index in step)
    mean = seen.total() / count
    assert max(seen.values()) - min(seen.values()) <= max(1, 0.25 * mean)


def test_the_same_seed_gives_the_same_order_and_another_seed_another() -> None:
    first, again, other = (list(islice(cycle(20, 6, Random(seed)), 10)) for seed in (1, 1, 2))
    assert first == again != other


def test_nothing_to_choose_from_gives_empty_steps() -> None:
    assert list(islice(cycle(0, 4, Random(0)), 3)) == [[], [], []]


def test_the_learning_rate_warms_up_peaks_once_and_comes_down_without_reaching_zero() -> None:
    recipe = replace(RECIPE, learning_rate=1.0, warmup_steps=5, max_steps=40)
    rates = [learning_rate(recipe, step) for step in range(40)]
    peak = rates.index(max(rates))
    assert rates[:peak] == sorted(rates[:peak])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)
    assert max(rates) == pytest.approx(1.0)
    assert rates[0] < 0.25
    assert 0 < rates[-1] < 0.3


@pytest.mark.parametrize("warmup", [0, 1, 10])
def test_the_learning_rate_is_positive_and_bounded_for_odd_recipes(warmup: int) -> None:
    recipe = replace(RECIPE, learning_rate=1.0, warmup_steps=warmup, max_steps=4)
    assert all(0 < learning_rate(recipe, step) <= 1.0 for step in range(20))


COUNTS = Counts(targets=10, replay=4, keeps=6, standing=2, anchors=8, prose=5)
FEW = replace(
    RECIPE,
    targets_per_step=4,
    keeps_per_step=4,
    anchors_per_step=2,
    prose_per_step=1,
    replay_per_step=2,
)


def test_the_first_step_holds_nothing_since_nothing_has_moved() -> None:
    schedule = Schedule(COUNTS, FEW, Random(1))
    first, second = schedule.next({}, {}), schedule.next({}, {})
    assert (len(first.targets), first.kept) == (4, [])
    assert second.kept


def test_standing_anchors_are_part_of_every_step_and_the_others_take_turns() -> None:
    schedule = Schedule(COUNTS, FEW, Random(1))
    steps = [schedule.next({}, {}) for _ in range(9)][1:]
    standing = {6, 7}  # behind the neighbours
    assert all(standing <= set(step.kept) for step in steps)
    assert all(len(step.kept) == len(set(step.kept)) == 4 + 2 + 2 + 1 for step in steps)
    assert {index for step in steps for index in step.kept} == set(range(6 + 2 + 8 + 5))


def test_the_weakest_wordings_come_beside_those_whose_turn_it_is() -> None:
    schedule = Schedule(COUNTS, FEW, Random(1))
    margins = dict.fromkeys(range(10), 3.0) | {4: -2.0, 7: -1.0}
    steps = [schedule.next(margins, {}) for _ in range(10)]
    assert all({4, 7} & set(step.targets) for step in steps)
    assert all(len(step.targets) == len(set(step.targets)) == 4 for step in steps)
    assert {index for step in steps for index in step.targets} == set(range(10))


def test_the_neighbours_that_moved_most_come_beside_those_whose_turn_it_is() -> None:
    schedule = Schedule(COUNTS, FEW, Random(1))
    drifts = dict.fromkeys(range(21), 0.01) | {1: 0.4, 5: 0.3, 12: 9.0}
    steps = [schedule.next({}, drifts) for _ in range(13)][1:]
    assert all({1, 5} <= set(step.kept) for step in steps)
    assert {index for step in steps for index in step.kept if index < 6} == set(range(6))


def test_a_wording_that_was_never_seen_comes_before_one_that_is_weak() -> None:
    schedule = Schedule(COUNTS, FEW, Random(1))
    margins: dict[int, float] = {}
    for _ in range(3):
        chosen = schedule.next(margins, {}).targets
        assert len(set(chosen) - set(margins)) >= min(2, 10 - len(margins))
        margins |= dict.fromkeys(chosen, -5.0)


def test_fewer_wordings_than_a_step_takes_are_all_in_it_once() -> None:
    schedule = Schedule(replace(COUNTS, targets=3), FEW, Random(1))
    assert [sorted(schedule.next({}, {}).targets) for _ in range(3)] == [[0, 1, 2]] * 3


def _nothing_new() -> None:
    pass


def test_enough_is_learned_once_every_wording_leads_and_the_rest_has_hardly_moved() -> None:
    recipe = replace(RECIPE, margin=1.0, drift=0.1, min_steps=6)
    stopping = Stopping(recipe, wordings=2, keeps=1, seconds=9.0)
    progress = Progress(margins={0: 2.0}, drifts={0: 0.05})
    assert stopping.reason(progress, 6, 1.0, _nothing_new) == ""  # one was never seen
    progress.margins[1] = 1.5
    assert stopping.reason(progress, 5, 1.0, _nothing_new) == ""
    assert stopping.reason(progress, 6, 1.0, _nothing_new) == "margin"
    progress.drifts[0] = 0.2
    assert stopping.reason(progress, 7, 1.0, _nothing_new) == ""
    assert stopping.reason(progress, 7, 9.5, _nothing_new) == "time"


def test_what_must_stay_counts_only_once_every_near_question_was_seen() -> None:
    stopping = Stopping(replace(RECIPE, margin=1.0, drift=0.1, min_steps=1), wordings=1, keeps=2, seconds=9.0)
    progress = Progress(margins={0: 2.0}, drifts={0: 0.01, 2: 0.01, 3: 0.01})  # 2 and 3 are anchors
    assert stopping.reason(progress, 5, 1.0, _nothing_new) == ""
    progress.drifts[1] = 0.01
    assert stopping.reason(progress, 5, 1.0, _nothing_new) == "margin"


def test_a_wording_that_was_lost_since_it_was_last_seen_is_not_learned() -> None:
    stopping = Stopping(replace(RECIPE, margin=1.0, drift=0.1, min_steps=1), wordings=2, keeps=1, seconds=9.0)
    progress = Progress(margins={0: 2.0, 1: 1.5}, drifts={0: 0.05})
    assert stopping.reason(progress, 5, 1.0, lambda: progress.margins.update({1: -0.5})) == ""
    assert progress.margin() == -0.5
