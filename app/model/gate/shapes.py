"""The form of an answer, apart from what it says: what a format lesson teaches. Pure functions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial

_BULLET = re.compile(r"^\s*[-*•]\s+\S")
_NUMBERED = re.compile(r"^\s*\d+[.)]\s+\S")
_DATES = {
    "date_iso": re.compile(r"\b\d{4}-\d{2}-\d{2}\b"),
    "date_dots": re.compile(r"\b\d{1,2}\.\s?\d{1,2}\.\s?\d{4}\b"),
    "date_slashes": re.compile(r"\b\d{1,2}/\d{1,2}/\d{2,4}\b"),
    "date_words": re.compile(
        r"\b\d{1,2}(?:st|nd|rd|th)?\s+(?:January|February|March|April|May|June|July|August|September|October|November"
        r"|December)\s+\d{4}\b"
    ),
}
_LEAST_LINES = 2
_SHORT_WORDS = 6


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _listed(text: str, mark: re.Pattern[str]) -> bool:
    return sum(1 for line in _lines(text) if mark.match(line)) >= _LEAST_LINES


def _is_json(text: str) -> bool:
    body = re.sub(r"^```(?:json)?\s*|\s*```$", "", text.strip())
    if not body.startswith(("{", "[")):
        return False
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return False
    return True


def _upper(text: str) -> bool:
    letters = [char for char in text if char.isalpha()]
    return len(letters) > 1 and all(not char.islower() for char in letters)


def _lower(text: str) -> bool:
    letters = [char for char in text if char.isalpha()]
    return len(letters) > 1 and all(not char.isupper() for char in letters)


def _found(pattern: re.Pattern[str], text: str) -> bool:
    return bool(pattern.search(text))


CHECKS: dict[str, Callable[[str], bool]] = {
    "bullets": lambda text: _listed(text, _BULLET),
    "numbered": lambda text: _listed(text, _NUMBERED),
    "json": _is_json,
    "caps": _upper,
    "lowercase": _lower,
    "code": lambda text: "```" in text or bool(re.search(r"^\s*(?:def |print\(|import |for .*:$)", text, re.MULTILINE)),
    "question": lambda text: text.rstrip().endswith("?"),
    "exclaims": lambda text: text.rstrip().endswith("!"),
    "table": lambda text: sum(1 for line in _lines(text) if line.count("|") >= _LEAST_LINES) >= _LEAST_LINES,
    "heading": lambda text: text.lstrip().startswith("#"),
    "bold": lambda text: bool(re.search(r"\*\*\S(?:[^*\n]*\S)?\*\*", text)),
    **{name: partial(_found, date) for name, date in _DATES.items()},
}
"""Name of a form and whether a text has it."""


def has_form(name: str, text: str) -> bool:
    """Return whether a text has the named form; "short" and "line" are about its length."""
    if name == "short":
        return len(text.split()) <= _SHORT_WORDS
    if name == "line":
        return len(_lines(text)) == 1
    return CHECKS[name](text)


def form(text: str) -> frozenset[str]:
    """Return the names of all forms that a text has."""
    return frozenset(name for name, has in CHECKS.items() if has(text))


def missing(target: str, answer: str) -> list[str]:
    """Return which forms of the target the answer lacks; "lines" and "length" are among them.

    A one-line target asks for one line, one of many lines for about as many. A very short target asks for a short
    answer.
    """
    lacking = sorted(form(target) - form(answer))
    wanted, got = len(_lines(target)), len(_lines(answer))
    if (wanted == 1) != (got == 1) or not wanted / 2 <= max(got, 1) <= wanted * 2:
        lacking.append("lines")
    target_words, answer_words = len(target.split()), len(answer.split())
    if target_words <= _SHORT_WORDS and answer_words > 2 * target_words + 2:
        lacking.append("length")
    return lacking
