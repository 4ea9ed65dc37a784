"""Statistics of the gate, in numpy and plain Python: small, own, and checked against known tables by the tests.

Nothing here knows a model, a suite or a rule. Differences are always "new minus reference", in nats, so that a
positive number is a loss.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

ALPHA = 0.05
CLIP_NATS = 0.5
"""One freak item may not decide a mean."""
_TINY = 1e-300
_CONVERGED = 1e-14


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its two one-sided bounds at level ``ALPHA`` each."""

    count: int
    mean: float
    lower: float
    upper: float


def paired_mean(new: Sequence[float], reference: Sequence[float], *, clip: float = CLIP_NATS) -> Mean:
    """Return the mean of the paired, clipped differences with its one-sided t bounds.

    Equal inputs give exactly 0 for all three numbers. Fewer than two pairs have no bound: it is infinite.
    """
    differences = np.clip(np.asarray(new, dtype=np.float64) - np.asarray(reference, dtype=np.float64), -clip, clip)
    count = int(differences.size)
    if count == 0:
        return Mean(0, math.nan, -math.inf, math.inf)
    mean = float(differences.mean())
    if count == 1:
        return Mean(1, mean, -math.inf, math.inf)
    half = t_quantile(1 - ALPHA, count - 1) * float(differences.std(ddof=1)) / math.sqrt(count)
    return Mean(count, mean, mean - half, mean + half)


def sign_test(lost: int, gained: int) -> float:
    """Return the one-sided p-value of seeing at least ``lost`` losses among the pairs that changed."""
    return binomial_tail(lost, lost + gained, 0.5)


def binomial_tail(least: int, trials: int, chance: float) -> float:
    """Return P(X >= least) for X binomial, exactly up to rounding."""
    return math.fsum(
        math.comb(trials, hits) * chance**hits * (1 - chance) ** (trials - hits) for hits in range(least, trials + 1)
    )


def divergence(reference: Sequence[Sequence[float]], new: Sequence[Sequence[float]]) -> float:
    """Return KL(reference ‖ new) in nats, averaged over positions.

    Shapes: both (positions, k), log-probabilities of the same k tokens: the reference's most likely ones. All other
    tokens form one bucket, so the result is a lower bound of the full divergence. Equal inputs give exactly 0.
    """
    before, after = np.asarray(reference, dtype=np.float64), np.asarray(new, dtype=np.float64)
    if before.size == 0:
        return 0.0
    kept = (np.exp(before) * (before - after)).sum(axis=1)
    tail_before, tail_after = _tail(before), _tail(after)
    kept += tail_before * (np.log(tail_before) - np.log(tail_after))
    return float(kept.mean())


def _tail(logprobs: NDArray[np.float64]) -> NDArray[np.float64]:
    tail: NDArray[np.float64] = np.maximum(1.0 - np.exp(logprobs).sum(axis=1), 1e-9)
    return tail


@cache
def t_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution for a probability above one half."""
    low, high = 0.0, 1.0
    while _t_cdf(high, freedom) < probability:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_cdf(middle, freedom) < probability else (low, middle)
    return (low + high) / 2


def _t_cdf(value: float, freedom: int) -> float:
    """Return P(T <= value) for value >= 0, by the incomplete beta function."""
    return 1.0 - 0.5 * _incomplete_beta(freedom / (freedom + value * value), freedom / 2, 0.5)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b)."""
    if x <= 0.0 or x >= 1.0:
        return max(0.0, min(1.0, x))
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x > (a + 1) / (a + b + 2):
        return 1.0 - front * _beta_fraction(1 - x, b, a) / b
    return front * _beta_fraction(x, a, b) / a


def _beta_fraction(x: float, a: float, b: float) -> float:
    """Evaluate the continued fraction of the incomplete beta function (Lentz's method)."""
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0) or _TINY)
    value = d
    for m in range(1, 200):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = 1.0 / (1.0 + even * d or _TINY), 1.0 + even / c or _TINY
        value *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1.0 / (1.0 + odd * d or _TINY), 1.0 + odd / c or _TINY
        value *= d * c
        if abs(d * c - 1.0) < _CONVERGED:
            break
    return value
