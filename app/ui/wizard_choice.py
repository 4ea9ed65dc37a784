"""Controls of the dialogs that follow the theme and the zoom where the platform's own do not."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, QRectF, QRegularExpression, QSize, Qt
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QPen, QRegularExpressionValidator
from PySide6.QtWidgets import QDialog, QLineEdit, QRadioButton

from app.ui.theme import Theme
from app.ui.widgets import Button, Label

EDGE_PX, MARK_PX, GAP_PX = 5, 16, 8


class Choice(QRadioButton):
    """One of several, of which one is always chosen. Its whole area can be clicked; Tab leads to the chosen one."""

    def __init__(self, theme: Theme, words: str, *, description: str = "") -> None:
        super().__init__(words)
        self._theme = theme
        self.setAccessibleDescription(description)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        theme.changed.connect(self.updateGeometry)
        self.toggled.connect(self._let_tab)
        self._let_tab()

    def sizeHint(self) -> QSize:
        """Return the room for the mark and the words."""
        metrics = self.fontMetrics()
        px = self._theme.px
        words = metrics.size(Qt.TextFlag.TextSingleLine, self.text())
        width = px(EDGE_PX + MARK_PX + GAP_PX) + words.width() + px(8)
        return QSize(width, max(metrics.height(), px(MARK_PX)) + px(6))

    def minimumSizeHint(self) -> QSize:
        """Return the same: words are never cut."""
        return self.sizeHint()

    def hitButton(self, pos: QPoint) -> bool:
        """Take a click anywhere."""
        return self.rect().contains(pos)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the mark, the words and the focus."""
        del event
        px = self._theme.px
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        right = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
        middle = px(EDGE_PX) + px(MARK_PX) / 2
        self._paint_mark(painter, QPointF(self.width() - middle if right else middle, self.height() / 2))
        lead = px(EDGE_PX + MARK_PX + GAP_PX)
        room = QRectF(self.rect()).adjusted(0 if right else lead, 0, -lead if right else 0, 0)
        leading = Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
        painter.setPen(self._theme.color("text" if self.isEnabled() else "muted"))
        painter.drawText(room, leading | Qt.AlignmentFlag.AlignVCenter, self.text())
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(self._theme.color("accent"), 2))
            ring = QRectF(self.rect()).adjusted(1, 1, -1, -1)
            painter.drawRoundedRect(ring, px(6), px(6))
        painter.end()

    def _let_tab(self) -> None:
        # Qt does this only once a choice of the group has had the focus: too late for the first Tab.
        policy = Qt.FocusPolicy.StrongFocus if self.isChecked() else Qt.FocusPolicy.ClickFocus
        self.setFocusPolicy(policy)

    def _paint_mark(self, painter: QPainter, middle: QPointF) -> None:
        radius = self._theme.px(MARK_PX) / 2 - 1
        color = self._theme.color("accent" if self.isChecked() or self.underMouse() else "muted")
        painter.setPen(QPen(color, 1.4))
        painter.setBrush(self._theme.color("surface"))
        painter.drawEllipse(middle, radius, radius)
        if self.isChecked():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(color)
            painter.drawEllipse(middle, radius * 0.5, radius * 0.5)


class Explanation(Label):
    """The small words below a choice, in line with its text."""

    def __init__(self, theme: Theme, words: str) -> None:
        super().__init__(words, role="small", wrap=True)
        self._theme = theme
        theme.changed.connect(self._restyle)
        self._restyle()

    def _restyle(self) -> None:
        self.setContentsMargins(self._theme.px(EDGE_PX + MARK_PX + GAP_PX), 0, 0, self._theme.px(4))


class Number(QLineEdit):
    """A whole number to type, or to move with the arrow keys. Never out of its range once typing ends."""

    def __init__(self, theme: Theme, *, low: int, high: int, name: str) -> None:
        super().__init__(str(low))
        self._theme = theme
        self._low, self._high = low, high
        # Not QIntValidator: what it calls unfinished ("0", "999") never counts as edited, and would stay on screen.
        self.setValidator(QRegularExpressionValidator(QRegularExpression(rf"\d{{0,{len(str(high))}}}"), self))
        self.setAccessibleName(name)
        self.setAccessibleDescription(f"From {low} to {high}. The arrow keys change it.")
        self.editingFinished.connect(self._settle)
        theme.changed.connect(self._restyle)
        self._restyle()

    def value(self) -> int:
        """Return the number, kept within the range."""
        text = self.text().strip()
        return min(max(int(text) if text.isdecimal() else self._low, self._low), self._high)

    def set_value(self, value: int) -> None:
        """Show a number, kept within the range."""
        self.setText(str(min(max(value, self._low), self._high)))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Step with the arrow keys."""
        steps = {Qt.Key.Key_Up: 1, Qt.Key.Key_Down: -1, Qt.Key.Key_PageUp: 10, Qt.Key.Key_PageDown: -10}
        step = steps.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
        else:
            self.set_value(self.value() + step)

    def _settle(self) -> None:
        self.set_value(self.value())

    def _restyle(self) -> None:
        self.setFixedWidth(self._theme.px(72))


def let_enter_press(dialog: QDialog, default: Button) -> None:
    """Let Enter press the button that has the focus, and ``default`` where none has it."""
    for button in dialog.findChildren(Button):
        button.setAutoDefault(True)
    default.setDefault(True)
