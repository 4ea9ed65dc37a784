"""Loads a model folder into MLX: weights by mlx-lm, tokenizer and template by our own rules."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import mlx.core as mx
from mlx import nn
from mlx.utils import tree_flatten
from mlx_lm.utils import load_model

from app.errors import KnownError, VerificationError
from app.model.folder_tokenizer import FolderTokenizer

SMALL_PARAMETERS = 1_000_000_000
"""Below this many parameters a base is computed in 16-bit floats without loss, and trained in 32-bit ones."""


@dataclass(frozen=True, slots=True)
class Base:
    """One loaded base. The model is changed in place by ``lora`` and by nothing else."""

    model: nn.Module
    tokenizer: FolderTokenizer
    parameters: int


def load_base(folder: Path) -> Base:
    """Load a folder with config.json, safetensors and a tokenizer.

    Raises: VerificationError for a broken or foreign folder, KnownError if it cannot be read.
    """
    if mx.default_device() == mx.cpu:
        mx.disable_compile()  # there, fusing kernels calls the system's C++ compiler, for seconds each
    tokenizer = FolderTokenizer(folder)
    try:
        model, _ = load_model(folder)
    except (ValueError, KeyError, TypeError, RuntimeError, json.JSONDecodeError) as error:
        hint = "Its files do not belong together or are damaged. Prepare the model again."
        raise VerificationError("load the model", folder.name, hint) from error
    except OSError as error:
        raise KnownError("load the model", folder.name, "Its files are missing or cannot be read.") from error
    model.freeze()
    return Base(model, tokenizer, sum(array.size for _, array in tree_flatten(model.parameters())))


def logprobs(logits: mx.array) -> mx.array:
    """Return log-probabilities in f32; shape as given, the vocabulary last."""
    wide = logits.astype(mx.float32)
    return wide - mx.logsumexp(wide, axis=-1, keepdims=True)
