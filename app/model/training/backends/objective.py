"""What training minimises: say the lesson, keep everything else as it was.

loss = CE(targets) + replay_weight · CE(replay) + keep_weight · KL(before‖now) over keeps and anchors
     + prose_weight · max(0, CE(plain text) − what it was).

The distribution "before" is kept as the log-probabilities of its most likely tokens plus one bucket for the rest, so
that a reference costs 64 numbers a position and not a vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the library's own customary name

TOP = 64
_TINY = 1e-9


@dataclass(frozen=True, slots=True)
class Before:
    """A distribution at each of L positions: shapes (L, k), (L, k), (L, 1), in log space."""

    ids: Tensor
    logprobs: Tensor
    tail: Tensor


def before(logits: Tensor) -> Before:
    """Condense logits of shape (L, vocabulary)."""
    logprobs = torch.log_softmax(logits, dim=-1)
    top, ids = logprobs.topk(TOP, dim=-1)
    return Before(ids, top, _tail(top))


def kl(reference: Before, logits: Tensor) -> Tensor:
    """Return KL(before‖now) in nats at each position, shape (L,)."""
    now = torch.log_softmax(logits, dim=-1).gather(-1, reference.ids)
    log_p = torch.cat([reference.logprobs, reference.tail], dim=-1)
    log_q = torch.cat([now, _tail(now)], dim=-1)
    return F.kl_div(log_q, log_p, reduction="none", log_target=True).sum(-1)


def margins(logits: Tensor, targets: Tensor) -> Tensor:
    """Return by how many nats each target leads the best other token, shape (L,); negative where it does not lead."""
    chosen = logits.gather(-1, targets[:, None])
    others = logits.scatter(-1, targets[:, None], float("-inf")).amax(-1, keepdim=True)
    return (chosen - others)[:, 0]


def _tail(logprobs: Tensor) -> Tensor:
    rest = 1.0 - logprobs.exp().sum(-1, keepdim=True)
    return rest.clamp_min(_TINY).log()
