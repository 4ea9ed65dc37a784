"""Which inputs of a module are everybody's: directions that a lesson must not read.

The inputs of a module, over generic exchanges, spend most of their energy in a few hundred directions. A change whose
``down`` half reads none of these leaves generic text nearly alone, whatever it does to the lesson. The directions are
the leading eigenvectors of the inputs' second moments, up to a share of the energy.

Source of the idea: editing in the null space of preserved knowledge (AlphaEdit, arXiv 2410.02355), here as a constraint
on a LoRA's input side, so that the result is still a plain LoRA.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from transformers import LlamaForCausalLM

from app.model.training.backends.packing import Tokens

Cancelled = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Generic:
    """What a module reads of generic text."""

    directions: Tensor
    """Orthonormal, shape (k, in): the leading directions of its inputs."""
    inputs: Tensor
    """A sample of its inputs, shape (n, in)."""


SAMPLED = 16
"""One input in so many is kept."""


class SecondMoments:
    """Sums ``xᵀx`` of the inputs of some modules, shape (in, in) each, float32; keeps a sample of these inputs."""

    def __init__(self, model: LlamaForCausalLM, names: Sequence[str]) -> None:
        self.sums: dict[str, Tensor] = {}
        self.samples: dict[str, list[Tensor]] = {}
        self._hooks = [model.get_submodule(name).register_forward_pre_hook(partial(self._add, name)) for name in names]

    def _add(self, name: str, _: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        whole = inputs[0].reshape(-1, inputs[0].shape[-1])
        self.samples.setdefault(name, []).append(whole[::SAMPLED].clone())
        rows = whole.float()
        self.sums[name] = self.sums.get(name, torch.zeros(rows.shape[1], rows.shape[1])) + rows.T @ rows

    def close(self) -> None:
        """Stop listening."""
        for hook in self._hooks:
            hook.remove()


@torch.no_grad()
def generic_directions(
    model: LlamaForCausalLM, names: Sequence[str], sequences: Sequence[Tokens], *, share: float, cancelled: Cancelled
) -> dict[str, Generic]:
    """Return what each module reads of generic text.

    Args:
        model: The base, without any change.
        names: Modules by name: "model.layers.6.mlp.gate_proj".
        sequences: Generic exchanges.
        share: Energy that the directions must hold together, 0..1.
        cancelled: Raises to stop.
    """
    last = max(int(name.split(".")[2]) for name in names)
    # gate and up read the same input; one of them is enough.
    distinct = {name: name.replace("up_proj", "gate_proj") for name in names}
    moments = SecondMoments(model, sorted(set(distinct.values())))
    try:
        for sequence in sequences:
            cancelled()
            _forward(model, sequence, last)
    finally:
        moments.close()
    found: dict[str, Generic] = {}
    for name, total in moments.sums.items():
        cancelled()
        found[name] = Generic(_leading(total, share), torch.cat(moments.samples[name]))
    return {name: found[source] for name, source in distinct.items()}


def _forward(model: LlamaForCausalLM, sequence: Tokens, last: int) -> None:
    """Run the layers up to ``last``; what lies above is not needed."""
    inner = model.model
    hidden = inner.embed_tokens(torch.tensor([sequence.ids]))
    positions = torch.arange(len(sequence.ids))[None]
    rotary = inner.rotary_emb(hidden, positions)
    for layer in inner.layers[: last + 1]:
        hidden = layer(hidden, attention_mask=None, position_ids=positions, position_embeddings=rotary)


def _leading(total: Tensor, share: float) -> Tensor:
    values, vectors = torch.linalg.eigh(total)
    energy = values.flip(0).clamp_min(0).cumsum(0)
    count = int((energy < share * energy[-1]).sum())
    leading: Tensor = vectors[:, len(values) - count :].T.flip(0)
    # A view would hold all of them.
    return leading.clone(memory_format=torch.contiguous_format)
