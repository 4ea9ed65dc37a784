"""Which lessons a version holds: what the lineage says, less what later lessons replaced."""

from __future__ import annotations

from app.approvals.ledger import Ledger
from app.model.api import Commit
from app.model.lineage.lineage import Lineage
from app.store.tables import LessonRow


def lessons_at(lineage: Lineage, ledger: Ledger, commit: Commit) -> list[LessonRow]:
    """Return the lessons in effect at a version, oldest first."""
    rows = ledger.active(lineage.holds(commit))
    replaced = {row.supersedes for row in rows}
    return [row for row in rows if row.id not in replaced]
