"""How the next token is chosen: greedily by the largest logit, else by llama.cpp's own samplers."""

from __future__ import annotations

from collections.abc import Callable

from app.model.api import Sampling
from app.model.engine.backends.llama_native import Context, Model, lib

_REPEAT_WINDOW_TOKENS = 64

Choose = Callable[[], int]


def greedy(context: Context) -> int:
    """Return the token with the largest logit, the lowest id among equals: one rule for chat, gate and self-test."""
    return int(context.last_logits().argmax())


class Sampler:
    """Chooses tokens from a context's last logits. Close it after the answer."""

    def __init__(self, model: Model, context: Context, sampling: Sampling) -> None:
        self._context = context
        self._chain = None if sampling.temperature <= 0 else _chain(model, sampling)

    def choose(self) -> int:
        """Return the next token."""
        if self._chain is None:
            return greedy(self._context)
        return int(lib.llama_sampler_sample(self._chain, self._context.pointer, -1))

    def close(self) -> None:
        """Free it."""
        if self._chain is not None:
            lib.llama_sampler_free(self._chain)
            self._chain = None


def _chain(model: Model, sampling: Sampling) -> int:
    chain: int = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
    penalties = (model.vocabulary, _REPEAT_WINDOW_TOKENS, sampling.repeat_penalty, 0.0, 0.0)
    for link in (
        lib.llama_sampler_init_penalties(*penalties),
        lib.llama_sampler_init_top_k(sampling.top_k),
        lib.llama_sampler_init_top_p(sampling.top_p, 1),
        lib.llama_sampler_init_min_p(sampling.min_p, 1),
        lib.llama_sampler_init_temp(sampling.temperature),
        lib.llama_sampler_init_dist(sampling.seed & 0xFFFFFFFF),
    ):
        lib.llama_sampler_chain_add(chain, link)
    return chain
