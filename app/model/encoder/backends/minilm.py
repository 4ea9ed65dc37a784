"""Child process: all-MiniLM-L6-v2 on one thread.

Run as ``python -m app.model.encoder.backends.minilm``; the parent is ``app.model.encoder.minilm``.
"""

from __future__ import annotations

import functools

from safetensors.numpy import load_file

from app.errors import KnownError
from app.model.child.protocol import Json
from app.model.child.serve import Cancel, Cancelled, Emit, serve
from app.model.encoder.bert import Bert
from app.model.encoder.files import model_folder
from app.model.encoder.wordpiece import WordPieces

MAX_WORDPIECES = 256
"""What the model was trained with; longer texts are judged by their beginning."""
BATCH = 16


@functools.cache
def load() -> tuple[WordPieces, Bert]:
    """Read vocabulary and weights, once. Raises KnownError if they are missing or damaged."""
    folder = model_folder()
    try:
        vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
        return WordPieces(vocabulary), Bert(load_file(folder / "model.safetensors"))
    except (OSError, ValueError, KeyError) as error:
        hint = "Run the set-up again."
        raise KnownError("read the sentence encoder", folder.name, hint, retryable=False) from error


def encode(params: Json, _emit: Emit, cancel: Cancel) -> Json:
    """Return one unit vector per text, in order."""
    pieces, bert = load()
    texts: list[str] = params["texts"]
    vectors: list[list[float]] = []
    for start in range(0, len(texts), BATCH):
        if cancel.is_set():
            raise Cancelled
        batch = [pieces.encode(text, limit=MAX_WORDPIECES) for text in texts[start : start + BATCH]]
        vectors += bert.encode(batch).tolist()
    return {"vectors": vectors}


if __name__ == "__main__":
    serve({"encode": encode})
