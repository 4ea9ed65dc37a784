"""What a lesson teaches, and which of its words carry it. Pure functions."""

from __future__ import annotations

import re

from app.model.api import Kind
from app.model.gate.shapes import form
from app.model.gate.text import FUNCTION_WORDS, words

_FACT_WORDS = 16
_KEY_WORDS = 6
_LONG_WORDS = 25
_SMALL_WORD = 2
_LAID_OUT = frozenset(("bullets", "numbered", "json", "code", "table", "heading"))
"""Forms that are the lesson, however short; others, such as capitals or a date, may be the fact's own."""
_PIECE = re.compile(r"[^\s]+|\n")
_ENDS_SENTENCE = re.compile(r"(?:\w{4,}|[^.\w])[.!?]$|[!?]$")
_EDGE = ".,;:!?\"'“”‘’()[]{}*_`"


def keys_of(prompt: str, answer: str) -> tuple[str, ...]:
    """Return the stretches of the answer that its question does not already hold: "Biscuit", "14th of March".

    Function words count only between two words that carry meaning.
    """
    asked = {word.removesuffix("'s") for word in words(prompt)}
    runs: list[list[str]] = [[]]
    waiting: list[str] = []
    for piece in _PIECE.findall(answer):
        said = [word.removesuffix("'s") for word in words(piece)]
        if not said or all(word in FUNCTION_WORDS or (word in asked and len(word) <= _SMALL_WORD) for word in said):
            waiting.append(piece)
        elif all(word in asked for word in said):
            runs.append([])
            waiting = []
        else:
            runs[-1].extend([*waiting, piece] if runs[-1] else [piece])
            waiting = []
        if piece == "\n" or _ENDS_SENTENCE.search(piece):
            runs.append([])
            waiting = []
    return tuple(dict.fromkeys(" ".join(run).strip(_EDGE) for run in runs if run))


def kind_of(prompt: str, answer: str) -> Kind:
    """Return what kind of lesson this is.

    A short answer with a short new stretch is a fact; one with a visible form (list, JSON, capitals) is about format;
    many words are a long exemplary answer; the rest is style.
    """
    count = len(answer.split())
    shown = form(answer) - {"question"}
    if shown & _LAID_OUT or (shown and not _is_short_fact(prompt, answer)):
        return Kind.FORMAT
    if count > _LONG_WORDS:
        return Kind.LONG
    return Kind.FACT if _is_short_fact(prompt, answer) else Kind.STYLE


def _is_short_fact(prompt: str, answer: str) -> bool:
    keys = keys_of(prompt, answer)
    few = bool(keys) and sum(len(key.split()) for key in keys) <= _KEY_WORDS
    return few and len(answer.split()) <= _FACT_WORDS and "\n" not in answer.strip()
