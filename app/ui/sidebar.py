"""The sidebar: new chat, search, the conversations, and the ways to versions and settings.

Signals:
    Sidebar.new_asked(), Sidebar.versions_asked(), Sidebar.settings_asked(), Sidebar.devmode_asked(),
    Sidebar.about_asked().
    The list's own signals are on ``Sidebar.chats``.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QLineEdit, QToolButton, QVBoxLayout

from app.devmode.api import DevState, DevStatus
from app.ui import icons
from app.ui.chatlist import ChatList
from app.ui.theme import SIDEBAR_PX, Theme
from app.ui.widgets import Button, Kind, Label, column, frame, row

_FOOT_SIDE_PX = 9
"""Padding and border of the foot at each side."""


class RowButton(Button):
    """A row of the sidebar: icon and words, and a few small words at its end."""

    def __init__(self, theme: Theme, text: str, *, icon: str, kind: Kind = Kind.ROW) -> None:
        super().__init__(theme, text, kind=kind, icon=icon)
        self._end = Label(role="small")
        self._end.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        line = row(self, margins=(0, 0, theme.px(10), 0))
        line.addStretch(1)
        line.addWidget(self._end)

    def set_end(self, text: str) -> None:
        """Show small words at the end of the row."""
        self._end.setText(text)
        self.setAccessibleDescription(text)


class FootButton(Button):
    """A few small words at the foot, on as many lines as they need; push buttons themselves do not wrap."""

    def __init__(self, theme: Theme) -> None:
        self._words = ""
        super().__init__(theme, kind=Kind.FOOT, name="Developer mode")
        theme.changed.connect(self._wrap)

    def set_words(self, words: str) -> None:
        """Show words; line ends in them stay."""
        self._words = words
        self.setAccessibleDescription(words)
        self._wrap()

    def words(self) -> str:
        """Return the words as they were given."""
        return self._words

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Wrap for the new width."""
        super().resizeEvent(event)
        self._wrap()

    def minimumSizeHint(self) -> QSize:
        """Return that it can be narrow."""
        return QSize(0, self.sizeHint().height())

    def _wrap(self) -> None:
        room = self.width() - 2 * self._theme.px(_FOOT_SIDE_PX)
        metrics = self.fontMetrics()
        lines: list[str] = []
        for paragraph in self._words.split("\n"):
            line = ""
            for word in paragraph.split():
                longer = f"{line} {word}".strip()
                if line and metrics.horizontalAdvance(longer) > room:
                    lines.append(line)
                    longer = word
                line = longer
            lines.append(line)
        if self.text() != "\n".join(lines):
            self.setText("\n".join(lines))


class SearchField(QLineEdit):
    """Filters titles as one types; Escape empties it.

    Signals:
        down(): the person wants to go into the list.
    """

    down = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setProperty("box", "quiet")
        self.setPlaceholderText("Search chats")
        self.setAccessibleName("Search chats")
        self.setClearButtonEnabled(True)
        self._glass = QLabel(self)
        for button in self.findChildren(QToolButton):
            button.setAccessibleName("Empty the search")
        theme.changed.connect(self._restyle)
        self._restyle()

    def event(self, event: QEvent) -> bool:
        """Keep Escape from the window's shortcuts while there is something to empty."""
        is_override = event.type() is QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent)
        if is_override and event.key() == Qt.Key.Key_Escape and self.text():  # type: ignore[attr-defined]
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Empty on Escape, go into the list on Down."""
        if event.key() == Qt.Key.Key_Escape and self.text():
            self.clear()
        elif event.key() == Qt.Key.Key_Down:
            self.down.emit()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the magnifying glass in the middle of the line."""
        super().resizeEvent(event)
        self._place_glass()

    def _place_glass(self) -> None:
        self._glass.adjustSize()
        self._glass.move(self._theme.px(9), (self.height() - self._glass.height()) // 2)

    def _restyle(self) -> None:
        px = self._theme.px
        color, ratio = self._theme.color("muted"), self.devicePixelRatioF()
        self._glass.setPixmap(icons.pixmap("search", color, px(icons.ICON_PX), scale=ratio))
        self.setTextMargins(px(28), 0, 0, 0)
        self._place_glass()


class Sidebar(QFrame):
    """The column at the left."""

    new_asked = Signal()
    versions_asked = Signal()
    settings_asked = Signal()
    devmode_asked = Signal()
    about_asked = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setProperty("box", "side")
        self.new = RowButton(theme, "New chat", icon="plus", kind=Kind.NEW)
        self.new.set_end(QKeySequence(QKeySequence.StandardKey.New).toString(QKeySequence.SequenceFormat.NativeText))
        self.search = SearchField(theme)
        self.chats = ChatList(theme)
        self.nothing = Label(role="small", wrap=True)
        self.nothing.hide()
        self.versions = RowButton(theme, "Versions", icon="versions")
        self.settings = RowButton(theme, "Settings", icon="settings")
        self.foot = FootButton(theme)
        self.about = Button(theme, kind=Kind.ICON, icon="info", name="About Ownmind")
        self._layout = self._fill()
        self._connect()
        theme.changed.connect(self._restyle)
        self._restyle()

    def show_devmode(self, status: DevStatus) -> None:
        """Show the permanent indicator of developer mode."""
        if status.state is DevState.UNLOCKED:
            left, day = status.changes_left_today, status.budget.changes_per_day
            words = f"Developer mode on · learning unlocked\n{left} of {day} changes left today"
        else:
            words = "Learning is locked\nSuggestions wait until you unlock it"
        self.foot.set_words(words)

    def _fill(self) -> QVBoxLayout:
        layout = column(self)
        self._upper = column()
        for widget in (self.new, self.search, self.chats, self.nothing, self.versions):
            self._upper.addWidget(widget)
        last = row(gap=0)
        last.addWidget(self.settings, 1)
        last.addWidget(self.about)
        self._upper.addLayout(last)
        self._upper.setStretchFactor(self.chats, 1)
        layout.addLayout(self._upper, 1)
        self._foot_box = frame("foot")
        self._foot_line = row(self._foot_box)
        self._foot_line.addWidget(self.foot)
        layout.addWidget(self._foot_box)
        return layout

    def _connect(self) -> None:
        self.new.clicked.connect(self.new_asked)
        self.versions.clicked.connect(self.versions_asked)
        self.settings.clicked.connect(self.settings_asked)
        self.foot.clicked.connect(self.devmode_asked)
        self.about.clicked.connect(self.about_asked)
        self.search.textChanged.connect(self._filter)
        self.search.down.connect(self._into_list)

    def _filter(self, needle: str) -> None:
        self.chats.set_filter(needle)
        empty = bool(needle.strip()) and not self.chats.shown()
        self.nothing.setText(f"No chat has “{needle.strip()[:40]}” in its title.")
        self.nothing.setVisible(empty)

    def _into_list(self) -> None:
        self.chats.setFocus(Qt.FocusReason.TabFocusReason)

    def _restyle(self) -> None:
        px = self._theme.px
        self.setFixedWidth(px(SIDEBAR_PX))
        self._upper.setContentsMargins(px(12), px(12), px(12), px(8))
        self._upper.setSpacing(px(3))
        self._foot_line.setContentsMargins(px(3), px(4), px(3), px(4))
