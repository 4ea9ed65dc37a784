"""Token sequences as padded batches for MLX, and what training minimises over them.

The loss is that of the torch trainer (``objective``), so that one recipe means one thing on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mlx.core as mx
from mlx import nn

from app.model.api import Example
from app.model.folder_tokenizer import FolderTokenizer
from app.model.mlx.backends.folder import logprobs
from app.model.prompt import tokenise, tokenise_answer

TOP = 64
_TINY = 1e-9


@dataclass(frozen=True, slots=True)
class Tokens:
    """One tokenised example: ``ids[answer:]`` is the target, end token included."""

    ids: tuple[int, ...]
    answer: int
    plain: bool = False
    """Text without a template."""


@dataclass(frozen=True, slots=True)
class Before:
    """A distribution at each of L positions: its most likely tokens and one bucket for the rest, in log space.

    Shapes: ids (L, k), logprobs (L, k), tail (L, 1).
    """

    ids: mx.array
    logprobs: mx.array
    tail: mx.array


@dataclass(frozen=True, slots=True)
class Batch:
    """Sequences padded on the right, which a causal mask makes harmless."""

    ids: mx.array
    """Shape (B, T)."""
    rows: mx.array
    """Shape (L,): index into the flattened (B·T) positions of the token that predicts each target."""
    targets: mx.array
    """Shape (L,)."""
    lengths: tuple[int, ...]
    """Targets of each sequence; they sum to L."""


def tokens_of(example: Example, tokenizer: FolderTokenizer) -> Tokens:
    """Tokenise an example exactly as the engine does; without turns it is plain text after the begin token."""
    if not example.turns:
        begin = [] if tokenizer.begin is None else [tokenizer.begin]
        return Tokens((*begin, *tokenizer.encode(example.answer, special=False)), 1, plain=True)
    template = tokenizer.template
    prompt = tokenise(template.render(example.turns, add_generation_prompt=True), tokenizer)
    return Tokens((*prompt, *tokenise_answer(template, example.answer, tokenizer)), len(prompt))


def batch_of(sequences: Sequence[Tokens]) -> Batch:
    """Lay sequences out as one batch."""
    width = max(len(sequence.ids) for sequence in sequences)
    ids = [[*sequence.ids, *[0] * (width - len(sequence.ids))] for sequence in sequences]
    rows = [
        number * width + position - 1
        for number, sequence in enumerate(sequences)
        for position in range(sequence.answer, len(sequence.ids))
    ]
    targets = [token for sequence in sequences for token in sequence.ids[sequence.answer :]]
    lengths = tuple(len(sequence.ids) - sequence.answer for sequence in sequences)
    return Batch(mx.array(ids), mx.array(rows), mx.array(targets), lengths)


def answer_logprobs(model: nn.Module, batch: Batch) -> mx.array:
    """Return log-probabilities at the answer positions only, shape (L, vocabulary): the head is the dear part."""
    hidden = model.model(batch.ids)
    chosen = hidden.reshape(-1, hidden.shape[-1])[batch.rows]
    tied = getattr(model.args, "tie_word_embeddings", False)
    return logprobs(model.model.embed_tokens.as_linear(chosen) if tied else model.lm_head(chosen))


def cross_entropy(now: mx.array, batch: Batch) -> mx.array:
    """Return the mean over sequences of the mean over their tokens: long answers do not drown short ones."""
    return mean_loss(now, batch, [True] * len(batch.lengths))


def mean_loss(now: mx.array, batch: Batch, counted: Sequence[bool]) -> mx.array:
    """Return the same over some of the sequences, at least one."""
    losses = -_at(now, batch.targets[:, None])[:, 0]
    share = 1.0 / sum(counted)
    weights = [
        share / length if counts else 0.0
        for length, counts in zip(batch.lengths, counted, strict=True)
        for _ in range(length)
    ]
    return (losses * mx.array(weights)).sum()


def before(now: mx.array) -> Before:
    """Condense log-probabilities of shape (L, vocabulary)."""
    count = min(TOP, now.shape[-1] - 1)
    ids = mx.argpartition(-now, kth=count - 1, axis=-1)[:, :count]
    top = _at(now, ids)
    return Before(ids, top, _tail(top))


def divergence(reference: Before, now: mx.array) -> mx.array:
    """Return KL(before‖now) in nats at each position, shape (L,)."""
    top = _at(now, reference.ids)
    log_p = mx.concatenate([reference.logprobs, reference.tail], axis=-1)
    log_q = mx.concatenate([top, _tail(top)], axis=-1)
    return (mx.exp(log_p) * (log_p - log_q)).sum(axis=-1)


def leads(now: mx.array, batch: Batch) -> mx.array:
    """Return by how many nats each target leads the best other token, shape (L,); negative where it does not lead."""
    targets = batch.targets[:, None]
    others = mx.put_along_axis(now, targets, mx.array(float("-inf")), axis=-1).max(axis=-1)
    return _at(now, targets)[:, 0] - others


def by_sequence(rows: Sequence[float], sequences: Sequence[Tokens]) -> list[list[float]]:
    """Cut values of all answer positions into those of each sequence."""
    parts: list[list[float]] = []
    start = 0
    for sequence in sequences:
        end = start + len(sequence.ids) - sequence.answer
        parts.append(list(rows[start:end]))
        start = end
    return parts


def joined(references: Sequence[Before]) -> Before:
    """Return references one after another."""
    return Before(
        mx.concatenate([reference.ids for reference in references]),
        mx.concatenate([reference.logprobs for reference in references]),
        mx.concatenate([reference.tail for reference in references]),
    )


def split(reference: Before, lengths: Sequence[int]) -> list[Before]:
    """Cut one reference into those of its sequences."""
    parts: list[Before] = []
    start = 0
    for length in lengths:
        end = start + length
        parts.append(Before(reference.ids[start:end], reference.logprobs[start:end], reference.tail[start:end]))
        start = end
    return parts


def _at(now: mx.array, ids: mx.array) -> mx.array:
    return mx.take_along_axis(now, ids, axis=-1)


def _tail(top: mx.array) -> mx.array:
    rest = 1.0 - mx.exp(top).sum(axis=-1, keepdims=True)
    return mx.log(mx.maximum(rest, _TINY))
