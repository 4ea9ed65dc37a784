"""The base with a LoRA in some of its layers, run as a frozen lower part and a trained upper part.

The layers below the first written one never change, so their output is computed once per sequence and reused by every
step: a step costs only the layers from there to the top, and the vocabulary head only at target positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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

from app.model.adapters.canonical import Adapter
from app.model.api import Recipe
from app.model.training.backends.attention import PACKED
from app.model.training.backends.packing import Branch, Layout, layout

Array = NDArray[np.float32]

PREFIX_CHUNK_TOKENS = 1024
"""Tokens per pass through the frozen part: large enough for full speed, small enough for its mask."""


FRESH, PARENT = "default", "parent"
"""PEFT's names of the change that is trained, and of the one it stands on."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """A sequence with its activations below the first written layer, shape (tokens, hidden)."""

    branch: Branch
    hidden: Tensor


class Module:
    """One written module: the two halves of its change."""

    def __init__(self, layer: Any) -> None:
        self._layer = layer
        self._down: Tensor = self._layer.lora_A[FRESH].weight
        self._up: Tensor = self._layer.lora_B[FRESH].weight

    def halves(self) -> tuple[Array, Array]:
        """Return down (r, in) and up (out, r) as float32."""
        return self._down.detach().float().numpy(), self._up.detach().float().numpy()

    @torch.no_grad()
    def load(self, down: Array, up: Array) -> None:
        """Replace both halves; the shapes are those of ``halves``."""
        self._down.copy_(torch.tensor(down))
        self._up.copy_(torch.tensor(up))

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
        layer = self._layer
        names = [name for name in (PARENT, FRESH) if name in layer.lora_A]
        down = torch.cat([layer.lora_A[name].weight.float() for name in names])
        up = torch.cat([layer.lora_B[name].weight.float() * layer.scaling[name] for name in names], dim=1)
        base = layer.base_layer.weight.float()
        if inputs is None:
            squares = torch.trace((up.T @ up) @ (down @ down.T)).clamp_min(0)
            return float(squares.sqrt() / base.norm())
        return float((up @ (down @ inputs.float().T)).norm() / (base @ inputs.float().T).norm())


class LoraModel:
    """A base of the llama family with fresh LoRA modules; weights in bf16 (or f32), the LoRA in f32.

    The version that training starts from stands beside them as a frozen LoRA of its own: what it holds is not moved.
    """

    def __init__(self, base: LlamaForCausalLM, recipe: Recipe, parent: Adapter | None = None) -> None:
        first, last = recipe.layers
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
        self.first = first
        """The lowest layer that a change writes: below it, version and base are the same."""
        if parent is not None:
            self._stand_on(parent, base.dtype)
        self._modules = {name: Module(layer) for name, layer in self._lora_layers() if FRESH in layer.lora_A}
        self._model = base.model
        self._head = base.lm_head

    def _lora_layers(self) -> list[tuple[str, Any]]:
        found = [(name, layer) for name, layer in self.peft.named_modules() if isinstance(layer, LoraLinear)]
        return [(name.removeprefix("base_model.model."), layer) for name, layer in found]

    def _stand_on(self, parent: Adapter, dtype: torch.dtype) -> None:
        """Put a version beside the fresh modules, frozen and in the base's own precision."""
        config = LoraConfig(r=parent.rank, lora_alpha=parent.alpha, target_modules=list(parent.pairs))  # type: ignore[arg-type]
        self.peft.add_adapter(PARENT, config)
        self.peft.base_model.set_adapter([PARENT, FRESH])  # type: ignore[operator]  # torch types it as a tensor
        for name, layer in self._lora_layers():
            if PARENT in layer.lora_A:
                pair = parent.pairs[name]
                _put(layer.lora_A[PARENT], pair.down, dtype)
                _put(layer.lora_B[PARENT], pair.up, dtype)
                self.first = min(self.first, int(name.split(".")[2]))

    @contextmanager
    def as_base(self) -> Iterator[None]:
        """Run without any change."""
        with self.peft.disable_adapter():
            yield
        self._hold_parent()  # PEFT makes every adapter trainable when it comes back

    def _hold_parent(self) -> None:
        for name, parameter in self.peft.named_parameters():
            if f".{PARENT}." in name:
                parameter.requires_grad = False

    def modules(self) -> dict[str, Module]:
        """Return the written modules by their name in the base: "model.layers.6.mlp.gate_proj"."""
        return self._modules

    def parameters(self) -> list[nn.Parameter]:
        """Return what is trained."""
        return [p for p in self.peft.parameters() if p.requires_grad]

    def unload(self) -> None:
        """Take the LoRA modules off; the base is as before."""
        self.peft.unload()

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


def _put(linear: nn.Linear, numbers: Array, dtype: torch.dtype) -> None:
    linear.weight = nn.Parameter(torch.tensor(numbers, dtype=dtype), requires_grad=False)


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
