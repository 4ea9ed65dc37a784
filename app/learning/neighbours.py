"""Near questions whose answers a lesson must leave alone.

Three ways to be near: the same question about something else ("my cat's name"), something else about the same thing
("How old is my dog?"), and another question that opens alike ("What is the capital of France?"). The words that may
stand in for each other are data (``resources/wordings``). What the gate's own suites ask is no near
question to train on.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from random import Random
from typing import Any

from app.learning.wordings import is_question
from app.model.gate.suites import load_suites
from app.model.gate.text import same_question, words

_NAME = re.compile(r"(?<=\s)(?!I\b)(?:[A-Z][\w'’.-]*(?:\s+(?:of|de|the|von|van|du|la|le)\s+|\s+)?)+")
_OWNED = re.compile(
    r"\b((?:my|your|our|his|her)\s+(?:(?:two|three|four|five|six|seven)\s+)?[\w-]+)(?:'s|’s)?\b", re.IGNORECASE
)
_POSSESSIVE = re.compile(r"['’]s$")
_PEERS_EACH = 14
_LIVING = ("animal", "family", "profession")


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Near prompts, split so that the gate examines with others than training protects."""

    train: tuple[str, ...]
    examine: tuple[str, ...]


def neighbours(prompt: str, *, train: int, examine: int, seed: int) -> Neighbours:
    """Return up to ``train`` and ``examine`` near prompts: every kind of nearness in both, no prompt in both."""
    random = Random(seed)
    kinds = [
        _other_owner(prompt),
        *_other_subject(prompt, random),
        _other_relation(prompt),
        _same_opening(prompt, random),
    ]
    taken = {same_question(prompt)}
    halves: tuple[list[list[str]], list[list[str]]] = ([], [])
    for kind in kinds:
        fresh = [text for text in dict.fromkeys(kind) if same_question(text) not in taken]
        taken.update(map(same_question, fresh))
        halves[0].append([text for text in fresh[0::2] if words(text) not in _examined()])
        halves[1].append(fresh[1::2])
    return Neighbours(tuple(_interleave(halves[0])[:train]), tuple(_interleave(halves[1])[:examine]))


def _other_owner(prompt: str) -> list[str]:
    """Return "your dog's name" and "his dog's name" for "my dog's name"."""
    owners: list[str] = _peers()["groups"]["owner"]
    for owner in sorted(owners, key=len, reverse=True):
        pattern = _word(owner)
        if pattern.search(prompt):
            return [pattern.sub(other, prompt, count=1) for other in owners if other != owner]
    return []


def _other_subject(prompt: str, random: Random) -> list[list[str]]:
    """Return the same question with each of its words replaced by that word's peers, or a name by other names."""
    groups: dict[str, list[str]] = _peers()["groups"]
    found: list[list[str]] = []
    # A first word asks or tells: the "name" of "Name three fruits." is no thing with peers.
    first, space, rest = prompt.partition(" ")
    for group, peers in groups.items():
        for word in sorted(peers, key=len, reverse=True):
            pattern = _word(word)
            if group == "owner" or not pattern.search(rest):
                continue
            others = [peer for peer in peers if peer.lower() != word.lower()]
            random.shuffle(others)
            found.append([first + space + pattern.sub(peer, rest, count=1) for peer in others[:_PEERS_EACH]])
            break
    name = _NAME.search(prompt)
    if name and not any(name[0].strip() in words for words in groups.values()):
        whole = re.compile(rf"(?<!\w){re.escape(name[0].rstrip())}(?!\w)")
        peers = [*groups["person"][:4], *groups["work_title"][:2], *groups["town"][:2]]
        found.append([whole.sub(peer, prompt) for peer in peers])
    if not found and (owned := _OWNED.search(prompt)):
        thing = _word(owned[1].split()[-1])
        found.append([thing.sub(peer, prompt, count=1) for peer in _peers()["owned_fallback"]])
    return found


def _word(text: str) -> re.Pattern[str]:
    return re.compile(rf"\b{re.escape(text)}(?![\w-])", re.IGNORECASE)


def _other_relation(prompt: str) -> list[str]:
    """Return other questions about the same thing."""
    peers = _peers()
    if owned := _OWNED.search(prompt):
        templates: list[str] = peers["about_owned"][_sort_of(owned[1].split()[-1].lower())]
        return [template.format(owned=owned[1]) for template in templates]
    if name := _NAME.search(prompt):
        subject = _POSSESSIVE.sub("", name[0].strip().rstrip("?.!"))
        return [template.format(subject=subject) for template in peers["about_subject"]]
    return []


def _sort_of(thing: str) -> str:
    """Return what can sensibly be asked about a thing: as of a living being, an event, or neither."""
    groups: dict[str, list[str]] = _peers()["groups"]
    if any(thing in groups[name] for name in _LIVING):
        return "living"
    return "event" if thing in groups["event"] else "thing"


def _same_opening(prompt: str, random: Random) -> list[str]:
    """Return questions that open alike, those with the longest common opening first, and some that do not."""
    table: dict[str, list[str]] = _peers()["same_opening"]
    asked = re.sub(r"^(\w+)['’]s\b", r"\1 is", prompt.strip().lower())
    openings = sorted((key for key in table if _word(key).match(asked)), key=len, reverse=True)
    if not openings:
        openings = ["other" if is_question(prompt) else "request"]
    far = ["other" if "other" not in openings else "request"]
    return [text for opening in (*openings, *far) for text in random.sample(table[opening], len(table[opening]))]


def _interleave(lists: list[list[str]]) -> list[str]:
    depth = max(map(len, lists), default=0)
    return [items[i] for i in range(depth) for items in lists if i < len(items)]


@cache
def _examined() -> frozenset[tuple[str, ...]]:
    """Return the words of every question that the frozen suites ask."""
    suites = load_suites()
    asked = [probe.prompt for probe in (*suites.chat, *suites.known, *suites.behaviour, *suites.formats)]
    return frozenset(map(words, [*asked, *(text for pair in suites.pairs for text in (pair.harmful, pair.harmless))]))


@cache
def _peers() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(
        files("resources").joinpath("wordings/peers_en.json").read_text(encoding="utf-8")
    )
    return table
