"""The base with a LoRA in some of its layers, run as a frozen lower part and a trained upper part.

The layers below the first written one never change, so their output is computed once per sequence and reused by every
step: a step costs only the layers from there to the top, and the vocabulary head only at target positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from peft import LoraConfig, PeftModel, get_peft_model
from peft.tuners.lora import Linear as LoraLinear
from torch import Tensor, nn
from transformers import LlamaForCausalLM

from app.model.adapters.canonical import Adapter, Pair
from app.model.api import Recipe
from app.model.training.backends.attention import PACKED
from app.model.training.backends.packing import Branch, Layout, layout

Array = NDArray[np.float32]

PREFIX_CHUNK_TOKENS = 1024
"""Tokens per pass through the frozen part: large enough for full speed, small enough for its activations."""


FRESH = "default"
"""PEFT's name of the change that is trained."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """A sequence with its activations below the first written layer, shape (tokens, hidden)."""

    branch: Branch
    hidden: Tensor


class Module:
    """One written module: the two halves of its change."""

    def __init__(self, layer: Any, parent: tuple[Tensor, Tensor] | None = None) -> None:
        """Take PEFT's layer, and what its weights already hold: down (k, in) and up (out, k), strength included."""
        self._layer = layer
        self._parent = parent
        self._down: Tensor = self._layer.lora_A[FRESH].weight
        self._up: Tensor = self._layer.lora_B[FRESH].weight

    @contextmanager
    def at(self, share: float) -> Iterator[None]:
        """Act with a share of the change only."""
        whole = self._layer.scaling[FRESH]
        self._layer.scaling[FRESH] = share * whole
        try:
            yield
        finally:
            self._layer.scaling[FRESH] = whole

    def halves(self) -> tuple[Array, Array]:
        """Return down (r, in) and up (out, r) as float32."""
        return self._down.detach().float().numpy(), self._up.detach().float().numpy()

    @torch.no_grad()
    def spare(self, directions: Tensor, *, fresh: bool = False) -> None:
        """Let ``down`` read nothing of these orthonormal directions, shape (k, in).

        A fresh ``down`` is made longer by what it loses, so that learning starts at its usual size.
        """
        rest = self._down - (self._down @ directions.T) @ directions
        kept = (rest.norm() / self._down.norm()).clamp_min(0.1) if fresh else 1.0
        self._down.copy_(rest / kept)

    @torch.no_grad()
    def size(self, inputs: Tensor | None) -> float:
        """Return how large the whole change is, parent included, against the frozen weights: ‖ΔW x‖/‖W x‖.

        Args:
            inputs: Generic inputs x, shape (n, in); None takes all directions as equally likely, which is ‖ΔW‖/‖W‖ in
                Frobenius norms.
        """
        down, up = self._down, self._up * self._layer.scaling[FRESH]
        base = self._layer.base_layer.weight.float()
        if self._parent is not None:
            down, up = torch.cat([self._parent[0], down]), torch.cat([self._parent[1], up], dim=1)
            base = base - self._parent[1] @ self._parent[0]
        if inputs is None:
            squares = torch.trace((up.T @ up) @ (down @ down.T)).clamp_min(0)
            return float(squares.sqrt() / base.norm())
        return float((up @ (down @ inputs.float().T)).norm() / (base @ inputs.float().T).norm())


