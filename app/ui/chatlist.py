"""The list of conversations: groups by age, a filter, renaming in place.

Signals:
    ChatList.chosen(id): the person went to a conversation.
    ChatList.rename_asked(id, title), ChatList.delete_asked(id).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QFontMetrics, QKeyEvent, QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemDelegate,
    QAbstractItemView,
    QLineEdit,
    QListView,
    QMenu,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from app.chat.api import ChatSummary
from app.ui.theme import RADIUS_CONTROL, SMALL_PX, Theme
from app.ui.widgets import plain_tip

Index = QModelIndex | QPersistentModelIndex
ROW_PX, HEADING_PX = 35, 38


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of a group."""

    text: str


Row = Heading | ChatSummary


def group_of(updated: datetime, now: datetime) -> str:
    """Return the group of a conversation by the local day on which it was last used."""
    days = (now.astimezone().date() - updated.astimezone().date()) / timedelta(days=1)
    if days < 1:
        return "Today"
    return "Last week" if days < 8 else "Earlier"


def rows(chats: Sequence[ChatSummary], needle: str, now: datetime) -> list[Row]:
    """Return headings and conversations whose title contains every word of ``needle``, in the order given."""
    words = needle.casefold().split()
    result: list[Row] = []
    group = ""
    for chat in chats:
        if not all(word in chat.title.casefold() for word in words):
            continue
        if (name := group_of(chat.updated, now)) != group:
            group = name
            result.append(Heading(name))
        result.append(chat)
    return result


