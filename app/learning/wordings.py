"""One question in many wordings: some to train on, others, of different families, to examine with.

The templates are data (``resources/wordings``). A prompt is read as one of four forms, and every template that its
form allows is filled:

- noun: "What is my dog's name?" asks for a noun phrase, so "Tell me my dog's name." works too;
- clause: "Where do I live?" has an indirect form, "where I live";
- question: any other question can only be wrapped;
- request: "Write a poem." can be asked politely.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from app.model.api import Role, Turn

Prompt = tuple[Turn, ...]

_QUESTION_WORDS = ("what", "who", "whom", "whose", "where", "when", "which", "why", "how")
_AUXILIARIES = (
    "is",
    "are",
    "was",
    "were",
    "do",
    "does",
    "did",
    "can",
    "could",
    "will",
    "would",
    "should",
    "has",
    "have",
)
_NOUN = re.compile(r"^(what|who)(?:'s| (is|are|was|were)) (.+?)\??$", re.IGNORECASE)
_CLAUSE_BE = re.compile(r"^(where|when|why|how|how old|how tall) (am|is|are|was|were) (.+?)\??$", re.IGNORECASE)
_CLAUSE_DO = re.compile(
    r"^((?:what|who|where|when|why|how|which)(?: \w+)?) do (i|you|we|they|people) (.+?)\??$", re.IGNORECASE
)
_SUBJECT = re.compile(
    r"^(?:(?i:i|you|we|they|he|she|it)|(?i:my|your|our|the|a|an|his|her|their)(?: [\w-]+['’]s)*"
    r"(?:(?: [A-Z][\w'’-]*)+| [\w'’-]+))(?=\s|$)"
)
"""A pronoun, or one thing and whose it is: "my sister's birthday", "the Eiffel Tower"."""
_PREDICATE = re.compile(
    r"^(?:in|on|at|from|for|to|with|under|near|by|now|today|here|there|open|closed|due|free|born)\b", re.IGNORECASE
)
"""What can only follow a whole subject; after any other word nobody knows where the subject ends."""
_ENDED = re.compile(r"[.?!…？！。؟][\"'”’)]*$")


@dataclass(frozen=True, slots=True)
class Wordings:
    """The same request, said differently."""

    train: tuple[Prompt, ...]
    """The exact prompt first."""
    held_out: tuple[Prompt, ...]
    """Families that ``train`` never uses."""


def reword(prompt: str) -> Wordings:
    """Return every wording of one prompt; both lists are free of repeats and share none."""
    table = _templates()
    form, slots = _read(prompt.strip())
    families = ("request",) if form == "request" else ("question", form) if form != "question" else ("question",)
    train = _unique([prompt.strip(), *_fill(table["train"], families, slots)])
    held_out = [text for text in _unique(_fill(table["held_out"], families, slots)) if text not in train]
    later = [_after(turn, prompt.strip()) for turn in table["before"]]
    return Wordings(
        train=(*(_ask(text) for text in train), *later),
        held_out=tuple(_ask(text) for text in held_out),
    )


def is_question(prompt: str) -> bool:
    """Return whether a prompt asks, rather than tells someone to do something."""
    first = prompt.strip().split(maxsplit=1)[0].lower().removesuffix("'s") if prompt.strip() else ""
    return prompt.strip().endswith(("?", "？", "؟")) or first in _QUESTION_WORDS or first in _AUXILIARIES


def _ask(text: str) -> Prompt:
    return (Turn(Role.USER, text),)


def _after(turn: dict[str, str], prompt: str) -> Prompt:
    return (Turn(Role.USER, turn["user"]), Turn(Role.ASSISTANT, turn["assistant"]), Turn(Role.USER, prompt))


def _read(prompt: str) -> tuple[str, dict[str, str]]:
    if not is_question(prompt):
        return "request", _request_slots(prompt)
    asked = _ended(prompt, "?")
    slots = {"q": asked, "q_low": _lower_first(asked), "q_plain": prompt.lower().rstrip("?!. ")}
    if (match := _NOUN.match(prompt)) and _is_noun_phrase(match[3]):
        return "noun", slots | {
            "wh": match[1].lower(),
            "be": (match[2] or "is").lower(),
            "np": match[3],
            "np_cap": match[3][0].upper() + match[3][1:],
        }
    if (match := _CLAUSE_BE.match(prompt)) and (subject := _whole_subject(match[3])):
        rest = match[3][len(subject) :].strip()
        clause = f"{match[1].lower()} {subject} {match[2].lower()} {rest}".strip()
        return "clause", slots | {"clause": clause}
    if match := _CLAUSE_DO.match(prompt):
        return "clause", slots | {"clause": f"{match[1].lower()} {match[2]} {match[3]}"}
    return "question", slots


def _whole_subject(text: str) -> str | None:
    """Return what "is" stands before in "where … is", or None if that cannot be told."""
    match = _SUBJECT.match(text)
    rest = text[match.end() :].strip() if match else ""
    return match[0] if match and (not rest or _PREDICATE.match(rest)) else None


def _is_noun_phrase(text: str) -> bool:
    """Refuse "What is happening?" and "What is wrong with it?": no article, owner or name in front."""
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    determined = first.lower() in ("my", "your", "our", "the", "a", "an", "his", "her", "their", "its")
    return determined or first.endswith(("'s", "’s")) or first[:1].isupper()


def _request_slots(prompt: str) -> dict[str, str]:
    told = _ended(prompt, ".")
    low = _lower_first(told)
    return {"r": told, "r_low": low, "r_low_q": low.rstrip(".!"), "r_plain": prompt.lower().rstrip("?!. ")}


def _ended(prompt: str, mark: str) -> str:
    """Close a prompt that was typed without its last mark, so that more can follow."""
    return prompt if _ENDED.search(prompt) else f"{prompt}{mark}"


def _lower_first(text: str) -> str:
    """Lower the first letter of a question word or verb; leave "I" and names alone."""
    first = text.split(maxsplit=1)[0] if text else ""
    keep = first in ("I", "I'm", "I've") or not first[1:].islower()
    return text if keep else text[0].lower() + text[1:]


def _fill(table: dict[str, list[str]], families: tuple[str, ...], slots: dict[str, str]) -> list[str]:
    filled = (template.format(**slots) for family in families for template in table.get(family, []))
    return [text for text in filled if text.strip()]


def _unique(texts: list[str]) -> list[str]:
    return list(dict.fromkeys(texts))


@cache
def _templates() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(files("resources").joinpath("wordings/en.json").read_text(encoding="utf-8"))
    return table
