"""What an empty conversation shows: what this is, and a few first questions to try.

Signals:
    EmptyPage.picked(text): a suggestion was chosen.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from app.ui.card_flow import FlowRow
from app.ui.card_prose import Prose
from app.ui.theme import COLUMN_PX, Theme
from app.ui.widgets import Button, Label, column, row

SUGGESTIONS = (
    "What can you help me with?",
    "Write a short poem about rain",
    "What is my dog's name?",
)


class EmptyPage(QWidget):
    """The page."""

    picked = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._inside = QWidget()
        self._title = Label("What shall we talk about?", role="page", wrap=True)
        self._words = Prose(
            "This model runs on your machine and is yours alone. When it gets something wrong, tell it: "
            "it asks whether to learn the right answer, and you decide.",
            role="muted",
        )
        self.suggestions = [Button(theme, text) for text in SUGGESTIONS]
        self._flow = FlowRow()
        for button in self.suggestions:
            button.clicked.connect(self._pick)
            self._flow.addWidget(button)
        self._lines = column(self._inside)
        self._lines.addWidget(self._title)
        self._lines.addWidget(self._words)
        self._lines.addLayout(self._flow)
        middle = row()
        middle.addStretch(1)
        middle.addWidget(self._inside, 1000)
        middle.addStretch(1)
        self._outer = column(self)
        self._outer.addStretch(2)
        self._outer.addLayout(middle)
        self._outer.addStretch(3)
        theme.changed.connect(self._restyle)
        self._restyle()

    def _pick(self) -> None:
        button = self.sender()
        if isinstance(button, Button):
            self.picked.emit(SUGGESTIONS[self.suggestions.index(button)])

    def _restyle(self) -> None:
        px = self._theme.px
        self._inside.setMaximumWidth(px(COLUMN_PX))
        self._lines.setSpacing(px(10))
        self._flow.setSpacing(px(8))
        self._flow.setContentsMargins(0, px(8), 0, 0)
        self._outer.setContentsMargins(px(24), px(24), px(24), px(24))
        self._title.setAlignment(Qt.AlignmentFlag.AlignLeft)