class LoraModel:
    """A base of the llama family with fresh LoRA modules; weights in bf16 (or f32), the LoRA in f32.

    The version that the change stands on is worked into the frozen weights meanwhile: what it holds is not moved, and
    costs a step nothing.
    """

    def __init__(self, base: LlamaForCausalLM, recipe: Recipe, parent: Adapter | None = None) -> None:
        first, last = recipe.layers
        self._standing = [] if parent is None else [_worked_in(base, *item, parent) for item in parent.pairs.items()]
        config = LoraConfig(
            r=recipe.rank,
            lora_alpha=recipe.alpha,  # type: ignore[arg-type]  # used as a factor; any real number is fine
            target_modules=list(recipe.modules),
            layers_to_transform=list(range(first, last + 1)),
            lora_dropout=0.0,
            bias="none",
        )
        torch.manual_seed(recipe.seed)
        self.peft: PeftModel = get_peft_model(base, config)
        held = {item.name: (item.down, item.up) for item in self._standing}
        found = ((name.removeprefix("base_model.model."), layer) for name, layer in self.peft.named_modules())
        self._modules = {name: Module(layer, held.get(name)) for name, layer in found if isinstance(layer, LoraLinear)}
        self.first = min([first, *(int(item.name.split(".")[2]) for item in self._standing)])
        """The lowest layer that a change writes: below it, version and base are the same."""
        self._model = base.model
        self._head = base.lm_head
        self._stand(on_parent=True)  # last: who fails before leaves the base as it was

    def _stand(self, *, on_parent: bool) -> None:
        for item in self._standing:
            item.linear.weight.data = item.with_parent if on_parent else item.alone

    @contextmanager
    def as_base(self) -> Iterator[None]:
        """Run without any change."""
        self._stand(on_parent=False)
        try:
            with self.peft.disable_adapter():
                yield
        finally:
            self._stand(on_parent=True)

    @contextmanager
    def at(self, share: float) -> Iterator[None]:
        """Run with a share of the change, as it will be served."""
        with ExitStack() as stack:
            for module in self._modules.values():
                stack.enter_context(module.at(share))
            yield

    def modules(self) -> dict[str, Module]:
        """Return the written modules by their name in the base: "model.layers.6.mlp.gate_proj"."""
        return self._modules

    def parameters(self) -> list[nn.Parameter]:
        """Return what is trained."""
        return [p for p in self.peft.parameters() if p.requires_grad]

    def unload(self) -> None:
        """Take the LoRA modules off, and the parent out; the base is as before, to the last bit."""
        self.peft.unload()
        self._stand(on_parent=False)

    @torch.no_grad()
    def freeze(self, shared: Sequence[int], branches: Sequence[Branch]) -> tuple[Tensor, list[Frozen]]:
        """Run the frozen part once; return the shared block's activations and each branch with its own."""
        block: Tensor | None = None
        done: list[Frozen] = []
        for chunk in _chunks(branches, PREFIX_CHUNK_TOKENS):
            plan = layout(len(shared), chunk)
            ids = torch.tensor([*shared, *(token for item in chunk for token in item.ids)])
            hidden = self._run(self._model.embed_tokens(ids[None]), plan, 0, self.first)[0]
            block = hidden[: len(shared)]
            start = len(shared)
            for item in chunk:
                done.append(Frozen(item, hidden[start : start + len(item.ids)].clone()))
                start += len(item.ids)
        if block is None:
            raise ValueError("no sequences to freeze")
        return block.clone(), done

    def logits(self, block: Tensor, batch: Sequence[Frozen]) -> tuple[Tensor, Tensor, tuple[int, ...]]:
        """Return logits in f32, shape (L, vocabulary), their targets (L,), and how many belong to each sequence."""
        plan = layout(len(block), [item.branch for item in batch])
        hidden = torch.cat([block, *(item.hidden for item in batch)])[None]
        depth = len(self._model.layers)
        hidden = self._run(hidden, plan, self.first, depth)
        rows = self._model.norm(hidden[0].index_select(0, plan.rows))
        return self._head(rows).float(), plan.targets, plan.lengths

    def _run(self, hidden: Tensor, plan: Layout, start: int, end: int) -> Tensor:
        rotary = self._model.rotary_emb(hidden, plan.positions)
        for layer in self._model.layers[start:end]:
            hidden = layer(hidden, position_ids=plan.positions, position_embeddings=rotary, packed=plan)
        return hidden


@dataclass(frozen=True, slots=True)
class _Standing:
    """One module's weights without and with the parent; shapes of the parent: down (k, in), up (out, k)."""

    name: str
    linear: nn.Linear
    alone: Tensor
    with_parent: Tensor
    down: Tensor
    up: Tensor


def _worked_in(base: LlamaForCausalLM, name: str, pair: Pair, parent: Adapter) -> _Standing:
    linear = base.get_submodule(name)
    assert isinstance(linear, nn.Linear)  # noqa: S101 - the adapter was verified against this base
    alone = linear.weight.data
    down, up = torch.tensor(pair.down), torch.tensor(pair.up) * (parent.alpha / parent.rank)
    return _Standing(name, linear, alone, (alone.float() + up @ down).to(alone.dtype), down, up)


def load_base(folder: Path, dtype: torch.dtype) -> LlamaForCausalLM:
    """Load the dequantised base; raises OSError or ValueError from the loader for a broken folder."""
    model: LlamaForCausalLM = LlamaForCausalLM.from_pretrained(
        folder, dtype=dtype, local_files_only=True, attn_implementation=PACKED
    )
    model.requires_grad_(requires_grad=False)
    model.train(mode=False)
    return model


def _chunks(branches: Sequence[Branch], limit: int) -> list[list[Branch]]:
    chunks: list[list[Branch]] = [[]]
    size = 0
    for item in branches:
        if chunks[-1] and size + len(item.ids) > limit:
            chunks.append([])
            size = 0
        chunks[-1].append(item)
        size += len(item.ids)
    return chunks
