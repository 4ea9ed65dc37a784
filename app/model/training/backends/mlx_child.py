"""The trainer child on MLX: ``warm`` loads a base, ``train`` turns one job into one adapter file."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable

import mlx.core as mx

from app.errors import KnownError
from app.model.adapters.canonical import read_adapter
from app.model.adapters.mlx import canonical_from_mlx
from app.model.api import BaseFiles, Example, Recipe, Trained, TrainJob
from app.model.child.protocol import Json
from app.model.child.serve import Cancel, Cancelled, Emit, serve
from app.model.mlx.backends import lora
from app.model.mlx.backends.folder import SMALL_PARAMETERS, Base, load_base
from app.model.training import wire
from app.model.training.backends.job_files import read_parent, write_change
from app.model.training.backends.mlx_batch import Tokens, tokens_of
from app.model.training.backends.mlx_generic import generic_directions
from app.model.training.backends.mlx_loop import Loop, Material, attach_fresh, written_paths
from app.model.training.backends.progress import Outcome


class Child:
    """The one base that is loaded, between requests."""

    def __init__(self) -> None:
        self.base: Base | None = None
        self._passport = ""
        self._directions: tuple[object, dict[str, mx.array]] | None = None

    def warm(self, params: Json, _: Emit, cancel: Cancel) -> Json:
        """Load the base, if it is not loaded yet, and measure what is generic in it."""
        files, recipe, generic = wire.warm_from_json(params)
        base = self._loaded(files)
        if recipe is not None:
            self._directions_of(base, recipe, generic, _stop_when(cancel))
        return {}

    def train(self, params: Json, emit: Emit, cancel: Cancel) -> Json:
        """Run one job; the adapter file is there once this has returned, and not before."""
        job = wire.job_from_json(params)
        cancelled = _stop_when(cancel)
        base = self._loaded(job.base)
        start = time.monotonic()
        directions = self._directions_of(base, job.recipe, job.generic, cancelled)
        try:
            attach_fresh(base.model, job.recipe)
            loop = Loop(
                base.model,
                _material(job, base),
                job.recipe,
                load_parent=lambda: _load_parent(base, job),
                cancelled=cancelled,
                directions=directions,
            )
            outcome = loop.run(job.seconds, lambda step: emit(wire.step_to_json(step)))
            cancelled()
            result = _written(base, job, outcome, start)
        finally:
            lora.detach(base.model)
        return wire.result_to_json(result)

    def _directions_of(
        self, base: Base, recipe: Recipe, generic: tuple[Example, ...], cancelled: Callable[[], None]
    ) -> dict[str, mx.array]:
        """Return what the change must not read; measured once for the same modules and exchanges."""
        if not generic or recipe.spared <= 0:
            return {}
        paths = tuple(written_paths(base.model, recipe))
        key = (paths, recipe.spared, generic)
        if self._directions is None or self._directions[0] != key:
            sequences = [tokens_of(example, base.tokenizer) for example in generic]
            found = generic_directions(base.model, paths, sequences, share=recipe.spared, cancelled=cancelled)
            self._directions = (key, found)
        return self._directions[1]

    def _loaded(self, files: BaseFiles) -> Base:
        if self.base is None or self._passport != files.passport.id:
            self.base = self._directions = None  # frees the old one before the new one comes
            base = load_base(files.training)
            base.model.set_dtype(mx.float32 if base.parameters < SMALL_PARAMETERS else mx.bfloat16)
            mx.eval(base.model.parameters())
            self.base, self._passport = base, files.passport.id
        return self.base


def _stop_when(cancel: Cancel) -> Callable[[], None]:
    def cancelled() -> None:
        if cancel.is_set():
            raise Cancelled

    return cancelled


def _material(job: TrainJob, base: Base) -> Material:
    def tokens(examples: tuple[Example, ...]) -> tuple[Tokens, ...]:
        return tuple(tokens_of(example, base.tokenizer) for example in examples)

    if not job.targets:
        raise KnownError("learn this", "training", "There is nothing to learn from.", retryable=False)
    return Material(tokens(job.targets), tokens(job.keeps), tokens(job.anchors), tokens(job.replay), job.standing)


def _load_parent(base: Base, job: TrainJob) -> None:
    """Put the version in place that the change stands on."""
    if job.parent is None:
        return
    parent = read_adapter(read_parent(job.parent), job.base.passport, job.parent.name)
    pairs = {path: (pair.down.T, pair.up.T) for path, pair in parent.pairs.items()}
    lora.stand_on(base.model, pairs, scale=parent.alpha / parent.rank)


def _written(base: Base, job: TrainJob, outcome: Outcome, start: float) -> Trained:
    """Check the result and write it, whole or not at all."""
    layers = lora.trained(base.model)
    if not any(bool(mx.any(layer.lora_b)) for layer in layers.values()):
        raise KnownError("learn this", "training", "It changed nothing. Try other words.", retryable=False)
    sizes = [
        lora.change_norm(layer) / lora.weight_norm(lora.linear_at(base.model, path)) for path, layer in layers.items()
    ]
    recipe = job.recipe
    data = canonical_from_mlx(
        lora.numbers(base.model), job.base.passport, rank=recipe.rank, scale=recipe.alpha / recipe.rank
    )
    write_change(job.output, data)
    return Trained(
        path=job.output,
        sha256=hashlib.sha256(data).hexdigest(),
        steps=outcome.steps,
        tokens=outcome.tokens,
        seconds=time.monotonic() - start,
        loss=outcome.loss,
        margin=outcome.margin,
        stopped=outcome.stopped,
        written_norm=max(sizes),
    )


if __name__ == "__main__":
    child = Child()
    serve({"warm": child.warm, "train": child.train})
