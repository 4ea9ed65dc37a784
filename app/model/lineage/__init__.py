"""The versions of the weights: what each one is, which one is in use, and how it came to be."""

from __future__ import annotations

from app.model.lineage.doctor import Problem, check
from app.model.lineage.lineage import Lineage
from app.model.lineage.records import NewCommit

__all__ = ["Lineage", "NewCommit", "Problem", "check"]
