"""A version part of the way between two: exact at both ends, straight in between, never weaker in what was held."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from app.errors import AppError, BugError, VerificationError
from app.model.adapters.blend import blend
from app.model.adapters.canonical import Adapter, read_adapter, tensor_names, write_adapter
from tests.lineage.made import PASSPORT

GATE = "model.layers.0.mlp.gate_proj"


def made(seed: int, *, rank: int = 2, alpha: float = 4.0, layers: int = 2, up: float = 1.0) -> bytes:
    random = np.random.default_rng(seed)
    tensors = {}
    for layer in range(layers):
        down_name, up_name = tensor_names(f"model.layers.{layer}.mlp.gate_proj")
        tensors[down_name] = random.standard_normal((rank, 4)).astype(np.float32)
        tensors[up_name] = (up * random.standard_normal((3, rank))).astype(np.float32)
    return write_adapter(tensors, PASSPORT, rank=rank, alpha=alpha)


def read(data: bytes) -> Adapter:
    return read_adapter(data, PASSPORT)


def change(data: bytes, module: str = GATE) -> np.ndarray:
    adapter = read(data)
    result: np.ndarray = adapter.alpha / adapter.rank * adapter.pairs[module].up @ adapter.pairs[module].down
    return result


def test_the_whole_share_is_the_new_version_to_the_last_bit() -> None:
    assert blend(made(1), made(2), PASSPORT, share=1.0) == made(2)
    assert blend(None, made(2), PASSPORT, share=1.0) == made(2)


def test_no_share_is_the_parent_to_the_last_bit() -> None:
    assert blend(made(1), made(2), PASSPORT, share=0.0) == made(1)


def test_from_the_base_the_change_is_taken_at_that_strength() -> None:
    np.testing.assert_allclose(
        change(blend(None, made(2), PASSPORT, share=0.25)), 0.25 * change(made(2)), rtol=1e-5, atol=1e-7
    )


def test_no_share_of_a_change_of_the_base_is_nothing_and_refused_as_an_adapter() -> None:
    with pytest.raises(VerificationError, match="changes nothing"):
        blend(None, made(2), PASSPORT, share=0.0)


@given(some.floats(0.0, 1.0))
def test_from_a_parent_both_halves_move_in_a_straight_line(share: float) -> None:
    before, after = read(made(1)), read(made(2))
    mixed = read(blend(made(1), made(2), PASSPORT, share=share))
    for module, pair in mixed.pairs.items():
        for half in ("down", "up"):
            old, new = getattr(before.pairs[module], half), getattr(after.pairs[module], half)
            np.testing.assert_allclose(getattr(pair, half), (1 - share) * old + share * new, rtol=1e-5, atol=1e-6)


def test_what_both_hold_is_not_weakened() -> None:
    """The reason for not scaling: at any share, a version blended with itself is itself."""
    for share in (0.0, 0.3, 0.8, 1.0):
        np.testing.assert_allclose(
            change(blend(made(1), made(1), PASSPORT, share=share)), change(made(1)), rtol=1e-5, atol=1e-6
        )


def test_rank_strength_and_base_are_kept() -> None:
    mixed = read(blend(made(1), made(2), PASSPORT, share=0.5))
    assert (mixed.rank, mixed.alpha, mixed.base) == (2, 4.0, PASSPORT.id)


def test_the_same_two_give_the_same_bytes() -> None:
    assert blend(made(1), made(2), PASSPORT, share=0.7) == blend(made(1), made(2), PASSPORT, share=0.7)


@pytest.mark.parametrize(
    "other", [made(1, rank=1), made(1, alpha=8.0), made(1, layers=1)], ids=["rank", "alpha", "layers"]
)
def test_versions_of_different_recipes_are_not_mixed(other: bytes) -> None:
    with pytest.raises(BugError, match="recipes differ"):
        blend(other, made(2), PASSPORT, share=0.5)


@pytest.mark.parametrize("damaged", [b"", b"\x00" * 64, made(2)[:-1]])
def test_damaged_versions_are_refused(damaged: bytes) -> None:
    for parent, new in ((damaged, made(2)), (made(2), damaged), (None, damaged)):
        with pytest.raises(AppError):
            blend(parent, new, PASSPORT, share=0.5)


def test_versions_of_another_base_are_refused() -> None:
    foreign = replace(PASSPORT, id="f" * 64)
    with pytest.raises(VerificationError, match="another model"):
        blend(made(1), made(2), foreign, share=0.5)
