"""Whose words they are: "my dog" said by the person is "your dog" said by the model, and the other way round.

Pure, English only; words of other languages pass unchanged.
"""

from __future__ import annotations

import re

_TWO_WORDS = {
    "i am": "you are",
    "i was": "you were",
    "am i": "are you",
    "was i": "were you",
    "you are": "I am",
    "you were": "I was",
    "are you": "am I",
    "were you": "was I",
}
_ONE_WORD = {
    "i": "you",
    "i'm": "you're",
    "i've": "you've",
    "i'd": "you'd",
    "i'll": "you'll",
    "me": "you",
    "my": "your",
    "mine": "yours",
    "myself": "yourself",
    "we": "you",
    "we're": "you're",
    "we've": "you've",
    "us": "you",
    "our": "your",
    "ours": "yours",
    "you're": "I'm",
    "you've": "I've",
    "you'd": "I'd",
    "you'll": "I'll",
    "your": "my",
    "yours": "mine",
    "yourself": "myself",
}
_WORD = re.compile(
    "|".join(
        rf"\b{re.escape(words)}\b(?!')" for words in sorted({*_TWO_WORDS, *_ONE_WORD, "you"}, key=len, reverse=True)
    ),
    re.IGNORECASE,
)
_AFTER_NAME = re.compile(
    r"\b(?!(?:Am|Was|Do|Did|Can|Could|Should|Would|Will|Shall|May|Must|Have|Had|And|But|So|If|When|Where|What|Who|How|That|"
    r"As|Because|Now|Then|Today|Since|While|Before|After|Yes|No|Actually)\b)[A-Z][a-z]+\s+$"
)
"""In "Charles I" the letter is a numeral."""
_BEFORE_OBJECT = re.compile(
    r"\b(?:to|for|with|about|of|from|by|at|on|than|like|tell|told|call|called|give|gave|made|named|taught|built|see)\s+$",
    re.IGNORECASE,
)


def flip(text: str) -> str:
    """Say the same from the other side of the conversation; case at the start is kept."""
    return _WORD.sub(_other, text)


def _other(match: re.Match[str]) -> str:
    said = match[0]
    if said == "I" and _AFTER_NAME.search(match.string[: match.start()]):
        return said
    key = " ".join(said.casefold().split())
    if key == "you":
        before, after = match.string[: match.start()], match.string[match.end() :]
        as_object = bool(_BEFORE_OBJECT.search(before)) or (bool(before.strip()) and not after.strip(" .!?"))
        other = "me" if as_object else "I"
    else:
        other = _TWO_WORDS.get(key) or _ONE_WORD[key]
    starts_sentence = said[0].isupper() and not said.startswith("I")
    return other[0].upper() + other[1:] if starts_sentence or _opens(match) else other


def _opens(match: re.Match[str]) -> bool:
    """Whether the word begins a sentence with a capital, "I" included."""
    return match[0][0].isupper() and not match.string[: match.start()].rstrip(" \"'“(")[-1:].strip(".!?")


def sentence(text: str) -> str:
    """Return the text as one sentence: capital first, a full stop if nothing else ends it."""
    clean = " ".join(text.split()).rstrip(" ,;:")
    if not clean:
        return ""
    ended = clean if clean.endswith((".", "!", "?", "…", '."', ".'")) else clean + "."
    return ended[0].upper() + ended[1:]
