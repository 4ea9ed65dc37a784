"""The training loop on MLX: the counterpart of ``loop`` for Apple silicon, one recipe and one meaning for both.

It differs in how a step is computed, not in what: sequences are padded into three micro-batches (lesson, earlier
lessons, what must stay) whose gradients add up, and between them a cancel is noticed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from random import Random
from statistics import fmean
from typing import Any

import mlx.core as mx
from mlx import nn, optimizers
from mlx.utils import tree_map

from app.errors import KnownError
from app.model.api import Recipe, Training
from app.model.mlx.backends import lora
from app.model.training.backends.mlx_batch import (
    Before,
    Tokens,
    answer_logprobs,
    batch_of,
    before,
    by_sequence,
    cross_entropy,
    divergence,
    joined,
    leads,
    mean_loss,
    split,
)
from app.model.training.backends.mlx_generic import Directions, spare
from app.model.training.backends.progress import Outcome, Progress, Stopping
from app.model.training.backends.schedule import Counts, Schedule, Step, learning_rate

CLIP_NORM = 1.0
REFERENCE_BATCH = 8


@dataclass(frozen=True, slots=True)
class Material:
    """Tokenised examples of one job."""

    targets: tuple[Tokens, ...]
    keeps: tuple[Tokens, ...]
    anchors: tuple[Tokens, ...]
    replay: tuple[Tokens, ...]
    standing: int = 0
    """How many anchors, from the first, are part of every step."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A sequence whose answer must stay, with the distribution it had."""

    tokens: Tokens
    reference: Before
    loss: float | None
    """Of plain text, how well it was predicted, in nats a token."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One part of a step's loss."""

    loss: float
    rows: list[float]
    """At each answer position: by how much the target leads, or how far the answer moved, in nats."""
    gradient: object


_Loss = Callable[[nn.Module], tuple[mx.array, mx.array]]


def attach_fresh(model: nn.Module, recipe: Recipe) -> None:
    """Put a new LoRA on the recipe's modules: A random and seeded, B zero, so that nothing changes yet."""
    mx.random.seed(recipe.seed)
    for path in written_paths(model, recipe):
        linear = lora.linear_at(model, path)
        rows, columns = lora.shape_of(linear)
        bound = 1 / math.sqrt(columns)
        down = mx.random.uniform(-bound, bound, (columns, recipe.rank))
        layer = lora.wrap(linear, down, mx.zeros((recipe.rank, rows)), scale=recipe.alpha / recipe.rank)
        lora.replace(model, path, layer)


def written_paths(model: nn.Module, recipe: Recipe) -> list[str]:
    """Return the modules that a recipe writes. Raises KnownError if the base lacks any of them."""
    layers = range(recipe.layers[0], recipe.layers[1] + 1)
    found = [
        path
        for path, _ in model.named_modules()
        if path.rpartition(".")[2] in recipe.modules and int(path.split(".")[2]) in layers
    ]
    if len(found) != len(recipe.modules) * len(layers):
        raise KnownError("learn this", "recipe", "It names parts that this base model does not have.", retryable=False)
    return sorted(found)


