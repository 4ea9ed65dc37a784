"""Where the person writes.

What is typed is never lost: a draft is offered for keeping after every change, and text leaves the field only when the
owner says that the message is stored. A long paste stands beside the text as an attachment and goes with the message.

Signals:
    Composer.send_asked(text), Composer.stop_asked(): what the person wants.
    Composer.draft_changed(text): what is there now; comes a moment after the last change.
    Composer.up_in_empty(): the Up key in an empty field.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QWidget

from app.ui.growing import LONG_PASTE_CHARS, GrowingEdit
from app.ui.theme import COLUMN_PX, SIDEBAR_PX, Theme
from app.ui.widgets import Button, ElidedLabel, Kind, Label, column, frame, row, set_look

DRAFT_MS = 400


class ComposerEdit(GrowingEdit):
    """The field itself; it also reports Up where there is nothing to move in.

    Signals:
        up_in_empty().
    """

    up_in_empty = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Report Up in an empty field."""
        if event.key() == Qt.Key.Key_Up and not self.toPlainText() and not self.composing:
            self.up_in_empty.emit()
        else:
            super().keyPressEvent(event)


class Attachment(QFrame):
    """A long paste as one line.

    Signals:
        dropped(): remove it.
    """

    dropped = Signal()

    def __init__(self, theme: Theme, text: str) -> None:
        super().__init__()
        self.text = text
        self.setProperty("box", "lesson")
        lines = text.count("\n") + 1
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        words = ElidedLabel(f"Pasted text · {size} · {text[:80]}", role="small-text")
        drop = Button(theme, kind=Kind.ICON, icon="close", name="Leave the pasted text out")
        drop.clicked.connect(self.dropped)
        line = row(self, margins=(theme.px(12), theme.px(2), theme.px(4), theme.px(2)))
        line.addWidget(words, 1)
        line.addWidget(drop)


class Composer(QFrame):
    """The field with its attachments, a hint, and the button that sends or stops."""

    send_asked = Signal(str)
    stop_asked = Signal()
    draft_changed = Signal(str)
    up_in_empty = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._attachments: list[Attachment] = []
        self._streaming = False
        self._sending = False
        self._silent = False
        self._build()
        self._timer = QTimer(self, singleShot=True, interval=DRAFT_MS)
        self._timer.timeout.connect(self._offer_draft)
        self._connect()
        theme.changed.connect(self._restyle)
        self._restyle()

    # --- text -------------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """Return the whole message: what was typed, then what was pasted."""
        parts = [self.edit.toPlainText(), *(attachment.text for attachment in self._attachments)]
        return "\n\n".join(part for part in parts if part.strip())

    def set_text(self, text: str) -> None:
        """Show a draft or nothing; a very long one becomes an attachment."""
        self._silent = True
        self._timer.stop()
        for attachment in list(self._attachments):
            self._drop(attachment)
        is_long = len(text) > LONG_PASTE_CHARS
        self.edit.setPlainText("" if is_long else text)
        self.edit.moveCursor(self.edit.textCursor().MoveOperation.End)
        if is_long:
            self.attach(text)
        self._silent = False
        self._show_state()

    def attach(self, text: str) -> None:
        """Add a long text beside the field."""
        attachment = Attachment(self._theme, text)
        attachment.dropped.connect(self._drop_sender)
        self._attachments.append(attachment)
        self._chips.addWidget(attachment)
        self._changed()

    def forget_draft(self) -> None:
        """Say nothing about the last change: its owner has taken it."""
        self._timer.stop()

    # --- state ------------------------------------------------------------------------------------------------------

    def set_streaming(self, streaming: bool) -> None:
        """Say whether an answer is streaming here: then there is something to stop."""
        self._streaming = streaming
        self._show_state()

    def set_sending(self, sending: bool) -> None:
        """Say that the message is on its way to the store; the text stays until it is there."""
        self._sending = sending
        self.edit.setReadOnly(sending)
        self._show_state()

    def set_enter_sends(self, enter_sends: bool) -> None:
        """Choose between Enter and Ctrl+Enter."""
        self.edit.enter_sends = enter_sends
        self._show_state()

    def submit(self) -> None:
        """Ask to send what is there, unless it is nothing or something is on its way."""
        text = self.text()
        if text.strip() and not self._sending and not self._streaming:
            self.send_asked.emit(text)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        theme = self._theme
        self.setProperty("box", "foot")
        self.box = frame("composer")
        self.edit = ComposerEdit(theme, takes_long=False)
        self.edit.setPlaceholderText("Message your model…")
        self.edit.setAccessibleName("Message")
        self.hint = Label(role="small")
        self.send = Button(theme, "Send", kind=Kind.PRIMARY, icon="up", name="Send the message")
        self.stop = Button(theme, "Stop", icon="stop", name="Stop the answer")
        self._chip_box = QWidget()
        self._chips = column(self._chip_box, gap=theme.px(4))
        self._outer = row(self)
        self._outer.addStretch(1)
        self._outer.addWidget(self.box, 1000)
        self._outer.addStretch(1)
        self._inner = column(self.box)
        self._inner.addWidget(self._chip_box)
        self._inner.addWidget(self.edit)
        self._foot = row()
        self._foot.addWidget(self.hint)
        self._foot.addStretch(1)
        self._foot.addWidget(self.stop)
        self._foot.addWidget(self.send)
        self._inner.addLayout(self._foot)

    def _connect(self) -> None:
        self.edit.textChanged.connect(self._changed)
        self.edit.submitted.connect(self.submit)
        self.edit.escaped.connect(self._escape)
        self.edit.pasted_long.connect(self.attach)
        self.edit.up_in_empty.connect(self.up_in_empty)
        self.edit.focused.connect(self._show_focus)
        self.send.clicked.connect(self.submit)
        self.stop.clicked.connect(self.stop_asked)

    def _changed(self) -> None:
        if self._silent:
            return
        self._timer.start()
        self._show_state()

    def _offer_draft(self) -> None:
        if not self._sending:
            self.draft_changed.emit(self.text())

    def _has_text(self) -> bool:
        return bool(self._attachments) or bool(self.edit.toPlainText().strip())

    def _escape(self) -> None:
        if self._streaming:
            self.stop_asked.emit()

    def _drop_sender(self) -> None:
        attachment = self.sender()
        if isinstance(attachment, Attachment):
            self._drop(attachment)
            self.edit.setFocus(Qt.FocusReason.OtherFocusReason)
            self._changed()

    def _drop(self, attachment: Attachment) -> None:
        self._attachments.remove(attachment)
        self._chips.removeWidget(attachment)
        attachment.hide()
        attachment.deleteLater()

    def _show_focus(self, focused: bool) -> None:
        set_look(self.box, "active", "true" if focused else "false")

    def _show_state(self) -> None:
        self._chip_box.setVisible(bool(self._attachments))
        self.stop.setVisible(self._streaming)
        self.send.setVisible(not self._streaming)
        self.send.setEnabled(self._has_text() and not self._sending)
        keys = "Enter to send, Shift+Enter for a new line" if self.edit.enter_sends else "Ctrl+Enter to send"
        self.hint.setText("Esc to stop" if self._streaming else keys)

    def _restyle(self) -> None:
        px = self._theme.px
        self.box.setMaximumWidth(px(COLUMN_PX))
        self.box.setMinimumWidth(px(SIDEBAR_PX))
        self._outer.setContentsMargins(px(24), px(12), px(24), px(14))
        self._inner.setContentsMargins(px(14), px(11), px(10), px(9))
        self._inner.setSpacing(px(8))
