"""The folder that is prepared for training also serves MLX, and an adapter means the same there."""

from __future__ import annotations

import numpy as np
import pytest

from app.model.adapters.canonical import write_adapter
from app.model.adapters.mlx import canonical_from_mlx
from app.model.adapters.serving import ServingFiles
from app.store.canonical import digest
from tests.adapters.runtimes import torch_logits, torch_model, with_lora
from tests.adapters.test_parity import ATTENTION, MLP, TOLERANCE, mean_divergence, outputs, tiny_base
from tests.support.real import real_base

mx = pytest.importorskip("mlx.core", reason="MLX is not installed")
mlx_utils = pytest.importorskip("mlx_lm.utils")
tree_flatten = pytest.importorskip("mlx.utils").tree_flatten

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")


@pytest.fixture(scope="module", autouse=True)
def without_kernels_compiled_at_run_time():
    if mx.default_device() == mx.cpu:
        mx.disable_compile()
    yield
    mx.enable_compile()


def mlx_model(base, adapter=None):
    model, _ = mlx_utils.load_model(base.training)
    if adapter is not None:
        model = mlx_utils.load_adapters(model, str(adapter))
    model.set_dtype(mx.float32)
    model.eval()
    return model


def mlx_logits(model, ids):
    return np.array(model(mx.array([list(ids)]))[0])


def check_mlx(base, modules, layers, strength, *, tmp_path, count=20):
    plain = torch_model(base)
    trained, served = mlx_model(base), outputs(lambda ids: torch_logits(plain, ids), base, count)
    assert mean_divergence(served, outputs(lambda ids: mlx_logits(trained, ids), base, count)) < TOLERANCE
    adapted, tensors = with_lora(plain, modules, layers, strength=strength, seed=2)
    data = write_adapter(tensors, base.passport, rank=8, alpha=16.0)
    path = ServingFiles(tmp_path, base, form="mlx").ref(digest(data), lambda: data).path
    wanted = outputs(lambda ids: torch_logits(adapted, ids), base, count)
    assert mean_divergence(wanted, served) > 100 * TOLERANCE, "the adapter is too weak to prove anything"
    taught = mlx_model(base, path)
    assert mean_divergence(wanted, outputs(lambda ids: mlx_logits(taught, ids), base, count)) < TOLERANCE
    read = {name: np.array(array) for name, array in tree_flatten(taught.parameters()) if ".lora_" in name}
    assert canonical_from_mlx(read, base.passport, rank=8, scale=2.0) == data


@pytest.mark.parametrize("modules", [MLP, ATTENTION])
def test_a_tiny_model_gives_equal_logits_on_mlx(modules, tmp_path, tmp_path_factory):
    check_mlx(tiny_base(tmp_path_factory.mktemp("tiny")), modules, [1], 0.5, tmp_path=tmp_path)


@pytest.mark.real
def test_the_real_model_gives_equal_logits_on_mlx(tmp_path):
    # Without a GPU, MLX needs seconds for each prompt of this size.
    check_mlx(real_base(), MLP, range(6, 16), 0.1, tmp_path=tmp_path, count=1)
