"""A line to ask one past version a question, and its answer in plain text.

Signals:
    AskArea.asked(prompt): the person wants an answer.
    AskArea.dismissed(): the person closed it.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QLineEdit

from app.ui.card_prose import Prose
from app.ui.theme import Theme
from app.ui.widgets import Button, Label, column, row


class AskArea(QFrame):
    """Asks once at a time; the last answer stays until the next one comes."""

    asked = Signal(str)
    dismissed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._waiting = False
        self.is_wanted = False
        """Whether the person opened it; kept while the row is closed."""
        self.prompt = QLineEdit()
        self.prompt.setPlaceholderText("Ask one question")
        self.prompt.setAccessibleName("Question to this version")
        self.send = Button(theme, "Ask")
        self.state = Label(role="small")
        self.answer = Prose(selectable=True)
        self.problem = Label(role="bad", wrap=True)
        self._build()
        theme.changed.connect(self._restyle)
        self._restyle()

    def _build(self) -> None:
        self._line = row()
        self._line.addWidget(self.prompt, 1)
        self._line.addWidget(self.send)
        self._column = column(self)
        self._column.addLayout(self._line)
        for part in (self.state, self.answer, self.problem):
            self._column.addWidget(part)
            part.hide()
        self.prompt.returnPressed.connect(self._ask)
        self.prompt.textChanged.connect(self._check)
        self.send.clicked.connect(self._ask)
        self._check()

    def show_answer(self, text: str) -> None:
        """Show what the version said."""
        self._end(answer=text or "It said nothing.", problem="")

    def show_problem(self, text: str) -> None:
        """Say why there is no answer."""
        self._end(answer="", problem=text)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Close with Escape."""
        if event.key() == Qt.Key.Key_Escape:
            self.dismissed.emit()
            return
        super().keyPressEvent(event)

    def _ask(self) -> None:
        prompt = self.prompt.text().strip()
        if not prompt or self._waiting:
            return
        self._waiting = True
        self.state.setText("asking …")
        self.state.show()
        self.answer.hide()
        self.problem.hide()
        self._check()
        self.asked.emit(prompt)

    def _end(self, *, answer: str, problem: str) -> None:
        self._waiting = False
        self.state.hide()
        self.answer.set_words(answer)
        self.answer.setVisible(bool(answer))
        self.problem.setText(problem)
        self.problem.setVisible(bool(problem))
        self._check()

    def _check(self) -> None:
        self.send.setEnabled(bool(self.prompt.text().strip()) and not self._waiting)

    def _restyle(self) -> None:
        px = self._theme.px
        self._column.setContentsMargins(0, px(6), 0, 0)
        self._column.setSpacing(px(6))
        self._line.setSpacing(px(6))
