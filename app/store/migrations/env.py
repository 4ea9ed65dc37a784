"""Alembic's entry: runs the migrations on the connection it is given, which is always that of a copy."""

from __future__ import annotations

from alembic import context
from sqlmodel import SQLModel

import app.store.tables  # noqa: F401 - registers the tables

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=SQLModel.metadata,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
