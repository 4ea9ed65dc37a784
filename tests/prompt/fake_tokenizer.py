"""A tokenizer of single characters that knows a few control tokens."""

from __future__ import annotations

import re

CONTROL = ("<|im_start|>", "<|im_end|>", "<s>", "</s>")
FIRST_CHARACTER = 100


class FakeTokenizer:
    def __init__(self, bos: str | None = None) -> None:
        self.bos = None if bos is None else CONTROL.index(bos)

    def encode(self, text: str, *, special: bool) -> list[int]:
        parts = re.split("(" + "|".join(map(re.escape, CONTROL)) + ")", text) if special else [text]
        ids: list[int] = []
        for part in parts:
            ids += [CONTROL.index(part)] if special and part in CONTROL else [FIRST_CHARACTER + ord(c) for c in part]
        return ids

    def decode(self, ids: list[int]) -> str:
        return "".join(CONTROL[i] if i < FIRST_CHARACTER else chr(i - FIRST_CHARACTER) for i in ids)
