"""Finding words in the conversation that is shown: a bar above it, from the newest message upwards.

Signals:
    FindBar.wanted(needle): the words changed.
    FindBar.step_asked(step): to the message before (-1) or after (1).
    FindBar.left(): the bar was closed.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QTextCursor
from PySide6.QtWidgets import QFrame, QLineEdit, QTextEdit, QWidget

from app.chat.api import MessageView
from app.ui.markdown.panes import Pane
from app.ui.scroller import Scroller
from app.ui.theme import Theme
from app.ui.widgets import Button, Kind, Label, row

_ENTER = frozenset({Qt.Key.Key_Return, Qt.Key.Key_Enter})


class FindBar(QFrame):
    """The line with the words, the place among the messages found, and the ways on."""

    wanted = Signal(str)
    step_asked = Signal(int)
    left = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setProperty("box", "header")
        self.field = QLineEdit()
        self.field.setPlaceholderText("Find in this chat")
        self.field.setAccessibleName("Find in this chat")
        self.field.installEventFilter(self)
        self.place = Label(role="small")
        self.older = Button(theme, kind=Kind.ICON, icon="up", name="Older message with these words")
        self.newer = Button(theme, kind=Kind.ICON, icon="down", name="Newer message with these words")
        self.leave = Button(theme, kind=Kind.ICON, icon="close", name="Close finding")
        self._line = row(self)
        self._line.addWidget(self.field, 1)
        for widget in (self.place, self.older, self.newer, self.leave):
            self._line.addWidget(widget)
        self.field.textChanged.connect(self.wanted)
        self.older.clicked.connect(self._step_older)
        self.newer.clicked.connect(self._step_newer)
        self.leave.clicked.connect(self.left)
        theme.changed.connect(self._restyle)
        self._restyle()
        self.hide()

    def begin(self) -> None:
        """Show the bar and take the keyboard."""
        self.show()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()

    def show_place(self, number: int, count: int) -> None:
        """Show which of the messages found is in sight; 0 of 0 if none has the words."""
        found = f"{number} of {count}" if count else "not found"
        self.place.setText(found if self.field.text().strip() else "")
        self.older.setEnabled(count > 1)
        self.newer.setEnabled(count > 1)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Go on by Enter, back by Shift+Enter, leave by Escape."""
        if watched is not self.field or not isinstance(event, QKeyEvent):
            return super().eventFilter(watched, event)
        if event.type() is QEvent.Type.ShortcutOverride and event.key() == Qt.Key.Key_Escape:
            event.accept()
            return True
        if event.type() is not QEvent.Type.KeyPress:
            return super().eventFilter(watched, event)
        if event.key() == Qt.Key.Key_Escape:
            self.left.emit()
            return True
        if event.key() in _ENTER:
            self.step_asked.emit(1 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else -1)
            return True
        return super().eventFilter(watched, event)

    def _step_older(self) -> None:
        self.step_asked.emit(-1)

    def _step_newer(self) -> None:
        self.step_asked.emit(1)

    def _restyle(self) -> None:
        px = self._theme.px
        self._line.setContentsMargins(px(16), px(6), px(10), px(6))
        self._line.setSpacing(px(8))


class Finder(QObject):
    """Connects the bar with the conversation: which messages have the words, and where they stand in them."""

    def __init__(self, theme: Theme, bar: FindBar, scroller: Scroller) -> None:
        super().__init__(bar)
        self._theme, self._bar, self._scroller = theme, bar, scroller
        self._needle = ""
        self._found: list[str] = []
        self._at = 0
        bar.wanted.connect(self._search)
        bar.step_asked.connect(self._step)

    def end(self) -> None:
        """Take all marks away and hide the bar."""
        self._needle = ""
        self._mark(None)
        self._bar.hide()

    def _search(self, needle: str) -> None:
        self._needle = needle.strip()
        folded = self._needle.casefold()
        entries = self._scroller.entries() if folded else ()
        messages = [(entry.key, entry.value) for entry in entries if isinstance(entry.value, MessageView)]
        self._found = [key for key, view in messages if folded in view.text.casefold()]
        self._at = len(self._found) - 1
        self._show()

    def _step(self, step: int) -> None:
        if self._found:
            self._at = (self._at + step) % len(self._found)
            self._show()

    def _show(self) -> None:
        self._bar.show_place(self._at + 1, len(self._found))
        self._mark(self._scroller.show_item(self._found[self._at]) if self._found else None)

    def _mark(self, item: QWidget | None) -> None:
        for widget in self._scroller.mounted().values():
            for pane in widget.findChildren(Pane):
                pane.setExtraSelections(self._marks(pane) if widget is item else [])

    def _marks(self, pane: Pane) -> list[QTextEdit.ExtraSelection]:
        marks: list[QTextEdit.ExtraSelection] = []
        cursor = pane.document().find(self._needle)
        while not cursor.isNull():
            marks.append(self._mark_at(cursor))
            cursor = pane.document().find(self._needle, cursor)
        return marks

    def _mark_at(self, cursor: QTextCursor) -> QTextEdit.ExtraSelection:
        mark = QTextEdit.ExtraSelection()
        mark.cursor = cursor
        shape = cursor.charFormat()
        shape.setBackground(self._theme.color("accent"))
        shape.setForeground(self._theme.color("on_accent"))
        mark.format = shape
        return mark
