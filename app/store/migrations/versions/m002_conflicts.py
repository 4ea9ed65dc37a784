"""Lessons that say something else about the same question: what the person chose, and what replaced what."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "m002"
down_revision = "m001"


def upgrade() -> None:
    """Add the columns; what was there before had no conflicts."""
    with op.batch_alter_table("proposal") as table:
        table.add_column(sa.Column("conflict", sa.String(), nullable=True))
        table.add_column(sa.Column("resolution", sa.String(), nullable=True))
    with op.batch_alter_table("lesson") as table:
        table.add_column(sa.Column("supersedes", sa.String(), nullable=True))
