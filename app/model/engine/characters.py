"""From the bytes of single tokens to whole characters."""

from __future__ import annotations

import codecs


class Characters:
    """Collects bytes and gives out whole characters only; bytes that can never become one are dropped.

    A token may hold part of a character. Nothing here ever makes a replacement character.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="ignore")

    def add(self, data: bytes) -> str:
        """Return the characters that these bytes complete."""
        return self._decoder.decode(data)


def text_of(pieces: list[bytes]) -> str:
    """Return the text of a whole answer, by the same rule."""
    return b"".join(pieces).decode("utf-8", errors="ignore")
