"""The training loop: from tokenised examples to LoRA weights that say the lesson and leave the rest alone.

Source of the shape (many wordings, neighbours and anchors held by KL, stop by margin): ``docs/log.md``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from app.model.training.backends.schedule import cycle, learning_rate

CLIP_NORM = 1.0
STEADY_CHECKS = 2
"""How often in a row the margin must hold on every wording."""
REFERENCE_BATCH = 12


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
class Outcome:
    """How training went."""

    steps: int
    tokens: int
    loss: float
    margin: float
    stopped: str


@dataclass(slots=True)
class _State:
    """What changes from step to step."""

    margins: dict[int, float] = field(default_factory=dict)
    drifts: dict[int, float] = field(default_factory=dict)
    steady: int = 0
    tokens: int = 0
    loss: float = 0.0

    def margin(self) -> float:
        """Return the smallest lead of any target token, over all wordings as each was last seen."""
        return min(self.margins.values(), default=float("-inf"))

    def drift(self) -> float:
        """Return the mean KL of what must stay, each as last seen, in nats."""
        return sum(self.drifts.values()) / len(self.drifts) if self.drifts else 0.0


@dataclass(frozen=True, slots=True)
class _Kept:
    """A sequence whose answer must stay, with the distribution it had."""

    frozen: Frozen
    reference: Before


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
    """One job on one model. ``load_parent`` puts the weights in place that training starts from."""

    def __init__(
        self,
        model: LoraModel,
        material: Material,
        recipe: Recipe,
        *,
        load_parent: Callable[[], None],
        cancelled: Callable[[], None],
        anchors: Anchors | None = None,
        generic: Mapping[str, Generic] | None = None,
    ) -> None:
        """Freeze and measure everything once.

        Args:
            model: The base with a fresh LoRA.
            material: The examples.
            recipe: How to train.
            load_parent: Puts the weights in place that training starts from.
            cancelled: Raises to stop; it is asked several times a second.
            anchors: What is known of anchors from jobs before, on the same base and layers.
            generic: By module, what the change must not read.
        """
        self._model = model
        self._recipe = recipe
        self._cancelled = cancelled
        counts = [len(material.targets), len(material.keeps), len(material.replay)]
        self._block, frozen = model.freeze(material.shared, [*material.targets, *material.keeps, *material.replay])
        targets, keeps, replay = _split(frozen, counts)
        remembered = anchors if anchors is not None else Anchors()
        kept_anchors = remembered.of(material.shared, material.anchors, lambda: self._said_by_base(material))
        self._generic = generic or {}
        self._spare(fresh=True)
        load_parent()
        self._kept = [*self._references(self._block, keeps), *kept_anchors]
        self._keeps = len(keeps)
        self._standing = min(material.standing, len(material.anchors))
        self._targets = targets
        self._replay = replay
        self._random = Random(recipe.seed)

    def _said_by_base(self, material: Material) -> list[_Kept]:
        if not material.anchors:
            return []
        block, anchors = self._model.freeze(material.shared, material.anchors)
        with self._model.peft.disable_adapter():
            return self._references(block, anchors)

    @torch.no_grad()
    def _references(self, block: Tensor, sequences: Sequence[Frozen]) -> list[_Kept]:
        kept: list[_Kept] = []
        for start in range(0, len(sequences), REFERENCE_BATCH):
            self._cancelled()
            batch = sequences[start : start + REFERENCE_BATCH]
            logits, _, lengths = self._model.logits(block, batch)
            kept.extend(
                _Kept(frozen, before(rows)) for frozen, rows in zip(batch, _by_sequence(logits, lengths), strict=True)
            )
        return kept

    def run(self, seconds: float, report: Callable[[Training], None]) -> Outcome:
        """Train until the margin holds, or the steps or the time run out."""
        recipe = self._recipe
        optimiser = torch.optim.AdamW(
            self._model.parameters(), lr=recipe.learning_rate, betas=(0.9, 0.98), weight_decay=0.0
        )
        batches = self._batches()
        state = _State()
        start = time.monotonic()
        for step in range(recipe.max_steps):
            self._cancelled()
            for group in optimiser.param_groups:
                group["lr"] = learning_rate(recipe, step)
            self._step(next(batches), optimiser, state)
            elapsed = time.monotonic() - start
            left = elapsed / (step + 1) * (recipe.max_steps - step - 1)
            report(Training(step + 1, recipe.max_steps, state.loss, state.margin(), left))
            if stopped := self._stopped(state, step + 1, elapsed, seconds):
                return Outcome(step + 1, state.tokens, state.loss, state.margin(), stopped)
        return Outcome(recipe.max_steps, state.tokens, state.loss, state.margin(), "steps")

    def _stopped(self, state: _State, steps: int, elapsed: float, seconds: float) -> str:
        seen_all = len(state.margins) == len(self._targets) and len(state.drifts) >= self._keeps
        good = seen_all and state.margin() >= self._recipe.margin and state.drift() <= self._recipe.drift
        state.steady = state.steady + 1 if good else 0
        if steps >= self._recipe.min_steps and state.steady >= STEADY_CHECKS:
            return "margin"
        return "time" if elapsed > seconds else ""

    def _batches(self) -> Iterator[_Batch]:
        recipe = self._recipe
        targets = cycle(len(self._targets), recipe.targets_per_step, self._random)
        keeps = cycle(self._keeps, recipe.keeps_per_step, self._random)
        rotating = self._keeps + self._standing
        standing = list(range(self._keeps, rotating))
        anchors = cycle(len(self._kept) - rotating, recipe.anchors_per_step, self._random)
        replay = cycle(len(self._replay), recipe.replay_per_step, self._random)
        while True:
            kept = [*next(keeps), *standing, *(rotating + i for i in next(anchors))]
            yield _Batch(next(targets), kept, next(replay))

    def _step(self, batch: _Batch, optimiser: torch.optim.Optimizer, state: _State) -> None:
        recipe = self._recipe
        kept = [self._kept[i] for i in batch.kept]
        sequences = [
            *(self._targets[i] for i in batch.targets),
            *(self._replay[i] for i in batch.replay),
            *(item.frozen for item in kept),
        ]
        logits, labels, lengths = self._model.logits(self._block, sequences)
        parts = list(zip(_by_sequence(logits, lengths), _by_sequence(labels, lengths), strict=True))
        said = parts[: len(batch.targets)]
        replayed = parts[len(batch.targets) : len(batch.targets) + len(batch.replay)]
        held = parts[len(batch.targets) + len(batch.replay) :]
        loss = _cross_entropy(said)
        if replayed:
            loss = loss + recipe.replay_weight * _cross_entropy(replayed)
        if held:
            drifts = [kl(item.reference, rows) for item, (rows, _) in zip(kept, held, strict=True)]
            loss = loss + recipe.keep_weight * torch.cat(drifts).mean()
            for index, drift in zip(batch.kept, drifts, strict=True):
                state.drifts[index] = float(drift.detach().mean())
        if not torch.isfinite(loss):
            hint = "The numbers ran away (not a number). Nothing was changed; try other words."
            raise KnownError("learn this", "training", hint)
        self._cancelled()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(self._model.parameters(), CLIP_NORM)
        optimiser.step()
        self._spare()
        optimiser.zero_grad(set_to_none=True)
        for index, (rows, targets) in zip(batch.targets, said, strict=True):
            state.margins[index] = float(margins(rows.detach(), targets).min())
        state.tokens += len(self._block) + sum(len(item.hidden) for item in sequences)
        state.loss = float(loss.detach())

    def _spare(self, *, fresh: bool = False) -> None:
        for name, read in self._generic.items():
            self._model.modules()[name].spare(read.directions, fresh=fresh)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Indices of one step."""

    targets: list[int]
    kept: list[int]
    replay: list[int]


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