class _Model(QAbstractListModel):
    rename_asked = Signal(str, str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.rows: list[Row] = []

    def set_rows(self, new: list[Row]) -> None:
        self.beginResetModel()
        self.rows = new
        self.endResetModel()

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row = self.rows[index.row()]
        text = row.text if isinstance(row, Heading) else row.title
        if role in {Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole, Qt.ItemDataRole.AccessibleTextRole}:
            return text
        if role == Qt.ItemDataRole.ToolTipRole and isinstance(row, ChatSummary):
            return plain_tip(text)
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        if isinstance(self.rows[index.row()], Heading):
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEditable

    def setData(self, index: Index, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        row = self.rows[index.row()]
        title = " ".join(str(value).split())
        if role != Qt.ItemDataRole.EditRole or isinstance(row, Heading) or title in {"", row.title}:
            return False
        self.rows[index.row()] = ChatSummary(row.id, title, row.updated)
        self.dataChanged.emit(index, index)
        self.rename_asked.emit(row.id, title)
        return True


class _Delegate(QStyledItemDelegate):
    def __init__(self, theme: Theme, parent: QAbstractItemView) -> None:
        super().__init__(parent)
        self._theme = theme
        self._view = parent

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        heading = not index.flags() & Qt.ItemFlag.ItemIsEnabled
        return QSize(option.rect.width(), self._theme.px(HEADING_PX if heading else ROW_PX))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        heading = not index.flags() & Qt.ItemFlag.ItemIsEnabled
        if not heading:
            self._paint_back(painter, option)
        self._paint_text(painter, option.rect, str(index.data()), heading=heading)
        painter.restore()

    def _paint_back(self, painter: QPainter, option: QStyleOptionViewItem) -> None:
        theme = self._theme
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        hovered = bool(option.state & QStyle.StateFlag.State_MouseOver)
        focused = bool(option.state & QStyle.StateFlag.State_HasFocus) and self._view.hasFocus()
        if not (selected or hovered or focused):
            return
        line = theme.color("accent") if focused else theme.color("line" if selected else "hover")
        painter.setPen(QPen(line, 2 if focused else 1))
        painter.setBrush(theme.color("surface" if selected else "hover"))
        inset = 1 if focused else 0.5
        box = option.rect.toRectF().adjusted(inset, inset + 1, -inset, -inset - 1)
        painter.drawRoundedRect(box, theme.px(RADIUS_CONTROL), theme.px(RADIUS_CONTROL))

    def _paint_text(self, painter: QPainter, rect: QRect, text: str, *, heading: bool) -> None:
        theme = self._theme
        font = theme.font(SMALL_PX) if heading else theme.font()
        painter.setFont(font)
        painter.setPen(theme.color("muted" if heading else "text"))
        room = rect.adjusted(theme.px(10), theme.px(10) if heading else 0, -theme.px(10), 0)
        shown = QFontMetrics(font).elidedText(text, Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(room, int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft), shown)

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        del option, index
        editor = QLineEdit(parent)
        editor.setAccessibleName("Title of the chat")
        return editor

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: Index) -> None:
        del index
        editor.setGeometry(option.rect.adjusted(0, 1, 0, -1))


class ChatList(QListView):
    """The view. Give it conversations; it groups and filters them by itself."""

    chosen = Signal(str)
    rename_asked = Signal(str, str)
    delete_asked = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._chats: list[ChatSummary] = []
        self._needle = ""
        self._current: str | None = None
        self._filling = False
        self._stale = False
        self._model = _Model(self)
        self.setModel(self._model)
        self.setItemDelegate(_Delegate(theme, self))
        self.setAccessibleName("Chats")
        self.setMouseTracking(True)
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._open_menu)
        self._model.rename_asked.connect(self.rename_asked)
        theme.changed.connect(self.doItemsLayout)

    def set_chats(self, chats: Sequence[ChatSummary]) -> None:
        """Show these conversations. A title that is being edited is left in peace until that ends."""
        self._chats = list(chats)
        self._fill()

    def set_filter(self, needle: str) -> None:
        """Show only titles with these words."""
        self._needle = needle
        self._fill()

    def set_current(self, chat: str | None) -> None:
        """Mark the conversation that is open."""
        self._current = chat
        self._mark()

    def current(self) -> str | None:
        """Return the id of the row that the keyboard is on."""
        return self._id_at(self.currentIndex())

    def chats(self) -> list[ChatSummary]:
        """Return all conversations, filtered or not."""
        return list(self._chats)

    def shown(self) -> list[ChatSummary]:
        """Return the conversations that pass the filter."""
        return [row for row in self._model.rows if isinstance(row, ChatSummary)]

    def edit_title(self, chat: str | None = None) -> None:
        """Let the person type another title."""
        number = self._number_of(chat or self._current)
        if number is not None:
            index = self._model.index(number)
            self.setCurrentIndex(index)
            self.edit(index)

    def currentChanged(self, current: Index, previous: Index) -> None:
        """Go where the keyboard or the mouse goes."""
        super().currentChanged(current, previous)
        chat = self._id_at(current)
        if not self._filling and chat is not None and chat != self._current:
            self._current = chat
            self.chosen.emit(chat)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Delete on Delete."""
        chat = self.current()
        if event.key() == Qt.Key.Key_Delete and chat is not None:
            self.delete_asked.emit(chat)
        else:
            super().keyPressEvent(event)

    def closeEditor(self, editor: QWidget, hint: QAbstractItemDelegate.EndEditHint) -> None:
        """Show what has changed while a title was being edited."""
        super().closeEditor(editor, hint)
        if self._stale:
            self._fill()

    def viewportEvent(self, event: QEvent) -> bool:
        """Repaint the focus ring when the focus comes or goes."""
        if event.type() in {QEvent.Type.FocusIn, QEvent.Type.FocusOut}:
            self.viewport().update()
        return super().viewportEvent(event)

    def _fill(self) -> None:
        self._stale = self.state() is QAbstractItemView.State.EditingState
        new = rows(self._chats, self._needle, datetime.now(UTC))
        if self._stale or new == self._model.rows:
            return
        self._filling = True
        place = self.verticalScrollBar().value()
        self._model.set_rows(new)
        self._filling = False
        self._mark()
        self.verticalScrollBar().setValue(place)

    def _mark(self) -> None:
        self._filling = True
        number = self._number_of(self._current)
        self.setCurrentIndex(self._model.index(number) if number is not None else QModelIndex())
        self._filling = False

    def _number_of(self, chat: str | None) -> int | None:
        rows = enumerate(self._model.rows)
        return next((n for n, row in rows if isinstance(row, ChatSummary) and row.id == chat), None)

    def _id_at(self, index: Index) -> str | None:
        row = self._model.rows[index.row()] if index.isValid() else None
        return row.id if isinstance(row, ChatSummary) else None

    def _open_menu(self, point: QPoint) -> None:
        # The menu belongs to the row that was clicked, whatever is chosen before it is used.
        chat = self._id_at(self.indexAt(point))
        if chat is None:
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for words, slot in (("Rename", self._rename_from_menu), ("Delete", self._delete_from_menu)):
            action = menu.addAction(words)
            action.setData(chat)
            action.triggered.connect(slot)
        menu.popup(self.viewport().mapToGlobal(point))

    def _rename_from_menu(self) -> None:
        self.edit_title(_data_of(self.sender()))

    def _delete_from_menu(self) -> None:
        self.delete_asked.emit(_data_of(self.sender()))


def _data_of(sender: object) -> str:
    data = getattr(sender, "data", None)
    return str(data()) if data is not None else ""
