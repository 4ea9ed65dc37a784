"""Which examples a step sees: everything in turn, nothing twice in a step, the same for the same seed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from app.model.training.backends.schedule import cycle, learning_rate
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
