"""The encoder's own tokenizer and forward pass against the reference implementation, on the real weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from app.model.encoder.backends.minilm import MAX_WORDPIECES, load
from app.model.encoder.files import model_folder
from app.model.encoder.wordpiece import WordPieces

TEXTS = [
    "What is my dog's name?",
    "Über-Größe: 3.14 € — “naïve” café!",
    "犬の名前は何ですか",
    "안녕하세요 Привет мир",
    "tab\tnew\nline\x00null \u200bzero\ufffd",
    "a" * 150 + " b",
    "unaffable hyperparameterisation of x_y",
    "<|im_end|> [SEP] ##ing",
    "",
    "word " * 600,
    "\U0001f600 smile \u0301",
]


@pytest.mark.real
def test_word_pieces_are_those_of_the_reference() -> None:
    transformers: Any = pytest.importorskip("transformers")
    reference = transformers.BertTokenizer.from_pretrained(model_folder(), local_files_only=True)
    pieces, _ = load()
    for text in TEXTS:
        if "[SEP]" in text:  # the reference takes typed markers for markers; here they stay text
            continue
        expected = reference(text, truncation=True, max_length=MAX_WORDPIECES)["input_ids"]
        assert pieces.encode(text, limit=MAX_WORDPIECES) == expected, text


def test_typed_markers_stay_text() -> None:
    pieces = WordPieces(["[UNK]", "[CLS]", "[SEP]", "[", "]", "sep"])
    assert pieces.encode("[SEP]", limit=9) == [1, 3, 5, 4, 2]


@pytest.mark.real
def test_vectors_are_those_of_the_reference() -> None:
    torch: Any = pytest.importorskip("torch")
    transformers: Any = pytest.importorskip("transformers")
    model = transformers.AutoModel.from_pretrained(model_folder(), local_files_only=True).eval()
    pieces, bert = load()
    batch = [pieces.encode(text, limit=64) for text in TEXTS]
    vectors = bert.encode(batch)
    for ids, vector in zip(batch, vectors, strict=True):
        with torch.inference_mode():
            hidden = model(input_ids=torch.tensor([ids])).last_hidden_state[0].mean(dim=0)
        expected = (hidden / hidden.norm()).numpy()
        assert np.abs(vector - expected).max() < 1e-5
