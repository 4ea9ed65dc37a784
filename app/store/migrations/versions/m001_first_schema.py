"""The first schema: conversations, messages, signals, proposals, lessons, settings, spending."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "m001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    _create_conversations()
    _create_learning()
    op.create_table(
        "setting",
        sa.Column("name", sa.String(), primary_key=True, nullable=False),
        sa.Column("value", sa.String(), nullable=False),
    )
    op.create_table(
        "spending",
        sa.Column("id", sa.Integer(), primary_key=True, nullable=False),
        sa.Column("day", sa.String(), nullable=False),
        sa.Column("what", sa.String(), nullable=False),
    )


def _create_conversations() -> None:
    op.create_table(
        "conversation",
        sa.Column("id", sa.String(), primary_key=True, nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("titled_by_person", sa.Boolean(), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.Column("updated", sa.DateTime(), nullable=False),
        sa.Column("deleted", sa.DateTime(), nullable=True),
        sa.Column("leaf", sa.String(), nullable=True),
        sa.Column("draft", sa.String(), nullable=False),
    )
    op.create_index("ix_conversation_updated", "conversation", ["updated"])
    op.create_table(
        "message",
        sa.Column("id", sa.String(), primary_key=True, nullable=False),
        sa.Column("conversation", sa.String(), sa.ForeignKey("conversation.id"), nullable=False),
        sa.Column("parent", sa.String(), nullable=True),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.Column("commit", sa.String(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=True),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("liked", sa.Boolean(), nullable=False),
        sa.Column("edited", sa.Boolean(), nullable=False),
        sa.Column("error", sa.String(), nullable=True),
    )
    op.create_index("ix_message_conversation", "message", ["conversation"])
    op.create_index("ix_message_parent", "message", ["parent"])


def _create_learning() -> None:
    op.create_table(
        "signal",
        sa.Column("id", sa.String(), primary_key=True, nullable=False),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column("conversation", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
    )
    op.create_index("ix_signal_message", "signal", ["message"])
    op.create_table(
        "proposal",
        sa.Column("id", sa.String(), primary_key=True, nullable=False),
        sa.Column("conversation", sa.String(), nullable=False),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("created", sa.DateTime(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("prompt", sa.String(), nullable=False),
        sa.Column("answer", sa.String(), nullable=False),
        sa.Column("rejected", sa.String(), nullable=False),
        sa.Column("why", sa.String(), nullable=False),
        sa.Column("score", sa.Float(), nullable=False),
        sa.Column("commit", sa.String(), nullable=True),
        sa.Column("evidence", sa.String(), nullable=True),
        sa.Column("stages", sa.String(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
    )
    for column in ("conversation", "message", "state"):
        op.create_index(f"ix_proposal_{column}", "proposal", [column])
    op.create_table(
        "lesson",
        sa.Column("id", sa.String(), primary_key=True, nullable=False),
        sa.Column("proposal", sa.String(), nullable=False),
        sa.Column("conversation", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("prompt", sa.String(), nullable=False),
        sa.Column("answer", sa.String(), nullable=False),
        sa.Column("rejected", sa.String(), nullable=False),
        sa.Column("keys", sa.String(), nullable=False),
        sa.Column("learned", sa.DateTime(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("commit", sa.String(), nullable=True),
        sa.Column("recipe_data", sa.String(), nullable=True),
    )
