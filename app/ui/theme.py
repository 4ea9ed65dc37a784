"""One table of design tokens, and everything that is derived from it: palette, fonts, sizes, the style sheet.

``Theme`` is the only thing that knows whether the window is light or dark and how far it is zoomed. Widgets ask it for
colours and sizes and listen to ``changed``; nothing else in the interface names a colour.

Signals:
    Theme.changing: everything on screen is about to be restyled; what is out of sight had better go first.
    Theme.changed: colours, zoom or motion are different now; the application already has the new palette and sheet.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QPalette
from PySide6.QtWidgets import QApplication

from app.ui.motion import motion_is_reduced
from app.ui.stylesheet import style_sheet


@dataclass(frozen=True, slots=True)
class Tokens:
    """Colours by what they are for."""

    bg: str
    side: str
    surface: str
    line: str
    text: str
    muted: str
    accent: str
    on_accent: str
    accent_soft: str
    own: str
    warn: str
    warn_soft: str
    bad: str
    bad_soft: str
    code: str
    hover: str


LIGHT = Tokens(
    bg="#fbfaf8",
    side="#f3f1ec",
    surface="#ffffff",
    line="#e5e1d8",
    text="#24221e",
    muted="#6f6a60",
    accent="#2f6f5e",
    on_accent="#ffffff",
    accent_soft="#e3f0eb",
    own="#eef1f6",
    warn="#9a6a12",
    warn_soft="#fbf1dc",
    bad="#a33a2c",
    bad_soft="#f9e9e6",
    code="#f6f4ef",
    hover="#edeae3",
)
DARK = Tokens(
    bg="#1b1a18",
    side="#151412",
    surface="#242320",
    line="#35332e",
    text="#ece9e2",
    muted="#a29c90",
    accent="#7cc4ac",
    on_accent="#12211c",
    accent_soft="#22352e",
    own="#2a2d33",
    warn="#e0b563",
    warn_soft="#3a3222",
    bad="#e08a7d",
    bad_soft="#3a2623",
    code="#1f1e1b",
    hover="#2c2a26",
)


class Scheme(StrEnum):
    """Which of the two tables is in use. NOTE: persisted, do not rename."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


RADIUS_CONTROL, RADIUS_CARD, RADIUS_MESSAGE = 8, 10, 14
SIDEBAR_PX, PANEL_PX, COLUMN_PX = 248, 312, 696
FADE_MS = 140
TEXT_PX, SMALL_PX = 14, 12
LINE_HEIGHT = 1.55
ZOOM_STEPS = (0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0)


class Theme(QObject):
    """The look in use. Setting anything restyles the whole application at once."""

    changing = Signal()
    changed = Signal()

    def __init__(self, app: QApplication, *, scheme: Scheme = Scheme.SYSTEM, zoom: float = 1.0) -> None:
        super().__init__(app)
        self._app = app
        self._scheme = scheme
        self._zoom = zoom
        self.tokens = LIGHT
        self.reduced_motion = motion_is_reduced()
        app.setStyle("Fusion")
        app.styleHints().colorSchemeChanged.connect(self._system_changed)
        self._apply()

    @property
    def scheme(self) -> Scheme:
        """What the person chose, not what it resolves to."""
        return self._scheme

    @property
    def dark(self) -> bool:
        """Whether the dark table is in use now."""
        return self.tokens is DARK

    @property
    def zoom(self) -> float:
        """The factor on all type and spacing; 1.0 is 14 px text."""
        return self._zoom

    def set_scheme(self, scheme: Scheme) -> None:
        """Choose light, dark, or whatever the system says."""
        self._scheme = scheme
        hints = self._app.styleHints()
        if scheme is Scheme.SYSTEM:
            hints.unsetColorScheme()
        else:
            hints.setColorScheme(Qt.ColorScheme.Dark if scheme is Scheme.DARK else Qt.ColorScheme.Light)
        self._apply()

    def set_zoom(self, zoom: float) -> None:
        """Set the zoom factor, kept within the smallest and largest step."""
        self._zoom = min(max(zoom, ZOOM_STEPS[0]), ZOOM_STEPS[-1])
        self._apply()

    def zoom_by(self, steps: int) -> None:
        """Move along the zoom steps; 0 goes back to 100 %."""
        if not steps:
            self.set_zoom(1.0)
            return
        nearest = min(range(len(ZOOM_STEPS)), key=lambda i: abs(ZOOM_STEPS[i] - self._zoom))
        self.set_zoom(ZOOM_STEPS[min(max(nearest + steps, 0), len(ZOOM_STEPS) - 1)])

    def px(self, pixels: float) -> int:
        """Return a length of the 100 % design at the present zoom, in logical pixels."""
        return round(pixels * self._zoom)

    def color(self, name: str) -> QColor:
        """Return one token as a colour."""
        return QColor(str(getattr(self.tokens, name)))

    def font(self, pixels: float = TEXT_PX, *, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
        """Return the interface font at a size of the 100 % design."""
        font = QFont(self._app.font())
        font.setPixelSize(max(self.px(pixels), 1))
        font.setWeight(weight)
        return font

    def mono(self, pixels: float = 13) -> QFont:
        """Return the system's monospace font."""
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        font.setPixelSize(max(self.px(pixels), 1))
        return font

    def fade_ms(self) -> int:
        """Return how long a fade lasts: 0 when the system asks for reduced motion."""
        return 0 if self.reduced_motion else FADE_MS

    def _system_changed(self) -> None:
        if self._scheme is Scheme.SYSTEM:
            self._apply()

    def _is_dark(self) -> bool:
        if self._scheme is Scheme.SYSTEM:
            return self._app.styleHints().colorScheme() is Qt.ColorScheme.Dark
        return self._scheme is Scheme.DARK

    def _apply(self) -> None:
        self.changing.emit()
        self.tokens = DARK if self._is_dark() else LIGHT
        font = QFont(self._app.font())
        font.setPixelSize(self.px(TEXT_PX))
        self._app.setFont(font)
        self._app.setPalette(palette(self.tokens))
        colors = {field.name: str(getattr(self.tokens, field.name)) for field in fields(Tokens)}
        self._app.setStyleSheet(style_sheet(colors, self.px))
        self.changed.emit()


def palette(tokens: Tokens) -> QPalette:
    """Return the palette that Fusion draws with where no rule of the style sheet applies."""
    role = QPalette.ColorRole
    colors = {
        role.Window: tokens.bg,
        role.Base: tokens.surface,
        role.AlternateBase: tokens.side,
        role.Button: tokens.surface,
        role.ToolTipBase: tokens.surface,
        role.WindowText: tokens.text,
        role.Text: tokens.text,
        role.ButtonText: tokens.text,
        role.ToolTipText: tokens.text,
        role.BrightText: tokens.bad,
        role.Highlight: tokens.accent,
        role.HighlightedText: tokens.on_accent,
        role.Link: tokens.accent,
        role.LinkVisited: tokens.accent,
        role.PlaceholderText: tokens.muted,
        role.Accent: tokens.accent,
        role.Light: tokens.surface,
        role.Midlight: tokens.surface,
        role.Mid: tokens.line,
        role.Dark: tokens.line,
        role.Shadow: tokens.line,
    }
    result = QPalette()
    for name, color in colors.items():
        result.setColor(name, QColor(color))
    for name in (role.WindowText, role.Text, role.ButtonText):
        result.setColor(QPalette.ColorGroup.Disabled, name, QColor(tokens.muted))
    return result
