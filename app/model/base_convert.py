"""Turns a model file into what the engine and the trainer load: the same weights, twice, in 16-bit floats.

The engine gets a GGUF file; the trainer gets safetensors in the layout of the torch model, made from that very file, so
that both compute with bit-equal weights. Small models are served at 16 bits because near-ties flip under 4-bit weights.

Pure numpy: runs in a child, but needs no model runtime.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.errors import UserError, VerificationError
from app.model.gguf_check import GgufInfo, GgufTensor
from app.model.gguf_write import F16, F32, TensorPlan, uint32_value, write_gguf
from app.model.safetensors_file import write_safetensors

Array = NDArray[np.floating]
Write = Callable[[bytes], object]
Tick = Callable[[float], None]
"""Told the share done after each tensor; raises to stop."""

_FILE_TYPE_F16 = 1
_OUTER = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_INNER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_BLOCK = re.compile(r"blk\.(\d+)\.(\w+)\.weight")


def write_serving(source: Path, info: GgufInfo, write: Write, tick: Tick) -> None:
    """Write the engine's file: weights as F16, vectors (norms) as F32, everything else as the source has it.

    Raises: VerificationError if a weight is not finite in 16 bits, UserError for a tensor type that cannot be read.
    """
    metadata = {key: raw for key, raw in info.raw.items() if key != "general.alignment"}
    metadata["general.file_type"] = uint32_value(_FILE_TYPE_F16)
    plans = [TensorPlan(t.name, t.shape, F32 if len(t.shape) == 1 else F16) for t in info.tensors]
    write_gguf(write, metadata, plans, _dequantised(source, info, tick))


def _dequantised(source: Path, info: GgufInfo, tick: Tick) -> Iterator[Array]:
    for number, tensor in enumerate(info.tensors):
        array = _floats(source, tensor)
        kept = array if array.ndim == 1 else _half(array, tensor.name)
        if not np.isfinite(kept).all():
            raise VerificationError("prepare the model", tensor.name, "It contains numbers that are not finite.")
        yield kept
        tick((number + 1) / len(info.tensors))


def _half(array: Array, name: str) -> Array:
    if array.size and np.abs(array).max() > np.finfo(np.float16).max:
        raise VerificationError("prepare the model", name, "Its numbers are too large for 16 bits.")
    return array.astype(np.float16)


def _floats(source: Path, tensor: GgufTensor) -> Array:
    # gguf takes 0.4 s to import, and only a preparation needs it.
    from gguf.constants import GGMLQuantizationType  # noqa: PLC0415
    from gguf.quants import dequantize  # noqa: PLC0415

    data = np.fromfile(source, dtype=np.uint8, count=tensor.size, offset=tensor.offset)
    try:
        rows = data.reshape((*tensor.shape[:-1], -1))
        floats: Array = dequantize(rows, GGMLQuantizationType(tensor.kind))
    except NotImplementedError as error:
        raise UserError(
            "prepare the model", tensor.name, "Its weights are stored in a form that cannot be read."
        ) from error
    return floats.reshape(tensor.shape)


def write_training(serving: Path, info: GgufInfo, write: Write, tick: Tick) -> None:
    """Write the trainer's weights from the engine's file, whose head is ``info``.

    Raises: UserError naming a tensor that the torch model does not have.
    """
    heads = {
        "attn_q": info.metadata["llama.attention.head_count"],
        "attn_k": info.metadata["llama.attention.head_count_kv"],
    }
    named = sorted((torch_name(tensor.name), tensor) for tensor in info.tensors)
    plan = [(name, tensor.shape, _dtype(tensor)) for name, tensor in named]
    write_safetensors(write, {"format": "pt"}, plan, _torch_layout(serving, [t for _, t in named], heads, tick))


def _torch_layout(serving: Path, tensors: list[GgufTensor], heads: dict[str, Any], tick: Tick) -> Iterator[Array]:
    for number, tensor in enumerate(tensors):
        count = int(np.prod(tensor.shape, dtype=np.int64))
        array = np.fromfile(serving, dtype=_dtype(tensor), count=count, offset=tensor.offset).reshape(tensor.shape)
        block = _BLOCK.fullmatch(tensor.name)
        rotated = heads.get(block.group(2)) if block else None
        yield array if rotated is None else unpermuted(array, rotated)
        tick((number + 1) / len(tensors))


def _dtype(tensor: GgufTensor) -> np.dtype[Any]:
    return np.dtype(np.float32) if tensor.kind == F32 else np.dtype(np.float16)


def torch_name(name: str) -> str:
    """Return what the torch model calls a tensor of a llama GGUF file."""
    block = _BLOCK.fullmatch(name)
    if block and block.group(2) in _INNER:
        return f"model.layers.{block.group(1)}.{_INNER[block.group(2)]}.weight"
    if name in _OUTER:
        return _OUTER[name]
    raise UserError("prepare the model", name, "This model has parts that cannot learn here.")


def permuted(rows: Array, heads: int) -> Array:
    """Return the rows of a query or key matrix in the order that llama.cpp's interleaved rotary embedding wants.

    Shapes: (out, in) -> (out, in); ``out`` is heads x head size. Inverse of ``unpermuted``.
    """
    out, width = rows.shape
    return rows.reshape(heads, 2, out // heads // 2, width).swapaxes(1, 2).reshape(out, width)


def unpermuted(rows: Array, heads: int) -> Array:
    """Return the rows in the order of the torch model: the first half of each head, then the second."""
    out, width = rows.shape
    return rows.reshape(heads, out // heads // 2, 2, width).swapaxes(1, 2).reshape(out, width)
