"""What an answer's afterlife says about it: builds the signals that approvals judges. Pure.

Only texts of the active branch go into a signal; an answer that was thrown away never does.
"""

from __future__ import annotations

from typing import Protocol

from app.approvals.api import Signal, SignalKind
from app.chat.api import MessageState
from app.chat.tree import Tree
from app.model.api import Role
from app.store.tables import MessageRow


class SignalSink(Protocol):
    """Takes signals. Called on the loop's next turn, never inside a database session."""

    def on_signal(self, signal: Signal) -> None:
        """Take one signal; must not wait."""
        ...


def after_next_message(tree: Tree, message: str) -> list[Signal]:
    """Return what the person's new message says about the answer before it."""
    following = tree.get(message)
    answer = _answer_before(tree, following)
    if answer is None:
        return []
    found = [_signal(SignalKind.CORRECTION, tree, answer, correction=following.text, after=following.id)]
    if was_chosen(tree, answer):
        found.append(_signal(SignalKind.REGENERATE_KEPT, tree, answer, correction=following.text))
    return [signal for signal in found if signal is not None]


def after_edit(tree: Tree, original: str, edited: str) -> list[Signal]:
    """Return what an edit says: what the model had said, and the person's wording."""
    new = tree.get(edited)
    return _some(_signal(SignalKind.EDIT, tree, tree.get(original), correction=new.text, after=new.id))


def after_like(tree: Tree, message: str) -> list[Signal]:
    """Return what a thumbs up says."""
    answer = tree.get(message)
    found = _some(_signal(SignalKind.THUMBS_UP, tree, answer))
    if was_chosen(tree, answer):
        found += _some(_signal(SignalKind.REGENERATE_KEPT, tree, answer))
    return found


def after_regenerate(tree: Tree, message: str) -> list[Signal]:
    """Return what asking again says about the answer that did not do."""
    row = tree.get(message)
    return _some(_signal(SignalKind.REGENERATE, tree, row)) if row.role == Role.ASSISTANT else []


def was_chosen(tree: Tree, answer: MessageRow) -> bool:
    """Whether this answer stands because the person asked again, or went back to it."""
    models_own = [row for row in tree.siblings(answer) if not row.edited and row.text]
    return not answer.edited and len(models_own) > 1


def _answer_before(tree: Tree, message: MessageRow) -> MessageRow | None:
    branch = tree.path(message.id)
    if len(branch) < 2 or branch[-2].role != Role.ASSISTANT:  # noqa: PLR2004 - an answer and the message after it
        return None
    return branch[-2]


def _signal(
    kind: SignalKind, tree: Tree, answer: MessageRow, *, correction: str = "", after: str = ""
) -> Signal | None:
    prompt = tree.prompt_of(answer)
    if prompt is None or not answer.text.strip() or answer.state not in {MessageState.COMPLETE, MessageState.STOPPED}:
        return None
    return Signal(kind, answer.conversation, answer.id, prompt.text, answer.text, correction, after)


def _some(signal: Signal | None) -> list[Signal]:
    return [signal] if signal is not None else []
