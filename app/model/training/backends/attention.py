"""Attention over a packed row: every branch looks at the shared block and at itself, and nothing else is computed.

A mask over the whole row would compute every pair of tokens and throw nearly all of them away. Here branches of similar
length stand side by side, padded to one width, so the cost follows the pairs that are seen.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from app.model.training.backends.packing import Group, Layout

PACKED = "ownmind_packed"
"""The name under which the model library finds this attention."""


def packed_attention(
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
    rows = [_by_token(part) for part in (query, key, value)]
    said = torch.cat([_of_group(*rows, group, packed.shared, factor) for group in packed.groups])
    return said.index_select(0, packed.places).view(1, -1, heads, size), None


def _by_token(part: Tensor) -> Tensor:
    """(1, heads, T, size) to (T, heads, size); a view, as the projections lay it out."""
    return part[0].transpose(0, 1)


def _of_group(query: Tensor, key: Tensor, value: Tensor, group: Group, shared: int, factor: float) -> Tensor:
    """Return what the tokens of a group read, padding included, shape (n · w, heads · size)."""
    count, width = group.count, group.width
    kinds, size = key.shape[1:]
    each = query.shape[1] // kinds
    asked = query.flatten(1).index_select(0, group.index).view(count, width, kinds, each, size)
    asked = asked.permute(0, 2, 3, 1, 4).reshape(count, kinds, each * width, size)
    keys, values = (_seen(part, group, shared) for part in (key, value))
    scores = (asked @ keys.transpose(2, 3)).view(count, kinds, each, width, shared + width)
    weights = torch.softmax(scores.float() * factor + group.bias, dim=-1).to(query.dtype)
    read = weights.view(count, kinds, each * width, shared + width) @ values
    return read.view(count, kinds, each, width, size).permute(0, 3, 1, 2, 4).reshape(count * width, -1)


def _seen(part: Tensor, group: Group, shared: int) -> Tensor:
    """Return keys or values before the tokens of a group, shape (n, key heads, shared + w, size)."""
    kinds, size = part.shape[1:]
    flat = part.flatten(1)
    own = flat.index_select(0, group.index).view(group.count, group.width, -1)
    both = torch.cat([flat[:shared].expand(group.count, -1, -1), own], dim=1)
    return both.view(group.count, shared + group.width, kinds, size).transpose(1, 2)


AttentionInterface.register(PACKED, packed_attention)
AttentionMaskInterface.register(PACKED, sdpa_mask)
