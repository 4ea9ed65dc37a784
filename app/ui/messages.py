"""The two kinds of messages in a conversation. They show values and say what the person wants; they call nothing.

Signals of both:
    link_asked(address): a link was clicked.
Signals of AnswerItem:
    liked(id, liked), edited(id, text), again(id), chosen(id): what the person wants with this answer.
    copied(): the answer or some code is on the clipboard.
    retry(id): after a failure.
    said(words): something to say in passing.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFocusEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QApplication, QPlainTextEdit, QVBoxLayout, QWidget

from app.chat.api import MessageState, MessageView
from app.ui.answer_parts import AnswerEditor, Failure, MetaRow
from app.ui.markdown.panes import Pane
from app.ui.markdown.view import MarkdownView
from app.ui.theme import RADIUS_CONTROL, Theme
from app.ui.widgets import Button, Kind, Label, column, frame

LONG_CHARS, LONG_LINES = 4_000, 40
PREVIEW_CHARS, PREVIEW_LINES = 600, 8
OPENED_PX = 420
INDENT_PX = 120


class MessageItem(QWidget):
    """What both kinds share: focus by keyboard, a visible focus, and a link signal."""

    link_asked = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    @property
    def busy(self) -> bool:
        """Whether the widget holds something that is nowhere else yet."""
        return False

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show the focus."""
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Take the focus away."""
        super().focusOutEvent(event)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw a line at the left while focused."""
        super().paintEvent(event)
        if not self.hasFocus():
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self._theme.color("accent"), 2))
        radius = self._theme.px(RADIUS_CONTROL)
        painter.drawRoundedRect(self.rect().adjusted(1, 1, -1, -1), radius, radius)
        painter.end()


class OwnItem(MessageItem):
    """A message of the person: plain text, as typed. Very long ones show their beginning and open on demand."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._text = ""
        self._long = False
        self._box = frame("own")
        self.pane = Pane(theme)
        self.pane.setAccessibleName("Your message")
        self.whole: QPlainTextEdit | None = None
        self.more = Button(theme, kind=Kind.META, icon="down")
        self.more.clicked.connect(self._open)
        self.more.hide()
        self._outer = column(self)
        self._outer.addWidget(self._box)
        self._inner = column(self._box)
        self._inner.addWidget(self.pane)
        self._inner.addWidget(self.more, 0, Qt.AlignmentFlag.AlignLeft)
        theme.changed.connect(self._restyle)
        self._restyle()

    def set_message(self, view: MessageView) -> None:
        """Show a message."""
        if view.text == self._text:
            return
        self._text = view.text
        lines = view.text.count("\n") + 1
        self._long = len(view.text) > LONG_CHARS or lines > LONG_LINES
        self.pane.show_plain(_beginning(view.text) if self._long else view.text)
        self.more.setText(f"Show all {lines:,} lines" if lines > 1 else f"Show all {len(view.text):,} characters")
        self.more.setAccessibleName(self.more.text())
        self.more.setVisible(self._long)
        self.setAccessibleName("You said")
        self.setAccessibleDescription(view.text[:1000])

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give a narrow window's messages more of it."""
        super().resizeEvent(event)
        self._indent()

    def _indent(self) -> None:
        indent = self._theme.px(INDENT_PX)
        if self.width() < 4 * indent:
            indent = self.width() // 10
        margins = self._outer.contentsMargins()
        if margins.left() != indent:
            self._outer.setContentsMargins(indent, 0, 0, 0)

    def _open(self) -> None:
        if self.whole is None:
            self.whole = _whole_text(self._theme, self._text)
            self._inner.replaceWidget(self.pane, self.whole)
            self.pane.hide()
            self.more.hide()
            self.whole.setFocus(Qt.FocusReason.OtherFocusReason)

    def _restyle(self) -> None:
        px = self._theme.px
        self._inner.setContentsMargins(px(14), px(11), px(14), px(8))
        self._inner.setSpacing(px(4))
        self.pane.text_changed()
        self._indent()


