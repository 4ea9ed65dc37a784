"""Go anywhere by typing: every action of the window and every conversation in one list.

Signals:
    Palette.chat_picked(id): a conversation was chosen. Actions trigger themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QDialog, QLineEdit, QListWidget, QListWidgetItem, QWidget

from app.chat.api import ChatSummary
from app.ui.theme import Theme
from app.ui.widgets import column

WIDTH_PX, HEIGHT_PX = 520, 420
_MOVES = frozenset({Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown})
_TARGET = Qt.ItemDataRole.UserRole


class Palette(QDialog):
    """A field above a list. Enter takes the line that is marked, Escape leaves."""

    chat_picked = Signal(str)

    def __init__(self, theme: Theme, actions: Sequence[QAction], chats: Sequence[ChatSummary], parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Go to")
        self.field = QLineEdit()
        self.field.setPlaceholderText("Go to a chat, or do something")
        self.field.setAccessibleName("Go to")
        self.field.installEventFilter(self)
        self.list = QListWidget()
        self.list.setAccessibleName("What you can go to")
        self.list.setUniformItemSizes(True)
        self._fill(actions, chats)
        layout = column(self, margins=(theme.px(14), theme.px(14), theme.px(14), theme.px(14)), gap=theme.px(8))
        layout.addWidget(self.field)
        layout.addWidget(self.list, 1)
        self.field.textChanged.connect(self._filter)
        self.list.itemActivated.connect(self._take)
        self.list.itemClicked.connect(self._take)
        self.resize(theme.px(WIDTH_PX), theme.px(HEIGHT_PX))
        self._filter("")

    def shown(self) -> list[str]:
        """Return the lines that match what is typed."""
        items = (self.list.item(number) for number in range(self.list.count()))
        return [item.text() for item in items if not item.isHidden()]

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Move in the list and take its line from the field."""
        if watched is self.field and isinstance(event, QKeyEvent) and event.type() is QEvent.Type.KeyPress:
            if event.key() in _MOVES:
                self.list.event(event)
                return True
            if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
                self._take(self.list.currentItem())
                return True
        return super().eventFilter(watched, event)

    def _fill(self, actions: Sequence[QAction], chats: Sequence[ChatSummary]) -> None:
        for chat in chats:
            self._add(chat.title, chat.id)
        for action in actions:
            keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            self._add(f"{action.text()}   {keys}", action)

    def _add(self, words: str, target: object) -> None:
        item = QListWidgetItem(words)
        item.setData(_TARGET, target)
        self.list.addItem(item)

    def _filter(self, text: str) -> None:
        words = text.casefold().split()
        first: QListWidgetItem | None = None
        self.list.clearSelection()
        for number in range(self.list.count()):
            item = self.list.item(number)
            matches = all(word in item.text().casefold() for word in words)
            item.setHidden(not matches)
            first = first or (item if matches else None)
        if first is not None:
            self.list.setCurrentItem(first)

    def _take(self, item: QListWidgetItem | None) -> None:
        if item is None or item.isHidden():
            return
        target = item.data(_TARGET)
        self.accept()
        if isinstance(target, QAction):
            target.trigger()
        else:
            self.chat_picked.emit(target)
