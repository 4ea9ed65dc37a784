"""Which runtime infers and trains on this machine: MLX on Apple silicon, llama.cpp and torch everywhere else.

Example:
    runtime = choose_runtime()
    engine = runtime.engine(name="engine")
    await engine.load(runtime.files(base))
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Literal

from app.model.api import BaseFiles
from app.model.engine.client import ChildEngine, LlamaEngine
from app.model.engine.mlx import MlxEngine
from app.model.training.process import MLX_CHILD, TORCH_CHILD, TrainerProcess


@dataclass(frozen=True, slots=True)
class Runtime:
    """How to make the engine and the trainer, and what they load. Nothing runs before it is asked to."""

    name: str
    engine: Callable[..., ChildEngine]
    """Takes ``name`` and ``nice``."""
    trainer_module: str
    adapter_form: Literal["gguf", "mlx"]
    """What ``ServingFiles`` derives for the engine."""

    def trainer(self) -> TrainerProcess:
        """Return a trainer that is not started yet."""
        return TrainerProcess(self.trainer_module)

    def files(self, base: BaseFiles) -> BaseFiles:
        """Return the base as this runtime loads it: MLX serves from the very folder that it trains on."""
        return replace(base, serving=base.training) if self.adapter_form == "mlx" else base


LLAMA = Runtime("llama.cpp", LlamaEngine, TORCH_CHILD, "gguf")
MLX = Runtime("mlx", MlxEngine, MLX_CHILD, "mlx")


def choose_runtime(*, system: str = sys.platform, machine: str | None = None) -> Runtime:
    """Return MLX on Apple silicon if it is installed, else llama.cpp with torch."""
    apple = system == "darwin" and (machine or platform.machine()) == "arm64"
    return MLX if apple and find_spec("mlx") is not None else LLAMA
