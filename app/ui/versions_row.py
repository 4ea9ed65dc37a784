"""One version on the timeline: its mark, its words, and what can be done with it.

Signals:
    VersionRow.use_requested(commit): make this version the one in use.
    VersionRow.ask_requested(commit, prompt): ask it one question.
    VersionRow.chosen(commit): the person opened this row.
    VersionRow.moved(step): the arrow keys ask for another row, -1 is up.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QEnterEvent, QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QWidget

from app.learning.api import VersionView
from app.ui.card_flow import FlowRow
from app.ui.theme import RADIUS_CONTROL, Theme
from app.ui.versions_ask import AskArea
from app.ui.versions_text import Dot, VersionFace
from app.ui.widgets import Button, Kind, Label, column

GUTTER_PX = 24
_DOT_COLORS = {Dot.ACTIVE: "accent", Dot.PAST: "accent", Dot.REJECTED: "bad", Dot.BASE: "muted", Dot.MISSING: "muted"}


class VersionRow(QFrame):
    """A row that opens on a click, on Enter and on Space."""

    use_requested = Signal(str)
    ask_requested = Signal(str, str)
    chosen = Signal(str)
    moved = Signal(int)

    def __init__(self, theme: Theme, version: VersionView, shown: VersionFace) -> None:
        super().__init__()
        self._theme = theme
        self._hovered = False
        self._open = False
        self._edge = (False, False)
        self.version = version
        self.face = shown
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._build()
        self.set_version(version, shown)
        theme.changed.connect(self._restyle)
        self._restyle()

    def set_version(self, version: VersionView, shown: VersionFace) -> None:
        """Show another state of the same version. What was asked and answered stays."""
        self.version = version
        self.face = shown
        self.title.setText(shown.title)
        self.when.setText(shown.when)
        self.when.setVisible(bool(shown.when))
        self.note.setText(shown.note)
        self.note.setVisible(bool(shown.note))
        can = shown.can_use or shown.can_ask
        self.setCursor(Qt.CursorShape.PointingHandCursor if can else Qt.CursorShape.ArrowCursor)
        self.setAccessibleName(", ".join(filter(None, (shown.title, shown.when, shown.note))))
        self._show_actions()
        self.update()

    def set_edge(self, *, first: bool, last: bool) -> None:
        """Say whether the line of the timeline begins or ends here."""
        self._edge = (first, last)
        self.update()

    def set_open(self, opened: bool) -> None:
        """Show or hide what can be done with this version."""
        if opened == self._open:
            return
        self._open = opened
        self._show_actions()
        self.update()

    @property
    def is_open(self) -> bool:
        """Whether the actions are shown."""
        return self._open

    def _build(self) -> None:
        self.title = Label(role="heading", wrap=True)
        self.when = Label(role="small", wrap=True)
        self.note = Label(role="small", wrap=True)
        self.use = Button(self._theme, "Use this version", kind=Kind.META, icon="check")
        self.ask = Button(self._theme, "Ask this version", kind=Kind.META, icon="chat")
        self.area = AskArea(self._theme)
        self.choices = QWidget()
        self._flow = FlowRow(self.choices)
        self._flow.addWidget(self.use)
        self._flow.addWidget(self.ask)
        self._column = column(self)
        for part in (self.title, self.when, self.note, self.choices, self.area):
            self._column.addWidget(part)
        self.area.hide()
        self.use.clicked.connect(self._use)
        self.ask.clicked.connect(self._toggle_area)
        self.area.asked.connect(self._ask)
        self.area.dismissed.connect(self._close_area)

    def _restyle(self) -> None:
        px = self._theme.px
        self._column.setContentsMargins(px(GUTTER_PX + 6), px(6), px(8), px(8))
        self._column.setSpacing(px(2))
        self._flow.setContentsMargins(0, px(4), 0, 0)
        self._flow.setSpacing(px(4))
        self.update()

    def _show_actions(self) -> None:
        self.use.setVisible(self.face.can_use)
        self.ask.setVisible(self.face.can_ask)
        self.choices.setVisible(self._open and (self.face.can_use or self.face.can_ask))
        self.area.setVisible(self._open and self.face.can_ask and self.area.is_wanted)

    def _use(self) -> None:
        self.use_requested.emit(self.version.id)

    def _ask(self, prompt: str) -> None:
        self.ask_requested.emit(self.version.id, prompt)

    def _toggle_area(self) -> None:
        self.area.is_wanted = not self.area.is_wanted
        self._show_actions()
        if self.area.is_wanted:
            self.area.prompt.setFocus(Qt.FocusReason.OtherFocusReason)

    def _close_area(self) -> None:
        self.area.is_wanted = False
        self._show_actions()
        self.ask.setFocus(Qt.FocusReason.OtherFocusReason)

    # --- mouse and keys -----------------------------------------------------------------------------------------

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Open or close the row."""
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.chosen.emit(self.version.id)
        super().mouseReleaseEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Open with Enter or Space, move with the arrows; keys that a field inside left over are not for the row."""
        key = event.key()
        if not self.hasFocus():
            super().keyPressEvent(event)
        elif key in {Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space}:
            self.chosen.emit(self.version.id)
        elif key == Qt.Key.Key_Down:
            self.moved.emit(1)
        elif key == Qt.Key.Key_Up:
            self.moved.emit(-1)
        elif key == Qt.Key.Key_Escape and self._open:
            self.chosen.emit(self.version.id)
        else:
            super().keyPressEvent(event)

    def enterEvent(self, event: QEnterEvent) -> None:
        """Highlight the row under the pointer."""
        super().enterEvent(event)
        self._hovered = True
        self.update()

    def leaveEvent(self, event: QEvent) -> None:
        """End the highlight."""
        super().leaveEvent(event)
        self._hovered = False
        self.update()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show the focus ring."""
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Take the focus ring away."""
        super().focusOutEvent(event)
        self.update()

    # --- painting -----------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the highlight, the line and the mark."""
        del event
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_back(painter)
        self._paint_mark(painter)
        painter.end()

    def _paint_back(self, painter: QPainter) -> None:
        opens = self.face.can_use or self.face.can_ask
        if not (self._open and opens) and not (self._hovered and opens) and not self.hasFocus():
            return
        px = self._theme.px
        area = QRectF(self.rect()).adjusted(px(GUTTER_PX - 2), 1, -1, -1)
        line = QPen(self._theme.color("accent"), 2) if self.hasFocus() else QPen(Qt.PenStyle.NoPen)
        if self._open and opens:
            painter.setBrush(self._theme.color("surface"))
            line = line if self.hasFocus() else QPen(self._theme.color("line"), 1)
        elif self._hovered and opens:
            painter.setBrush(self._theme.color("hover"))
        painter.setPen(line)
        painter.drawRoundedRect(area, px(RADIUS_CONTROL), px(RADIUS_CONTROL))

    def _paint_mark(self, painter: QPainter) -> None:
        px = self._theme.px
        middle = QPointF(px(8), self.title.geometry().top() + self.title.fontMetrics().height() / 2)
        first, last = self._edge
        painter.setPen(QPen(self._theme.color("line"), 2))
        if not (first and last):
            top = middle.y() if first else 0.0
            bottom = middle.y() if last else float(self.height())
            painter.drawLine(QPointF(middle.x(), top), QPointF(middle.x(), bottom))
        color = self._theme.color(_DOT_COLORS[self.face.dot])
        style = Qt.PenStyle.DotLine if self.face.dot is Dot.MISSING else Qt.PenStyle.SolidLine
        painter.setPen(QPen(color, 2, style))
        painter.setBrush(color if self.face.dot is Dot.ACTIVE else self._theme.color("bg"))
        painter.drawEllipse(middle, px(11) / 2, px(11) / 2)
