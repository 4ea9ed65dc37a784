"""Text to word pieces as the encoder's vocabulary was made: lower case, no accents, longest piece first. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

_LONGEST_WORD = 100
_ASCII_SIGNS = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class WordPieces:
    """A vocabulary and its longest-match rule.

    Args:
        vocabulary: Pieces by id; pieces within a word begin with ``##``.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._ids = {piece: number for number, piece in enumerate(vocabulary)}
        self._unknown = self._ids["[UNK]"]
        self._first, self._last = self._ids["[CLS]"], self._ids["[SEP]"]

    def encode(self, text: str, *, limit: int) -> list[int]:
        """Return the ids of a text between its two markers, at most ``limit`` of them in all."""
        ids = [piece for word in _words(text) for piece in self._pieces(word)]
        return [self._first, *ids[: limit - 2], self._last]

    def _pieces(self, word: str) -> list[int]:
        if len(word) > _LONGEST_WORD:
            return [self._unknown]
        found: list[int] = []
        start = 0
        while start < len(word):
            end = len(word)
            while end > start and self._piece(word, start, end) not in self._ids:
                end -= 1
            if end == start:
                return [self._unknown]
            found.append(self._ids[self._piece(word, start, end)])
            start = end
        return found

    @staticmethod
    def _piece(word: str, start: int, end: int) -> str:
        return word[start:end] if start == 0 else f"##{word[start:end]}"


def _words(text: str) -> Iterator[str]:
    spaced = "".join(_spaced(char) for char in text)
    plain = unicodedata.normalize("NFD", spaced.lower())
    word = ""
    for char in plain:
        if unicodedata.category(char) == "Mn":
            continue
        if char.isspace() or _is_sign(char):
            if word:
                yield word
            if not char.isspace():
                yield char
            word = ""
        else:
            word += char
    if word:
        yield word


def _spaced(char: str) -> str:
    """Drop what cannot be seen; set ideographs apart, since each is a word."""
    if char in "\t\n\r" or unicodedata.category(char) == "Zs":
        return " "
    if char in "\0\ufffd" or unicodedata.category(char).startswith("C"):
        return ""
    return f" {char} " if any(low <= ord(char) <= high for low, high in _IDEOGRAPHS) else char


def _is_sign(char: str) -> bool:
    return char in _ASCII_SIGNS or unicodedata.category(char).startswith("P")
