"""The title of a conversation, cut from its first message. Pure, no model."""

from __future__ import annotations

_LONGEST_CHARS = 48
_MARKS = "#>*-_=`~|\"' \t"


def title_from(text: str) -> str:
    """Return the first line that says something, without Markdown marks, cut at a word; "" if there is none."""
    lines = (" ".join(line.split()).strip(_MARKS) for line in text.splitlines())
    line = next((line for line in lines if any(map(str.isalnum, line))), "")
    if len(line) <= _LONGEST_CHARS:
        return line
    cut = line[: _LONGEST_CHARS + 1].rsplit(" ", 1)[0][:_LONGEST_CHARS]
    return cut.rstrip(",;:.- ") + "…"
