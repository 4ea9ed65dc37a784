"""From a lesson to everything that training and gate need: wordings, neighbours, anchors, replay.

The answers that must stay are the parent's own (neighbours) and the base's own (anchors), never invented ones: a
taught refusal spreads. What the gate examines with is never trained on, but for the answers that the app promises.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import chain
from random import Random
from typing import Any

from app.learning.lesson import Lesson
from app.learning.neighbours import Neighbours, neighbours
from app.model.api import AdapterRef, Example, Greedy, Recipe, Role, Turn
from app.model.gate.asking import Asker
from app.model.gate.asking import greedy as answer_to
from app.model.gate.suites import load_suites
from app.model.gate.text import same_question

KEEP_TOKENS = 12
"""Tokens of an answer that must stay: enough to hold its direction, few enough to be cheap."""
REQUEST_TOKENS = 16
"""Of the answer to a request, which takes longer to come to the point."""
TRAIN_NEIGHBOURS = 36
EXAM_NEIGHBOURS = 12
GENERAL = {"facts": 64, "self": 36, "generic": 64}
"""How many exchanges of each kind are at hand; always the same ones, so that a base is asked for them once."""
PASSAGES = 48
ANCHORS = {"facts": 8, "self": 18, "generic": 8}
"""Of each kind in one lesson. What it says of itself is what a small model loses first."""
PASSAGES_EACH = 24
REPLAYED_LESSONS = 24
WORDINGS_PER_REPLAY = 2


@dataclass(frozen=True, slots=True)
class Material:
    """What one lesson is trained and examined on."""

    targets: tuple[Example, ...]
    keeps: tuple[Example, ...]
    anchors: tuple[Example, ...]
    replay: tuple[Example, ...]
    generic: tuple[Example, ...]
    examined: tuple[tuple[Turn, ...], ...]
    """Neighbours for the gate only."""
    standing: int = 0
    """How many anchors, from the first, are part of every step."""

    def manifest(self) -> dict[str, Any]:
        """Return it as the JSON that is stored with the version."""
        groups = {"targets": self.targets, "keeps": self.keeps, "anchors": self.anchors, "replay": self.replay}
        written = {name: [_example_json(example) for example in group] for name, group in groups.items()}
        told = json.dumps([_example_json(example) for example in self.generic], sort_keys=True).encode()
        more = {"generic_sha256": hashlib.sha256(told).hexdigest()}
        return {
            "format": "ownmind-data-1",
            **written,
            **more,
            "examined": [_turns_json(turns) for turns in self.examined],
        }


@dataclass(frozen=True, slots=True)
class _Promises:
    """Answers of the base that the app promises to keep."""

    whole: tuple[Example, ...]
    """To be said as safely as the lesson: holding a near-tie to what it was keeps it a near-tie."""
    begun: tuple[Example, ...]
    """The beginnings of long ones, to be held to what they were in every step."""


class Planner:
    """Builds the material of lessons; asks versions for their own answers through the gate's memory."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    async def plan(
        self, lesson: Lesson, earlier: Sequence[Lesson], *, parent: AdapterRef | None, recipe: Recipe
    ) -> Material:
        """Return the material of one lesson on top of a version that holds the earlier ones."""
        seed = recipe.seed
        near = neighbours(lesson.prompt, train=TRAIN_NEIGHBOURS, examine=EXAM_NEIGHBOURS, seed=seed)
        near = _without_taught(near, earlier)
        promised = await self._promises((lesson, *earlier))
        examined = tuple(_ask(text) for text in near.examine)
        apart = _taught((lesson, *earlier)) | _questions(examined)
        return Material(
            targets=(*(Example(turns, lesson.answer) for turns in lesson.wordings.train), *promised.whole),
            keeps=await self._own_answers(near.train, parent),
            anchors=(*promised.begun, *_apart(await self._anchors(Random(seed)), apart)),
            replay=replay(earlier, Random(seed)),
            generic=await self.generic(),
            standing=len(promised.begun),
            examined=examined,
        )

    async def plan_all(self, lessons: Sequence[Lesson], *, recipe: Recipe) -> Material:
        """Return the material for learning a whole ledger at once, from the base: every lesson is a target."""
        seed = recipe.seed
        random = Random(seed)
        near = [_without_taught(neighbours(item.prompt, train=4, examine=4, seed=seed), lessons) for item in lessons]
        promised = await self._promises(lessons)
        wordings = (Example(turns, item.answer) for item in lessons for turns in item.wordings.train)
        examined = tuple(_ask(text) for each in near for text in each.examine)[:EXAM_NEIGHBOURS]
        apart = _taught(lessons) | _questions(examined)
        keeps = await self._own_answers([text for each in near for text in each.train], None)
        return Material(
            targets=(*wordings, *promised.whole),
            keeps=_apart(keeps, apart),
            anchors=(*promised.begun, *_apart(await self._anchors(random, 2), apart)),
            replay=(),
            generic=await self.generic(),
            standing=len(promised.begun),
            examined=examined,
        )

    async def _anchors(self, random: Random, times: int = 1) -> tuple[Example, ...]:
        """Return exchanges with the base's own answers, and passages of plain text."""
        wanted = zip(await self._general(), ANCHORS.values(), strict=True)
        general = [random.sample(pool, min(times * count, len(pool))) for pool, count in wanted]
        passages = random.sample(_passages(), min(times * PASSAGES_EACH, PASSAGES))
        return (*chain.from_iterable(general), *passages)

    async def _promises(self, lessons: Sequence[Lesson]) -> _Promises:
        """Return the promised answers; what was taught itself is a lesson's, and no promise any more."""
        taught = _taught(lessons)
        items = [Greedy(_ask(text), KEEP_TOKENS) for text in _promised() if same_question(text) not in taught]
        answers = await self._asker.ask(None, items)
        said = [
            (Example(item.turns, answer.text), answer.stopped)
            for item in items
            if (answer := answer_to(answers, item)).text.strip()
        ]
        return _Promises(
            whole=tuple(example for example, stopped in said if stopped),
            begun=tuple(example for example, stopped in said if not stopped),
        )

    async def generic(self) -> tuple[Example, ...]:
        """Return generic exchanges with the base's own answers, and passages of plain text."""
        return (*chain.from_iterable(await self._general()), *_passages())

    async def _general(self) -> list[tuple[Example, ...]]:
        """Return the exchanges at hand, by kind."""
        return [
            await self._own_answers(_at_hand(name), None, tokens=REQUEST_TOKENS if name == "generic" else KEEP_TOKENS)
            for name in GENERAL
        ]

    async def _own_answers(
        self, prompts: Sequence[str], version: AdapterRef | None, *, tokens: int = KEEP_TOKENS
    ) -> tuple[Example, ...]:
        items = [Greedy(_ask(text), tokens) for text in prompts]
        answers = await self._asker.ask(version, items)
        said = [(item.turns, answer_to(answers, item).text) for item in items]
        return tuple(Example(turns, text) for turns, text in said if text.strip())


