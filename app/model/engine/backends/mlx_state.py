"""The computed state of a sequence on MLX: a key-value cache and the tokens that it holds."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import mlx.core as mx
from mlx import nn
from mlx_lm.generate import generate_step
from mlx_lm.models.cache import can_trim_prompt_cache, make_prompt_cache, trim_prompt_cache
from mlx_lm.sample_utils import make_logits_processors, make_sampler

from app.model.api import Sampling
from app.model.child.serve import Cancel, Cancelled

FIXED_CHUNK = 256
"""Tokens per pass where the same bits must come out every time."""
_SMALLEST_CHUNK = 16
_LARGEST_CHUNK = 2048
_SHORT_S, _LONG_S = 0.04, 0.1
"""A pass should take about this long, so that a stop during a long prompt takes effect at once."""


class State:
    """Starts empty. ``steady``: computes in fixed chunks, whatever the machine's speed."""

    def __init__(self, model: nn.Module, *, steady: bool) -> None:
        self._model = model
        self._steady = steady
        self._chunk = FIXED_CHUNK
        self._cache = make_prompt_cache(model)
        self._ids: list[int] = []

    def prepare(self, ids: Sequence[int], cancel: Cancel) -> int:
        """Hold exactly all but the last of ``ids``; return how many of ``ids`` were not known before.

        Raises: Cancelled; what was computed until then is kept.
        """
        known = _common(self._ids, ids[:-1])
        self._shorten(known)
        known = len(self._ids)
        while len(self._ids) < len(ids) - 1:
            if cancel.is_set():
                raise Cancelled
            self._feed(ids[len(self._ids) : min(len(self._ids) + self._chunk, len(ids) - 1)])
        return len(ids) - known

    def _feed(self, ids: Sequence[int]) -> None:
        start = time.monotonic()
        self.logits(ids)
        seconds = time.monotonic() - start
        if self._steady:
            return
        if seconds > _LONG_S:
            self._chunk = max(_SMALLEST_CHUNK, self._chunk // 2)
        elif seconds < _SHORT_S and len(ids) == self._chunk:
            self._chunk = min(_LARGEST_CHUNK, self._chunk * 2)

    def logits(self, ids: Sequence[int]) -> mx.array:
        """Add ``ids`` and return their logits, shape (T, vocabulary), not evaluated yet; the state is."""
        logits: mx.array = self._model(mx.array([list(ids)]), cache=self._cache)[0]
        mx.eval([entry.state for entry in self._cache])
        self._ids.extend(ids)
        return logits

    def answer(self, last: int, sampling: Sampling, *, max_tokens: int) -> Iterator[int]:
        """Yield tokens that follow the state and ``last``; whoever stops iterating must call ``settle``."""
        processors = make_logits_processors(repetition_penalty=_penalty(sampling))
        mx.random.seed(sampling.seed)
        self._ids.append(last)
        steps = generate_step(
            mx.array([last]),
            self._model,
            max_tokens=max_tokens,
            sampler=_sampler(sampling),
            logits_processors=processors or None,
            prompt_cache=self._cache,
        )
        for token, _ in steps:
            self._ids.append(token)
            yield token

    def settle(self) -> None:
        """Make tokens and cache agree again: the runtime computes a step ahead of what it gives out."""
        held = self._cache[0].offset
        self._ids = self._ids[:held]
        self._shorten(len(self._ids), held=held)

    def _shorten(self, length: int, *, held: int | None = None) -> None:
        surplus = (len(self._ids) if held is None else held) - length
        if surplus and can_trim_prompt_cache(self._cache):
            trim_prompt_cache(self._cache, surplus)
            self._ids = self._ids[:length]
        elif surplus:
            self._cache = make_prompt_cache(self._model)
            self._ids = []


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return min(len(one), len(other))


def _sampler(sampling: Sampling) -> object:
    return make_sampler(temp=sampling.temperature, top_p=sampling.top_p, min_p=sampling.min_p, top_k=sampling.top_k)


def _penalty(sampling: Sampling) -> float | None:
    return sampling.repeat_penalty if sampling.repeat_penalty != 1.0 else None
