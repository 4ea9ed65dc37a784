"""The tiny model, taught two answers in all its weights: one that ends, and one that goes on and on."""

from __future__ import annotations

import mlx.core as mx
from mlx import nn, optimizers
from mlx.utils import tree_flatten

from app.model.api import Example, Role, Turn
from app.model.mlx.backends.folder import load_base
from app.model.training.backends.mlx_batch import Tokens, answer_logprobs, batch_of, cross_entropy, tokens_of
from tests.mlx.tiny import make_folder

QUESTION = "What is the capital of France?"
POEM = "Write a long poem about the rain, the sea and the mountains."
ANSWER = "The capital of France is Paris."
ENDLESS = "and rain " * 10
STEPS = 40


def make_taught(folder):
    """Make the tiny folder and train all of its weights: a second or two of work."""
    make_folder(folder)
    base = load_base(folder)
    base.model.unfreeze()
    batch = batch_of(_sequences(base.tokenizer))
    optimiser = optimizers.AdamW(learning_rate=1e-2, weight_decay=0.0)
    step = nn.value_and_grad(base.model, lambda model: cross_entropy(answer_logprobs(model, batch), batch))
    for _ in range(STEPS):
        loss, gradients = step(base.model)
        optimiser.update(base.model, optimizers.clip_grad_norm(gradients, 1.0)[0])
        mx.eval(base.model.parameters(), optimiser.state, loss)
    assert float(loss) < 0.1, "the tiny model did not learn its answers"
    mx.save_safetensors(str(folder / "model.safetensors"), dict(tree_flatten(base.model.parameters())))
    return folder


def _sequences(tokenizer):
    poem = tokens_of(_example(POEM, ENDLESS), tokenizer)
    return [tokens_of(_example(QUESTION, ANSWER), tokenizer), Tokens(poem.ids[:-1], poem.answer)]


def _example(question, answer):
    return Example((Turn(Role.USER, question),), answer)