def _promised() -> tuple[str, ...]:
    """Return the prompts whose answers the app promises to keep.

    The gate asks them every time. The first is a near-tie of the embedded base (0.08 nats between two beginnings), so
    training makes it a safe one; the gate's other questions are never trained on.
    """
    return tuple(probe.prompt for probe in load_suites().known if probe.always)


@cache
def _at_hand(name: str) -> tuple[str, ...]:
    return tuple(Random(0).sample(_anchor_prompts(name), GENERAL[name]))


@cache
def _passages() -> tuple[Example, ...]:
    return tuple(Example((), text) for text in Random(0).sample(_anchor_prompts("prose"), PASSAGES))


def replay(earlier: Sequence[Lesson], random: Random) -> tuple[Example, ...]:
    """Return earlier lessons to rehearse: each in its own words and one other wording."""
    chosen = list(earlier) if len(earlier) <= REPLAYED_LESSONS else random.sample(list(earlier), REPLAYED_LESSONS)
    examples: list[Example] = []
    for lesson in chosen:
        others = lesson.wordings.train[1:]
        asked = [lesson.wordings.train[0], *random.sample(others, min(len(others), WORDINGS_PER_REPLAY - 1))]
        examples.extend(Example(turns, lesson.answer) for turns in asked)
    return tuple(examples)


def _taught(lessons: Sequence[Lesson]) -> set[tuple[str, ...]]:
    return {same_question(lesson.prompt) for lesson in lessons}


def _questions(examined: Sequence[tuple[Turn, ...]]) -> set[tuple[str, ...]]:
    return {same_question(turns[-1].text) for turns in examined}


def _apart(examples: Sequence[Example], questions: set[tuple[str, ...]]) -> tuple[Example, ...]:
    """Leave out examples that ask one of these questions."""
    return tuple(each for each in examples if not each.turns or same_question(each.turns[-1].text) not in questions)


def _without_taught(near: Neighbours, lessons: Sequence[Lesson]) -> Neighbours:
    """Leave out what was taught itself: its answer is a lesson's, not the parent's to keep."""
    taught = _taught(lessons)
    return Neighbours(
        *(tuple(t for t in half if same_question(t) not in taught) for half in (near.train, near.examine))
    )


def recipe_for(lesson: Lesson, recipe: Recipe) -> Recipe:
    """Return the recipe with the lesson's own seed: the same for the same lesson, another for every other."""
    digest = hashlib.sha256(f"{recipe.seed}/{lesson.prompt}".encode()).digest()
    return replace(recipe, seed=int.from_bytes(digest[:4]))


def _ask(text: str) -> tuple[Turn, ...]:
    return (Turn(Role.USER, text),)


def _turns_json(turns: Sequence[Turn]) -> list[dict[str, str]]:
    return [{"role": turn.role.value, "text": turn.text} for turn in turns]


def _example_json(example: Example) -> dict[str, Any]:
    return {"turns": _turns_json(example.turns), "answer": example.answer}


@cache
def _anchor_prompts(name: str) -> tuple[str, ...]:
    text = files("resources").joinpath(f"anchors/{name}.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return tuple(item.get("prompt") or item["text"] for item in data["items"])
