"""What identifies a base: everything an adapter, a suite or a version is bound to, derived from the model file alone.

The same file gives the same passport on every machine, whatever it is called there. Knows the head of a GGUF file and
nothing of runtimes.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from app.errors import UserError, VerificationError
from app.model.api import Passport
from app.model.gguf_check import BLOCKS, GgufInfo
from app.model.prompt import template_sha256
from app.store.canonical import canonical, digest

ADAPTABLE = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""What a LoRA may write in the architectures that can be trained."""
TRAINABLE_ARCHITECTURES = ("llama",)
TEMPLATE_KEY = "tokenizer.chat_template"

_KNOWN_NAMES = {
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53": "SmolLM2 135M Instruct",
}
"""Names by weights hash, for files whose own name for themselves helps nobody."""
_KIND_NAMES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K",
    13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 30: "BF16", 39: "MXFP4",
}  # fmt: skip


def passport_of(info: GgufInfo, weights_sha256: str) -> Passport:
    """Return the passport of a checked model file whose bytes have this hash.

    Raises: UserError for a model that cannot learn here, VerificationError if its numbers contradict each other.
    """
    meta = info.metadata
    architecture = _text(meta, "general.architecture")
    if architecture not in TRAINABLE_ARCHITECTURES:
        raise UserError(
            "use the model", architecture or "unknown architecture", "Models of this kind cannot learn here."
        )
    values: dict[str, Any] = {
        "name": _KNOWN_NAMES.get(weights_sha256) or _text(meta, "general.name") or architecture,
        "weights_sha256": weights_sha256,
        "architecture": architecture,
        "tokenizer_sha256": _tokenizer_sha256(info),
        "template_sha256": template_sha256(_text(meta, TEMPLATE_KEY)),
        "quantisation": _quantisation(info),
        "licence": _text(meta, "general.license") or "unknown",
        "layers": _count(meta, f"{architecture}.block_count"),
        "hidden": _count(meta, f"{architecture}.embedding_length"),
        "heads": _count(meta, f"{architecture}.attention.head_count"),
        "kv_heads": _count(meta, f"{architecture}.attention.head_count_kv"),
        "vocabulary": len(meta.get("tokenizer.ggml.tokens", ())),
        "adaptable": ADAPTABLE,
    }
    if values["hidden"] % values["heads"] or values["heads"] % values["kv_heads"] or not values["vocabulary"]:
        raise VerificationError("use the model", values["name"], "Its numbers of heads and sizes do not fit together.")
    return Passport(id=_identity(values), **values)


def passport_json(passport: Passport) -> dict[str, Any]:
    """Return a passport as JSON values."""
    return {**asdict(passport), "adaptable": list(passport.adaptable)}


def passport_from_json(values: Mapping[str, Any], what: str) -> Passport:
    """Return a passport read from a file, its id derived again.

    Raises: VerificationError if a field is missing, or the id is not the one of the fields.
    """
    names = {field.name for field in fields(Passport)}
    if set(values) == names and isinstance(values["adaptable"], list):
        rest = {key: value for key, value in values.items() if key != "id"}
        if values["id"] == _identity(rest):
            return Passport(**{**values, "adaptable": tuple(values["adaptable"])})
    raise VerificationError("read the passport of a model", what, "It is damaged or was changed by hand.")


def _identity(values: Mapping[str, Any]) -> str:
    return digest(canonical(dict(values), floats=False))


def _tokenizer_sha256(info: GgufInfo) -> str:
    state = hashlib.sha256()
    for key in sorted(info.raw):
        if key.startswith("tokenizer.") and key != TEMPLATE_KEY:
            state.update(key.encode() + b"\0" + info.raw[key])
    return state.hexdigest()


def _quantisation(info: GgufInfo) -> str:
    """Return the type that most of the weights have."""
    share: Counter[int] = Counter()
    for tensor in info.tensors:
        if len(tensor.shape) > 1 and tensor.name.startswith("blk."):
            share[tensor.kind] += tensor.size // BLOCKS[tensor.kind][1] * BLOCKS[tensor.kind][0]
    kind = share.most_common(1)[0][0] if share else -1
    return _KIND_NAMES.get(kind, f"type {kind}")


def _text(meta: Mapping[str, Any], key: str) -> str:
    value = meta.get(key, "")
    return value if isinstance(value, str) else ""


def _count(meta: Mapping[str, Any], key: str) -> int:
    value = meta.get(key)
    if type(value) is not int or value < 1:
        raise VerificationError("use the model", key, "The model file lacks this number.")
    return value
