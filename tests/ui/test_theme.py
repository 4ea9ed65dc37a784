from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import pytest
from PySide6.QtCore import QByteArray
from PySide6.QtGui import QColor
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication

from app.ui import icons
from app.ui.app import make_application
from app.ui.stylesheet import style_sheet
from app.ui.theme import DARK, LIGHT, ZOOM_STEPS, Scheme, Theme, Tokens
from app.ui.widgets import Button, ElidedLabel, Label, plain_tip


@pytest.fixture
def theme() -> Iterator[Theme]:
    theme = Theme(make_application(), scheme=Scheme.LIGHT)
    yield theme
    theme.deleteLater()


def luminance(color: QColor) -> float:
    def linear(value: float) -> float:
        return value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4

    return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) + 0.0722 * linear(color.blueF())


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(QColor(one)), luminance(QColor(other))), reverse=True)
    return (high + 0.05) / (low + 0.05)


READ = [
    *(
        ("text", back)
        for back in ("bg", "side", "surface", "own", "accent_soft", "code", "hover", "bad_soft", "warn_soft")
    ),
    *(("muted", back) for back in ("bg", "side", "surface", "own", "accent_soft", "code", "bad_soft", "warn_soft")),
    *(("accent", back) for back in ("bg", "surface", "code")),
    ("on_accent", "accent"),
    *((tone, back) for tone in ("warn", "bad") for back in ("bg", "surface")),
    ("bg", "text"),
]


@pytest.mark.parametrize("table", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("front", "back"), READ)
def test_words_stand_out_from_what_is_behind_them(table: Tokens, front: str, back: str) -> None:
    assert contrast(getattr(table, front), getattr(table, back)) >= 4.5


def test_both_tables_name_every_token_and_the_sheet_uses_nothing_else() -> None:
    names = {field.name for field in fields(Tokens)}
    for table in (LIGHT, DARK):
        sheet = style_sheet({name: getattr(table, name) for name in names}, round)
        assert "@" not in sheet


def test_zoom_scales_type_but_not_lines() -> None:
    colors = {field.name: getattr(LIGHT, field.name) for field in fields(Tokens)}
    sheet = style_sheet(colors, lambda pixels: round(2 * pixels))
    assert "QWidget { font-size: 28px; }" in sheet
    assert "border: 1px solid" in sheet
    assert "border: 2px solid" in sheet  # the focus ring


def test_a_scheme_is_in_use_at_once_everywhere(theme: Theme) -> None:
    button = Button(theme, "Good", icon="heart")
    heard: list[bool] = []
    theme.changed.connect(lambda: heard.append(theme.dark))
    before = button.icon().pixmap(16).toImage()
    theme.set_scheme(Scheme.DARK)
    assert heard == [True]
    assert QApplication.palette().window().color() == QColor(DARK.bg)
    assert DARK.surface in make_application().styleSheet()
    assert button.icon().pixmap(16).toImage() != before


def test_zoom_moves_along_its_steps_and_stops_at_the_ends(theme: Theme) -> None:
    theme.zoom_by(1)
    assert theme.zoom == ZOOM_STEPS[ZOOM_STEPS.index(1.0) + 1]
    for _ in range(20):
        theme.zoom_by(1)
    assert theme.zoom == ZOOM_STEPS[-1]
    for _ in range(20):
        theme.zoom_by(-1)
    assert theme.zoom == ZOOM_STEPS[0]
    theme.zoom_by(0)
    assert theme.zoom == 1.0


def test_reduced_motion_means_no_fade(theme: Theme) -> None:
    theme.reduced_motion = True
    assert theme.fade_ms() == 0
    theme.reduced_motion = False
    assert 120 <= theme.fade_ms() <= 160


@pytest.mark.parametrize("name", icons.names())
def test_every_icon_is_valid_and_takes_the_colour_it_is_given(name: str) -> None:
    make_application()
    assert QSvgRenderer(QByteArray(icons.svg(name, QColor("#ff0000")))).isValid()
    image = icons.pixmap(name, QColor("#ff0000"), 32).toImage()
    seen = [image.pixelColor(x, y) for x in range(32) for y in range(32)]
    drawn = [color for color in seen if color.alpha() > 200]
    assert drawn
    assert all(color.red() > 150 and color.green() < 60 for color in drawn)


def test_labels_and_tooltips_show_markup_as_text(theme: Theme) -> None:
    label = Label("<b>bold</b><img src=/etc/passwd>")
    assert label.textFormat().name == "PlainText"
    assert plain_tip("<b>&x") == "<qt>&lt;b&gt;&amp;x</qt>"
    assert plain_tip("") == ""


def test_an_elided_label_keeps_the_whole_text_for_those_who_cannot_see_it(theme: Theme) -> None:
    label = ElidedLabel("A very long title that has no room at all")
    label.resize(60, 20)
    label.show()
    assert label.text().endswith("…")
    assert label.accessibleName() == label.whole()
    assert "no room" in label.toolTip()
    label.hide()
