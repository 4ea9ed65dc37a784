"""What stands around the text of an answer: what can be done with it, its siblings, its editor, why it failed."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from app.chat.api import MessageState, MessageView
from app.errors import ErrorInfo
from app.ui.card_flow import FlowRow
from app.ui.card_prose import Prose
from app.ui.growing import GrowingEdit
from app.ui.theme import Theme
from app.ui.widgets import Button, Kind, Label, column, frame, row


def plain_reason(error: ErrorInfo) -> str:
    """Return one sentence about a failure, with what can be done."""
    what = error.what[:1].upper() + error.what[1:]
    where = f": {error.subject}" if error.subject else ""
    return f"{what}{where}. {error.hint}".strip()


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
        self.siblings: Siblings | None = None
        self.origin = Label(role="small")
        self._flow = FlowRow(self, gap=theme.px(4))
        for widget in (self.good, self.edit, self.again, self.copy, self.origin):
            self._flow.addWidget(widget)
        self._theme = theme
        theme.changed.connect(self._restyle)
        self._restyle()

    def set_message(self, view: MessageView) -> None:
        """Show what applies to one answer."""
        has_text = bool(view.text)
        self.good.setChecked(view.liked)
        self.good.set_icon("heart-filled" if view.liked else "heart")
        for button in (self.good, self.edit, self.copy):
            button.setVisible(has_text)
        self.again.setVisible(view.state is not MessageState.FAILED)
        self._show_siblings(view)
        self.origin.setText(origin(view))
        self.origin.setVisible(bool(self.origin.text()))
        self.updateGeometry()

    def _show_siblings(self, view: MessageView) -> None:
        several = view.siblings > 1 and len(view.sibling_ids) == view.siblings
        if several and self.siblings is None:
            self.siblings = Siblings(self._theme)
            self.siblings.moved.connect(self.moved)
            self._flow.place([self.good, self.edit, self.again, self.copy, self.siblings, self.origin])
        if self.siblings is not None:
            self.siblings.setVisible(several)
            self.siblings.show_place(view.sibling, view.siblings)

    def _restyle(self) -> None:
        self._flow.setContentsMargins(0, 0, 0, 0)
        self._flow.setSpacing(self._theme.px(4))


class Siblings(QWidget):
    """Which of several answers this is, and the way to the others.

    Signals:
        moved(step): to the answer before (-1) or after (1) this one.
    """

    moved = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.before = Button(theme, kind=Kind.META, icon="left", name="The answer before this one")
        self.place = Label(role="small")
        self.after = Button(theme, kind=Kind.META, icon="right", name="The answer after this one")
        self.before.clicked.connect(self._back)
        self.after.clicked.connect(self._forward)
        line = row(self, gap=theme.px(2))
        for widget in (self.before, self.place, self.after):
            line.addWidget(widget)

    def show_place(self, number: int, count: int) -> None:
        """Show a place, from 1."""
        self.place.setText(f"{number} of {count}")
        self.before.setEnabled(number > 1)
        self.after.setEnabled(number < count)

    def _back(self) -> None:
        self.moved.emit(-1)

    def _forward(self) -> None:
        self.moved.emit(1)


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
