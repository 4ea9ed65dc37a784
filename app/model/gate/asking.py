"""Asks versions for answers and remembers what they said, so that each judgement pays only for the new version.

A result is kept under (runtime, base, suite), version (adapter hash and scale) and item, all by value: a result of
another runtime, another file or another strength can never be taken for this one. What is kept is rebuildable; a
damaged line is dropped and asked again.

Items that name token ids (``Score.given``) compare with one particular other version and are not kept.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from app.model.api import (
    AdapterRef,
    Engine,
    EvalItem,
    EvalResult,
    Greedy,
    GreedyResult,
    Role,
    Score,
    ScoreResult,
    Turn,
)

Answers = Mapping[EvalItem, EvalResult]

_KEPT_VERSIONS = 24
"""Files of versions on disk, the base's not counted; the longest unused go first."""


def version_key(version: AdapterRef | None) -> str:
    """Return the name of a version of the weights: what was loaded, and how strongly."""
    return "base" if version is None else f"{version.sha256}@{version.scale!r}"


class Memory:
    """Results by version and item, on disk if a folder is given.

    Args:
        space: What makes results comparable: runtime, base and suite. Others live in other folders.
        folder: Where to keep them; None keeps them in memory only.
    """

    def __init__(self, space: str, folder: Path | None) -> None:
        digest = hashlib.sha256(space.encode()).hexdigest()[:24]
        self._folder = folder / digest if folder is not None else None
        self._known: dict[str, dict[EvalItem, EvalResult]] = {}

    def of(self, version: str) -> dict[EvalItem, EvalResult]:
        """Return what is known of a version."""
        if version not in self._known:
            self._known[version] = self._read(version)
            self._forget_in_memory()
        return self._known[version]

    def add(self, version: str, results: Answers) -> None:
        """Keep results that can be used again."""
        kept = {item: result for item, result in results.items() if not (isinstance(item, Score) and item.given)}
        self.of(version).update(kept)
        if self._folder is None or not kept:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._path(version).open("a", encoding="utf-8") as file:
            file.writelines(_line(item, result) for item, result in kept.items())
        self._forget_on_disk()

    def _path(self, version: str) -> Path:
        assert self._folder is not None  # noqa: S101 - callers have asked
        return self._folder / f"{version}.jsonl"

    def _read(self, version: str) -> dict[EvalItem, EvalResult]:
        if self._folder is None:
            return {}
        try:
            lines = self._path(version).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return {}
        return dict(pair for pair in map(_parsed, lines) if pair is not None)

    def _forget_in_memory(self) -> None:
        for version in [name for name in self._known if name != "base"][:-_KEPT_VERSIONS]:
            del self._known[version]

    def _forget_on_disk(self) -> None:
        assert self._folder is not None  # noqa: S101 - callers have asked
        files = [path for path in self._folder.glob("*.jsonl") if path.stem != "base"]
        for path in sorted(files, key=lambda path: path.stat().st_mtime_ns)[:-_KEPT_VERSIONS]:
            path.unlink(missing_ok=True)


class Asker:
    """Evaluates items under a version, each at most once."""

    def __init__(self, engine: Engine, memory: Memory) -> None:
        self._engine = engine
        self._memory = memory

    async def ask(
        self,
        version: AdapterRef | None,
        items: Iterable[EvalItem],
        progress: Callable[[float], None] | None = None,
    ) -> Answers:
        """Return a result for every item, from memory where it is known, else in one batch from the engine."""
        key = version_key(version)
        known = self._memory.of(key)
        wanted = list(dict.fromkeys(items))
        missing = [item for item in wanted if item not in known]
        fresh: dict[EvalItem, EvalResult] = {}
        if missing:
            report = None if progress is None else lambda done, of: progress(done / of)
            results = await self._engine.evaluate(missing, adapter=version, progress=report)
            fresh = dict(zip(missing, results, strict=True))
            self._memory.add(key, fresh)
        if progress is not None:
            progress(1.0)
        return {item: fresh[item] if item in fresh else known[item] for item in wanted}

    async def ask_units(
        self,
        version: AdapterRef | None,
        units: Iterable[Sequence[EvalItem]],
        progress: Callable[[float], None] | None = None,
    ) -> Answers:
        """Return a result for every item of every unit, comparable to the last bit with the same unit elsewhere.

        A unit goes to the engine whole and alone, since results may depend on what is evaluated beside them.
        """
        key, answers = version_key(version), dict[EvalItem, EvalResult]()
        known, wanted = self._memory.of(key), list(units)
        for number, unit in enumerate(wanted, start=1):
            if all(item in known for item in unit):
                answers.update((item, known[item]) for item in unit)
            else:
                fresh = dict(zip(unit, await self._engine.evaluate(unit, adapter=version), strict=True))
                self._memory.add(key, fresh)
                answers.update(fresh)
            if progress is not None:
                progress(number / len(wanted))
        return answers


def greedy(answers: Answers, item: Greedy) -> GreedyResult:
    """Return the answer to a greedy item."""
    result = answers[item]
    assert isinstance(result, GreedyResult)  # noqa: S101 - the engine's contract
    return result


def score(answers: Answers, item: Score) -> ScoreResult:
    """Return the result of a scored item."""
    result = answers[item]
    assert isinstance(result, ScoreResult)  # noqa: S101 - the engine's contract
    return result


def loss(answers: Answers, item: Score) -> float:
    """Return the mean negative log-likelihood of an item, in nats per token."""
    logprobs = score(answers, item).logprobs
    return -sum(logprobs) / len(logprobs) if logprobs else 0.0


def _line(item: EvalItem, result: EvalResult) -> str:
    body = json.dumps([_item_json(item), _result_json(result)], ensure_ascii=True, separators=(",", ":"))
    return f"{zlib.crc32(body.encode()):08x} {body}\n"


def _parsed(line: str) -> tuple[EvalItem, EvalResult] | None:
    check, _, body = line.partition(" ")
    if check != f"{zlib.crc32(body.encode()):08x}":
        return None
    item, result = json.loads(body)
    return _item_from(item), _result_from(result)


def _item_json(item: EvalItem) -> dict[str, Any]:
    turns = [[turn.role.value, turn.text] for turn in item.turns]
    if isinstance(item, Greedy):
        return {"turns": turns, "max": item.max_tokens}
    return {"turns": turns, "answer": item.answer, "top": item.top_k}


def _item_from(data: dict[str, Any]) -> EvalItem:
    turns = tuple(Turn(Role(role), text) for role, text in data["turns"])
    if "max" in data:
        return Greedy(turns, data["max"])
    return Score(turns, data["answer"], data["top"])


def _result_json(result: EvalResult) -> dict[str, Any]:
    if isinstance(result, GreedyResult):
        return {"text": result.text, "stopped": result.stopped, "tokens": result.tokens}
    return {"tokens": result.tokens, "logprobs": result.logprobs, "ids": result.top_ids, "tops": result.top_logprobs}


def _result_from(data: dict[str, Any]) -> EvalResult:
    if "text" in data:
        return GreedyResult(data["text"], data["stopped"], tuple(data["tokens"]))
    return ScoreResult(
        tuple(data["tokens"]),
        tuple(data["logprobs"]),
        tuple(tuple(row) for row in data["ids"]),
        tuple(tuple(row) for row in data["tops"]),
    )