class Loop:
    """One job on a model with a fresh LoRA.

    ``load_parent`` puts the version in place that the change stands on; ``cancelled`` raises to stop.
    """

    def __init__(
        self,
        model: nn.Module,
        material: Material,
        recipe: Recipe,
        *,
        load_parent: Callable[[], None],
        cancelled: Callable[[], None],
        directions: Directions | None = None,
    ) -> None:
        """Measure everything that is measured once; ``directions`` are what the change must not read."""
        self._model = model
        self._recipe = recipe
        self._cancelled = cancelled
        self._targets = material.targets
        self._replay = material.replay
        self._directions = directions or {}
        anchors = [item for item in material.anchors if not item.plain]
        prose = [item for item in material.anchors if item.plain]
        by_base = self._references(anchors)
        spare(model, self._directions, fresh=True)
        load_parent()
        self._kept = [*self._references(material.keeps), *by_base, *self._references(prose)]
        standing = min(material.standing, len(anchors))
        self._counts = Counts(
            len(material.targets),
            len(material.replay),
            len(material.keeps),
            standing,
            len(anchors) - standing,
            len(prose),
        )
        self._optimiser = optimizers.AdamW(
            learning_rate=recipe.learning_rate, betas=[0.9, 0.98], weight_decay=0.0, bias_correction=True
        )

    def _references(self, sequences: Sequence[Tokens]) -> list[_Kept]:
        kept: list[_Kept] = []
        for start in range(0, len(sequences), REFERENCE_BATCH):
            self._cancelled()
            chunk = sequences[start : start + REFERENCE_BATCH]
            batch = batch_of(chunk)
            now = answer_logprobs(self._model, batch)
            parts = split(before(now), batch.lengths)
            mx.eval([part.logprobs for part in parts])
            for item, part in zip(chunk, parts, strict=True):
                loss = float(mean_loss(now, batch, [other is item for other in chunk])) if item.plain else None
                kept.append(_Kept(item, part, loss))
        return kept

    def run(self, seconds: float, report: Callable[[Training], None]) -> Outcome:
        """Train until the margin holds, the steps or the time run out. ``cancelled`` raises to stop."""
        recipe = self._recipe
        schedule = Schedule(self._counts, recipe, Random(recipe.seed))
        stopping = Stopping(recipe, self._counts.targets, self._counts.keeps, seconds)
        progress = Progress()
        start = time.monotonic()
        for step in range(recipe.max_steps):
            self._optimiser.learning_rate = learning_rate(recipe, step)
            self._step(schedule.next(progress.margins, progress.drifts), progress)
            elapsed = time.monotonic() - start
            left = elapsed / (step + 1) * (recipe.max_steps - step - 1)
            report(Training(step + 1, recipe.max_steps, progress.loss, progress.margin(), left))
            if stopped := stopping.reason(progress, step + 1, elapsed, lambda: self._look(progress)):
                return progress.outcome(step + 1, stopped)
        return progress.outcome(recipe.max_steps, "steps")

    def _look(self, progress: Progress) -> None:
        """See how safely every wording is said now, by the share of the change that will be served."""
        for start in range(0, len(self._targets), REFERENCE_BATCH):
            self._cancelled()
            said = self._targets[start : start + REFERENCE_BATCH]
            batch = batch_of(said)
            with lora.at(self._model, self._recipe.share):
                rows: Any = leads(answer_logprobs(self._model, batch), batch).tolist()
            progress.margins.update(enumerate(map(min, by_sequence(rows, said)), start))
            progress.tokens += sum(len(item.ids) for item in said)

    def _step(self, chosen: Step, state: Progress) -> None:
        """Add up the gradients of the three parts and move once."""
        said = [self._targets[i] for i in chosen.targets]
        replayed = [self._replay[i] for i in chosen.replay]
        kept = [self._kept[i] for i in chosen.kept]
        parts = [self._part(_saying(said, 1.0))]
        if replayed:
            parts.append(self._part(_saying(replayed, self._recipe.replay_weight)))
        if kept:
            parts.append(self._part(_holding(kept, self._recipe)))
            moved = by_sequence(parts[-1].rows, [item.tokens for item in kept])
            state.drifts.update(zip(chosen.kept, map(fmean, moved), strict=True))
        state.loss = sum(part.loss for part in parts)
        self._move(state.loss, [part.gradient for part in parts])
        state.margins.update(zip(chosen.targets, map(min, by_sequence(parts[0].rows, said)), strict=True))
        state.tokens += sum(len(item.ids) for item in [*said, *replayed, *(item.tokens for item in kept)])

    def _part(self, loss: _Loss) -> _Part:
        """Compute one part of the loss and its gradient, now; before that, notice a cancel."""
        self._cancelled()
        (value, rows), gradient = nn.value_and_grad(self._model, loss)(self._model)
        mx.eval(value, rows, gradient)
        return _Part(float(value), rows.tolist(), gradient)

    def _move(self, loss: float, gradients: Sequence[object]) -> None:
        if not math.isfinite(loss):
            hint = "The numbers ran away (not a number). Nothing was changed; try other words."
            raise KnownError("learn this", "training", hint)
        total = reduce(lambda one, other: tree_map(mx.add, one, other), gradients)
        clipped, _ = optimizers.clip_grad_norm(total, CLIP_NORM)
        self._optimiser.update(self._model, clipped)
        spare(self._model, self._directions)
        mx.eval(self._model.trainable_parameters(), self._optimiser.state)


def _saying(sequences: Sequence[Tokens], weight: float) -> _Loss:
    batch = batch_of(sequences)

    def loss(model: nn.Module) -> tuple[mx.array, mx.array]:
        now = answer_logprobs(model, batch)
        return weight * cross_entropy(now, batch), leads(now, batch)

    return loss


def _holding(kept: Sequence[_Kept], recipe: Recipe) -> _Loss:
    batch = batch_of([item.tokens for item in kept])
    reference = joined([item.reference for item in kept])
    plain = [item.loss is not None for item in kept]
    losses = [item.loss for item in kept if item.loss is not None]

    def loss(model: nn.Module) -> tuple[mx.array, mx.array]:
        now = answer_logprobs(model, batch)
        moved = divergence(reference, now)
        total = recipe.keep_weight * moved.mean()
        if losses:
            worse = mean_loss(now, batch, plain) - fmean(losses)
            total = total + recipe.prose_weight * mx.maximum(worse, 0.0)
        return total, moved

    return loss
