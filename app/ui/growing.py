"""A text field that is as tall as its text, up to a limit, and that never mistakes composing for typing.

Signals:
    GrowingEdit.submitted(): Enter, or Ctrl+Enter, was pressed to send.
    GrowingEdit.escaped(): Escape was pressed.
    GrowingEdit.focused(focused): the keyboard focus came or went.
    GrowingEdit.pasted_long(text): a paste too long for the field; it has not been inserted.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QMimeData, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QInputMethodEvent, QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QPlainTextEdit, QSizePolicy

from app.ui.theme import Theme

LONG_PASTE_CHARS = 8_000
_ENTER = frozenset({Qt.Key.Key_Return, Qt.Key.Key_Enter})


class GrowingEdit(QPlainTextEdit):
    """A plain text field.

    Args:
        lines: The most lines it shows before it scrolls.
        enter_sends: Whether Enter alone submits; Ctrl+Enter always does, Shift+Enter never.
        takes_long: Whether long pastes are inserted; if not they are only announced.
    """

    submitted = Signal()
    escaped = Signal()
    focused = Signal(bool)
    pasted_long = Signal(str)

    def __init__(self, theme: Theme, *, lines: int = 12, enter_sends: bool = True, takes_long: bool = True) -> None:
        super().__init__()
        self._theme = theme
        self._lines = lines
        self._takes_long = takes_long
        self._composing = False
        self.enter_sends = enter_sends
        self.setProperty("box", "plain")
        self.setFrameShape(QPlainTextEdit.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.document().setDocumentMargin(0)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        theme.changed.connect(self._fit)
        self._fit()

    @property
    def composing(self) -> bool:
        """Whether an input method holds text that is not committed yet."""
        return self._composing

    def sizeHint(self) -> QSize:
        """Return the height of the text, up to the limit."""
        rows = min(max(int(self.document().size().height()), 1), self._lines)
        return QSize(self._theme.px(200), round(rows * self.fontMetrics().lineSpacing()) + self._theme.px(4))

    def minimumSizeHint(self) -> QSize:
        """Return that it can be narrow."""
        return QSize(self._theme.px(80), self.sizeHint().height())

    def event(self, event: QEvent) -> bool:
        """Keep Enter and Escape from the window's shortcuts, and give it Undo where there is nothing to undo here."""
        if event.type() is QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            if event.key() in _ENTER or event.key() == Qt.Key.Key_Escape:
                if event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier == Qt.KeyboardModifier.NoModifier:
                    event.accept()
                    return True
            elif event.matches(QKeySequence.StandardKey.Undo) and not self.document().isUndoAvailable():
                event.ignore()
                return False
        return super().event(event)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        """Remember whether something is being composed."""
        self._composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Tell the frame around it."""
        super().focusInEvent(event)
        self.focused.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """End composing with the focus, as input methods do."""
        self._composing = False
        super().focusOutEvent(event)
        self.focused.emit(False)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Submit on Enter and report Escape, but never while composing."""
        is_key = event.key() in _ENTER or event.key() == Qt.Key.Key_Escape
        if self._composing and is_key:
            event.accept()
        elif event.key() in _ENTER and self._submits(event.modifiers()):
            self.submitted.emit()
        elif event.key() == Qt.Key.Key_Escape:
            self.escaped.emit()
        else:
            super().keyPressEvent(event)

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Insert plain text only, and announce what is too long to be edited here."""
        text = source.text()
        if not self._takes_long and len(text) > LONG_PASTE_CHARS:
            self.pasted_long.emit(text)
        elif text:
            self.textCursor().insertText(text)
            self.ensureCursorVisible()

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        """Return whether there is text; files and images are not taken."""
        return source.hasText() and not source.hasUrls()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit again: another width wraps otherwise."""
        super().resizeEvent(event)
        self._fit()

    def _submits(self, modifiers: Qt.KeyboardModifier) -> bool:
        modifiers &= ~Qt.KeyboardModifier.KeypadModifier
        if modifiers == Qt.KeyboardModifier.ControlModifier:
            return True
        return self.enter_sends and modifiers == Qt.KeyboardModifier.NoModifier

    def _fit(self) -> None:
        tall = self.document().size().height() > self._lines
        policy = Qt.ScrollBarPolicy.ScrollBarAsNeeded if tall else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        if self.verticalScrollBarPolicy() is not policy:
            self.setVerticalScrollBarPolicy(policy)
        height = self.sizeHint().height()
        if height != self.height():
            self.setFixedHeight(height)
