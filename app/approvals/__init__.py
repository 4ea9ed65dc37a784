"""Signals, proposals, decisions. Knows no model and no network."""
