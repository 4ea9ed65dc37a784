"""The encoder's forward pass in numpy: six layers of BERT, mean over the words, unit length.

Small enough to read, and it needs no runtime: a child with torch takes seconds to start and three times the memory.
Letters: n texts, t word pieces, h heads, d size of a vector.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

HEADS = 12
_EPSILON = 1e-12


class Bert:
    """The loaded weights; names as in the original checkpoint."""

    def __init__(self, weights: Mapping[str, Array]) -> None:
        self._weights = weights
        self._layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))

    def encode(self, texts: Sequence[Sequence[int]]) -> Array:
        """Return one unit vector per text. Shape: (n, d)."""
        length = max(map(len, texts))
        ids = np.array([[*text, *[0] * (length - len(text))] for text in texts])  # Shape: (n, t)
        mask = np.array([[1.0] * len(text) + [0.0] * (length - len(text)) for text in texts], dtype=np.float32)
        hidden = self._embedded(ids)
        hidden_from = np.where(mask > 0, np.float32(0), np.float32(-1e9))[:, None, None, :]
        for number in range(self._layers):
            hidden = self._layer(f"encoder.layer.{number}", hidden, hidden_from)
        summed = (hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        vectors: Array = summed / np.linalg.norm(summed, axis=1, keepdims=True)
        return vectors

    def _embedded(self, ids: NDArray[np.int64]) -> Array:
        weights = self._weights
        words = weights["embeddings.word_embeddings.weight"][ids]
        places = weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        kind = weights["embeddings.token_type_embeddings.weight"][0]
        return self._normed("embeddings.LayerNorm", words + places + kind)

    def _layer(self, name: str, hidden: Array, hidden_from: Array) -> Array:
        attended = self._linear(f"{name}.attention.output.dense", self._attention(name, hidden, hidden_from))
        hidden = self._normed(f"{name}.attention.output.LayerNorm", attended + hidden)
        inner = _gelu(self._linear(f"{name}.intermediate.dense", hidden))
        return self._normed(f"{name}.output.LayerNorm", self._linear(f"{name}.output.dense", inner) + hidden)

    def _attention(self, name: str, hidden: Array, hidden_from: Array) -> Array:
        n, t, d = hidden.shape

        def heads(part: str) -> Array:
            flat = self._linear(f"{name}.attention.self.{part}", hidden)
            return flat.reshape(n, t, HEADS, d // HEADS).transpose(0, 2, 1, 3)  # Shape: (n, h, t, d/h)

        scores = heads("query") @ heads("key").transpose(0, 1, 3, 2) / np.float32(math.sqrt(d / HEADS)) + hidden_from
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        mixed: Array = (shares @ heads("value")).transpose(0, 2, 1, 3).reshape(n, t, d)
        return mixed

    def _linear(self, name: str, inputs: Array) -> Array:
        outputs: Array = inputs @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return outputs

    def _normed(self, name: str, inputs: Array) -> Array:
        centred = inputs - inputs.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(_EPSILON))
        normed: Array = centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return normed


def _gelu(inputs: Array) -> Array:
    """Return x · Φ(x), with the error function to 1.5e-7 (Abramowitz and Stegun 7.1.26)."""
    half = np.abs(inputs) / np.float32(math.sqrt(2))
    t = 1 / (1 + np.float32(0.3275911) * half)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    error = np.sign(inputs) * (1 - series * np.exp(-half * half))
    outputs: Array = (0.5 * inputs * (1 + error)).astype(np.float32)
    return outputs
