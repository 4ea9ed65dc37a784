"""Attention over a packed row: every branch looks at the shared block and at itself, and nothing else is computed.

A mask over the whole row would compute every pair of tokens and throw nearly all of them away. Here branches of similar
length stand side by side, padded to one width, so the cost follows the pairs that are seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from app.model.training.backends.packing import Group, Layout

PACKED = "ownmind_packed"
"""The name under which the model library finds this attention."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """Queries, keys and values of a packed row, each of shape (T, heads, head size)."""

    query: Tensor
    key: Tensor
    value: Tensor


def packed_attention(  # noqa: PLR0917 - the library's signature
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    packed: Layout | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """Attend within a layout, or in the ordinary way where there is none.

    Args:
        module: The attention layer.
        query: Shape (1, heads, T, head size), rotated.
        key: Shape (1, key heads, T, head size), rotated; a key head serves ``heads / key heads`` query heads.
        value: As ``key``.
        attention_mask: Only for the ordinary way.
        scaling: Factor of the scores; None takes the customary one.
        packed: Which token sees which.
        others: What the library hands on.

    Returns:
        Shape (1, T, heads, head size), and no weights.
    """
    if packed is None:
        ordinary: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **others
        )
        return ordinary
    heads, size = query.shape[1], query.shape[-1]
    factor = size**-0.5 if scaling is None else scaling
    # The projections lay heads out token by token, so these are views.
    rows = _Rows(query[0].transpose(0, 1), key[0].transpose(0, 1), value[0].transpose(0, 1))
    said = torch.cat([_read_by(rows, group, factor) for group in packed.groups])
    return said.index_select(0, packed.places).view(1, -1, heads, size), None


def _read_by(rows: _Rows, group: Group, factor: float) -> Tensor:
    """Return what the tokens of a group read, padding included, shape (n · w, heads · size)."""
    count, width = group.count, group.width
    kinds, size = rows.key.shape[1:]
    each = rows.query.shape[1] // kinds
    asked = rows.query.flatten(1).index_select(0, group.index).view(count, width, kinds, each, size)
    asked = asked.permute(0, 2, 3, 1, 4).reshape(count, kinds, each * width, size)
    keys, values = _seen(rows.key, group), _seen(rows.value, group)
    scores = (asked @ keys.transpose(2, 3)).view(count, kinds, each, width, -1)
    weights = torch.softmax(scores.float() * factor + group.bias, dim=-1).to(values.dtype)
    read = weights.view(count, kinds, each * width, -1) @ values
    return read.view(count, kinds, each, width, size).permute(0, 3, 1, 2, 4).reshape(count * width, -1)


def _seen(part: Tensor, group: Group) -> Tensor:
    """Return keys or values before the tokens of a group, shape (n, key heads, shared + w, size)."""
    kinds, size = part.shape[1:]
    flat = part.flatten(1)
    own = flat.index_select(0, group.index).view(group.count, group.width, -1)
    block = flat[: group.shared].expand(group.count, -1, -1)
    return torch.cat([block, own], dim=1).view(group.count, -1, kinds, size).transpose(1, 2)


AttentionInterface.register(PACKED, packed_attention)
AttentionMaskInterface.register(PACKED, sdpa_mask)
