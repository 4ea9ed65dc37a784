"""What an edit changed, word by word.

Pure: two texts in, one value out. White space never counts as a change. The share of changed characters is symmetric
in what was removed and what was added, so that swapping one name for another weighs the same in both directions.

Example: ``compare("His name is Rex.", "His name is Biscuit.").added == ("Biscuit",)``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

_TOKEN = re.compile(r"\w+(?:'\w+)*|[^\w\s]")
_MOST_TOKENS = 4000
"""Aligning is quadratic at worst; a longer changed middle counts as replaced whole."""


@dataclass(frozen=True, slots=True)
class Change:
    """The difference between two texts."""

    removed: tuple[str, ...]
    """Words and marks of the first text that are gone, in order."""
    added: tuple[str, ...]
    """Words and marks of the second text that are new, in order."""
    share: float
    """Changed characters as a share of all, white space aside: 0 (same) to 1 (nothing in common)."""
    spelling_only: bool
    """Whether nothing but spelling, case or punctuation differs."""

    @property
    def empty(self) -> bool:
        """Whether both texts say the same."""
        return not self.removed and not self.added

    @property
    def words(self) -> tuple[str, ...]:
        """The new words, without punctuation."""
        return tuple(token for token in self.added if token[0].isalnum())


def tokens(text: str) -> list[str]:
    """Split into words and single marks; white space is dropped."""
    return _TOKEN.findall(text.replace("\u2019", "'"))


def compare(before: str, after: str) -> Change:
    """Return what changed from one text to the other."""
    old, new = tokens(before), tokens(after)
    pairs = _replacements(old, new)
    removed = tuple(token for gone, _ in pairs for token in gone)
    added = tuple(token for _, come in pairs for token in come)
    total = _length(old) + _length(new)
    share = (_length(removed) + _length(added)) / total if total else 0.0
    return Change(removed, added, share, spelling_only=_is_spelling(pairs))


def _length(words: Sequence[str]) -> int:
    return sum(map(len, words))


def _replacements(old: list[str], new: list[str]) -> list[tuple[list[str], list[str]]]:
    """Return the replaced runs as (gone, come) pairs."""
    start, old_end, new_end = _common_ends(old, new)
    middle_old, middle_new = old[start:old_end], new[start:new_end]
    if len(middle_old) + len(middle_new) > _MOST_TOKENS:
        return [(middle_old, middle_new)]
    matcher = SequenceMatcher(None, _folded(middle_old), _folded(middle_new), autojunk=False)
    return [
        (middle_old[i1:i2], middle_new[j1:j2])
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal" or middle_old[i1:i2] != middle_new[j1:j2]
    ]


def _folded(words: list[str]) -> list[str]:
    return [word.casefold() for word in words]


def _common_ends(old: list[str], new: list[str]) -> tuple[int, int, int]:
    """Return where the middles start and end once the common beginning and end are set aside."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    old_end, new_end = len(old), len(new)
    while min(old_end, new_end) > start and old[old_end - 1] == new[new_end - 1]:
        old_end, new_end = old_end - 1, new_end - 1
    return start, old_end, new_end


def _is_spelling(pairs: list[tuple[list[str], list[str]]]) -> bool:
    """Whether every replaced run is the same word spelled otherwise, or no word at all."""
    return bool(pairs) and all(_same_words(gone, come) for gone, come in pairs)


def _same_words(gone: list[str], come: list[str]) -> bool:
    old = [word for word in gone if word[0].isalnum()]
    new = [word for word in come if word[0].isalnum()]
    return len(old) == len(new) and all(map(_same_word, old, new))


def _same_word(old: str, new: str) -> bool:
    """Whether one spelling is a slip of the other. Another name or number is another meaning, however close."""
    if old.casefold() == new.casefold():
        return True
    if not (old.isalpha() and new.isalpha()) or (new[0].isupper() and old[0].isupper()):
        return False
    return _distance(old.casefold(), new.casefold()) <= max(1, min(2, len(new) // 4)) and len(new) > 2  # noqa: PLR2004


def _distance(one: str, two: str) -> int:
    """Return the Levenshtein distance, a swap of neighbours counting as one."""
    if abs(len(one) - len(two)) > 2:  # noqa: PLR2004 - far beyond a slip
        return 3
    before: list[int] = []
    row = list(range(len(two) + 1))
    for i, a in enumerate(one, 1):
        last, before, row = before, row, [i]
        for j, b in enumerate(two, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == two[j - 2] and one[i - 2] == b:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]
