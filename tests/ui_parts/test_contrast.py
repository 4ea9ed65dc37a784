from __future__ import annotations

import pytest
from PySide6.QtGui import QColor

from app.ui.theme import DARK, LIGHT, Tokens

PAIRS = [
    ("text", "surface"),
    ("muted", "surface"),
    ("text", "accent_soft"),
    ("muted", "accent_soft"),
    ("text", "warn_soft"),
    ("muted", "warn_soft"),
    ("accent", "surface"),
    ("warn", "surface"),
    ("bad", "surface"),
    ("bad", "bg"),
    ("warn", "bg"),
    ("on_accent", "accent"),
    ("muted", "bg"),
]


def luminance(color: str) -> float:
    def linear(channel: float) -> float:
        return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4

    it = QColor(color)
    return 0.2126 * linear(it.redF()) + 0.7152 * linear(it.greenF()) + 0.0722 * linear(it.blueF())


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("tokens", [LIGHT, DARK], ids=["light", "dark"])
def test_words_on_cards_and_dialogs_stand_out_from_what_is_behind_them(tokens: Tokens, pair: tuple[str, str]) -> None:
    light, dark = sorted((luminance(getattr(tokens, name)) for name in pair), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5
