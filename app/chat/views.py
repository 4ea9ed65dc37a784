"""From rows to what views see. Pure.

A row that no longer makes sense (a damaged state, role or error) becomes a failed message that says so; it never
keeps a conversation from opening.
"""

from __future__ import annotations

import json

from app.chat.api import ChatSummary, MessageState, MessageView
from app.chat.tree import Tree
from app.errors import ErrorInfo, VerificationError
from app.model.api import Role
from app.store.tables import ConversationRow, MessageRow

UNTITLED = "New chat"


def summary(row: ConversationRow) -> ChatSummary:
    """Return a row of the conversation list."""
    return ChatSummary(row.id, row.title or UNTITLED, row.updated)


def message_view(tree: Tree, message: str) -> MessageView:
    """Return one message with its place among its siblings. Raises UserError if it is not in the tree."""
    row = tree.get(message)
    if is_damaged(row):
        return _damaged(row)
    family = tree.siblings(row)
    role = Role(row.role)
    return MessageView(
        id=row.id,
        role=role,
        text=row.text,
        state=MessageState(row.state),
        version=row.version if role is Role.ASSISTANT else None,
        tokens_per_second=row.tokens / row.seconds if row.seconds > 0 else 0.0,
        liked=row.liked,
        edited=row.edited,
        siblings=len(family),
        sibling=family.index(row) + 1,
        error=_error(row),
        sibling_ids=tuple(other.id for other in family),
    )


def unsaved_view(message: str, text: str, error: ErrorInfo) -> MessageView:
    """Return an answer that could not be stored, with the reason."""
    return _alone(message, Role.ASSISTANT, text, error)


def is_damaged(row: MessageRow) -> bool:
    """Whether a row holds what this app never wrote."""
    known = row.role in set(Role) and row.state in set(MessageState)
    return not known or "\x00" in row.text


def _error(row: MessageRow) -> ErrorInfo | None:
    if row.error is None:
        return None
    try:
        return ErrorInfo(**json.loads(row.error))
    except (ValueError, TypeError):
        return _damage(row).info()


def _damage(row: MessageRow) -> VerificationError:
    return VerificationError("read a message", row.id, "It is damaged. The rest of the conversation is not affected.")


def _damaged(row: MessageRow) -> MessageView:
    role = Role(row.role) if row.role in set(Role) else Role.ASSISTANT
    return _alone(row.id, role, "", _damage(row).info())


def _alone(message: str, role: Role, text: str, error: ErrorInfo) -> MessageView:
    return MessageView(
        id=message,
        role=role,
        text=text,
        state=MessageState.FAILED,
        version=None,
        tokens_per_second=0.0,
        liked=False,
        edited=False,
        siblings=1,
        sibling=1,
        error=error,
        sibling_ids=(message,),
    )
