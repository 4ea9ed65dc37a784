"""Migrations of ``ownmind.db``: append-only, small, one step each. A released one is never edited.

``HEAD`` and ``KNOWN`` repeat what the files say, so that a current database is recognised without importing Alembic.
"""

from __future__ import annotations

from typing import Final

KNOWN: Final = ("m001", "m002")
"""Every schema there has been, oldest first."""

HEAD: Final = KNOWN[-1]
