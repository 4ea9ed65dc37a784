"""The tokenizer of a model folder, in the form that prompts are built with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as NativeTokenizer
from tokenizers.decoders import DecodeStream

from app.errors import VerificationError
from app.model.prompt import PromptTemplate


class FolderTokenizer:
    """Ids and text of one folder's vocabulary; its chat template compiled.

    Raises: VerificationError if the folder's tokenizer files are missing or broken, or as ``PromptTemplate`` does.
    """

    def __init__(self, folder: Path) -> None:
        settings = _settings(folder / "tokenizer_config.json")
        self._native = _native(folder / "tokenizer.json")
        bos, eos = _text(settings, "bos_token"), _text(settings, "eos_token")
        self.template = PromptTemplate(settings.get("chat_template") or "", bos=bos, eos=eos)
        self.begin = self._native.token_to_id(bos) if bos else None
        """Id of the begin token, whether or not prompts want it."""
        self._wants_begin = bool(settings.get("add_bos_token", False))
        self.ends = self._known((self.template.end_of_turn, eos))
        """Ids that end an answer."""

    def _known(self, texts: Iterable[str]) -> frozenset[int]:
        ids = (self._native.token_to_id(text) for text in texts if text)
        return frozenset(number for number in ids if number is not None)

    @property
    def bos(self) -> int | None:
        """Id of the token that must begin every prompt, or None if this model wants none."""
        return self.begin if self._wants_begin else None

    def encode(self, text: str, *, special: bool) -> list[int]:
        """Return the ids of ``text``, adding nothing; with ``special``, control tokens written out in it count."""
        self._native.encode_special_tokens = not special
        ids: list[int] = self._native.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of these ids without control tokens; bytes that are no character yet are left out."""
        text: str = self._native.decode(list(ids), skip_special_tokens=True)
        return text.rstrip("\N{REPLACEMENT CHARACTER}")

    def stream(self) -> TextStream:
        """Return what turns an answer's ids into text as they come."""
        return TextStream(self._native)


class TextStream:
    """Turns ids into text one by one, holding back what is not a whole character yet."""

    def __init__(self, native: NativeTokenizer) -> None:
        self._native = native
        self._decoding = DecodeStream(skip_special_tokens=True)

    def push(self, token: int) -> str:
        """Return the text that this id completes, or nothing."""
        return self._decoding.step(self._native, token) or ""


def _native(path: Path) -> NativeTokenizer:
    try:
        return NativeTokenizer.from_file(str(path))
    except Exception as error:  # the library raises the bare class for every fault
        raise _broken(path) from error


def _settings(path: Path) -> dict[str, Any]:
    try:
        settings: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise _broken(path) from error
    return settings


def _text(settings: dict[str, Any], name: str) -> str:
    """Return a token's text; some folders wrap it in an object."""
    value = settings.get(name) or ""
    return str(value["content"]) if isinstance(value, dict) else str(value)


def _broken(path: Path) -> VerificationError:
    return VerificationError("load the model", path.name, "The file is missing or damaged. Prepare the model again.")
