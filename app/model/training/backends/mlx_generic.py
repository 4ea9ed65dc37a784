"""Which inputs of a module are everybody's, measured on MLX: the counterpart of ``generic``, with the same meaning.

Every written module is listened to while the base reads generic exchanges; the leading eigenvectors of its inputs'
second moments, up to a share of the energy, are what a change must not read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import mlx.core as mx
import numpy as np
from mlx import nn
from numpy.typing import NDArray

from app.model.mlx.backends import lora
from app.model.training.backends.mlx_batch import Tokens

Directions = Mapping[str, mx.array]
"""Module path → orthonormal rows, shape (k, in)."""


class _Listening(nn.Module):  # type: ignore[misc]  # MLX is untyped
    """A layer that also sums ``xᵀx`` of its inputs; shape (in, in), float32."""

    def __init__(self, linear: nn.Module) -> None:
        super().__init__()
        self.linear = linear
        self.total = mx.zeros((1, 1))

    def __call__(self, inputs: mx.array) -> mx.array:
        rows = inputs.reshape(-1, inputs.shape[-1]).astype(mx.float32)
        self.total = self.total + rows.T @ rows
        outputs: mx.array = self.linear(inputs)
        return outputs


def generic_directions(
    model: nn.Module, paths: Sequence[str], sequences: Sequence[Tokens], *, share: float, cancelled: Callable[[], None]
) -> dict[str, mx.array]:
    """Return each module's generic directions.

    Args:
        model: The base, without any change.
        paths: Modules: "model.layers.6.mlp.gate_proj".
        sequences: Generic exchanges.
        share: Energy that the directions must hold together, 0..1.
        cancelled: Raises to stop.
    """
    source = {path: path.replace("up_proj", "gate_proj") for path in paths}  # both read the same input
    listening = {path: _Listening(lora.linear_at(model, path)) for path in sorted(set(source.values()))}
    lora.put(model, listening)
    try:
        for sequence in sequences:
            cancelled()
            mx.eval(model.model(mx.array([sequence.ids])), [layer.total for layer in listening.values()])
    finally:
        lora.put(model, {path: layer.linear for path, layer in listening.items()})
    found: dict[str, mx.array] = {}
    for path, layer in listening.items():
        cancelled()
        found[path] = mx.array(leading(np.array(layer.total), share))
    return {path: found[source[path]] for path in paths}


def leading(total: NDArray[np.float32], share: float) -> NDArray[np.float32]:
    """Return the leading eigenvectors as rows: fewer than would hold ``share`` of the energy by one."""
    values, vectors = np.linalg.eigh(total)
    energy = np.cumsum(np.clip(values[::-1], 0, None))
    count = int((energy < share * energy[-1]).sum())
    return np.ascontiguousarray(vectors[:, ::-1][:, :count].T)


def spare(model: nn.Module, directions: Directions, *, fresh: bool = False) -> None:
    """Let every change read nothing of its module's generic directions.

    A fresh ``down`` is made longer by what it loses, so that learning starts at its usual size.
    """
    layers = lora.trained(model)
    for path, rows in directions.items():
        down = layers[path].lora_a  # Shape: (in, r)
        rest = down - rows.T @ (rows @ down)
        if fresh:
            rest = rest / mx.maximum(mx.linalg.norm(rest) / mx.linalg.norm(down), 0.1)
        layers[path].lora_a = rest
