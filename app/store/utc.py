"""Datetimes in SQLite: it knows no time zones, so everything is stored in UTC and comes back aware."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime
from sqlalchemy.dialects.sqlite import DATETIME
from sqlalchemy.engine import Dialect, Engine


class UtcDateTime(DATETIME):
    """SQLite's datetime text, read and written as UTC."""

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any]:
        """Return what turns a datetime into text. A naive one is taken to be UTC already."""
        to_text = super().bind_processor(dialect)

        def process(value: datetime | None) -> Any:
            if value is not None and value.tzinfo is not None:
                value = value.astimezone(UTC).replace(tzinfo=None)
            return to_text(value) if to_text else value

        return process

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        """Return what turns text into an aware datetime."""
        from_text = super().result_processor(dialect, coltype)

        def process(value: Any) -> datetime | None:
            found = from_text(value) if from_text else value
            return found.replace(tzinfo=UTC) if isinstance(found, datetime) else None

        return process


def store_in_utc(engine: Engine) -> None:
    """Make every datetime column of this engine one in UTC."""
    engine.dialect.colspecs = {**engine.dialect.colspecs, DateTime: UtcDateTime}
