"""Between the canonical adapter and the two files of mlx-lm.

mlx-lm keeps both halves transposed and multiplies by one ``scale`` where the canonical form has ``alpha / rank``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from app.errors import VerificationError
from app.model.adapters.canonical import Adapter, tensor_names, write_adapter
from app.model.api import Passport
from app.model.safetensors_file import Array, pack

WEIGHTS = "adapters.safetensors"
CONFIG = "adapter_config.json"

_NAME = re.compile(r"(model\.layers\.\d+\.\w+\.\w+)\.lora_([ab])")


def mlx_adapter(adapter: Adapter, passport: Passport) -> tuple[bytes, dict[str, Any]]:
    """Return ``adapters.safetensors`` and the values of ``adapter_config.json``.

    Keys are whole module paths, so exactly the changed modules become LoRA layers, wherever they lie.
    """
    tensors: dict[str, Array] = {}
    for module, pair in adapter.pairs.items():
        tensors[f"{module}.lora_a"] = np.ascontiguousarray(pair.down.T)
        tensors[f"{module}.lora_b"] = np.ascontiguousarray(pair.up.T)
    config = {
        "fine_tune_type": "lora",
        "num_layers": passport.layers,
        "lora_parameters": {
            "rank": adapter.rank,
            "scale": adapter.alpha / adapter.rank,
            "dropout": 0.0,
            "keys": sorted(adapter.pairs),
        },
    }
    return pack(tensors, {"format": "mlx"}), config


def canonical_from_mlx(tensors: Mapping[str, Array], passport: Passport, *, rank: int, scale: float) -> bytes:
    """Return the canonical bytes of an adapter that mlx-lm trained.

    Raises: VerificationError if a name is not a LoRA half, or the result is not a valid adapter.
    """
    named: dict[str, Array] = {}
    for name, array in tensors.items():
        match = _NAME.fullmatch(name)
        if match is None or array.ndim != 2:  # noqa: PLR2004 - a matrix
            raise VerificationError(
                "use an adapter", "trained by MLX", "It contains something that is not an adapter's."
            )
        down, up = tensor_names(match.group(1))
        named[down if match.group(2) == "a" else up] = array.T
    return write_adapter(named, passport, rank=rank, alpha=scale * rank)
