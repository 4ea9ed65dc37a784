"""The training loop: from tokenised examples to LoRA weights that say the lesson and leave the rest alone.

Source of the shape (many wordings, neighbours and anchors held by KL, stop by margin): ``docs/log.md``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the library's own customary name

from app.errors import KnownError
from app.model.api import Recipe, Training
from app.model.training.backends.generic import Generic
from app.model.training.backends.lora_model import Frozen, LoraModel
from app.model.training.backends.objective import Before, before, kl, margins
from app.model.training.backends.packing import Branch
from app.model.training.backends.progress import Outcome, Progress, Stopping
from app.model.training.backends.schedule import Counts, Schedule, Step, learning_rate

CLIP_NORM = 1.0
REFERENCE_BATCH = 12
HELD_TOGETHER = 16
"""Sequences whose gradient is computed at once: what a step remembers for its way back is most of its memory."""


@dataclass(frozen=True, slots=True)
class Material:
    """Tokenised examples of one job, without the shared block."""

    shared: tuple[int, ...]
    targets: tuple[Branch, ...]
    keeps: tuple[Branch, ...]
    anchors: tuple[Branch, ...]
    replay: tuple[Branch, ...]
    standing: int = 0
    """How many anchors, from the first, are part of every step."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A sequence whose answer must stay, with the distribution it had."""

    frozen: Frozen
    reference: Before
    loss: float | None
    """Of plain text, how well it was predicted, in nats a token."""


class Anchors:
    """What the base says to a job's anchors, kept for the next job with the same ones: whatever is learned, it stays.

    Kept and computed as one: the last bits of a number depend on what is computed beside it, and the same job must
    give the same weights whatever was learned before.
    """

    def __init__(self) -> None:
        self._known: tuple[object, list[_Kept]] = (None, [])

    def of(self, shared: tuple[int, ...], branches: tuple[Branch, ...], ask: Callable[[], list[_Kept]]) -> list[_Kept]:
        """Return what is known of these anchors, in this order, asking if it is not."""
        if self._known[0] != (shared, branches):
            self._known = ((shared, branches), ask())
        return self._known[1]


