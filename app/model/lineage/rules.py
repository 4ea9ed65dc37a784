"""What must hold before a version is made. Pure; the caller's remaining duty is to keep developer mode's lock."""

from __future__ import annotations

import math

from app.errors import BugError, DeniedError, KnownError, VerificationError
from app.model.adapters.canonical import read_adapter
from app.model.api import Commit, Outcome, Passport
from app.model.lineage.records import ACTIONS, FORGET, LEARN, NewCommit
from app.store.canonical import digest


def check_new(new: NewCommit, *, head: Commit, passport: Passport) -> None:
    """Check a version to be made.

    (1) The request makes sense; (2) it continues the version in use; (3) what is learned, a person has approved;
    (4) the delta is a sound change of this base; (5) the verdict is about this very delta and this parent, and it
    is accept. A person's wish to forget needs no acceptance, but a verdict that is given must be about the delta.

    Raises: BugError (1), KnownError (2), DeniedError (3), VerificationError (4, 5).
    """
    if new.action not in ACTIONS or not (math.isfinite(new.scale) and new.scale > 0):  # (1)
        raise BugError("make a version", f"action {new.action}, scale {new.scale}")
    if new.parent != head.id:  # (2)
        hint = f"Version {head.number} came into use meanwhile. Learn it again on top of that one."
        raise KnownError("make a version", "the version in use has changed", hint)
    if new.action == LEARN and not new.decision:  # (3)
        raise DeniedError("make a version", new.title, "Nobody has approved it.")
    if new.delta is None:
        if new.action != FORGET:
            raise BugError("make a version", "no change of the weights was given")
        return
    read_adapter(new.delta, passport, "the trained change")  # (4)
    _check_verdict(new, head)  # (5)


def _check_verdict(new: NewCommit, head: Commit) -> None:
    if new.verdict is None:
        if new.action == FORGET:
            return
        raise VerificationError("make a version", "no verdict", "The checks did not judge this change.")
    if new.verdict.get("adapter_sha256") != digest(new.delta or b""):
        hint = "The checks judged another change than this one; nothing was changed."
        raise VerificationError("make a version", "the verdict", hint)
    if new.action == FORGET:
        return
    if new.verdict.get("outcome") != Outcome.ACCEPT:
        raise VerificationError("make a version", "the verdict", "The checks did not accept this change.")
    if new.verdict.get("parent_sha256") != head.delta:
        hint = "The checks compared it with another version than the one in use."
        raise VerificationError("make a version", "the verdict", hint)
