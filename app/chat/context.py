"""What the model sees of a conversation: the system prompt and as much of the active branch as fits.

Whole exchanges are dropped, oldest first; the system prompt and the person's last message always stay. Knows no
database.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from app.chat.api import MessageState
from app.chat.views import is_damaged
from app.errors import UserError
from app.model.api import Role, Sampling, Turn
from app.store.tables import MessageRow

Count = Callable[[Sequence[Turn]], Awaitable[int]]
"""Returns the tokens of some turns, template included."""

_BYTES_PER_TOKEN = 4
_TOKENS_PER_TURN = 16
_TOKENS_OF_TEMPLATE = 64
"""More than any template adds: the marks of a turn, and a default system text."""


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """How to answer."""

    system_prompt: str = ""
    """Empty leaves it to the template."""
    sampling: Sampling = field(default_factory=Sampling)


@dataclass(frozen=True, slots=True)
class Context:
    """What goes to the model."""

    turns: tuple[Turn, ...]
    dropped: int
    """Exchanges left out at the beginning."""
    whole_tokens: int = 0
    """What nothing left out would take, if that had to be counted."""


def turns_of(branch: Sequence[MessageRow]) -> tuple[Turn, ...]:
    """Return the messages of a branch as turns; answers that failed without a word are left out."""
    return tuple(
        Turn(Role(row.role), row.text)
        for row in branch
        if not is_damaged(row) and (row.text or row.state == MessageState.COMPLETE) and row.text.strip()
    )


def with_system(system_prompt: str, turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Put the system prompt before the turns, if there is one."""
    head = (Turn(Role.SYSTEM, system_prompt),) if system_prompt.strip() else ()
    return (*head, *turns)


def room(limit_tokens: int, sampling: Sampling) -> int:
    """Return how many tokens the context may take: the window less what the answer needs, at most a quarter of it."""
    return limit_tokens - min(sampling.max_tokens, limit_tokens // 4)


def at_most(turns: Sequence[Turn]) -> int:
    """Return a number of tokens that these turns cannot exceed: no token is shorter than a byte."""
    return sum(len(turn.text.encode()) + _TOKENS_PER_TURN for turn in turns) + _TOKENS_OF_TEMPLATE


def about(turns: Sequence[Turn]) -> int:
    """Return roughly how many tokens these turns take, without asking the model."""
    return sum(len(turn.text.encode()) // _BYTES_PER_TOKEN + 1 + _TOKENS_PER_TURN // 2 for turn in turns)


async def fit(system_prompt: str, turns: Sequence[Turn], *, room_tokens: int, count: Count) -> Context:
    """Return the context for the next answer.

    Raises: UserError if the last message alone does not fit; what ``count`` raises.
    """
    whole = with_system(system_prompt, turns)
    if at_most(whole) <= room_tokens or (needed := await count(whole)) <= room_tokens:
        return Context(whole, 0)
    starts = [i for i, turn in enumerate(turns) if turn.role is Role.USER] or [0]
    low, high = 1, len(starts)
    while low < high:
        middle = (low + high) // 2
        fits = await count(with_system(system_prompt, turns[starts[middle] :])) <= room_tokens
        low, high = (low, middle) if fits else (middle + 1, high)
    if low == len(starts):
        raise too_long()
    return Context(with_system(system_prompt, turns[starts[low] :]), low, needed)


def too_long() -> UserError:
    """Return the error for a message that no window holds."""
    hint = "It is longer than the model can read at once. Shorten it, or send it in parts."
    return UserError("send the message", "", hint)
