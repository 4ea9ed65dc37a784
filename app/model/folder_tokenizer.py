"""The tokenizer of a model folder, in the form that prompts are built with."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as NativeTokenizer
from tokenizers.decoders import ByteLevel

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
        self._added = {
            number: b"" if token.special else str(token.content).encode()
            for number, token in self._native.get_added_tokens_decoder().items()
        }

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
        whole = text.encode("utf-8", "replace").decode()  # half a surrogate pair is no character
        ids: list[int] = self._native.encode(whole, add_special_tokens=False).ids
        return ids

    def piece(self, token: int) -> bytes:
        """Return the bytes that a token stands for; a control token stands for none."""
        if (text := self._added.get(token)) is not None:
            return text
        characters: str = self._native.id_to_token(token) or ""
        return bytes(_BYTE_OF[character] for character in characters)


def _printable_bytes() -> dict[str, int]:
    """Return the byte behind each character of a byte-level vocabulary: printable ones are themselves."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(0x100 + rank): byte for rank, byte in enumerate(others)}


_BYTE_OF = _printable_bytes()


def _native(path: Path) -> NativeTokenizer:
    try:
        native = NativeTokenizer.from_file(str(path))
    except Exception as error:  # the library raises the bare class for every fault
        raise _broken(path) from error
    if not isinstance(native.decoder, ByteLevel):
        raise VerificationError("load the model", path.name, "Only byte-level vocabularies are supported here.")
    return native


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
