"""From a canonical adapter to the GGUF adapter that llama.cpp loads. Same adapter, same bytes.

llama.cpp keeps the rows of query and key matrices in another order than the torch model (its rotary embedding pairs
neighbours), so the rows of those two ``up`` halves are reordered likewise. Answers hardly show a mistake here; only
comparing logits does.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from app.errors import BugError, VerificationError
from app.model.adapters.canonical import Adapter
from app.model.api import Passport
from app.model.base_convert import permuted
from app.model.gguf_write import F16, F32, TensorPlan, float32_value, text_value, uint32_value, write_gguf
from app.model.safetensors_file import Array

_NAMES = {
    "q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output",
    "gate_proj": "ffn_gate", "up_proj": "ffn_up", "down_proj": "ffn_down",
}  # fmt: skip
_PERMUTED_ARCHITECTURES = frozenset(("llama",))


def gguf_adapter(adapter: Adapter, passport: Passport, sha256: str, *, half: bool = True) -> bytes:
    """Return the bytes of the GGUF adapter.

    Args:
        adapter: Verified, for this very base.
        passport: Of the base.
        sha256: Of the canonical bytes: the file says what it was made from.
        half: Store 16-bit floats: half the size, and faster to serve.

    Raises: VerificationError if the change does not survive 16 bits.
    """
    if adapter.base != passport.id:
        raise BugError("convert an adapter", sha256[:12], "It was verified for another base.")
    metadata = {
        "general.type": text_value("adapter"),
        "general.architecture": text_value(passport.architecture),
        "general.name": text_value(f"ownmind {sha256[:12]}"),
        "adapter.type": text_value("lora"),
        "adapter.lora.alpha": float32_value(adapter.alpha),
        "ownmind.base": text_value(passport.id),
        "ownmind.sha256": text_value(sha256),
        "ownmind.rank": uint32_value(adapter.rank),
    }
    tensors = list(_tensors(adapter, passport))
    if half:
        _check_half(adapter, sha256)
    kind = F16 if half else F32
    plans = [TensorPlan(name, array.shape, kind) for name, array in tensors]
    parts: list[bytes] = []
    write_gguf(parts.append, metadata, plans, (array for _, array in tensors))
    return b"".join(parts)


def _tensors(adapter: Adapter, passport: Passport) -> Iterator[tuple[str, Array]]:
    rotated = {"q_proj": passport.heads, "k_proj": passport.kv_heads}
    if passport.architecture not in _PERMUTED_ARCHITECTURES:
        rotated = {}
    for module, pair in sorted(adapter.pairs.items(), key=lambda item: _place(item[0])):
        layer, kind = _place(module)
        stem = f"blk.{layer}.{_NAMES[kind]}.weight"
        yield f"{stem}.lora_a", pair.down
        yield f"{stem}.lora_b", permuted(pair.up, rotated[kind]) if kind in rotated else pair.up


def _place(module: str) -> tuple[int, str]:
    """Return layer and kind of "model.layers.6.mlp.gate_proj"."""
    parts = module.split(".")
    return int(parts[2]), parts[-1]


def _check_half(adapter: Adapter, sha256: str) -> None:
    """Refuse what overflows in 16 bits, and what becomes nothing."""
    limit = float(np.finfo(np.float16).max)
    fits = all(np.abs(half).max() <= limit for pair in adapter.pairs.values() for half in (pair.down, pair.up))
    if not fits or not any(np.any(_rounded(pair.up) @ _rounded(pair.down)) for pair in adapter.pairs.values()):
        reason = "Its numbers do not fit into 16 bits. Nothing of it was used."
        raise VerificationError("use an adapter", sha256[:12], reason)


def _rounded(array: Array) -> Array:
    return array.astype(np.float16).astype(np.float32)
