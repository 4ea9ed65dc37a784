"""An encoder without a model: equal words give near vectors, deterministically. For tests and first steps."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence


class FakeEncoder:
    """Bag of words, hashed into ``dimensions`` signed buckets; knows no synonyms."""

    def __init__(self, dimensions: int = 64) -> None:
        self._dimensions = dimensions
        self.encoded = 0
        """How many texts were encoded so far."""

    async def encode(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one unit vector per text; a text without words gets the first axis."""
        self.encoded += len(texts)
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        sums = [0.0] * self._dimensions
        for word in re.findall(r"\w+", text.casefold()):
            digest = hashlib.sha256(word.encode()).digest()
            sums[int.from_bytes(digest[:4], "big") % self._dimensions] += 1.0 if digest[4] % 2 else -1.0
        length = math.hypot(*sums)
        return [value / length for value in sums] if length else [1.0, *sums[1:]]

    async def close(self) -> None:
        """Nothing runs, so nothing ends."""
