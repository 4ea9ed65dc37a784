"""Values of the engine seam as JSON, for both sides of the pipe.

Numbers cross bit for bit: float32 and int32 rows travel as their bytes, so a result is the same on both sides.

Methods of an engine child (params → result; events in brackets)::

    load      passport_id, path, context_tokens, threads → backend, context_tokens, load_seconds
    generate  turns, sampling → a Done without its text, and computed_tokens  [text, tokens]
    activate  adapter → active
    evaluate  items, adapter → {}                        [index, result]
    prefill   turns → tokens
    count     turns → tokens

Knows no runtime; every backend speaks this.
"""

from __future__ import annotations

import base64
from array import array
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from app.model.api import (
    AdapterRef,
    BaseFiles,
    Done,
    EvalItem,
    EvalResult,
    Greedy,
    GreedyResult,
    Role,
    Sampling,
    Score,
    ScoreResult,
    Turn,
)

Json = dict[str, Any]


def turns_json(turns: Sequence[Turn]) -> list[list[str]]:
    """Return turns as JSON."""
    return [[turn.role.value, turn.text] for turn in turns]


def turns_from(values: Sequence[Sequence[str]]) -> tuple[Turn, ...]:
    """Rebuild turns."""
    return tuple(Turn(Role(role), text) for role, text in values)


def load_json(base: BaseFiles, *, context_tokens: int, threads: int) -> Json:
    """Return the parameters of ``load``."""
    return {
        "passport_id": base.passport.id,
        "path": str(base.serving),
        "context_tokens": context_tokens,
        "threads": threads,
    }


def adapter_json(adapter: AdapterRef | None) -> Json | None:
    """Return an adapter reference as JSON."""
    if adapter is None:
        return None
    return {"sha256": adapter.sha256, "path": str(adapter.path), "scale": adapter.scale}


def adapter_from(values: Json | None) -> AdapterRef | None:
    """Rebuild an adapter reference."""
    return None if values is None else AdapterRef(values["sha256"], Path(values["path"]), values["scale"])


def sampling_json(sampling: Sampling) -> Json:
    """Return sampling settings as JSON."""
    return asdict(sampling)


def sampling_from(values: Json) -> Sampling:
    """Rebuild sampling settings."""
    return Sampling(**values)


def done_from(values: Json, text: str) -> Done:
    """Rebuild the end of an answer; its text was streamed before."""
    return Done(text=text, **{key: value for key, value in values.items() if key != "computed_tokens"})


def item_json(item: EvalItem) -> Json:
    """Return an evaluation item as JSON."""
    if isinstance(item, Greedy):
        return {"greedy": turns_json(item.turns), "max_tokens": item.max_tokens}
    given = rows_json(item.given, "i")
    return {"score": turns_json(item.turns), "answer": item.answer, "top_k": item.top_k, "given": given}


def item_from(values: Json) -> EvalItem:
    """Rebuild an evaluation item."""
    if "greedy" in values:
        return Greedy(turns_from(values["greedy"]), values["max_tokens"])
    given = tuple(tuple(int(token) for token in row) for row in rows_from(values["given"], "i"))
    return Score(turns_from(values["score"]), values["answer"], values["top_k"], given)


def result_json(result: EvalResult) -> Json:
    """Return an evaluation result as JSON."""
    if isinstance(result, GreedyResult):
        return {"text": result.text, "stopped": result.stopped, "tokens": list(result.tokens)}
    return {
        "tokens": list(result.tokens),
        "logprobs": rows_json([result.logprobs], "f"),
        "top_ids": rows_json(result.top_ids, "i"),
        "top_logprobs": rows_json(result.top_logprobs, "f"),
    }


def result_from(values: Json) -> EvalResult:
    """Rebuild an evaluation result."""
    if "text" in values:
        return GreedyResult(values["text"], values["stopped"], tuple(values["tokens"]))
    return ScoreResult(
        tuple(values["tokens"]),
        rows_from(values["logprobs"], "f")[0],
        tuple(tuple(int(token) for token in row) for row in rows_from(values["top_ids"], "i")),
        rows_from(values["top_logprobs"], "f"),
    )


def rows_json(rows: Sequence[Sequence[float]], code: str) -> Json:
    """Pack rows of numbers, each of its own length, as ``array`` type ``code``: "i" int32 or "f" float32."""
    packed = array(code, (number for row in rows for number in row))
    return {"lengths": [len(row) for row in rows], "data": base64.b64encode(packed.tobytes()).decode("ascii")}


def rows_from(values: Json, code: str) -> tuple[tuple[float, ...], ...]:
    """Unpack rows of numbers."""
    packed = array(code)
    packed.frombytes(base64.b64decode(values["data"]))
    rows, start = [], 0
    for length in values["lengths"]:
        rows.append(tuple(packed[start : start + length]))
        start += length
    return tuple(rows)
