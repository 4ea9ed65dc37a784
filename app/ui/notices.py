"""What the window says in passing: a toast that offers to undo, and a banner for what went wrong.

Signals:
    Toast.acted(): the person took the offer.
    Banner.acted(): the person chose the banner's one action.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPropertyAnimation, Qt, QTimer, Signal
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QFrame, QGraphicsOpacityEffect, QWidget

from app.ui import icons
from app.ui.theme import Theme
from app.ui.widgets import Button, Kind, Label, row

TOAST_MS = 8000
_RAISE_PX = 16


def announce(widget: QWidget, words: str) -> None:
    """Let a screen reader say something."""
    QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(widget, words))


class Toast(QFrame):
    """A few words near the bottom of its parent that go away by themselves, with one offer."""

    acted = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._host = parent
        self.setProperty("box", "toast")
        self._words = Label()
        self.button = Button(theme, "Undo", kind=Kind.SECONDARY)
        self.button.clicked.connect(self.act)
        line = row(self, margins=(theme.px(14), theme.px(7), theme.px(8), theme.px(7)), gap=theme.px(12))
        line.addWidget(self._words)
        line.addWidget(self.button)
        self._timer = QTimer(self, singleShot=True, interval=TOAST_MS)
        self._timer.timeout.connect(self.hide)
        self._above_px = 0
        parent.installEventFilter(self)
        self.hide()

    def say(self, words: str, *, action: str = "") -> None:
        """Show words, with an offer if ``action`` names one. Mere words do not take the place of an offer."""
        if not action and self.isVisible() and self.button.isVisibleTo(self):
            return
        self._words.setText(words)
        self.button.setText(action)
        self.button.setAccessibleName(action)
        self.button.setVisible(bool(action))
        self.show()
        self.raise_()
        self._place()
        self._fade_in()
        self._timer.start()
        announce(self, f"{words} {action}".strip())

    def set_bottom(self, above_px: int) -> None:
        """Stand this far above the bottom of the parent."""
        self._above_px = above_px
        self._place()

    def act(self) -> None:
        """Take the offer, if there is one to take."""
        if self.isVisible() and self.button.isVisibleTo(self):
            self.hide()
            self.acted.emit()

    def event(self, event: QEvent) -> bool:
        """Stay while the pointer is on it."""
        if event.type() is QEvent.Type.Enter:
            self._timer.stop()
        elif event.type() is QEvent.Type.Leave and self.isVisible():
            self._timer.start()
        return super().event(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Move with the parent."""
        if event.type() is QEvent.Type.Resize:
            self._place()
        return super().eventFilter(watched, event)

    def _place(self) -> None:
        self.adjustSize()
        left = (self._host.width() - self.width()) // 2
        self.move(left, self._host.height() - self._above_px - self.height() - self._theme.px(_RAISE_PX))

    def _fade_in(self) -> None:
        duration = self._theme.fade_ms()
        if not duration:
            return
        effect = QGraphicsOpacityEffect(self)
        self.setGraphicsEffect(effect)
        fade = QPropertyAnimation(effect, b"opacity", effect)
        fade.setDuration(duration)
        fade.setStartValue(0.0)
        fade.setEndValue(1.0)
        fade.finished.connect(self._end_fade)
        fade.start()

    def _end_fade(self) -> None:
        self.setGraphicsEffect(None)  # type: ignore[arg-type]  # None removes it


class Banner(QFrame):
    """A line across the top of the conversation that stays until it is closed."""

    acted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setProperty("box", "banner")
        self._icon = Label()
        self.words = Label(wrap=True, selectable=True)
        self.words.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.button = Button(theme)
        self.button.clicked.connect(self._act)
        close = Button(theme, kind=Kind.ICON, icon="close", name="Close this notice")
        close.clicked.connect(self.hide)
        line = row(self, margins=(theme.px(20), theme.px(8), theme.px(12), theme.px(8)), gap=theme.px(10))
        line.addWidget(self._icon)
        line.addWidget(self.words, 1)
        line.addWidget(self.button)
        line.addWidget(close)
        theme.changed.connect(self._restyle)
        self._restyle()
        self.hide()

    def say(self, words: str, *, action: str = "") -> None:
        """Show one plain sentence, and one action if ``action`` names it."""
        self.words.setText(words)
        self.button.setText(action)
        self.button.setAccessibleName(action)
        self.button.setVisible(bool(action))
        self.show()
        announce(self, words)

    def _act(self) -> None:
        self.hide()
        self.acted.emit()

    def _restyle(self) -> None:
        ratio = self.devicePixelRatioF()
        self._icon.setPixmap(icons.pixmap("warning", self._theme.color("bad"), self._theme.px(18), scale=ratio))
