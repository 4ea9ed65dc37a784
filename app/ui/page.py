"""The middle of the window: the conversation, or an empty page, above the field to write in.

Signals:
    ConversationPage.liked(id, liked), edited(id, text), again(id), chosen(id), retry(id): about one answer.
    ConversationPage.link_asked(address), copied().
    ConversationPage.suggested(text): a first question was picked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QStackedWidget, QWidget

from app.chat.api import MessageState, MessageView
from app.learning.api import CardView
from app.model.api import Role
from app.ui.composer import Composer
from app.ui.empty import EmptyPage
from app.ui.find import FindBar, Finder
from app.ui.messages import AnswerItem, MessageItem, OwnItem
from app.ui.notices import Banner, Toast
from app.ui.scroller import Entry, Scroller
from app.ui.theme import Theme
from app.ui.transcript import Live, message_key
from app.ui.widgets import Button, column


class CardFactory(Protocol):
    """Whoever makes approval cards and listens to them."""

    def build(self, card: CardView) -> QWidget:
        """Return a widget that shows a card."""
        ...

    def update(self, widget: QWidget, card: CardView) -> None:
        """Show another state of the same card."""
        ...


class ConversationPage(QWidget):
    """Shows entries; see ``app.ui.transcript`` for how they come about."""

    liked = Signal(str, bool)
    edited = Signal(str, str)
    again = Signal(str)
    chosen = Signal(str)
    retry = Signal(str)
    link_asked = Signal(str)
    copied = Signal()
    suggested = Signal(str)

    def __init__(self, theme: Theme, cards: CardFactory, banner: Banner) -> None:
        super().__init__()
        self._theme = theme
        self._cards = cards
        self._live: Live | None = None
        self.banner = banner
        self.composer = Composer(theme)
        self.empty = EmptyPage(theme)
        self.scroller = Scroller(theme, build=self._build, update=self._update, keep=_is_busy)
        self.scroller.setAccessibleName("Conversation")
        self._stack = QStackedWidget()
        self._stack.addWidget(self.scroller)
        self._stack.addWidget(self.empty)
        layout = column(self)
        self.find_bar = FindBar(theme)
        self.finder = Finder(theme, self.find_bar, self.scroller)
        layout.addWidget(self.banner)
        layout.addWidget(self.find_bar)
        layout.addWidget(self._stack, 1)
        layout.addWidget(self.composer)
        self.jump = Button(theme, "Jump to latest", icon="down")
        self.jump.setParent(self)
        self.jump.hide()
        self.toast = Toast(theme, self)
        self._connect()

    # --- showing ----------------------------------------------------------------------------------------------------

    def show_entries(self, entries: Sequence[Entry], live: Live | None, *, fresh: bool = False) -> None:
        """Show a conversation; ``fresh`` if it is another one than before."""
        self._live = live
        if fresh:
            self.finder.end()
            self.scroller.forget()
        self._stack.setCurrentWidget(self.scroller if entries else self.empty)
        self.scroller.set_entries(entries)

    def feed(self, live: Live, piece: str) -> None:
        """Show more of the streaming answer."""
        self._live = live
        widget = self.scroller.widget_of(message_key(live.answer))
        if isinstance(widget, AnswerItem):
            widget.feed(piece)

    def last_answer(self) -> MessageView | None:
        """Return the last answer that is here."""
        for entry in reversed(self.scroller.entries()):
            if isinstance(entry.value, MessageView) and entry.value.role is Role.ASSISTANT:
                return entry.value
        return None

    def edit_last_answer(self) -> None:
        """Open the last answer for editing, scrolling to it if need be."""
        view = self.last_answer()
        widget = self.scroller.show_item(message_key(view.id)) if view is not None else None
        if isinstance(widget, AnswerItem):
            widget.start_editing()

    def answer_at_focus(self) -> AnswerItem | None:
        """Return the answer that has the focus, or the last one."""
        key = self.scroller.key_at_focus()
        view = self.last_answer()
        if key is None and view is not None:
            key = message_key(view.id)
        widget = self.scroller.widget_of(key) if key is not None else None
        return widget if isinstance(widget, AnswerItem) else None

    def copy_answer(self) -> None:
        """Copy the answer that has the focus, or the last one."""
        item = self.answer_at_focus()
        if item is not None:
            item.copy()

    def copy_code(self) -> None:
        """Copy the last code of the answer that has the focus, or of the last one."""
        item = self.answer_at_focus()
        code = item.body.last_code() if item is not None else None
        if code is not None:
            code.copy()

    def step_focus(self, step: int) -> None:
        """Move the keyboard focus to the item before or after the present one."""
        scroller = self.scroller
        now = scroller.key_at_focus()
        key = scroller.neighbour(now, step if now is not None else 0)
        widget = scroller.show_item(key) if key is not None else None
        if widget is not None:
            widget.setFocus(Qt.FocusReason.ShortcutFocusReason)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        self.scroller.away_changed.connect(self._show_jump)
        self.composer.edit.installEventFilter(self)
        self.composer.installEventFilter(self)
        self.jump.clicked.connect(self._jump)
        self.empty.picked.connect(self.suggested)
        self.find_bar.left.connect(self._stop_finding)

    def _build(self, entry: Entry) -> QWidget:
        if isinstance(entry.value, CardView):
            return self._cards.build(entry.value)
        view = entry.value
        assert isinstance(view, MessageView)  # noqa: S101  # entries hold nothing else
        item = OwnItem(self._theme) if view.role is Role.USER else self._new_answer()
        item.link_asked.connect(self.link_asked)
        self._update(item, entry)
        return item

    def _new_answer(self) -> AnswerItem:
        item = AnswerItem(self._theme)
        item.liked.connect(self.liked)
        item.edited.connect(self.edited)
        item.again.connect(self.again)
        item.chosen.connect(self.chosen)
        item.retry.connect(self.retry)
        item.copied.connect(self.copied)
        return item

    def _update(self, widget: QWidget, entry: Entry) -> bool:
        view = entry.value
        if isinstance(view, CardView):
            self._cards.update(widget, view)
        elif isinstance(view, MessageView) and isinstance(widget, (OwnItem, AnswerItem)):
            if self._live is not None and view.id == self._live.answer and view.state is MessageState.STREAMING:
                view = self._live.as_message()
            widget.set_message(view)
        return True

    def _stop_finding(self) -> None:
        self.finder.end()
        self.composer.edit.setFocus(Qt.FocusReason.OtherFocusReason)

    def _jump(self) -> None:
        self.scroller.to_end()
        self.composer.edit.setFocus(Qt.FocusReason.OtherFocusReason)

    def _show_jump(self, away: bool) -> None:
        self.jump.setVisible(away)
        self.jump.raise_()
        self._place_overlays()

    def _place_overlays(self) -> None:
        self.jump.adjustSize()
        above = self.composer.height()
        left = (self.width() - self.jump.width()) // 2
        self.jump.move(left, self.height() - above - self.jump.height() - self._theme.px(12))
        self.toast.set_bottom(above)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep what floats in its place."""
        super().resizeEvent(event)
        self._place_overlays()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Scroll with the keys of the scroller wherever they are pressed, and follow the composer's height."""
        if watched is self.composer and event.type() is QEvent.Type.Resize:
            self._place_overlays()
        if watched is self.composer.edit and isinstance(event, QKeyEvent) and event.type() is QEvent.Type.KeyPress:
            return self._scroll_from_composer(event)
        return super().eventFilter(watched, event)

    def _scroll_from_composer(self, event: QKeyEvent) -> bool:
        pages = event.key() in {Qt.Key.Key_PageUp, Qt.Key.Key_PageDown}
        if not pages or self.composer.edit.composing or event.modifiers():
            return False
        bar = self.scroller.verticalScrollBar()
        down = event.key() == Qt.Key.Key_PageDown
        bar.triggerAction(bar.SliderAction.SliderPageStepAdd if down else bar.SliderAction.SliderPageStepSub)
        return True


def _is_busy(widget: QWidget) -> bool:
    return isinstance(widget, MessageItem) and widget.busy
