"""What training minimises, against plain numpy over the whole vocabulary."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from app.model.training.backends.objective import TOP, before, kl, margins

Floats = NDArray[np.float64]


def logits(rows: int, vocabulary: int, *, seed: int, spread: float = 3.0) -> torch.Tensor:
    return torch.randn(rows, vocabulary, generator=torch.Generator().manual_seed(seed)) * spread


def logprobs(values: torch.Tensor) -> Floats:
    wide = values.double().numpy()
    shifted = wide - wide.max(-1, keepdims=True)
    result: Floats = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return result


def whole_kl(reference: torch.Tensor, now: torch.Tensor) -> Floats:
    p, q = logprobs(reference), logprobs(now)
    result: Floats = (np.exp(p) * (p - q)).sum(-1)
    return result


def bucket_kl(reference: torch.Tensor, now: torch.Tensor) -> Floats:
    """KL over the reference's most likely tokens and one bucket for all others."""
    p, q = logprobs(reference), logprobs(now)
    best = np.argsort(-p, axis=-1)[:, :TOP]
    p_top, q_top = np.take_along_axis(p, best, -1), np.take_along_axis(q, best, -1)
    p_rest = np.log(1 - np.exp(p_top).sum(-1, keepdims=True))
    q_rest = np.log(1 - np.exp(q_top).sum(-1, keepdims=True))
    p_all, q_all = np.concatenate([p_top, p_rest], -1), np.concatenate([q_top, q_rest], -1)
    result: Floats = (np.exp(p_all) * (p_all - q_all)).sum(-1)
    return result


def test_drift_over_a_vocabulary_that_fits_whole_is_the_exact_divergence() -> None:
    reference, now = logits(5, TOP, seed=1), logits(5, TOP, seed=2)
    np.testing.assert_allclose(kl(before(reference), now).numpy(), whole_kl(reference, now), rtol=1e-4, atol=1e-5)


def test_drift_over_a_large_vocabulary_counts_what_is_unlikely_as_one() -> None:
    reference, now = logits(5, 400, seed=1), logits(5, 400, seed=2)
    np.testing.assert_allclose(kl(before(reference), now).numpy(), bucket_kl(reference, now), rtol=1e-3, atol=1e-4)


def test_drift_never_overstates_the_divergence_and_misses_little_where_the_model_is_sure() -> None:
    reference = logits(6, 5000, seed=1, spread=8.0)
    now = reference + 0.5 * logits(6, 5000, seed=2, spread=1.0)
    measured, whole = kl(before(reference), now).numpy(), whole_kl(reference, now)
    assert (measured <= whole + 1e-5).all()
    assert measured == pytest.approx(whole, rel=0.15)


def test_nothing_moved_is_no_drift_at_all() -> None:
    same = logits(4, 400, seed=3)
    assert kl(before(same), same).abs().max() < 1e-6


def test_adding_the_same_number_to_all_logits_is_no_drift() -> None:
    same = logits(4, 400, seed=3)
    assert kl(before(same), same + 100.0).abs().max() < 1e-4


def test_descending_the_drift_takes_the_distribution_back() -> None:
    reference = logits(4, 400, seed=1)
    now = (reference + logits(4, 400, seed=2)).requires_grad_()
    start = kl(before(reference), now).mean()
    for _ in range(60):
        drift = kl(before(reference), now).mean()
        (gradient,) = torch.autograd.grad(drift, now)
        assert torch.isfinite(gradient).all()
        now = (now - 4.0 * gradient).detach().requires_grad_()
    assert kl(before(reference), now).mean() < start / 4


def test_drift_is_finite_when_the_reference_is_certain() -> None:
    certain = torch.zeros(2, 400)
    certain[:, 3] = 200.0
    now = logits(2, 400, seed=1).requires_grad_()
    drift = kl(before(certain), now)
    (gradient,) = torch.autograd.grad(drift.sum(), now)
    assert torch.isfinite(drift).all()
    assert torch.isfinite(gradient).all()


def test_a_margin_is_the_lead_over_the_best_other_token_and_negative_where_it_does_not_lead() -> None:
    values = logits(50, 400, seed=4)
    targets = torch.randint(0, 400, (50,), generator=torch.Generator().manual_seed(5))
    targets[0] = values[0].argmax()
    wide = values.numpy()
    wanted = [row[t] - np.delete(row, t).max() for row, t in zip(wide, targets.tolist(), strict=True)]
    np.testing.assert_allclose(margins(values, targets).numpy(), wanted, rtol=1e-5, atol=1e-5)
    assert wanted[0] > 0 > min(wanted)


def test_margins_leave_the_logits_as_they_are() -> None:
    values = logits(3, 100, seed=6)
    kept = values.clone()
    margins(values, torch.tensor([1, 2, 3]))
    assert torch.equal(values, kept)