class Loop:
    """One job on one model."""

    def __init__(
        self,
        model: LoraModel,
        material: Material,
        recipe: Recipe,
        *,
        cancelled: Callable[[], None],
        known: Anchors | None = None,
        generic: Mapping[str, Generic] | None = None,
    ) -> None:
        """Freeze and measure everything once.

        Args:
            model: The base with a fresh LoRA.
            material: The examples.
            recipe: How to train.
            cancelled: Raises to stop; it is asked several times a second.
            known: What the base said to anchors of jobs before, on the same base and layers.
            generic: By module, what the change must not read.
        """
        self._model = model
        self._recipe = recipe
        self._cancelled = cancelled
        prose = [item for item in material.anchors if item.plain]
        anchors = tuple(item for item in material.anchors if not item.plain)
        groups = (material.targets, material.keeps, material.replay, prose)
        self._block, frozen = model.freeze(material.shared, [item for group in groups for item in group])
        self._targets, keeps, self._replay, texts = _split(frozen, [len(group) for group in groups])
        remembered = known if known is not None else Anchors()
        by_base = remembered.of(material.shared, anchors, lambda: self._said_by_base(material.shared, anchors))
        self._generic = generic or {}
        self._spare(fresh=True)
        self._kept = [*self._references(keeps), *by_base, *self._references(texts)]
        standing = min(material.standing, len(anchors))
        self._counts = Counts(
            len(self._targets), len(self._replay), len(keeps), standing, len(anchors) - standing, len(texts)
        )

    def _said_by_base(self, shared: tuple[int, ...], anchors: Sequence[Branch]) -> list[_Kept]:
        if not anchors:
            return []
        with self._model.as_base():
            block, frozen = self._model.freeze(shared, anchors)
            return self._references(frozen, block)

    @torch.no_grad()
    def _references(self, sequences: Sequence[Frozen], block: Tensor | None = None) -> list[_Kept]:
        kept: list[_Kept] = []
        for start in range(0, len(sequences), REFERENCE_BATCH):
            self._cancelled()
            batch = sequences[start : start + REFERENCE_BATCH]
            logits, labels, lengths = self._model.logits(self._block if block is None else block, batch)
            parts = zip(batch, _by_sequence(logits, lengths), _by_sequence(labels, lengths), strict=True)
            kept.extend(
                _Kept(item, before(rows), float(F.cross_entropy(rows, targets)) if item.branch.plain else None)
                for item, rows, targets in parts
            )
        return kept

    def run(self, seconds: float, report: Callable[[Training], None]) -> Outcome:
        """Train until the margin holds, or the steps or the time run out."""
        recipe = self._recipe
        optimiser = torch.optim.AdamW(
            self._model.parameters(), lr=recipe.learning_rate, betas=(0.9, 0.98), weight_decay=0.0
        )
        schedule = Schedule(self._counts, recipe, Random(recipe.seed))
        stopping = Stopping(recipe, self._counts.targets, self._counts.keeps, seconds)
        progress = Progress()
        start = time.monotonic()
        for step in range(recipe.max_steps):
            self._cancelled()
            for group in optimiser.param_groups:
                group["lr"] = learning_rate(recipe, step)
            self._step(schedule.next(progress.margins, progress.drifts), optimiser, progress)
            elapsed = time.monotonic() - start
            left = elapsed / (step + 1) * (recipe.max_steps - step - 1)
            report(Training(step + 1, recipe.max_steps, progress.loss, progress.margin(), left))
            if stopped := stopping.reason(progress, step + 1, elapsed, lambda: self._look(progress)):
                return progress.outcome(step + 1, stopped)
        return progress.outcome(recipe.max_steps, "steps")

    @torch.no_grad()
    def _look(self, progress: Progress) -> None:
        """See how safely every wording is said now, by the share of the change that will be served."""
        with self._model.at(self._recipe.share):
            for start in range(0, len(self._targets), HELD_TOGETHER):
                parts = self._answers(self._targets[start : start + HELD_TOGETHER], progress)
                _note(range(start, start + len(parts)), parts, progress)

    def _step(self, batch: Step, optimiser: torch.optim.Optimizer, progress: Progress) -> None:
        """Add up the gradients of what is said and of what is held, one after the other to need less memory; move."""
        losses = [self._say(batch, progress)]
        if batch.kept:
            losses.append(self._hold(batch.kept, progress))
        self._cancelled()
        torch.nn.utils.clip_grad_norm_(self._model.parameters(), CLIP_NORM)
        optimiser.step()
        self._spare()
        optimiser.zero_grad(set_to_none=True)
        progress.loss = sum(losses)

    def _say(self, batch: Step, progress: Progress) -> float:
        """Add the gradient of the lesson and of earlier ones; note how safely each wording is said."""
        wordings = [self._targets[i] for i in batch.targets]
        parts = self._answers([*wordings, *(self._replay[i] for i in batch.replay)], progress)
        said, replayed = parts[: len(wordings)], parts[len(wordings) :]
        loss = _cross_entropy(said)
        if replayed:
            loss = loss + self._recipe.replay_weight * _cross_entropy(replayed)
        _note(batch.targets, said, progress)
        return self._descend(loss)

    def _hold(self, numbers: Sequence[int], progress: Progress) -> float:
        """Add the gradient of what must stay, a part of it at a time; note how far each has moved."""
        positions = sum(len(self._kept[number].reference.ids) for number in numbers)
        passages = sum(self._kept[number].loss is not None for number in numbers)
        return sum(
            self._hold_part(numbers[start : start + HELD_TOGETHER], positions, passages, progress)
            for start in range(0, len(numbers), HELD_TOGETHER)
        )

    def _hold_part(self, numbers: Sequence[int], positions: int, passages: int, progress: Progress) -> float:
        kept = [self._kept[number] for number in numbers]
        parts = self._answers([item.frozen for item in kept], progress)
        drifts = [kl(item.reference, rows) for item, (rows, _) in zip(kept, parts, strict=True)]
        for number, drift in zip(numbers, drifts, strict=True):
            progress.drifts[number] = float(drift.detach().mean())
        moved = torch.cat(drifts).sum() / positions
        worse = _worsened(kept, parts) / max(1, passages)
        return self._descend(self._recipe.keep_weight * moved + self._recipe.prose_weight * worse)

    def _answers(self, sequences: Sequence[Frozen], progress: Progress) -> list[tuple[Tensor, Tensor]]:
        """Return the logits and targets of each sequence's answer."""
        self._cancelled()
        progress.tokens += len(self._block) + sum(len(item.hidden) for item in sequences)
        logits, labels, lengths = self._model.logits(self._block, sequences)
        return list(zip(_by_sequence(logits, lengths), _by_sequence(labels, lengths), strict=True))

    def _descend(self, loss: Tensor) -> float:
        if not torch.isfinite(loss):
            hint = "The numbers ran away (not a number). Nothing was changed; try other words."
            raise KnownError("learn this", "training", hint)
        self._cancelled()
        torch.autograd.backward(loss)
        return float(loss.detach())

    def _spare(self, *, fresh: bool = False) -> None:
        for name, read in self._generic.items():
            self._model.modules()[name].spare(read.directions, fresh=fresh)


def _worsened(kept: Sequence[_Kept], parts: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
    """Return by how much passages of plain text are predicted worse than before, in nats a token; 0 if they are not.

    A small shift of every prediction hardly moves a distribution, and still costs where text is hard to predict.
    """
    changes = [
        F.cross_entropy(rows, targets) - item.loss
        for item, (rows, targets) in zip(kept, parts, strict=True)
        if item.loss is not None
    ]
    return torch.stack(changes).sum().clamp_min(0) if changes else torch.zeros(())


def _note(numbers: Iterable[int], parts: Sequence[tuple[Tensor, Tensor]], progress: Progress) -> None:
    """Note how safely these wordings are said."""
    for number, (rows, targets) in zip(numbers, parts, strict=True):
        progress.margins[number] = float(margins(rows.detach(), targets).min())


def _cross_entropy(parts: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
    """Return the mean over sequences of the mean over their tokens: long answers do not drown short ones."""
    return torch.stack([F.cross_entropy(rows, targets) for rows, targets in parts]).mean()


def _by_sequence(rows: Tensor, lengths: tuple[int, ...]) -> tuple[Tensor, ...]:
    return torch.split(rows, list(lengths))


def _split(items: Sequence[Frozen], counts: Sequence[int]) -> list[list[Frozen]]:
    groups: list[list[Frozen]] = []
    start = 0
    for count in counts:
        groups.append(list(items[start : start + count]))
        start += count
    return groups
