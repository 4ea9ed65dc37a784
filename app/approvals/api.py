"""Value types of the way from something noticed to something decided."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SignalKind(StrEnum):
    """What the person did to an answer. NOTE: persisted, do not rename."""

    EDIT = "edit"
    CORRECTION = "correction"
    THUMBS_UP = "thumbs_up"
    REGENERATE = "regenerate"
    REGENERATE_KEPT = "regenerate_kept"
    TAUGHT = "taught"
    """Told outside a conversation, by a script or the command line."""


@dataclass(frozen=True, slots=True)
class Signal:
    """Something the person did to one answer, with the exchange it concerns (active branch only)."""

    kind: SignalKind
    chat: str
    message: str
    """The answer that the signal is about."""
    prompt: str
    """The person's message that the answer replied to."""
    answer: str
    """What the model said."""
    correction: str = ""
    """The edited answer, or the person's next message in full."""
    after: str = ""
    """The message that a card would stand below, if that is not the answer itself: the one that corrected it."""


class ProposalState(StrEnum):
    """Where a candidate lesson stands. NOTE: persisted, do not rename."""

    SURFACED = "surfaced"
    APPROVED = "approved"
    DECLINED = "declined"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    QUEUED = "queued"
    TRAINING = "training"
    GATING = "gating"
    COMMITTED = "committed"
    ACTIVE = "active"
    PROVEN = "proven"
    REJECTED = "rejected"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNDONE = "undone"
    """Was proven, then taken back by the person."""


_S = ProposalState
TRANSITIONS: dict[ProposalState, frozenset[ProposalState]] = {
    _S.SURFACED: frozenset({_S.APPROVED, _S.DECLINED, _S.EXPIRED, _S.SUPERSEDED}),
    _S.DECLINED: frozenset({_S.APPROVED, _S.SUPERSEDED}),
    _S.APPROVED: frozenset({_S.QUEUED, _S.CANCELLED, _S.FAILED}),
    _S.QUEUED: frozenset({_S.TRAINING, _S.CANCELLED, _S.FAILED}),
    _S.TRAINING: frozenset({_S.GATING, _S.QUEUED, _S.CANCELLED, _S.FAILED}),
    _S.GATING: frozenset({_S.COMMITTED, _S.QUEUED, _S.REJECTED, _S.CANCELLED, _S.FAILED}),
    _S.COMMITTED: frozenset({_S.ACTIVE, _S.FAILED, _S.REJECTED}),
    _S.ACTIVE: frozenset({_S.PROVEN, _S.REJECTED, _S.FAILED}),
    _S.PROVEN: frozenset({_S.UNDONE}),
    _S.UNDONE: frozenset({_S.PROVEN}),
    _S.EXPIRED: frozenset(),
    _S.SUPERSEDED: frozenset(),
    _S.REJECTED: frozenset({_S.SUPERSEDED}),
    _S.FAILED: frozenset({_S.SUPERSEDED}),
    _S.CANCELLED: frozenset({_S.SUPERSEDED}),
}
"""Every allowed move. QUEUED after TRAINING or GATING is the restart after a crash."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A candidate lesson before it is stored: what would be learned and why it was noticed."""

    prompt: str
    answer: str
    rejected: str
    why: str
    score: float
    changed: tuple[str, ...] = ()
    """The words of the answer that differ from what the model said."""
