"""Puts a corrected value into the model's own answer.

Example: "Your dog's name is Rex." and "Biscuit" give "Your dog's name is Biscuit."

Pure. Only the sentence that holds the mistake is kept: the rest of an answer that was wrong was not approved by anyone.
"""

from __future__ import annotations

import re

from app.approvals.person import sentence
from app.approvals.words import content_words, find_words, sentences, tidy

_NUMBER = re.compile(r"(?<![\w.,])\d[\d.,:]*\d|(?<![\w.,])\d(?!\w)")
_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][\w'-]*(?:\s+(?:(?:of|de|van|von|the)\s+)?[A-Z][\w'-]*)*")
_COMPLEMENT = re.compile(
    r"^(?P<head>.+?\b(?:is|are|was|were)\b(?:\s+(?:called|named))?)\s+(?P<tail>.+?)(?P<end>[.!]?)$"
)


def replace_in(answer: str, wrong: str, right: str) -> str | None:
    """Replace what was named as wrong by what is right, in the first sentence that says it."""
    pattern = find_words(wrong)
    for part in sentences(answer):
        if pattern.search(part):
            return sentence(pattern.sub(lambda _: right, part))
    return None


def weave(prompt: str, answer: str, right: str) -> str | None:
    """Replace the one thing in the answer that the value can stand for: its only number, its only name.

    Returns None where that is not certain: several candidates, or none.
    """
    kind = _NUMBER if _NUMBER.fullmatch(right) else _NAME if right[:1].isupper() else None
    if kind is None:
        return None
    known = content_words(prompt)
    candidates = {
        match[0] for part in sentences(answer) for match in kind.finditer(part) if not content_words(match[0]) & known
    }
    if len(candidates) != 1:
        return None
    return replace_in(answer, candidates.pop(), right)


def complement(prompt: str, answer: str, right: str) -> str | None:
    """Replace what a short answer says about the prompt's own subject: "Your car is blue" becomes "Your car is red"."""
    parts = sentences(answer)
    match = _COMPLEMENT.fullmatch(tidy(parts[0])) if len(parts) == 1 else None
    if match is None or "," in match["tail"] or not content_words(match["head"]) & content_words(prompt):
        return None
    return sentence(f"{match['head']} {right}{match['end']}")
