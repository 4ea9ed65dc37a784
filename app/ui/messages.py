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
from app.errors import ErrorInfo
from app.ui.card_flow import FlowRow
from app.ui.card_prose import Prose
from app.ui.growing import GrowingEdit
from app.ui.markdown.panes import Pane
from app.ui.markdown.view import MarkdownView
from app.ui.theme import RADIUS_CONTROL, Theme
from app.ui.widgets import Button, Kind, Label, column, frame, row

LONG_CHARS, LONG_LINES = 4_000, 40
PREVIEW_CHARS, PREVIEW_LINES = 600, 8
OPENED_PX = 420
INDENT_PX = 120


def plain_reason(error: ErrorInfo) -> str:
    """Return one sentence about a failure, with what can be done."""
    what = error.what[:1].upper() + error.what[1:]
    where = f": {error.subject}" if error.subject else ""
    return f"{what}{where}. {error.hint}".strip()


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
        self.failure = Failure(theme)
        self.failure.button.clicked.connect(self._ask_retry)
        self.meta = MetaRow(theme)
        self.editor = AnswerEditor(theme)
        self.editor.hide()
        self._connect()
        self._layout = self._fill()
        theme.changed.connect(self._restyle)
        self._restyle()

    @property
    def busy(self) -> bool:
        """Whether it streams or is being edited."""
        return self._streaming or self.editor.isVisibleTo(self)

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
        self.editor.saved.connect(self._save)
        self.editor.dismissed.connect(self._stop_editing)

    def _fill(self) -> QVBoxLayout:
        layout = column(self)
        for widget in (self._waiting, self.body, self.failure, self.meta, self.editor):
            layout.addWidget(widget)
        return layout

    def _begin(self, view: MessageView, *, fresh: bool) -> None:
        if fresh:
            self.body.begin()
            if view.text:
                self.body.feed(view.text)

    def _show_parts(self, view: MessageView) -> None:
        failed = view.state is MessageState.FAILED
        self._waiting.setVisible(self._streaming and not view.text)
        self.body.setVisible(bool(view.text) and not self.editor.isVisibleTo(self))
        self.failure.setVisible(failed)
        if failed:
            self.failure.show_error(view.error)
        self.meta.setVisible(not self._streaming and not self.editor.isVisibleTo(self))
        self.meta.set_message(view)
        self.setAccessibleName("Answer")
        self.setAccessibleDescription(view.text[:1000])

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
        self.editor.hide()
        if self._view is not None:
            self._show_parts(self._view)
        self.meta.edit.setFocus(Qt.FocusReason.OtherFocusReason)

    def _restyle(self) -> None:
        self._layout.setSpacing(self._theme.px(4))


class MetaRow(QWidget):
    """What can be done with an answer, and where it came from.

    Signals:
        moved(step): to the answer before (-1) or after (1) this one.
    """

    moved = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.good = Button(theme, "Good", kind=Kind.META, icon="heart", name="This answer is good")
        self.good.setCheckable(True)
        self.edit = Button(theme, "Edit answer", kind=Kind.META, icon="edit")
        self.again = Button(theme, "Again", kind=Kind.META, icon="again", name="Answer again")
        self.copy = Button(theme, "Copy", kind=Kind.META, icon="copy", name="Copy this answer")
        self.before = Button(theme, kind=Kind.META, icon="left", name="The answer before this one")
        self.place = Label(role="small")
        self.after = Button(theme, kind=Kind.META, icon="right", name="The answer after this one")
        self.origin = Label(role="small")
        self.before.clicked.connect(self._back)
        self.after.clicked.connect(self._forward)
        self._flow = FlowRow(self, gap=theme.px(4))
        for widget in (self.good, self.edit, self.again, self.copy, self.before, self.place, self.after, self.origin):
            self._flow.addWidget(widget)
        theme.changed.connect(self._restyle)
        self._theme = theme
        self._restyle()

    def set_message(self, view: MessageView) -> None:
        """Show what applies to one answer."""
        has_text = bool(view.text)
        self.good.setChecked(view.liked)
        self.good.set_icon("heart-filled" if view.liked else "heart")
        for button in (self.good, self.edit, self.copy):
            button.setVisible(has_text)
        self.again.setVisible(view.state is not MessageState.FAILED)
        several = view.siblings > 1 and len(view.sibling_ids) == view.siblings
        for widget in (self.before, self.place, self.after):
            widget.setVisible(several)
        self.place.setText(f"{view.sibling} of {view.siblings}")
        self.before.setEnabled(view.sibling > 1)
        self.after.setEnabled(view.sibling < view.siblings)
        self.origin.setText(origin(view))
        self.origin.setVisible(bool(self.origin.text()))
        self.updateGeometry()

    def _back(self) -> None:
        self.moved.emit(-1)

    def _forward(self) -> None:
        self.moved.emit(1)

    def _restyle(self) -> None:
        self._flow.setContentsMargins(0, 0, 0, 0)
        self._flow.setSpacing(self._theme.px(4))


