"""A change on top of a version: the sum, the version untouched, and never more than the largest rank."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from app.errors import AppError, VerificationError
from app.model.adapters import stack as stack_module
from app.model.adapters.canonical import Adapter, read_adapter, tensor_names, write_adapter
from app.model.adapters.stack import stack
from tests.lineage.made import PASSPORT

GATE = "model.layers.0.mlp.gate_proj"


def made(seed: int, *, rank: int = 2, alpha: float = 4.0, layers: tuple[int, ...] = (0, 1)) -> bytes:
    random = np.random.default_rng(seed)
    tensors = {}
    for layer in layers:
        down_name, up_name = tensor_names(f"model.layers.{layer}.mlp.gate_proj")
        tensors[down_name] = random.standard_normal((rank, 4)).astype(np.float32)
        tensors[up_name] = random.standard_normal((3, rank)).astype(np.float32)
    return write_adapter(tensors, PASSPORT, rank=rank, alpha=alpha)


def read(data: bytes) -> Adapter:
    return read_adapter(data, PASSPORT)


def change(data: bytes, module: str = GATE) -> np.ndarray:
    adapter = read(data)
    result: np.ndarray = adapter.alpha / adapter.rank * adapter.pairs[module].up @ adapter.pairs[module].down
    return result


def test_on_the_base_a_change_is_taken_at_its_share() -> None:
    np.testing.assert_allclose(change(stack(None, made(2), PASSPORT, share=0.25)), 0.25 * change(made(2)), rtol=1e-5)


def test_the_whole_change_on_the_base_is_itself_to_the_last_bit() -> None:
    assert stack(None, made(2), PASSPORT, share=1.0) == made(2)


def test_no_share_of_a_change_of_the_base_is_nothing_and_refused_as_an_adapter() -> None:
    with pytest.raises(VerificationError, match="changes nothing"):
        stack(None, made(2), PASSPORT, share=0.0)


@given(some.floats(0.0, 1.0))
def test_a_version_is_added_to_and_never_weakened(share: float) -> None:
    both = stack(made(1), made(2), PASSPORT, share=share)
    for module in read(both).pairs:
        wanted = change(made(1), module) + share * change(made(2), module)
        np.testing.assert_allclose(change(both, module), wanted, rtol=1e-4, atol=1e-5)


def test_the_rank_is_the_sum_and_the_strength_of_each_rank_stays() -> None:
    both = read(stack(made(1, rank=2), made(2, rank=3, alpha=6.0), PASSPORT, share=0.5))
    assert (both.rank, both.alpha, both.base) == (5, 10.0, PASSPORT.id)


def test_changes_of_different_strength_and_rank_add_up() -> None:
    both = stack(made(1, rank=1, alpha=8.0), made(2), PASSPORT, share=1.0)
    np.testing.assert_allclose(change(both), change(made(1, rank=1, alpha=8.0)) + change(made(2)), rtol=1e-4, atol=1e-5)


def test_changes_of_different_modules_lie_side_by_side() -> None:
    both = stack(made(1, layers=(0,)), made(2, layers=(1,)), PASSPORT, share=1.0)
    np.testing.assert_allclose(change(both, GATE), change(made(1, layers=(0,)), GATE), rtol=1e-5)
    other = GATE.replace("0", "1")
    np.testing.assert_allclose(change(both, other), change(made(2, layers=(1,)), other), rtol=1e-5)


def test_past_the_largest_rank_the_largest_directions_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = change(stack(made(1), made(2), PASSPORT, share=1.0))
    monkeypatch.setattr(stack_module, "MOST_RANK", 2)
    cut = stack(made(1), made(2), PASSPORT, share=1.0)
    lost = np.linalg.svd(whole, compute_uv=False)[2:]
    assert read(cut).rank == 2
    assert np.linalg.norm(change(cut) - whole) == pytest.approx(np.linalg.norm(lost), rel=1e-3)


def test_many_lessons_never_pass_the_largest_rank() -> None:
    version: bytes | None = None
    for seed in range(stack_module.MOST_RANK // 2 + 3):
        version = stack(version, made(seed, layers=(0,)), PASSPORT, share=1.0)
    assert version is not None
    assert read(version).rank == stack_module.MOST_RANK


def test_the_same_two_give_the_same_bytes() -> None:
    assert stack(made(1), made(2), PASSPORT, share=0.7) == stack(made(1), made(2), PASSPORT, share=0.7)


@pytest.mark.parametrize("damaged", [b"", b"\x00" * 64, made(2)[:-1]])
def test_damaged_versions_are_refused(damaged: bytes) -> None:
    for parent, new in ((damaged, made(2)), (made(2), damaged), (None, damaged)):
        with pytest.raises(AppError):
            stack(parent, new, PASSPORT, share=0.5)


def test_versions_of_another_base_are_refused() -> None:
    foreign = replace(PASSPORT, id="f" * 64)
    with pytest.raises(VerificationError, match="another model"):
        stack(made(1), made(2), foreign, share=0.5)
