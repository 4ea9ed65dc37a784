"""The few controls that every view is built from. All text that they show is plain text, whatever it looks like.

Signals:
    Button.clicked: as in QPushButton.
"""

from __future__ import annotations

import html
from enum import StrEnum

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.ui import icons
from app.ui.theme import Theme


class Kind(StrEnum):
    """How much a button asks for attention. At most one primary button in a view."""

    PRIMARY = "primary"
    SECONDARY = "secondary"
    TEXT = "text"
    LINK = "link"
    """12 px, inside a line of words."""
    META = "meta"
    """Below an answer: small, with an icon."""
    ICON = "icon"
    """An icon alone; it needs a name."""
    ROW = "row"
    """A row of the sidebar."""
    NEW = "new"
    FOOT = "foot"
    """Two small lines at the foot of the sidebar."""


_ICON_COLOR = {Kind.PRIMARY: "on_accent", Kind.SECONDARY: "text", Kind.ROW: "text", Kind.NEW: "text"}


def plain_tip(text: str) -> str:
    """Return text for a tooltip so that none of it is read as markup."""
    return f"<qt>{html.escape(text).replace(chr(10), '<br>')}</qt>" if text else ""


class Button(QPushButton):
    """A push button whose icon follows its text colour in every theme.

    Args:
        icon: Name in ``app.ui.icons``, or "".
        name: Accessible name; the text if empty. Icon buttons must have one; it is their tooltip, too.
    """

    def __init__(
        self, theme: Theme, text: str = "", *, kind: Kind = Kind.SECONDARY, icon: str = "", name: str = ""
    ) -> None:
        super().__init__(text.replace("&", "&&"))
        self._theme = theme
        self._kind = kind
        self._icon = icon
        self.setProperty("kind", kind.value)
        self.setAccessibleName(name or text)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAutoDefault(False)
        if kind is Kind.ICON:
            self.setToolTip(plain_tip(name))
        theme.changed.connect(self._restyle)
        self.toggled.connect(self._restyle)
        self._restyle()

    def set_icon(self, name: str) -> None:
        """Show another icon; "" shows none."""
        self._icon = name
        self._restyle()

    def changeEvent(self, event: QEvent) -> None:
        """Redraw the icon when it becomes enabled or disabled."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.EnabledChange:
            self._restyle()

    def _restyle(self) -> None:
        if not self._icon:
            return
        color = _ICON_COLOR.get(self._kind, "muted") if self.isEnabled() else "muted"
        if self._kind is Kind.META and self.isChecked():
            color = "accent"
        size = self._theme.px(14 if self._kind is Kind.META else icons.ICON_PX)
        self.setIconSize(QSize(size, size))
        self.setIcon(icons.icon(self._icon, self._theme.color(color), size))


class Label(QLabel):
    """A label that shows text as it is.

    Args:
        role: A look of the style sheet: "", "muted", "small", "title", "heading", "page", "good", "warn", "bad".
        wrap: Whether long text goes over several lines.
    """

    def __init__(self, text: str = "", *, role: str = "", wrap: bool = False, selectable: bool = False) -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(wrap)
        self.setProperty("role", role)
        self.setText(text)
        if wrap:
            policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
            policy.setHeightForWidth(True)
            self.setSizePolicy(policy)
        if selectable:
            self.setTextInteractionFlags(
                Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
            )

    def set_role(self, role: str) -> None:
        """Change the look."""
        set_look(self, "role", role)


class ElidedLabel(Label):
    """One line that ends in an ellipsis where it has no room; the whole text is its tooltip."""

    def __init__(self, text: str = "", *, role: str = "") -> None:
        self._whole = text
        super().__init__(text, role=role)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def set_whole(self, text: str) -> None:
        """Show another text."""
        self._whole = text
        self._elide()

    def whole(self) -> str:
        """Return the text without ellipsis."""
        return self._whole

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Elide for the new width."""
        super().resizeEvent(event)
        self._elide()

    def changeEvent(self, event: QEvent) -> None:
        """Elide again when the font changes."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange:
            self._elide()

    def _elide(self) -> None:
        line = " ".join(self._whole.split())
        shown = self.fontMetrics().elidedText(line, Qt.TextElideMode.ElideRight, self.contentsRect().width())
        self.setText(shown)
        self.setAccessibleName(line)
        self.setToolTip(plain_tip(line) if shown != line else "")


class Dot(QWidget):
    """A small filled circle in one token's colour."""

    def __init__(self, theme: Theme, color: str = "accent") -> None:
        super().__init__()
        self._theme = theme
        self._color = color
        theme.changed.connect(self._resize)
        self._resize()

    def _resize(self) -> None:
        self.setFixedSize(self._theme.px(7), self._theme.px(7))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the circle."""
        del event
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.color(self._color))
        painter.drawEllipse(QRectF(self.rect()))
        painter.end()


class Pill(QWidget):
    """A rounded outline around a few words, with a coloured dot if ``dot`` names a token."""

    def __init__(self, theme: Theme, text: str = "", *, dot: str = "") -> None:
        super().__init__()
        self._theme = theme
        self._label = Label(text, role="small")
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Maximum)
        row = QHBoxLayout(self)
        row.setContentsMargins(theme.px(10), theme.px(2), theme.px(10), theme.px(2))
        row.setSpacing(theme.px(6))
        if dot:
            row.addWidget(Dot(theme, dot))
        row.addWidget(self._label)

    def set_text(self, text: str) -> None:
        """Show other words."""
        self._label.setText(text)
        self.setAccessibleName(text)

    def text(self) -> str:
        """Return the words."""
        return self._label.text()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the outline; a style sheet cannot round by half of a height that it does not know."""
        del event
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(self._theme.color("line"))
        edge = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(edge, edge.height() / 2, edge.height() / 2)
        painter.end()


def set_look(widget: QWidget, name: str, value: object) -> None:
    """Set a dynamic property and let the style sheet see it."""
    if widget.property(name) == value:
        return
    widget.setProperty(name, value)
    widget.style().unpolish(widget)
    widget.style().polish(widget)
    widget.update()


def frame(box: str) -> QFrame:
    """Return a frame with one of the style sheet's looks: "card", "lesson", "approval", "toast"."""
    result = QFrame()
    result.setProperty("box", box)
    return result


def rule() -> QFrame:
    """Return a horizontal line of 1 px."""
    result = frame("rule")
    result.setFixedHeight(1)
    return result


def column(
    parent: QWidget | None = None, *, margins: tuple[int, int, int, int] = (0, 0, 0, 0), gap: int = 0
) -> QVBoxLayout:
    """Return a vertical layout with margins (left, top, right, bottom) and gap in pixels."""
    layout = QVBoxLayout(parent) if parent is not None else QVBoxLayout()
    layout.setContentsMargins(*margins)
    layout.setSpacing(gap)
    return layout


def row(
    parent: QWidget | None = None, *, margins: tuple[int, int, int, int] = (0, 0, 0, 0), gap: int = 8
) -> QHBoxLayout:
    """Return a horizontal layout with margins (left, top, right, bottom) and gap in pixels."""
    layout = QHBoxLayout(parent) if parent is not None else QHBoxLayout()
    layout.setContentsMargins(*margins)
    layout.setSpacing(gap)
    return layout
