"""Reads the adapter folder that ``app.model.adapters`` derives for mlx-lm. Pure numpy; nothing of it is trusted."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app.errors import KnownError, VerificationError
from app.model.adapters.canonical import canonical_bytes, tensor_names
from app.model.adapters.mlx import CONFIG, WEIGHTS
from app.model.safetensors_file import Array, unpack


@dataclass(frozen=True, slots=True)
class Served:
    """An adapter in mlx-lm's form: y = W·x + scale · (x·down)·up."""

    pairs: dict[str, tuple[Array, Array]]
    """By module ("model.layers.6.mlp.gate_proj"). Shapes: down (in, r), up (r, out)."""
    scale: float

    def identity(self, base: str) -> str:
        """Return the SHA-256 of the canonical bytes that these numbers are, on the base with this passport id."""
        tensors: dict[str, Array] = {}
        rank = 0
        for module, (down, up) in self.pairs.items():
            rank = up.shape[0]
            tensors.update(zip(tensor_names(module), (down.T, up.T), strict=True))
        alpha = float(f"{self.scale * rank:.12g}")  # undoes the rounding of alpha / rank
        return hashlib.sha256(canonical_bytes(tensors, base, rank=rank, alpha=alpha)).hexdigest()


def read_folder(folder: Path) -> Served:
    """Read an adapter folder.

    Raises: VerificationError if it is broken or incomplete, KnownError if it cannot be read.
    """
    try:
        data = (folder / WEIGHTS).read_bytes()
        config = json.loads((folder / CONFIG).read_text("utf-8"))
    except OSError as error:
        raise KnownError("use an adapter", folder.name[:12], "Its files cannot be read.") from error
    except ValueError as error:
        raise _wrong(folder, "Its configuration is not readable") from error
    tensors, _ = unpack(data, folder.name[:12])
    return Served(_pairs(tensors, folder), _scale(config, folder))


def _pairs(tensors: dict[str, Array], folder: Path) -> dict[str, tuple[Array, Array]]:
    modules = {name.rpartition(".")[0] for name in tensors}
    if not modules or set(tensors) != {f"{module}.lora_{half}" for module in modules for half in "ab"}:
        raise _wrong(folder, "One half of a change is missing")
    pairs = {module: (tensors[f"{module}.lora_a"], tensors[f"{module}.lora_b"]) for module in sorted(modules)}
    for down, up in pairs.values():
        if down.ndim != 2 or up.ndim != 2 or down.shape[1] != up.shape[0]:  # noqa: PLR2004 - matrices
            raise _wrong(folder, "Its parts do not fit together")
        if not (np.isfinite(down).all() and np.isfinite(up).all()):
            raise _wrong(folder, "It contains numbers that are not finite")
    return pairs


def _scale(config: Any, folder: Path) -> float:
    try:
        scale = float(config["lora_parameters"]["scale"])
    except (KeyError, TypeError, ValueError) as error:
        raise _wrong(folder, "It does not state its strength") from error
    if not math.isfinite(scale):
        raise _wrong(folder, "Its strength is not a number")
    return scale


def _wrong(folder: Path, reason: str) -> VerificationError:
    return VerificationError("use an adapter", folder.name[:12], f"{reason}. Nothing of it was used.")
