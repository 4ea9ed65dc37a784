"""What is being learned right now, at the foot of the lineage panel.

Signals:
    NowSection.stop_requested(card): stop this lesson.
"""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QProgressBar, QWidget

from app.learning.api import CardView
from app.ui.card_text import STOPPABLE, progress_words, shorten
from app.ui.theme import Theme
from app.ui.widgets import Button, ElidedLabel, Kind, Label, column, frame, row


class NowSection(QWidget):
    """Hidden while nothing is being learned."""

    stop_requested = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._card: CardView | None = None
        self.heading = Label("Now", role="heading")
        self.title = ElidedLabel(role="body13")
        self.bar = QProgressBar()
        self.bar.setMaximum(1000)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName("Progress of the lesson")
        self.state = Label(role="small", wrap=True)
        self.stop = Button(theme, "Stop", kind=Kind.LINK)
        self.stop.clicked.connect(self._stop)
        self._build()
        theme.changed.connect(self._restyle)
        self._restyle()
        self.hide()

    def _build(self) -> None:
        box = frame("card")
        self._inside = column(box)
        self._inside.addWidget(self.title)
        self._inside.addWidget(self.bar)
        line = row()
        line.addWidget(self.state, 1)
        line.addWidget(self.stop)
        self._inside.addLayout(line)
        self._column = column(self)
        self._column.addWidget(self.heading)
        self._column.addWidget(box)

    def show_view(self, card: CardView | None) -> None:
        """Show a running lesson, or none."""
        if card == self._card:
            return
        self._card = card
        if card is not None:
            self.title.set_whole(f"Learning “{shorten(card.prompt)}”")
            self.bar.setValue(round(1000 * min(max(card.share, 0.0), 1.0)))
            self.state.setText(progress_words(card))
            self.bar.setAccessibleDescription(self.state.text())
            self.stop.setVisible(card.state in STOPPABLE)
        self.setVisible(card is not None)

    def _stop(self) -> None:
        if self._card is not None:
            self.stop_requested.emit(self._card.id)

    def _restyle(self) -> None:
        px = self._theme.px
        self._inside.setContentsMargins(px(12), px(10), px(12), px(10))
        self._inside.setSpacing(px(6))
        self._column.setContentsMargins(0, px(4), px(8), 0)
        self._column.setSpacing(px(8))
