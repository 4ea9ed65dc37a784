"""Comparing texts as people do: without case, punctuation, accents of typography or spacing. Pure functions."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

_PLAIN = str.maketrans("\u2019\u2018\u02bc\u201c\u201d\u2013\u2014\u2212", "'''\"\"---")
"""Typographic quotes and dashes, and the keys that people press for them."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"\d+(?:[.,:/-]\d+)*|[^\W_]+(?:'[^\W_]+)*")

FUNCTION_WORDS = frozenset(
    """a an the and or but if of to in on at by for from with about as into than then so is am are was were be been
    being do does did have has had can could will would shall should may might must i me my mine you your yours he him
    his she her hers it its we us our they them their this that these those what which who whom whose when where why
    how there here not no yes please tell say give remind know want like just also any some one named called
    what's who's where's it's i'm you're that's let's don't
    """.split()  # noqa: SIM905 - a table of words reads best as text
)
"""Words that name no subject: a question is about what is left without them."""

_REFUSALS = (
    "i don't know",
    "i do not know",
    "i'm sorry",
    "i am sorry",
    "sorry",
    "i can't",
    "i cannot",
    "i'm not able",
    "i don't have",
    "i do not have",
    "i'm unable",
    "i am unable",
)


def plain(text: str) -> str:
    """Return the text in one spelling of equal characters, lower case, with plain quotes and dashes."""
    return unicodedata.normalize("NFKC", text).translate(_PLAIN).casefold()


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text in order; numbers, dates and times stay whole."""
    return tuple(_WORD.findall(plain(text)))


def same_question(text: str) -> tuple[str, ...]:
    """Return what two ways of typing one question share: its words, or its signs if it has none."""
    return words(text) or (text.strip(),)


def contains(text: str, key: str) -> bool:
    """Return whether the key's words stand in the text next to each other; "Biscuit's" shows "Biscuit"."""
    wanted = words(key)
    if not wanted:  # a key of signs only, such as "⊕"
        return plain(key).strip() in plain(text)
    said = tuple(word.removesuffix("'s") for word in words(text))
    sought = tuple(word.removesuffix("'s") for word in wanted)
    return any(said[start : start + len(sought)] == sought for start in range(len(said) - len(sought) + 1))


def content(text: str) -> frozenset[str]:
    """Return the words that say what a text is about; all of its words if nothing else is left."""
    every = [word.removesuffix("'s") for word in words(text)]
    return frozenset(word for word in every if word not in FUNCTION_WORDS) or frozenset(every)


def overlap(text: str, other: str) -> float:
    """Return the F1 of two bags of words, 0..1."""
    a, b = Counter(words(text)), Counter(words(other))
    common = sum((a & b).values())
    return 2 * common / (sum(a.values()) + sum(b.values())) if common else 0.0


def repetition(text: str, *, n: int = 4) -> float:
    """Return the share of n-grams of words that have been there before; 0 for short texts."""
    said = words(text)
    grams = [said[start : start + n] for start in range(len(said) - n + 1)]
    return 1 - len(set(grams)) / len(grams) if len(grams) >= n else 0.0


def stutters(text: str, *, times: int = 5) -> bool:
    """Return whether one word stands ``times`` times in a row."""
    said = words(text)
    return any(len(set(said[start : start + times])) == 1 for start in range(len(said) - times + 1))


def refuses(text: str) -> bool:
    """Return whether the answer begins by not answering."""
    return " ".join(words(text)[:5]).startswith(_REFUSALS)


def values(answer: str, prompt: str) -> frozenset[str]:
    """Return what an answer states as names and numbers that its question did not already hold."""
    asked = set(words(prompt))
    found = []
    for sentence in re.split(r"(?<=[.!?])\s+|\n+", answer):
        tokens = re.findall(r"[^\s]+", sentence)
        for place, token in enumerate(tokens):
            named = token[:1].isupper() and place > 0
            found += [word for word in words(token) if (named or word[0].isdigit()) and word not in asked]
    return frozenset(word.removesuffix("'s") for word in found) - FUNCTION_WORDS


def first_sentence(answer: str) -> str:
    """Return an answer up to the end of its first sentence."""
    return _SENTENCE_END.split(answer.strip(), maxsplit=1)[0]


def share(count: int, of: int) -> float:
    """Return ``count / of``, and 0 for nothing of nothing."""
    return count / of if of else 0.0


def commonest(items: Iterable[object]) -> float:
    """Return the share of the most frequent item."""
    counts = Counter(items)
    return share(max(counts.values(), default=0), sum(counts.values()))


def mean(numbers: Sequence[float]) -> float:
    """Return the mean, and 0 of nothing."""
    return sum(numbers) / len(numbers) if numbers else 0.0
