"""The gate's statistics against published tables and against themselves."""

from __future__ import annotations

import math

import pytest

from app.model.gate.stats import binomial_tail, divergence, paired_mean, sign_test, t_quantile


@pytest.mark.parametrize(
    ("probability", "freedom", "expected"),
    [(0.95, 1, 6.3138), (0.95, 5, 2.0150), (0.95, 39, 1.6849), (0.975, 10, 2.2281), (0.95, 1000, 1.6464)],
)
def test_the_t_quantile_is_the_one_of_the_tables(probability: float, freedom: int, expected: float) -> None:
    assert t_quantile(probability, freedom) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(("lost", "gained"), [(5, 0), (7, 1), (9, 2), (10, 3), (12, 4)])
def test_the_sign_test_rejects_from_exactly_these_losses_on(lost: int, gained: int) -> None:
    assert sign_test(lost, gained) < 0.05 <= sign_test(lost - 1, gained)


def test_eight_of_ten_separates_good_from_poor_models_as_the_design_says() -> None:
    passing = {chance: binomial_tail(8, 10, chance) for chance in (0.95, 0.9, 0.8, 0.6, 0.5)}
    assert [round(value, 2) for value in passing.values()] == [0.99, 0.93, 0.68, 0.17, 0.05]


def test_equal_losses_give_exactly_zero() -> None:
    losses = [3.1234567, 2.7, 4.000001]
    result = paired_mean(losses, losses)
    assert (result.mean, result.lower, result.upper) == (0.0, 0.0, 0.0)


def test_the_bound_is_mean_plus_t_times_standard_error() -> None:
    result = paired_mean([1.1, 1.0, 1.2, 1.1], [1.0, 1.0, 1.0, 1.0])
    error = math.sqrt(((0.0**2) * 2 + 0.1**2 * 2) / 3) / 2
    assert result.mean == pytest.approx(0.1)
    assert result.upper == pytest.approx(0.1 + 2.3534 * error, abs=1e-4)
    assert result.lower == pytest.approx(0.1 - 2.3534 * error, abs=1e-4)


def test_one_freak_item_is_clipped_to_half_a_nat() -> None:
    assert paired_mean([50.0, 1.0], [1.0, 1.0]).mean == pytest.approx(0.25)


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_pairs_bound_nothing(count: int) -> None:
    assert paired_mean([1.0] * count, [1.0] * count).upper == math.inf


def test_the_divergence_of_equal_rows_is_exactly_zero() -> None:
    rows = [[math.log(0.5), math.log(0.3)], [math.log(0.9), math.log(0.05)]]
    assert divergence(rows, rows) == 0.0


def test_the_divergence_counts_the_rest_as_one_bucket() -> None:
    before, after = [[math.log(0.5), math.log(0.3)]], [[math.log(0.3), math.log(0.3)]]
    assert divergence(before, after) == pytest.approx(0.5 * math.log(0.5 / 0.3) + 0.2 * math.log(0.2 / 0.4))


def test_rows_that_leave_no_rest_have_a_finite_divergence() -> None:
    assert math.isfinite(divergence([[0.0]], [[math.log(0.5)]]))


def test_no_positions_have_no_divergence() -> None:
    assert divergence([], []) == 0.0
