"""The line above the conversation: its title, the version in use, and how full the model's window is.

Signals:
    Header.sidebar_asked(), Header.panel_asked(): show or hide the columns beside.
"""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame

from app.ui.theme import Theme
from app.ui.widgets import Button, ElidedLabel, Kind, Pill, row

HEIGHT_PX = 46


class Header(QFrame):
    """One line."""

    sidebar_asked = Signal()
    panel_asked = Signal()

    def __init__(self, theme: Theme, model_name: str) -> None:
        super().__init__()
        self._theme = theme
        self._model_name = model_name
        self.setProperty("box", "header")
        self.sidebar = Button(theme, kind=Kind.ICON, icon="sidebar", name="Show or hide the sidebar")
        self.panel = Button(theme, kind=Kind.ICON, icon="panel", name="Show or hide versions")
        self.title = ElidedLabel(role="title")
        self.version = Pill(theme, dot="accent")
        self.context = Pill(theme)
        self._line = row(self)
        self._line.addWidget(self.sidebar)
        self._line.addWidget(self.title, 1)
        self._line.addWidget(self.version)
        self._line.addWidget(self.context)
        self._line.addWidget(self.panel)
        self.sidebar.clicked.connect(self.sidebar_asked)
        self.panel.clicked.connect(self.panel_asked)
        self.context.hide()
        self.show_version(0)
        theme.changed.connect(self._restyle)
        self._restyle()

    def show_version(self, number: int) -> None:
        """Show which version answers now; 0 is the base."""
        which = f"Version {number}" if number else "Base"
        self.version.set_text(f"{which} · {self._model_name}")

    def show_context(self, used: int, limit: int) -> None:
        """Show how many tokens of the model's window the conversation takes; nothing while it is empty."""
        self.context.setVisible(used > 0)
        self.context.set_text(f"{short_count(used)} of {short_count(limit)}")
        self.context.setToolTip("How much of the conversation the model can see at once, in tokens")

    def _restyle(self) -> None:
        px = self._theme.px
        self.setFixedHeight(px(HEIGHT_PX))
        self._line.setContentsMargins(px(10), 0, px(10), 0)
        self._line.setSpacing(px(10))


def short_count(number: int) -> str:
    """Return a count of tokens as people say it: 512, 2.1k, 8k."""
    if number < 1024:
        return str(number)
    return f"{number / 1024:.1f}".removesuffix(".0") + "k"
