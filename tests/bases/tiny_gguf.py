"""A tiny but complete model file, written by gguf-py: two layers of the llama architecture, 4-bit weights.

Its vocabulary is the 256 bytes, a few merges and three control tokens, so real tokenizers and real engines can load it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np

from app.model.base_tokenizer import _byte_characters
from tests.prompt.templates import CHATML

HIDDEN, INNER, HEADS, KV_HEADS, LAYERS = 64, 96, 4, 2, 2
CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MERGES = ("h e", "l l", "he ll", "hell o", "Ġ w", "o r")


def tokens() -> list[str]:
    return [*CONTROL, *_byte_characters(), *(merge.replace(" ", "") for merge in MERGES)]


def write_tiny(
    path: Path,
    *,
    seed: int = 0,
    template: str = CHATML,
    arch: str = "llama",
    extra: Mapping[str, np.ndarray] | None = None,
) -> Path:
    writer = gguf.GGUFWriter(path, arch)
    writer.add_name("Tiny")
    writer.add_block_count(LAYERS)
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_1)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens())
    writer.add_token_types([3] * len(CONTROL) + [1] * (len(tokens()) - len(CONTROL)))
    writer.add_token_merges(list(MERGES))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    if template:
        writer.add_chat_template(template)
    for name, array in {**weights(seed), **(extra or {})}.items():
        _add(writer, name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def weights(seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    values = HIDDEN // HEADS * KV_HEADS
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (len(tokens()), HIDDEN), "output_norm.weight": (HIDDEN,)}
    for layer in range(LAYERS):
        for name, shape in {
            "attn_norm": (HIDDEN,), "attn_q": (HIDDEN, HIDDEN), "attn_k": (values, HIDDEN), "attn_v": (values, HIDDEN),
            "attn_output": (HIDDEN, HIDDEN), "ffn_norm": (HIDDEN,), "ffn_gate": (INNER, HIDDEN),
            "ffn_up": (INNER, HIDDEN), "ffn_down": (HIDDEN, INNER),
        }.items():  # fmt: skip
            shapes[f"blk.{layer}.{name}.weight"] = shape
    return {
        name: (np.ones(shape) if len(shape) == 1 else random.normal(0, 0.2, shape)).astype(np.float32)
        for name, shape in shapes.items()
    }


def _add(writer: gguf.GGUFWriter, name: str, array: np.ndarray) -> None:
    if array.ndim == 1:
        writer.add_tensor(name, array)
        return
    kind = gguf.GGMLQuantizationType.Q8_0 if name.startswith("token") else gguf.GGMLQuantizationType.Q4_1
    writer.add_tensor(name, gguf.quants.quantize(array, kind), raw_dtype=kind)
