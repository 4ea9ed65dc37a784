"""MLX and llama.cpp say the same of the embedded model, with and without an adapter."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

pytest.importorskip("mlx.core")

from app.model.adapters.serving import ServingFiles
from app.model.api import Greedy, Role, Score, Turn
from app.model.runtimes import LLAMA, MLX
from app.store.canonical import digest
from tests.support.real import canonical_adapter, real_base

ASK = (Turn(Role.USER, "What is the capital of France?"),)
ANSWER = "The capital of France is Paris."
LIMIT_NATS = 1e-4


async def asked(runtime, base, folder, data, given=()):
    """Return the scores of base and adapter over the same token ids, and a greedy answer, on this runtime."""
    engine = runtime.engine()
    ref = ServingFiles(folder, base, form=runtime.adapter_form).ref(digest(data), lambda: data)
    try:
        await engine.load(runtime.files(base), context_tokens=512)
        plain, answer = await engine.evaluate([Score(ASK, ANSWER, 64, given), Greedy(ASK, 6)], adapter=None)
        [changed] = await engine.evaluate([Score(ASK, ANSWER, given=given or plain.top_ids)], adapter=ref)
    finally:
        await engine.close()
    return plain, changed, answer


def divergence(one, other):
    """Return the largest KL at any position, over the given tokens and one bucket for the rest, in nats."""
    p, q = (np.exp(np.array(result.top_logprobs, dtype=np.float64)) for result in (one, other))
    p, q = (np.hstack([row, np.clip(1 - row.sum(axis=1, keepdims=True), 1e-9, None)]) for row in (p, q))
    return float((p * np.log(p / q)).sum(axis=1).max())


@pytest.mark.real
def test_two_runtimes_agree_on_base_and_adapter(tmp_path):
    base = real_base()
    data = canonical_adapter(base, seed=3)
    plain, changed, answer = asyncio.run(asked(LLAMA, base, tmp_path, data))
    mlx_plain, mlx_changed, mlx_answer = asyncio.run(asked(MLX, base, tmp_path, data, plain.top_ids))
    assert mlx_answer == answer
    assert plain.tokens == mlx_plain.tokens
    assert divergence(plain, mlx_plain) < LIMIT_NATS
    assert divergence(changed, mlx_changed) < LIMIT_NATS, divergence(changed, mlx_changed)
    assert divergence(plain, changed) > 100 * LIMIT_NATS
