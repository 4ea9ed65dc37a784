"""The MLX engine keeps the promises of an engine, on a tiny model that a test taught to speak."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

pytest.importorskip("mlx.core")

from app.model.adapters.canonical import tensor_names, write_adapter
from app.model.adapters.serving import ServingFiles
from app.model.api import BaseFiles
from app.model.runtimes import MLX
from app.store.canonical import digest
from tests.engine.contract import EngineContract, Rig, said
from tests.mlx.taught import POEM, QUESTION, make_taught
from tests.mlx.tiny import HIDDEN, LAYERS, MLP, passport


@cache
def taught_base() -> BaseFiles:
    folder = make_taught(Path(mkdtemp(prefix="ownmind-taught-")))
    return BaseFiles(passport(folder), folder, folder)


def random_adapter(base, folder, *, seed):
    random = np.random.default_rng(seed)
    tensors = {}
    for layer in range(LAYERS):
        down, up = tensor_names(f"model.layers.{layer}.mlp.gate_proj")
        tensors[down] = random.standard_normal((4, HIDDEN)).astype(np.float32)
        tensors[up] = random.standard_normal((MLP, 4)).astype(np.float32)
    data = write_adapter(tensors, base.passport, rank=4, alpha=8.0)
    return ServingFiles(folder, base, form=MLX.adapter_form).ref(digest(data), lambda: data)


class TestMlxEngine(EngineContract):
    @classmethod
    def make(cls, folder: Path) -> Rig:
        base = taught_base()
        adapters = (random_adapter(base, folder, seed=1), random_adapter(base, folder, seed=2))
        return Rig(
            MLX.engine,
            base,
            adapters,
            question=said(QUESTION),
            long_answer=said("Rain falls on the sea and on the road. " * 80 + POEM),  # so small a model is too quick
            long_prompt=said("Rain falls on the sea and on the road. " * 150),
        )
