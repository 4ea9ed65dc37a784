"""The lesson on a card: shown as question and answer, or open for a change of wording.

Signals:
    WordingEditor.submitted(prompt, answer): the person wants this wording.
    WordingEditor.dismissed(): the person gave up changing it.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QInputMethodEvent, QKeyEvent
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QVBoxLayout, QWidget

from app.learning.api import Conflict
from app.ui.card_flow import FlowRow
from app.ui.card_prose import Prose
from app.ui.theme import Theme
from app.ui.widgets import Button, Kind, Label, column

SHOWN_CHARACTERS = 1200
"""Longer texts are cut until the person asks for all of them."""


class LongText(QWidget):
    """Text that wraps, with a link to the rest where it is very long."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._text = ""
        self.label = Prose(selectable=True)
        self.more = Button(theme, "Show all of it", kind=Kind.LINK)
        self.more.clicked.connect(self._show_all)
        layout = column(self, gap=2)
        layout.addWidget(self.label)
        layout.addWidget(self.more, 0, Qt.AlignmentFlag.AlignLeft)
        self.more.hide()

    def set_text(self, text: str) -> None:
        """Show ``text``; nothing happens if it is shown already."""
        if text == self._text:
            return
        self._text = text
        long = len(text) > SHOWN_CHARACTERS
        self.label.set_words(f"{text[:SHOWN_CHARACTERS].rstrip()}…" if long else text)
        self.more.setVisible(long)

    def _show_all(self) -> None:
        self.label.set_words(self._text)
        self.more.hide()


class LessonBlock(QFrame):
    """The lesson: "When asked … I will answer …"."""

    def __init__(
        self, theme: Theme, *, box: str = "lesson", asked: str = "When asked", answered: str = "I will answer"
    ) -> None:
        super().__init__()
        self._theme = theme
        self.setProperty("box", box)
        self.asked = Label(asked, role="small", wrap=True)
        self.prompt = LongText(theme)
        self.answered = Label(answered, role="small", wrap=True)
        self.answer = LongText(theme)
        self._column = column(self)
        for part in (self.asked, self.prompt, self.answered, self.answer):
            self._column.addWidget(part)
        theme.changed.connect(self._restyle)
        self._restyle()

    def set_lesson(self, prompt: str, answer: str) -> None:
        """Show a question and its answer."""
        self.prompt.set_text(prompt)
        self.answer.set_text(answer)

    def _restyle(self) -> None:
        px = self._theme.px
        self._column.setContentsMargins(px(12), px(9), px(12), px(6))
        self._column.setSpacing(px(2))
        self.answered.setContentsMargins(0, px(2), 0, 0)


class ConflictBlock(LessonBlock):
    """The earlier lesson that says something else."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(
            theme, box="notice", asked="I learned something else before. When asked", answered="I answer now"
        )

    def set_conflict(self, conflict: Conflict | None) -> None:
        """Show the earlier lesson; None changes nothing, the card hides the block."""
        if conflict is not None:
            self.set_lesson(conflict.prompt, conflict.answer)


class WordingField(QPlainTextEdit):
    """A small text field that is as tall as its text, up to eight lines.

    Signals:
        submitted(): Ctrl+Enter. Never while an input method is composing.
        dismissed(): Escape, likewise.
    """

    submitted = Signal()
    dismissed = Signal()

    def __init__(self, theme: Theme, *, name: str) -> None:
        super().__init__()
        self._theme = theme
        self.composing = False
        self.setProperty("box", "field")
        self.setAccessibleName(name)
        self.setTabChangesFocus(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        theme.changed.connect(self._fit)
        self._fit()

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        """Remember whether an input method is composing."""
        self.composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Take Ctrl+Enter and Escape, leave the rest to the field."""
        enter = event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}
        if enter and event.modifiers() & Qt.KeyboardModifier.ControlModifier and not self.composing:
            self.submitted.emit()
        elif event.key() == Qt.Key.Key_Escape and not self.composing:
            self.dismissed.emit()
        else:
            super().keyPressEvent(event)

    def _fit(self) -> None:
        lines = min(max(round(self.document().size().height()), 1), 8)
        inner = self.fontMetrics().lineSpacing() * lines + round(2 * self.document().documentMargin())
        self.setFixedHeight(inner + self._theme.px(14))


class WordingEditor(QFrame):
    """Two fields to change the lesson in, and the buttons to keep or drop the change."""

    submitted = Signal(str, str)
    dismissed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setProperty("box", "lesson")
        self.prompt = WordingField(theme, name="When asked")
        self.answer = WordingField(theme, name="I will answer")
        self.keep = Button(theme, "Use this wording", kind=Kind.PRIMARY)
        self.drop = Button(theme, "Cancel", kind=Kind.TEXT)
        self._buttons = FlowRow()
        self._buttons.place([self.keep, self.drop])
        self._column: QVBoxLayout = column(self)
        self._column.addWidget(Label("When asked", role="small"))
        self._column.addWidget(self.prompt)
        self._column.addWidget(Label("I will answer", role="small"))
        self._column.addWidget(self.answer)
        self._column.addLayout(self._buttons)
        self._connect()
        theme.changed.connect(self._restyle)
        self._restyle()

    def _connect(self) -> None:
        for field in (self.prompt, self.answer):
            field.textChanged.connect(self._check)
            field.submitted.connect(self._submit)
            field.dismissed.connect(self.dismissed)
        self.keep.clicked.connect(self._submit)
        self.drop.clicked.connect(self.dismissed)

    def set_lesson(self, prompt: str, answer: str) -> None:
        """Fill the fields."""
        self.prompt.setPlainText(prompt)
        self.answer.setPlainText(answer)

    def wording(self) -> tuple[str, str]:
        """Return what the fields say."""
        return self.prompt.toPlainText().strip(), self.answer.toPlainText().strip()

    @property
    def composing(self) -> bool:
        """Whether an input method is composing in one of the fields."""
        return self.prompt.composing or self.answer.composing

    def _check(self) -> None:
        self.keep.setEnabled(all(self.wording()))

    def _submit(self) -> None:
        if all(self.wording()):
            self.submitted.emit(*self.wording())

    def _restyle(self) -> None:
        px = self._theme.px
        self._column.setContentsMargins(px(12), px(10), px(12), px(12))
        self._column.setSpacing(px(4))
        self._buttons.setContentsMargins(0, px(8), 0, 0)
        self._buttons.setSpacing(px(8))
