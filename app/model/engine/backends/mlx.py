"""The engine child on MLX: answers, scores and swaps adapters over one model folder."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version

import mlx.core as mx
import numpy as np

from app.errors import BugError, KnownError, UserError
from app.model.api import (
    AdapterRef,
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
from app.model.child.serve import Cancel, Cancelled, serve
from app.model.engine.backends.mlx_adapters import Adapters
from app.model.engine.backends.mlx_state import FIXED_CHUNK, State
from app.model.engine.characters import Characters, text_of
from app.model.engine.host import Answer, Answered, Loaded, LoadRequest, Say, engine_handlers
from app.model.engine.logprobs import Scored, score
from app.model.mlx.backends.folder import Base, load_base
from app.model.prompt import tokenise, tokenise_answer

GREEDY = Sampling()


@dataclass(slots=True)
class _Ready:
    """What is there once a base is loaded."""

    base: Base
    adapters: Adapters
    conversation: State
    context_tokens: int


class MlxBackend:
    """Implements ``app.model.engine.host.Backend``. Speeds and memory are MLX's own; threads are not ours to set."""

    def __init__(self) -> None:
        self._loaded: _Ready | None = None

    @property
    def _ready(self) -> _Ready:
        if self._loaded is None:
            raise BugError("use the engine", "no base is loaded")
        return self._loaded

    def load(self, request: LoadRequest, tick: Callable[[], None]) -> Loaded:
        """Load a model folder."""
        if self._loaded is not None:
            raise BugError("load a base", "one is loaded already")
        if not request.path.is_dir():
            raise KnownError("load the model", request.path.name, "Prepare the model again.", retryable=False)
        tick()
        with _runtime_errors("load the model"):
            base = load_base(request.path)
        tick()
        limit = getattr(base.model.args, "max_position_embeddings", None) or request.context_tokens
        context_tokens = min(request.context_tokens, limit)
        adapters = Adapters(base.model, request.passport_id)
        self._loaded = _Ready(base, adapters, State(base.model, steady=False), context_tokens)
        device = "GPU" if mx.default_device() == mx.gpu else "CPU"
        return Loaded(f"mlx {version('mlx')} on {device}, mlx-lm {version('mlx-lm')}", context_tokens)

    @property
    def active(self) -> str | None:
        """Hash of the active adapter, derived from the loaded numbers."""
        return self._ready.adapters.active

    def activate(self, adapter: AdapterRef | None) -> None:
        """Swap, and forget the conversation's state."""
        ready = self._ready
        ready.adapters.swap(adapter)
        ready.conversation = State(ready.base.model, steady=False)

    def count(self, turns: Sequence[Turn]) -> int:
        """Return the tokens of a conversation."""
        return len(self._prompt(turns, answering=_awaits_answer(turns)))

    def prefill(self, turns: Sequence[Turn], cancel: Cancel) -> int:
        """Compute the state of a conversation."""
        ids = self._fitting(self._prompt(turns, answering=_awaits_answer(turns)))
        with _runtime_errors("read the conversation"):
            self._ready.conversation.prepare(ids, cancel)
        return len(ids)

    def generate(self, turns: Sequence[Turn], sampling: Sampling, say: Say, cancel: Cancel) -> Answered:
        """Answer from the active version."""
        began = time.monotonic()
        ready = self._ready
        ids = self._fitting(self._prompt(turns, answering=True))
        room = min(sampling.max_tokens, ready.context_tokens - len(ids))
        with _runtime_errors("answer"):
            computed = ready.conversation.prepare(ids, cancel)
            first, count, stop = 0.0, 0, "length"
            characters = Characters()
            for token in self._tokens(ready.conversation, ids[-1], sampling, room, cancel):
                first = first or time.monotonic() - began
                if token in ready.base.tokenizer.ends:
                    stop = "end"
                    continue
                count += 1
                if text := characters.add(ready.base.tokenizer.piece(token)):
                    say(text, count)
        return Answered(stop, len(ids), computed, count, first)

    def _tokens(self, state: State, last: int, sampling: Sampling, room: int, cancel: Cancel) -> Iterator[int]:
        """Yield the tokens of an answer up to its end token, if it comes to that. Raises Cancelled between two."""
        try:
            for token in state.answer(last, sampling, max_tokens=room):
                if cancel.is_set():
                    raise Cancelled
                yield token
                if token in self._ready.base.tokenizer.ends:
                    return
        finally:
            state.settle()

    def evaluate(self, items: Sequence[EvalItem], adapter: AdapterRef | None, answer: Answer, cancel: Cancel) -> None:
        """Evaluate every item by itself and from an empty state, so that company never changes a bit."""
        with self._ready.adapters.during(adapter), _runtime_errors("check answers"):
            for index, item in enumerate(items):
                if cancel.is_set():
                    raise Cancelled
                answer(index, self._evaluated(item, cancel))

    def _evaluated(self, item: EvalItem, cancel: Cancel) -> EvalResult:
        state = State(self._ready.base.model, steady=True)
        return self._greedy(item, state, cancel) if isinstance(item, Greedy) else self._score(item, state, cancel)

    def _greedy(self, item: Greedy, state: State, cancel: Cancel) -> GreedyResult:
        tokenizer = self._ready.base.tokenizer
        ids = self._fitting(self._prompt(item.turns, answering=True))
        state.prepare(ids, cancel)
        room = min(item.max_tokens, self._ready.context_tokens - len(ids))
        tokens = list(self._tokens(state, ids[-1], GREEDY, room, cancel))
        stopped = bool(tokens) and tokens[-1] in tokenizer.ends
        said = tokens[:-1] if stopped else tokens
        return GreedyResult(text_of([tokenizer.piece(token) for token in said]), stopped, tuple(said))

    def _score(self, item: Score, state: State, cancel: Cancel) -> ScoreResult:
        prompt, answer = self._question(item)
        scored = Scored(item, tuple(answer))
        scored.check()
        if not answer:
            raise UserError("evaluate an item", "it is empty")
        ids = self._fitting([*prompt, *answer])
        rows: list[np.ndarray] = []
        for start in range(0, len(ids) - 1, FIXED_CHUNK):
            if cancel.is_set():
                raise Cancelled
            chunk = ids[start : min(start + FIXED_CHUNK, len(ids) - 1)]
            logits = state.logits(chunk)[max(0, len(prompt) - 1 - start) :]
            rows.append(np.array(logits.astype(mx.float32)))
        return score(scored, np.concatenate(rows))

    def _question(self, item: Score) -> tuple[list[int], list[int]]:
        """Return what comes before the scored answer, and the answer."""
        tokenizer = self._ready.base.tokenizer
        if item.turns:
            return self._prompt(item.turns, answering=True), tokenise_answer(tokenizer.template, item.answer, tokenizer)
        begin = tokenizer.begin if tokenizer.begin is not None else min(tokenizer.ends)
        return [begin], tokenizer.encode(item.answer, special=False)

    def _prompt(self, turns: Sequence[Turn], *, answering: bool) -> list[int]:
        tokenizer = self._ready.base.tokenizer
        return tokenise(tokenizer.template.render(turns, add_generation_prompt=answering), tokenizer)

    def _fitting(self, ids: list[int]) -> list[int]:
        limit = self._ready.context_tokens
        if not ids:
            raise UserError("answer", "an empty conversation", "Write something first.")
        if len(ids) >= limit:
            subject = f"{len(ids)} tokens, where the model holds {limit}"
            raise UserError("answer", subject, "Start a new chat, or shorten the message.")
        return ids


def _awaits_answer(turns: Sequence[Turn]) -> bool:
    return bool(turns) and turns[-1].role is not Role.ASSISTANT


@contextlib.contextmanager
def _runtime_errors(op: str) -> Iterator[None]:
    """MLX has one class for what the device refuses: memory, a lost GPU, a failed command."""
    try:
        yield
    except RuntimeError as error:
        raise KnownError(op, "MLX", "Close other programs, or use a shorter context or a smaller model.") from error


if __name__ == "__main__":
    serve(engine_handlers(MlxBackend()))
