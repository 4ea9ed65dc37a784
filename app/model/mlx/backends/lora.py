"""LoRA in an MLX model: attach it to named modules, take it off again, read and write its numbers.

A written module is wrapped (mlx-lm's LoRALinear around the base's own layer), never changed; taking the wrapper off
gives back the very same layer, so the base's logits return bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
import numpy as np
from mlx import nn
from mlx_lm.tuner.lora import LoRALinear
from numpy.typing import NDArray

from app.errors import VerificationError

Pairs = Mapping[str, tuple[NDArray[np.floating], NDArray[np.floating]]]
"""Module path ("model.layers.6.mlp.gate_proj") → down (in, r) and up (r, out), in MLX's order."""


def attach(model: nn.Module, pairs: Pairs, *, scale: float) -> None:
    """Wrap every module of ``pairs``; the output becomes W·x + scale · (x·down)·up.

    Raises: VerificationError, with nothing attached, if a module does not exist or has another shape.
    """
    put(model, build(model, pairs, scale=scale))


def build(model: nn.Module, pairs: Pairs, *, scale: float) -> dict[str, LoRALinear]:
    """Return the wrappers of ``pairs`` without putting them in; raises as ``attach``."""
    built: dict[str, LoRALinear] = {}
    for path, (down, up) in pairs.items():
        linear = linear_at(model, path)
        if (up.shape[1], down.shape[0]) != shape_of(linear):
            raise _foreign(path)
        built[path] = wrap(linear, mx.array(down), mx.array(up), scale=scale)
    return built


def put(model: nn.Module, layers: Mapping[str, nn.Module]) -> None:
    """Put each layer at its path."""
    for path, layer in layers.items():
        replace(model, path, layer)


def wrap(linear: nn.Module, down: mx.array, up: mx.array, *, scale: float) -> LoRALinear:
    """Return ``linear`` with a LoRA beside it. Shapes: down (in, r), up (r, out)."""
    layer = LoRALinear(down.shape[0], up.shape[1], r=down.shape[1], scale=scale)
    layer.linear = linear
    layer.lora_a, layer.lora_b = down, up
    return layer


def stand_on(model: nn.Module, pairs: Pairs, *, scale: float) -> None:
    """Put a change that is never trained beneath whatever wraps the modules of ``pairs``.

    Raises: VerificationError, with nothing put in, if a module does not exist or has another shape.
    """
    beneath = build(model, pairs, scale=scale)
    wrapped = attached(model)
    for path, layer in beneath.items():
        layer.freeze()
        if path in wrapped:
            wrapped[path].linear = layer
        else:
            replace(model, path, layer)


def detach(model: nn.Module) -> None:
    """Take every wrapper off."""
    for path in attached(model):
        replace(model, path, linear_at(model, path))


def attached(model: nn.Module) -> dict[str, LoRALinear]:
    """Return the wrapped modules by path; of wrappers in each other, the outer one."""
    found = {path: module for path, module in model.named_modules() if isinstance(module, LoRALinear)}
    return {path: layer for path, layer in found.items() if not path.endswith(".linear")}


def trained(model: nn.Module) -> dict[str, LoRALinear]:
    """Return those of ``attached`` that training writes."""
    return {path: layer for path, layer in attached(model).items() if "lora_a" in layer.trainable_parameters()}


@contextmanager
def at(model: nn.Module, share: float) -> Iterator[None]:
    """Run with a share of the change that is trained, as it will be served."""
    layers = trained(model).values()
    whole = [layer.scale for layer in layers]
    for layer in layers:
        layer.scale = share * layer.scale
    try:
        yield
    finally:
        for layer, scale in zip(layers, whole, strict=True):
            layer.scale = scale


def numbers(model: nn.Module) -> dict[str, NDArray[np.float32]]:
    """Return what training wrote, in f32, by mlx-lm's names: "….gate_proj.lora_a", "….gate_proj.lora_b"."""
    found: dict[str, NDArray[np.float32]] = {}
    for path, layer in trained(model).items():
        found[f"{path}.lora_a"] = np.array(layer.lora_a.astype(mx.float32))
        found[f"{path}.lora_b"] = np.array(layer.lora_b.astype(mx.float32))
    return found


def change_norm(layer: LoRALinear) -> float:
    """Return ‖ΔW‖ (Frobenius) of a wrapper and those beneath it, without forming the product."""
    wrappers = list(_wrappers(layer))
    down = mx.concatenate([each.lora_a.astype(mx.float32) * each.scale for each in wrappers], axis=1)
    up = mx.concatenate([each.lora_b.astype(mx.float32) for each in wrappers], axis=0)
    inner = (down.T @ down) * (up @ up.T)  # Shapes: (r, r)
    return float(mx.sqrt(mx.maximum(inner.sum(), 0.0)))


def _wrappers(layer: nn.Module) -> Iterator[LoRALinear]:
    while isinstance(layer, LoRALinear):
        yield layer
        layer = layer.linear


def linear_at(model: nn.Module, path: str) -> nn.Module:
    """Return the base's linear layer with this path, wrapped or not. Raises VerificationError if there is none."""
    module: Any = model
    for part in path.split("."):
        try:
            module = module[int(part)] if part.isdigit() else module[part]
        except (KeyError, IndexError, TypeError) as error:
            raise _foreign(path) from error
    while isinstance(module, LoRALinear):
        module = module.linear
    if not isinstance(module, nn.Linear | nn.QuantizedLinear):
        raise _foreign(path)
    return module


def shape_of(linear: nn.Module) -> tuple[int, int]:
    """Return (out, in) of a layer, whatever its weights are stored as."""
    rows, columns = linear.weight.shape
    return rows, columns * 32 // linear.bits if isinstance(linear, nn.QuantizedLinear) else columns


def weight_norm(linear: nn.Module) -> float:
    """Return ‖W‖ (Frobenius) of a layer's weights."""
    weight = linear.weight
    if isinstance(linear, nn.QuantizedLinear):
        weight = mx.dequantize(
            weight, linear.scales, linear.biases, group_size=linear.group_size, bits=linear.bits, mode=linear.mode
        )
    return float(mx.linalg.norm(weight.astype(mx.float32)))


def replace(model: nn.Module, path: str, layer: nn.Module) -> None:
    """Put ``layer`` at ``path``."""
    parent, _, name = path.rpartition(".")
    module: Any = model
    for part in parent.split("."):
        module = module[int(part)] if part.isdigit() else module[part]
    setattr(module, name, layer)


def _foreign(path: str) -> VerificationError:
    return VerificationError("use an adapter", path, "It was made for another base model. It was not used.")
