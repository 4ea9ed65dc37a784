"""What a conversation shows, as a list of entries: messages of the active branch, and cards below them. Pure.

A card whose message is not on the active branch is not shown: it belongs to another branch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from app.chat.api import MessageState, MessageView
from app.learning.api import CardView
from app.model.api import Role
from app.ui.scroller import Entry

CHARS_A_LINE, LINE_PX, REST_PX = 95, 22, 40
CARD_PX = 200


@dataclass(slots=True)
class Live:
    """An answer that is streaming."""

    chat: str
    answer: str
    text: str = ""

    def as_message(self) -> MessageView:
        """Return it as a message, as far as it has come."""
        return MessageView(
            id=self.answer,
            role=Role.ASSISTANT,
            text=self.text,
            state=MessageState.STREAMING,
            version=None,
            tokens_per_second=0.0,
            liked=False,
            edited=False,
            siblings=1,
            sibling=1,
        )


def message_key(message: str) -> str:
    """Return the key of a message's entry."""
    return f"m:{message}"


def card_key(card: str) -> str:
    """Return the key of a card's entry."""
    return f"c:{card}"


def with_live(messages: Sequence[MessageView], live: Live | None) -> list[MessageView]:
    """Return the messages with the streaming answer as it is now.

    A message that the store calls streaming although nothing streams was cut off by an end of the app: it has stopped.
    """
    result = []
    for view in messages:
        if live is not None and view.id == live.answer:
            continue
        is_left_over = view.state is MessageState.STREAMING
        result.append(replace(view, state=MessageState.STOPPED) if is_left_over else view)
    return [*result, live.as_message()] if live is not None else result


def entries(messages: Iterable[MessageView], cards: Iterable[CardView]) -> list[Entry]:
    """Return the entries, top to bottom."""
    below: defaultdict[str, list[CardView]] = defaultdict(list)
    for card in cards:
        below[card.after].append(card)
    result = []
    for view in messages:
        if view.role is Role.SYSTEM:
            continue
        result.append(message_entry(view))
        result += [Entry(card_key(card.id), card, CARD_PX) for card in below[view.id]]
    return result


def message_entry(view: MessageView) -> Entry:
    """Return the entry of one message, with a guess of its height."""
    lines = sum(1 + len(line) // CHARS_A_LINE for line in view.text[:20_000].split("\n"))
    if view.role is Role.USER:
        lines = min(lines, 10)
    return Entry(message_key(view.id), view, REST_PX + LINE_PX * lines)
