"""LoRA in an MLX model, on a tiny random base."""

from __future__ import annotations

import numpy as np
import pytest

mx = pytest.importorskip("mlx.core")

from app.errors import VerificationError  # noqa: E402  # MLX exists on two platforms only
from app.model.mlx.backends import lora  # noqa: E402
from app.model.mlx.backends.folder import load_base  # noqa: E402
from tests.mlx.tiny import HIDDEN, MLP, make_folder  # noqa: E402

GATE = "model.layers.1.mlp.gate_proj"


@pytest.fixture
def model(tmp_path):
    return load_base(make_folder(tmp_path / "base")).model


def pair(rank=4, *, rows=MLP, columns=HIDDEN, seed=1):
    random = np.random.default_rng(seed)
    down = random.standard_normal((columns, rank)).astype(np.float32) * 0.1
    return down, random.standard_normal((rank, rows)).astype(np.float32) * 0.1


def logits(model):
    return np.array(model(mx.array([[5, 6, 7, 8]])))


def test_an_adapter_moves_the_logits_and_taking_it_off_gives_back_the_same_bits(model):
    before = logits(model)
    lora.attach(model, {GATE: pair()}, scale=2.0)
    assert np.abs(logits(model) - before).max() > 1e-3
    lora.detach(model)
    assert logits(model).tobytes() == before.tobytes()
    assert not lora.attached(model)


def test_the_output_is_that_of_the_sum_of_base_and_delta(model):
    down, up = pair()
    lora.attach(model, {GATE: (down, up)}, scale=0.5)
    served = logits(model)
    lora.detach(model)
    linear = lora.linear_at(model, GATE)
    linear.weight = linear.weight + 0.5 * (mx.array(down) @ mx.array(up)).T
    assert np.abs(logits(model) - served).max() < 1e-4


def test_what_is_attached_is_what_is_read_back(model):
    down, up = pair()
    lora.attach(model, {GATE: (down, up)}, scale=1.0)
    read = lora.numbers(model)
    assert set(read) == {f"{GATE}.lora_a", f"{GATE}.lora_b"}
    assert np.array_equal(read[f"{GATE}.lora_a"], down)
    assert np.array_equal(read[f"{GATE}.lora_b"], up)


def test_the_norm_of_a_change_is_that_of_its_product(model):
    down, up = pair()
    lora.attach(model, {GATE: (down, up)}, scale=3.0)
    assert lora.change_norm(lora.attached(model)[GATE]) == pytest.approx(3.0 * np.linalg.norm(down @ up), rel=1e-5)


@pytest.mark.parametrize(
    ("path", "numbers"),
    [
        ("model.layers.7.mlp.gate_proj", pair()),
        ("model.layers.1.mlp.act_fn", pair()),
        ("model.norm", pair()),
        (GATE, pair(columns=HIDDEN + 1)),
        (GATE, pair(rows=MLP - 1)),
    ],
    ids=["no such layer", "no such module", "not a linear layer", "another input", "another output"],
)
def test_an_adapter_of_another_base_is_refused_and_nothing_of_it_is_used(model, path, numbers):
    before = logits(model)
    with pytest.raises(VerificationError, match="another base"):
        lora.attach(model, {"model.layers.0.mlp.gate_proj": pair(), path: numbers}, scale=1.0)
    assert logits(model).tobytes() == before.tobytes()