class AnswerEditor(QWidget):
    """The answer as text to change in place.

    Signals:
        saved(text), dismissed().
    """

    saved = Signal(str)
    dismissed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        box = frame("composer")
        self.edit = GrowingEdit(theme, lines=24, enter_sends=False)
        self.edit.setAccessibleName("The answer in your words")
        inner = column(box, margins=(theme.px(14), theme.px(10), theme.px(14), theme.px(10)))
        inner.addWidget(self.edit)
        self.save = Button(theme, "Save", kind=Kind.PRIMARY)
        self.drop = Button(theme, "Cancel", kind=Kind.TEXT)
        buttons = row(gap=theme.px(8))
        buttons.addWidget(self.save)
        buttons.addWidget(self.drop)
        buttons.addStretch(1)
        layout = column(self, gap=theme.px(8))
        layout.addWidget(box)
        layout.addLayout(buttons)
        self.save.clicked.connect(self._save)
        self.drop.clicked.connect(self.dismissed)
        self.edit.submitted.connect(self._save)
        self.edit.escaped.connect(self.dismissed)
        self.edit.textChanged.connect(self._check)

    def start(self, text: str) -> None:
        """Begin with a text."""
        self.edit.setPlainText(text)
        self._check()

    def _check(self) -> None:
        self.save.setEnabled(bool(self.edit.toPlainText().strip()))

    def _save(self) -> None:
        if self.save.isEnabled():
            self.saved.emit(self.edit.toPlainText())


class Failure(QWidget):
    """Why an answer failed, and another try."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        box = frame("failure")
        self._words = Prose()
        self.button = Button(theme, "Try again", icon="again")
        inner = column(box, margins=(theme.px(12), theme.px(9), theme.px(12), theme.px(10)), gap=theme.px(8))
        inner.addWidget(self._words)
        inner.addWidget(self.button, 0, Qt.AlignmentFlag.AlignLeft)
        column(self).addWidget(box)

    def words(self) -> str:
        """Return the reason as it is shown."""
        return self._words.words()

    def show_error(self, error: ErrorInfo | None) -> None:
        """Say the reason."""
        words = plain_reason(error) if error else "The answer could not be finished."
        self._words.set_words(words)
        self.setAccessibleName(words)


def origin(view: MessageView) -> str:
    """Return which version answered and how fast: "14 · 62 tokens/s"."""
    parts = []
    if view.edited:
        parts.append("edited by you")
    elif view.version is not None:
        parts.append(f"version {view.version}" if view.version else "base")
    if view.tokens_per_second > 0 and not view.edited:
        parts.append(f"{view.tokens_per_second:.0f} tokens/s")
    if view.state is MessageState.STOPPED:
        parts.append("stopped")
    return " · ".join(parts)


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