class AnswerItem(MessageItem):
    """An answer of the model: text, what can be done with it, a failure if there was one."""

    liked = Signal(str, bool)
    edited = Signal(str, str)
    again = Signal(str)
    chosen = Signal(str)
    copied = Signal()
    retry = Signal(str)
    said = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._view: MessageView | None = None
        self._streaming = False
        self.body = MarkdownView(theme)
        self.body.link_asked.connect(self.link_asked)
        self.body.copied.connect(self.copied)
        self._waiting = Label("Thinking…", role="muted")
        self.meta = MetaRow(theme)
        # Made when first needed: most answers neither fail nor are edited, and many are made while scrolling.
        self.failure: Failure | None = None
        self.editor: AnswerEditor | None = None
        self._connect()
        self._layout = self._fill()
        theme.changed.connect(self._restyle)
        self._restyle()

    @property
    def busy(self) -> bool:
        """Whether it streams or is being edited."""
        return self._streaming or self.editing

    @property
    def editing(self) -> bool:
        """Whether the person is putting it into other words."""
        return self.editor is not None and self.editor.isVisibleTo(self)

    @property
    def message(self) -> MessageView:
        """The message shown. There is one from the first ``set_message`` on."""
        assert self._view is not None  # noqa: S101  # the scroller never shows an item without a message
        return self._view

    def set_message(self, view: MessageView) -> None:
        """Show a message; showing the same again does nothing."""
        if view == self._view:
            return
        before, self._view = self._view, view
        streaming = view.state is MessageState.STREAMING
        if streaming:
            self._begin(view, fresh=not self._streaming)
        elif before is None or before.text != view.text or before.state is MessageState.STREAMING:
            self.body.set_text(view.text)
        self._streaming = streaming
        self._show_parts(view)

    def feed(self, text: str) -> None:
        """Append text to a streaming answer."""
        self._waiting.hide()
        self.body.show()
        self.body.feed(text)

    def start_editing(self) -> None:
        """Let the person put the answer into other words."""
        if self._view is None or self._streaming:
            return
        if self.editor is None:
            self.editor = AnswerEditor(self._theme)
            self.editor.saved.connect(self._save)
            self.editor.dismissed.connect(self._stop_editing)
            self._layout.addWidget(self.editor)
        self.editor.start(self._view.text)
        self.body.hide()
        self.meta.hide()
        self.editor.show()
        self.editor.edit.setFocus(Qt.FocusReason.OtherFocusReason)

    def copy(self) -> None:
        """Put the answer on the clipboard, as Markdown."""
        if self._view is not None:
            QApplication.clipboard().setText(self._view.text)
            self.copied.emit()

    def _connect(self) -> None:
        self.meta.good.clicked.connect(self._like)
        self.meta.edit.clicked.connect(self.start_editing)
        self.meta.again.clicked.connect(self._ask_again)
        self.meta.copy.clicked.connect(self.copy)
        self.meta.moved.connect(self._choose)

    def _fill(self) -> QVBoxLayout:
        layout = column(self)
        for widget in (self._waiting, self.body, self.meta):
            layout.addWidget(widget)
        return layout

    def _begin(self, view: MessageView, *, fresh: bool) -> None:
        if fresh:
            self.body.begin()
            if view.text:
                self.body.feed(view.text)

    def _show_parts(self, view: MessageView) -> None:
        self._waiting.setVisible(self._streaming and not view.text)
        self.body.setVisible(bool(view.text) and not self.editing)
        self._show_failure(view)
        self.meta.setVisible(not self._streaming and not self.editing)
        self.meta.set_message(view)
        self.setAccessibleName("Answer")
        self.setAccessibleDescription(view.text[:1000])

    def _show_failure(self, view: MessageView) -> None:
        failed = view.state is MessageState.FAILED
        if failed and self.failure is None:
            self.failure = Failure(self._theme)
            self.failure.button.clicked.connect(self._ask_retry)
            self._layout.insertWidget(self._layout.indexOf(self.meta), self.failure)
        if self.failure is not None:
            self.failure.setVisible(failed)
            if failed:
                self.failure.show_error(view.error)

    def _like(self, liked: bool) -> None:
        if self._view is not None:
            self.liked.emit(self._view.id, liked)

    def _ask_again(self) -> None:
        if self._view is not None:
            self.again.emit(self._view.id)

    def _ask_retry(self) -> None:
        if self._view is not None:
            self.retry.emit(self._view.id)

    def _choose(self, step: int) -> None:
        if self._view is None:
            return
        ids = self._view.sibling_ids
        number = self._view.sibling - 1 + step
        if 0 <= number < len(ids):
            self.chosen.emit(ids[number])

    def _save(self, text: str) -> None:
        view = self._view
        self._stop_editing()
        if view is not None and text != view.text:
            self.edited.emit(view.id, text)

    def _stop_editing(self) -> None:
        if self.editor is not None:
            self.editor.hide()
        if self._view is not None:
            self._show_parts(self._view)
        self.meta.edit.setFocus(Qt.FocusReason.OtherFocusReason)

    def _restyle(self) -> None:
        self._layout.setSpacing(self._theme.px(4))


def _beginning(text: str) -> str:
    lines = text[:PREVIEW_CHARS].split("\n")[:PREVIEW_LINES]
    return "\n".join(lines) + "…"


def _whole_text(theme: Theme, text: str) -> QPlainTextEdit:
    edit = QPlainTextEdit()
    edit.setProperty("box", "plain")
    edit.setReadOnly(True)
    edit.setAccessibleName("Your message")
    edit.setFixedHeight(theme.px(OPENED_PX))
    edit.setPlainText(text)
    return edit
