"""Small helpers over the words of short English texts. Pure."""

from __future__ import annotations

import re


def word_set(words: str) -> frozenset[str]:
    """Return the words of a list that is written as one string."""
    return frozenset(words.split())


_WORD = re.compile(r"\w+(?:'\w+)?")
_EMPTY = word_set(
    "a an the and or but if so of to in on at for from with by about as into than then that this these those there "
    "here is are was were be been being am do does did done have has had will would can could should shall may "
    "might must i me my mine we us our ours you your yours he him his she her hers it its they them their theirs who "
    "whom whose what which where when why how not no yes please tell remind know say said ask s t re ve ll d m "
    "don't isn't called answer question just really actually very also too again some any all"
)
_ABBREVIATIONS = ("dr.", "mr.", "mrs.", "ms.", "st.", "prof.", "vs.", "e.g.", "i.e.", "jr.", "sr.")


def tidy(text: str) -> str:
    """Return the text on one line with plain apostrophes."""
    return " ".join(text.replace("\u2019", "'").replace("`", "'").split())


def sentences(text: str) -> list[str]:
    """Split into sentences; titles before names ("Dr.") do not end one."""
    found: list[str] = []
    for part in re.split(r"(?<=[.!?…])\s+", tidy(text)):
        if found and found[-1].casefold().endswith(_ABBREVIATIONS):
            found[-1] = f"{found[-1]} {part}"
        elif part:
            found.append(part)
    return found


def content_words(text: str) -> frozenset[str]:
    """Return the words that carry meaning, folded, possessives and plain plurals cut."""
    words = (word.casefold().removesuffix("'s") for word in _WORD.findall(tidy(text)))
    return frozenset(_stem(word) for word in words if word not in _EMPTY)


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word  # noqa: PLR2004


def occurs(words: str, text: str) -> bool:
    """Whether these words stand in a text as whole words, case aside."""
    return bool(find_words(words).search(tidy(text)))


def find_words(words: str) -> re.Pattern[str]:
    """Return a pattern that finds these words as whole words, case aside."""
    return re.compile(rf"(?<!\w){re.escape(tidy(words))}(?!\w)", re.IGNORECASE)


def alike(one: str, two: str) -> float:
    """Return how many content words two texts share, 0..1 (cosine over sets)."""
    a, b = content_words(one), content_words(two)
    return len(a & b) / (len(a) * len(b)) ** 0.5 if a and b else 0.0
