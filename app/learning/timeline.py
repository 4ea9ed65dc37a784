"""The timeline as views see it: versions newest first, with the lessons that were not learned between them."""

from __future__ import annotations

from datetime import datetime

from app.approvals.api import ProposalState
from app.learning.api import VersionView
from app.learning.cards import verdict_of
from app.learning.parts import Parts
from app.learning.topics import topic_of
from app.model.api import ROOT_ACTION, Commit
from app.store.tables import ProposalRow


def timeline(parts: Parts) -> list[VersionView]:
    """Return every version and every rejected lesson, newest first, the base last."""
    versions = [(datetime.fromisoformat(commit.time), _version(parts, commit)) for commit in parts.lineage.log()]
    rows = parts.proposals.in_states({ProposalState.REJECTED})
    merged: list[VersionView] = []
    waiting = [_rejected(parts, row) for row in reversed(rows)]
    for time, version in versions:  # the log's own order holds, whatever the clock did
        while waiting and (waiting[0].time >= time or version.base):
            merged.append(waiting.pop(0))
        merged.append(version)
    return merged


def _version(parts: Parts, commit: Commit) -> VersionView:
    active = commit.id == parts.lineage.head().id
    base = commit.action == ROOT_ACTION
    available = parts.lineage.available(commit)
    return VersionView(
        id=commit.id,
        number=commit.number,
        title=f"Base · {commit.title}" if base else commit.title,
        time=datetime.fromisoformat(commit.time),
        source=parts.chat.title(commit.conversation) if commit.conversation else "",
        note=_note(parts, commit, active=active, available=available),
        active=active,
        rejected=False,
        base=base,
        available=available,
    )


def _note(parts: Parts, commit: Commit, *, active: bool, available: bool) -> str:
    if not available:
        return "its weights are missing or damaged"
    if commit.action == ROOT_ACTION:
        told = f"F16 · {parts.base.passport.licence}"
    else:
        held = len(parts.lineage.holds(commit))
        told = f"{held} lesson{'' if held == 1 else 's'}" + (" · all checks passed" if commit.verdict else "")
    return f"in use · {told}" if active else told


def _rejected(parts: Parts, row: ProposalRow) -> VersionView:
    verdict = verdict_of(row)
    reason = verdict.reason if verdict and verdict.reason else "taken back by its own checks"
    return VersionView(
        id=row.id,
        number=None,
        title=f"Not learned: {topic_of(row.prompt)}",
        time=row.created,
        source=parts.chat.title(row.conversation) if row.conversation else "",
        note=reason,
        active=False,
        rejected=True,
        base=False,
        available=True,
    )
