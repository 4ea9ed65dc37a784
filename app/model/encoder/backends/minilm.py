"""Child process: all-MiniLM-L6-v2 on one thread. Mean pooling over the words of a text, then unit length.

Run as ``python -m app.model.encoder.backends.minilm``; the parent is ``app.model.encoder.minilm``.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModel, AutoTokenizer

from app.model.child.serve import Cancel, Cancelled, Emit, Json, serve
from app.model.encoder.files import model_folder

MAX_WORDPIECES = 256
"""What the model was trained with; longer texts are judged by their beginning."""
BATCH = 16


class MiniLM:
    """The loaded model."""

    def __init__(self, folder: Path) -> None:
        torch.set_num_threads(1)
        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self._model: Any = AutoModel.from_pretrained(folder, local_files_only=True, use_safetensors=True).eval()

    def encode(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one unit vector per text; shape (n, 384)."""
        words = self._tokenizer(
            list(texts), padding=True, truncation=True, max_length=MAX_WORDPIECES, return_tensors="pt"
        )
        with torch.inference_mode():
            hidden = self._model(**words).last_hidden_state  # Shape: (n, t, 384)
        mask = words["attention_mask"].unsqueeze(-1).to(hidden.dtype)  # Shape: (n, t, 1)
        pooled = (hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1e-9)
        vectors: list[list[float]] = torch.nn.functional.normalize(pooled, dim=1).tolist()
        return vectors


def main() -> None:
    """Answer requests until the parent closes the pipe; the first one loads the model."""
    load = functools.cache(lambda: MiniLM(model_folder()))

    def encode(params: Json, _emit: Emit, cancel: Cancel) -> Json:
        texts: list[str] = params["texts"]
        vectors: list[list[float]] = []
        for start in range(0, len(texts), BATCH):
            if cancel.is_set():
                raise Cancelled
            vectors += load().encode(texts[start : start + BATCH])
        return {"vectors": vectors}

    serve({"encode": encode})


if __name__ == "__main__":
    main()
