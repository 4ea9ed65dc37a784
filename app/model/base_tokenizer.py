"""Writes the tokenizer and the configuration that the trainer loads, from the head of a GGUF file.

Byte-pair vocabularies only: for those, a ``tokenizer.json`` that splits text as llama.cpp does is a matter of naming
the same rules, and equal ids can be proven. A vocabulary of another kind is refused rather than approximated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from app.errors import UserError
from app.model.passport import TEMPLATE_KEY

_NORMAL, _CONTROL, _OWN = 1, 3, 4
"""Token types of the format: plain text, control token, text that is one token wherever it occurs."""

_GPT2_SPLIT = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)  # fmt: skip
_QWEN2_SPLIT = _LLAMA3_SPLIT.replace(r"\p{N}{1,3}", r"\p{N}")
_ONE_DIGIT: Mapping[str, Any] = {"type": "Digits", "individual_digits": True}
_TO_BYTES: Mapping[str, Any] = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": False,
}

_SPLITS: Mapping[str, tuple[str, bool]] = {
    "smollm": (_GPT2_SPLIT, True),
    "gpt-2": (_GPT2_SPLIT, False),
    "llama-bpe": (_LLAMA3_SPLIT, False),
    "qwen2": (_QWEN2_SPLIT, False),
}
"""How text is cut before merging, by the name in the file: the pattern, and whether each digit is cut off first."""
_WHOLE_WORDS_FIRST = frozenset(("llama-bpe",))
"""Vocabularies that take a word they contain as it is, without merging."""


def tokenizer_json(meta: Mapping[str, Any]) -> bytes:
    """Return ``tokenizer.json`` for the vocabulary in ``meta``.

    Raises: UserError if the vocabulary is of a kind that cannot be reproduced exactly.
    """
    model, rules = meta.get("tokenizer.ggml.model"), str(meta.get("tokenizer.ggml.pre"))
    if model != "gpt2" or rules not in _SPLITS:
        raise UserError(
            "prepare the model", f"tokenizer {model}/{rules}", "Models with this tokenizer cannot learn here."
        )
    tokens: list[str] = meta["tokenizer.ggml.tokens"]
    kinds: list[int] = meta["tokenizer.ggml.token_type"]
    value = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added(i, tokens[i], kind) for i, kind in enumerate(kinds) if kind in (_CONTROL, _OWN)],
        "normalizer": None,
        "pre_tokenizer": _pre_tokenizer(rules, set(tokens)),
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        "model": _model(tokens, meta["tokenizer.ggml.merges"], whole_words_first=rules in _WHOLE_WORDS_FIRST),
    }
    return json.dumps(value, ensure_ascii=False).encode()


def _pre_tokenizer(rules: str, tokens: set[str]) -> dict[str, Any]:
    pattern, single_digits = _SPLITS[rules]
    steps = [_ONE_DIGIT] if single_digits else []
    steps = [*steps, _split_at(pattern), _TO_BYTES]
    # A byte that the vocabulary lacks is dropped on both sides, but only llama.cpp keeps its neighbours from merging.
    lacking = "".join(sorted(char for char in _byte_characters() if char not in tokens))
    if lacking:
        steps.append(_split_at("[" + "".join(f"\\x{{{ord(char):x}}}" for char in lacking) + "]"))
    return {"type": "Sequence", "pretokenizers": steps}


def _split_at(pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def _byte_characters() -> list[str]:
    """Return the character by which byte-level vocabularies write each of the 256 bytes.

    Source: the GPT-2 encoder: printable Latin-1 stands for itself, the rest for the characters from U+0100 on.
    """
    itself = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    moved = iter(range(0x100, 0x200))
    return [chr(byte if byte in itself else next(moved)) for byte in range(256)]


def _model(tokens: list[str], merges: list[str], *, whole_words_first: bool) -> dict[str, Any]:
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": whole_words_first,
        "vocab": {token: number for number, token in enumerate(tokens)},
        "merges": [merge.split(" ", 1) for merge in merges],
    }


def _added(number: int, token: str, kind: int) -> dict[str, Any]:
    return {
        "id": number,
        "content": token,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": kind == _CONTROL,
    }


def tokenizer_config(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``tokenizer_config.json``: what the template and the prompt need to know of the tokenizer."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": token_text(meta, "bos"),
        "eos_token": token_text(meta, "eos"),
        "pad_token": token_text(meta, "padding") or token_text(meta, "eos"),
        "add_bos_token": bool(meta.get("tokenizer.ggml.add_bos_token", False)),
        "clean_up_tokenization_spaces": False,
        "model_max_length": meta[f"{meta['general.architecture']}.context_length"],
        "chat_template": meta.get(TEMPLATE_KEY, ""),
    }


def token_text(meta: Mapping[str, Any], role: str) -> str:
    """Return the text of the token with a role ("bos", "eos", "padding"), or nothing if there is none."""
    number = meta.get(f"tokenizer.ggml.{role}_token_id")
    tokens: list[str] = meta["tokenizer.ggml.tokens"]
    return tokens[number] if isinstance(number, int) and number < len(tokens) else ""


def model_config(meta: Mapping[str, Any], *, tied: bool) -> dict[str, Any]:
    """Return ``config.json`` of a llama model; ``tied``: the output layer is the embedding."""
    heads = meta["llama.attention.head_count"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": len(meta["tokenizer.ggml.tokens"]),
        "hidden_size": meta["llama.embedding_length"],
        "intermediate_size": meta["llama.feed_forward_length"],
        "num_hidden_layers": meta["llama.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": meta["llama.attention.head_count_kv"],
        "head_dim": meta.get("llama.rope.dimension_count", meta["llama.embedding_length"] // heads),
        "max_position_embeddings": meta["llama.context_length"],
        "rms_norm_eps": meta["llama.attention.layer_norm_rms_epsilon"],
        "rope_theta": meta.get("llama.rope.freq_base", 10000.0),
        "rope_scaling": None,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "attention_dropout": 0.0,
        "tie_word_embeddings": tied,
        "bos_token_id": meta.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": meta.get("tokenizer.ggml.eos_token_id"),
        "pad_token_id": meta.get("tokenizer.ggml.padding_token_id"),
        "torch_dtype": "float16",
        "initializer_range": 0.02,
        "use_cache": True,
    }
