"""The child side of an engine, whatever its runtime: turns requests into calls of a Backend, and values into JSON.

A backend module ends with::

    if __name__ == "__main__":
        serve(engine_handlers(MyBackend()))
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from app.model.api import AdapterRef, EvalItem, EvalResult, Sampling, Turn
from app.model.child.protocol import Json
from app.model.child.serve import Cancel, Emit, Handler
from app.model.engine import wire

Say = Callable[[str, int], None]
"""Gets the text that is new, always whole characters, and the tokens so far."""

Answer = Callable[[int, EvalResult], None]
"""Gets the index of an evaluated item and its result; in any order."""


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """What to load."""

    passport_id: str
    path: Path
    context_tokens: int
    threads: int
    """0 means one per physical core."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was loaded."""

    backend: str
    """Name and version of the runtime."""
    context_tokens: int
    """As the runtime set it."""


@dataclass(frozen=True, slots=True)
class Answered:
    """How an answer ended."""

    stop: str
    """"end" or "length"."""
    prompt_tokens: int
    computed_tokens: int
    """Of the prompt, those whose state was not known before."""
    tokens: int
    first_seconds: float
    """From the request to the first token."""


class Backend(Protocol):
    """What a runtime has to do. Every method runs on the main thread of the child, one at a time.

    Long ones look at ``cancel`` often enough to end within 200 ms, and then raise Cancelled.
    """

    def load(self, request: LoadRequest, tick: Callable[[], None]) -> Loaded:
        """Load a base, once in the life of the child; call ``tick`` now and then."""
        ...

    def generate(self, turns: Sequence[Turn], sampling: Sampling, say: Say, cancel: Cancel) -> Answered:
        """Answer from the active version."""
        ...

    @property
    def active(self) -> str | None:
        """Hash of the active adapter as the loaded file itself tells it."""
        ...

    def activate(self, adapter: AdapterRef | None) -> None:
        """Swap, and drop every cached state. Raises VerificationError, and then nothing has changed."""
        ...

    def evaluate(self, items: Sequence[EvalItem], adapter: AdapterRef | None, answer: Answer, cancel: Cancel) -> None:
        """Evaluate every item under this adapter; neither the active one nor the conversation changes."""
        ...

    def prefill(self, turns: Sequence[Turn], cancel: Cancel) -> int:
        """Compute the state of a conversation and return its tokens."""
        ...

    def count(self, turns: Sequence[Turn]) -> int:
        """Return the tokens of a conversation."""
        ...


def engine_handlers(backend: Backend) -> Mapping[str, Handler]:
    """Return the methods of an engine child."""
    return {
        "load": lambda params, emit, _: _load(backend, params, emit),
        "generate": lambda params, emit, cancel: _generate(backend, params, emit, cancel),
        "activate": lambda params, _, __: _activate(backend, params),
        "evaluate": lambda params, emit, cancel: _evaluate(backend, params, emit, cancel),
        "prefill": lambda params, _, cancel: {"tokens": backend.prefill(wire.turns_from(params["turns"]), cancel)},
        "count": lambda params, _, __: {"tokens": backend.count(wire.turns_from(params["turns"]))},
    }


def _load(backend: Backend, params: Json, emit: Emit) -> Json:
    start = time.monotonic()
    request = LoadRequest(
        params["passport_id"], Path(params["path"]), params["context_tokens"], threads=params["threads"]
    )
    loaded = backend.load(request, lambda: emit({"loading": True}))
    seconds = time.monotonic() - start
    return {"backend": loaded.backend, "context_tokens": loaded.context_tokens, "load_seconds": seconds}


def _generate(backend: Backend, params: Json, emit: Emit, cancel: Cancel) -> Json:
    start = time.monotonic()

    def say(text: str, tokens: int) -> None:
        emit({"text": text, "tokens": tokens})

    turns, sampling = wire.turns_from(params["turns"]), wire.sampling_from(params["sampling"])
    answered = backend.generate(turns, sampling, say, cancel)
    return {
        "stop": answered.stop,
        "prompt_tokens": answered.prompt_tokens,
        "computed_tokens": answered.computed_tokens,
        "tokens": answered.tokens,
        "first_seconds": answered.first_seconds,
        "seconds": time.monotonic() - start,
        "adapter": backend.active,
    }


def _activate(backend: Backend, params: Json) -> Json:
    backend.activate(wire.adapter_from(params["adapter"]))
    return {"active": backend.active}


def _evaluate(backend: Backend, params: Json, emit: Emit, cancel: Cancel) -> Json:
    items = [wire.item_from(item) for item in params["items"]]

    def answer(index: int, result: EvalResult) -> None:
        emit({"index": index, "result": wire.result_json(result)})

    backend.evaluate(items, wire.adapter_from(params["adapter"]), answer, cancel)
    return {}
