"""A layout for a row of buttons that goes on in a second line where it has no room, with a trailing item at the end."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QStyle, QWidget, QWidgetItem


class FlowRow(QLayout):
    """Lays items out in reading direction and wraps them.

    The trailing widget, if set, stands at the far end of the last line, or on a line of its own where it does not fit.
    Hidden widgets take no room. Sizes are those the widgets ask for.
    """

    def __init__(self, parent: QWidget | None = None, *, gap: int = 8) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self._trailing: QWidget | None = None
        self.setContentsMargins(0, 0, 0, 0)
        self.setSpacing(gap)

    def set_trailing(self, widget: QWidget) -> None:
        """Add ``widget`` and keep it at the far end."""
        self.addWidget(widget)
        self._trailing = widget

    def place(self, widgets: list[QWidget]) -> None:
        """Show exactly these widgets, in this order, before the trailing one; the others stay, out of the row."""
        trailing = [item for item in self._items if item.widget() is self._trailing]
        self._items = trailing
        for widget in widgets:
            self.addChildWidget(widget)
        self._items = [*(QWidgetItem(widget) for widget in widgets), *trailing]
        self.invalidate()

    def addItem(self, item: QLayoutItem) -> None:
        """Append an item. Called by Qt."""
        self._items.append(item)

    def count(self) -> int:
        """Return how many items there are."""
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem:
        """Return one item, or None past the end."""
        return self._items[index] if 0 <= index < len(self._items) else None  # type: ignore[return-value]

    def takeAt(self, index: int) -> QLayoutItem:
        """Remove and return one item, or None past the end."""
        return self._items.pop(index) if 0 <= index < len(self._items) else None  # type: ignore[return-value]

    def expandingDirections(self) -> Qt.Orientation:
        """Return that it takes no more room than it needs."""
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        """Return True: narrower means more lines."""
        return True

    def heightForWidth(self, width: int) -> int:
        """Return the height of all lines at this width."""
        margins = self.contentsMargins()
        inner = self._arrange(QRect(0, 0, width - margins.left() - margins.right(), 0), apply=False)
        return inner + margins.top() + margins.bottom()

    def setGeometry(self, rect: QRect) -> None:
        """Place the items."""
        super().setGeometry(rect)
        self._arrange(rect.marginsRemoved(self.contentsMargins()), apply=True)

    def sizeHint(self) -> QSize:
        """Return the size of everything in one line."""
        sizes = [item.sizeHint() for item in self._shown()]
        width = sum(size.width() for size in sizes) + self.spacing() * max(len(sizes) - 1, 0)
        height = max((size.height() for size in sizes), default=0)
        return QSize(width, height).grownBy(self.contentsMargins())

    def minimumSize(self) -> QSize:
        """Return the size of the largest item."""
        size = QSize()
        for item in self._shown():
            size = size.expandedTo(item.minimumSize())
        return size.grownBy(self.contentsMargins())

    def _shown(self) -> list[QLayoutItem]:
        return [item for item in self._items if not item.isEmpty()]

    def _arrange(self, rect: QRect, *, apply: bool) -> int:
        lines = self._lines(rect.width())
        top = rect.top()
        for line in lines:
            height = max(item.sizeHint().height() for item in line)
            if apply:
                self._place_line(line, QRect(rect.left(), top, rect.width(), height))
            top += height + self.spacing()
        return max(top - self.spacing() - rect.top(), 0) if lines else 0

    def _lines(self, width: int) -> list[list[QLayoutItem]]:
        lines: list[list[QLayoutItem]] = []
        used = 0
        for item in self._shown():
            needed = item.sizeHint().width()
            if lines and used + self.spacing() + needed <= width:
                lines[-1].append(item)
                used += self.spacing() + needed
            else:
                lines.append([item])
                used = needed
        return lines

    def _place_line(self, line: list[QLayoutItem], rect: QRect) -> None:
        parent = self.parentWidget()
        direction = parent.layoutDirection() if parent else Qt.LayoutDirection.LeftToRight
        left = rect.left()
        for item in line:
            size = item.sizeHint()
            width = min(size.width(), rect.width())
            if item.widget() is self._trailing:
                left = max(left, rect.right() + 1 - width)
            top = rect.top() + (rect.height() - size.height()) // 2
            cell = QRect(left, top, width, size.height())
            item.setGeometry(QStyle.visualRect(direction, rect, cell))
            left += width + self.spacing()
