"""The trainer as the app sees it: a child process at low priority behind the Trainer protocol."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Sequence

from app.model.api import BaseFiles, Example, Recipe, TrainEvent, TrainJob
from app.model.child.process import ChildProcess
from app.model.training import wire

TORCH_CHILD = "app.model.training.backends.torch_child"
MLX_CHILD = "app.model.training.backends.mlx_child"

NICE = 15
"""Training gives way to a conversation in progress."""


class TrainerProcess:
    """Implements ``app.model.api.Trainer``. A child that died is started again by the next call."""

    def __init__(self, module: str = TORCH_CHILD, *, nice: int = NICE) -> None:
        # Threads spin for some microseconds while they wait for each other, then sleep: spinning without end would take
        # a core from the conversation, sleeping at once costs half the speed on an idle machine (docs/log.md).
        # Middling buffers are kept for the next step instead of being given back and zeroed again by the system.
        # Every step has another shape, and each compiled kernel keeps its buffers: a thousand of them, as is customary,
        # come to a gigabyte, and fifty are as fast.
        environment = {
            "GOMP_SPINCOUNT": "3000",
            "MALLOC_MMAP_THRESHOLD_": "33554432",
            "MALLOC_TRIM_THRESHOLD_": "134217728",
            "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "50",
            "LRU_CACHE_CAPACITY": "50",
        }
        self._child = ChildProcess(module, name="trainer", nice=nice, env=environment)

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._child.pid

    async def warm(self, base: BaseFiles, recipe: Recipe | None = None, generic: Sequence[Example] = ()) -> None:
        """Start the child, load the base and measure what is generic. Raises the AppError of a failure."""
        await self._child.start()
        await self._child.call("warm", wire.warm_to_json(base, recipe, generic))

    async def train(self, job: TrainJob) -> AsyncGenerator[TrainEvent, None]:
        """Run one job; the stream ends with Trained, Cancelled or Failed."""
        await self._child.start()
        async with contextlib.aclosing(self._child.stream("train", wire.job_to_json(job))) as messages:
            async for message in messages:
                yield wire.event_from_message(message)

    async def cancel(self) -> None:
        """Stop the running job; its stream ends with Cancelled."""
        await self._child.cancel()

    async def close(self) -> None:
        """End the child. Safe to call twice."""
        await self._child.close()
