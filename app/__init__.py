"""Ownmind: talk with a language model that is yours, and teach it."""

from __future__ import annotations

__version__ = "0.1.0"
