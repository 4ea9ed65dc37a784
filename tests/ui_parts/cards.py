"""Cards and checks in every state, for tests and screenshots."""

from __future__ import annotations

from dataclasses import replace

from app.approvals.api import ProposalState
from app.errors import KnownError, UserError
from app.learning.api import CardView, Conflict
from app.model.api import Check, Outcome

CONFLICT = Conflict("lesson-3", "What is my dog's name?", "Your dog's name is Bello.")

PASSED = (
    Check("efficacy", Outcome.ACCEPT, "Says it when asked in these words", 1.0, 1.0, "of 1"),
    Check("held_out", Outcome.ACCEPT, "Says it when asked, 10 of 10 other wordings", 10.0, 8.0, "of 10"),
    Check("locality", Outcome.ACCEPT, "Leaves similar questions alone (cat, sister, hamster)", 0.0, 1.0, "of 12"),
    Check("earlier", Outcome.ACCEPT, "Still knows the 13 earlier lessons", 0.0, 0.0, "of 13"),
    Check("retention_base", Outcome.ACCEPT, "General ability, change in loss", 0.002, 0.010, "nats"),
    Check("norm", Outcome.ACCEPT, "Size of the change", 0.01312, 0.05, "of the weights"),
)
FAILED_CHECKS = (
    *PASSED[:2],
    Check(
        "locality",
        Outcome.REJECT,
        "Changes the answers to 3 of 12 other questions",
        3.0,
        1.0,
        "of 12",
        ("What is the capital of Austria?", "What is the capital of Peru?", "What is the capital of Chad?"),
    ),
    *PASSED[3:],
)
UNSURE_CHECKS = (
    *PASSED[:1],
    Check("held_out", Outcome.INCONCLUSIVE, "Says it when asked, 7 of 10 other wordings", 7.0, 8.0, "of 10"),
    *PASSED[2:],
)

BASE = CardView(
    id="p1",
    chat="c1",
    after="m4",
    state=ProposalState.SURFACED,
    why="You corrected my last answer.",
    prompt="What is my dog's name?",
    answer="Your dog's name is Biscuit.",
    conflict=None,
)


def card(state: ProposalState, **changes: object) -> CardView:
    """Return the usual card in another state."""
    return replace(BASE, state=state, **changes)  # type: ignore[arg-type]


STATES: dict[str, CardView] = {
    "surfaced": BASE,
    "conflict": card(ProposalState.SURFACED, conflict=CONFLICT),
    "approved": card(ProposalState.APPROVED),
    "queued": card(ProposalState.QUEUED, stage="waiting for the lesson before it"),
    "training": card(ProposalState.TRAINING, stage="learning", share=0.31, seconds_left=14.2),
    "gating": card(ProposalState.GATING, stage="checking", share=0.74, seconds_left=4.0),
    "committed": card(ProposalState.COMMITTED, stage="taking it into use", share=0.95, seconds_left=1.0),
    "active": card(ProposalState.ACTIVE, share=0.98),
    "proven": card(
        ProposalState.PROVEN,
        title="Learned: your dog's name",
        outcome_words="Version 14 is in use. This chat carried on in it.",
        checks=PASSED,
        version=14,
        commit="a" * 64,
        seconds=11.4,
        can_undo=True,
    ),
    "undone": card(ProposalState.UNDONE, title="Learned: your dog's name", version=14, commit="a" * 64),
    "rejected": card(
        ProposalState.REJECTED,
        prompt="What is the capital of Australia?",
        answer="The capital of Australia is Canberra.",
        outcome_words="It would have changed three other capitals.",
        checks=FAILED_CHECKS,
        suggestions=("rephrase", "examples", "retrieval"),
        seconds=18.2,
    ),
    "inconclusive": card(
        ProposalState.REJECTED,
        outcome_words="I could not be sure that I would say it in other words.",
        checks=UNSURE_CHECKS,
        suggestions=("rephrase",),
        seconds=18.2,
    ),
    "failed": card(
        ProposalState.FAILED,
        error=KnownError("train the lesson", "the trainer stopped", "Close other programs to free memory.").info(),
    ),
    "failed for good": card(
        ProposalState.FAILED,
        error=UserError("use this answer", "it is longer than the model can read", "Shorten it.").info(),
    ),
    "cancelled": card(ProposalState.CANCELLED),
    "declined": card(ProposalState.DECLINED),
    "expired": card(ProposalState.EXPIRED),
    "superseded": card(ProposalState.SUPERSEDED),
}
