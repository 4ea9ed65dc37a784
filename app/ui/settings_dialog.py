"""Settings: how it looks, how it answers, whether it may learn, and where everything is kept.

Every change takes effect at once; there is nothing to confirm. The dialog knows values only: the shell stores them.

Signals:
    SettingsDialog.scheme_changed(scheme): a ``Scheme``.
    SettingsDialog.zoom_changed(zoom): 1.0 is 100 %.
    SettingsDialog.style_changed(style): an ``AnswerStyle``.
    SettingsDialog.instructions_changed(text): after a pause in typing, and when the dialog closes.
    SettingsDialog.lock_requested(): lock learning now.
    SettingsDialog.unlock_requested(): the person wants to know how to unlock it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QDialog,
    QPlainTextEdit,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.chat.styles import AnswerStyle
from app.devmode.api import DevState, DevStatus
from app.errors import ErrorInfo
from app.ui.card_flow import FlowRow
from app.ui.card_prose import Prose
from app.ui.card_text import problem_words
from app.ui.theme import ZOOM_STEPS, Scheme, Theme
from app.ui.widgets import Button, Label, column, row
from app.ui.wizard_choice import Choice, Explanation, let_enter_press
from app.ui.wizard_folder import FolderLine, open_in_file_manager

__all__ = ["PAUSE_MS", "AnswerStyle", "SettingsDialog", "SettingsView", "developer_words"]

PAUSE_MS = 600
"""After the last key, before the instructions are stored."""


_STYLES = (
    (AnswerStyle.EXACT, "Exact", "Always the likeliest words. The same question gives the same answer."),
    (AnswerStyle.BALANCED, "Balanced", "Some variety. For everyday conversation."),
    (AnswerStyle.INVENTIVE, "Inventive", "More surprise, and more slips. For ideas and stories."),
)
_SCHEMES = ((Scheme.SYSTEM, "As the system"), (Scheme.LIGHT, "Light"), (Scheme.DARK, "Dark"))


@dataclass(frozen=True, slots=True)
class SettingsView:
    """All that the dialog shows."""

    scheme: Scheme
    zoom: float
    style: AnswerStyle
    instructions: str
    developer: DevStatus


class SettingsDialog(QDialog):
    """Opens with ``open()``. Call ``show_view`` again whenever something changed elsewhere."""

    scheme_changed = Signal(object)
    zoom_changed = Signal(float)
    style_changed = Signal(object)
    instructions_changed = Signal(str)
    lock_requested = Signal()
    unlock_requested = Signal()

    def __init__(
        self,
        theme: Theme,
        *,
        home: str,
        parent: QWidget | None = None,
        opener: Callable[[str], bool] = open_in_file_manager,
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._view: SettingsView | None = None
        self._sent = ""
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(PAUSE_MS)
        self._pause.timeout.connect(self._send_instructions)
        self.setWindowTitle("Settings")
        self.folder = FolderLine(theme, home, opener=opener)
        self.close_button = Button(theme, "Close")
        self._build()
        theme.changed.connect(self._restyle)
        self._restyle()

    def show_view(self, view: SettingsView) -> None:
        """Show these values. Idempotent; what is being typed is never overwritten."""
        if view == self._view:
            return
        self._view = view
        self.schemes[view.scheme].setChecked(True)
        self._show_zoom(view.zoom)
        self.styles[view.style].setChecked(True)
        if not self._pause.isActive() and view.instructions != self.instructions.toPlainText():
            self._sent = view.instructions
            self.instructions.setPlainText(view.instructions)
            self._pause.stop()
        self._show_developer(view.developer)

    def show_problem(self, error: ErrorInfo) -> None:
        """Say inline that a value could not be stored."""
        self.problem.setText(problem_words(error))
        self.problem.show()

    # --- building ---------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        inside = QWidget()
        inside.setProperty("box", "scroll")
        self._sections = column(inside)
        self._build_look(self._section("Appearance"))
        self._build_answers(self._section("Answers"))
        self._build_learning(self._section("Learning"))
        self._section("Your data").addWidget(self.folder)
        self._sections.addStretch(1)
        area = QScrollArea()
        area.setWidget(inside)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.problem = Label(role="bad", wrap=True)
        self.problem.hide()
        foot = row()
        foot.addWidget(self.problem, 1)
        foot.addStretch(1)
        foot.addWidget(self.close_button)
        self._column = column(self)
        self._column.addWidget(area, 1)
        self._column.addLayout(foot)
        self.close_button.clicked.connect(self.accept)
        let_enter_press(self, self.close_button)

    def _section(self, title: str) -> QVBoxLayout:
        section = column(gap=8)
        section.addWidget(Label(title, role="title", wrap=True))
        self._sections.addLayout(section)
        return section

    def _build_look(self, section: QVBoxLayout) -> None:
        self.schemes: dict[Scheme, Choice] = {}
        group = QButtonGroup(self)
        line = FlowRow(gap=16)
        for number, (scheme, words) in enumerate(_SCHEMES):
            self.schemes[scheme] = button = Choice(self._theme, words)
            group.addButton(button, number)
            line.addWidget(button)
        section.addLayout(line)
        self.smaller = Button(self._theme, "Smaller")
        self.larger = Button(self._theme, "Larger")
        self.zoom = Label()
        sized = FlowRow(gap=12)
        for part in (Label("Size of text and controls"), self.smaller, self.zoom, self.larger):
            sized.addWidget(part)
        section.addLayout(sized)
        group.idClicked.connect(self._scheme_chosen)
        self.smaller.clicked.connect(self._make_smaller)
        self.larger.clicked.connect(self._make_larger)

    def _build_answers(self, section: QVBoxLayout) -> None:
        self.styles: dict[AnswerStyle, Choice] = {}
        choices = column()
        section.addLayout(choices)
        group = QButtonGroup(self)
        for number, (style, name, words) in enumerate(_STYLES):
            self.styles[style] = button = Choice(self._theme, name, description=words)
            group.addButton(button, number)
            choices.addWidget(button)
            choices.addWidget(Explanation(self._theme, words))
        group.idClicked.connect(self._style_chosen)
        section.addWidget(Label("Your instructions", wrap=True))
        self.instructions = QPlainTextEdit()
        self.instructions.setProperty("box", "field")
        self.instructions.setAccessibleName("Your instructions")
        self.instructions.setPlaceholderText("For example: Answer briefly. Use metric units.")
        self.instructions.setTabChangesFocus(True)
        self.instructions.textChanged.connect(self._pause.start)
        section.addWidget(self.instructions)
        section.addWidget(Label("Read at the start of every chat. They are not learned.", role="small", wrap=True))

    def _build_learning(self, section: QVBoxLayout) -> None:
        self.developer = Prose()
        self.lock = Button(self._theme, "Lock now", icon="lock")
        self.unlock = Button(self._theme, "How to unlock", icon="unlock")
        self.lock.clicked.connect(self.lock_requested)
        self.unlock.clicked.connect(self.unlock_requested)
        line = FlowRow()
        line.addWidget(self.lock)
        line.addWidget(self.unlock)
        section.addWidget(self.developer)
        section.addLayout(line)

    def _restyle(self) -> None:
        px = self._theme.px
        self._column.setContentsMargins(px(24), px(20), px(18), px(18))
        self._column.setSpacing(px(12))
        self._sections.setSpacing(px(22))
        self._sections.setContentsMargins(0, 0, px(8), 0)
        self.instructions.setFixedHeight(px(88))
        room = self.screen().availableSize()
        self.resize(min(px(520), room.width()), min(px(640), room.height()))

    # --- what changes -----------------------------------------------------------------------------------------------

    def _show_developer(self, status: DevStatus) -> None:
        unlocked = status.state is DevState.UNLOCKED
        self.developer.set_words(developer_words(status))
        self.lock.setVisible(unlocked)
        self.unlock.setVisible(not unlocked)

    def _scheme_chosen(self, number: int) -> None:
        self.scheme_changed.emit(_SCHEMES[number][0])

    def _show_zoom(self, zoom: float) -> None:
        self.zoom.setText(f"{zoom:.0%}")
        self.smaller.setAccessibleName(f"Smaller text and controls, now {zoom:.0%}")
        self.larger.setAccessibleName(f"Larger text and controls, now {zoom:.0%}")
        self.smaller.setEnabled(zoom > ZOOM_STEPS[0])
        self.larger.setEnabled(zoom < ZOOM_STEPS[-1])

    def _make_smaller(self) -> None:
        self._step_zoom(-1)

    def _make_larger(self) -> None:
        self._step_zoom(1)

    def _step_zoom(self, step: int) -> None:
        if self._view is None:
            return
        index = _nearest(self._view.zoom, ZOOM_STEPS) + step
        zoom = ZOOM_STEPS[min(max(index, 0), len(ZOOM_STEPS) - 1)]
        self._view = replace(self._view, zoom=zoom)
        self._show_zoom(zoom)
        self.zoom_changed.emit(zoom)

    def _style_chosen(self, number: int) -> None:
        self.style_changed.emit(_STYLES[number][0])

    def _send_instructions(self) -> None:
        text = self.instructions.toPlainText().strip()
        if text != self._sent:
            self._sent = text
            self.instructions_changed.emit(text)

    def showEvent(self, event: QShowEvent) -> None:
        """Begin where nothing is changed by a stray key."""
        super().showEvent(event)
        self.close_button.setFocus()

    def done(self, result: int) -> None:
        """Store what was typed last."""
        self._pause.stop()
        self._send_instructions()
        super().done(result)


def developer_words(status: DevStatus) -> str:
    """Return what the state of developer mode means, in words."""
    if status.state is not DevState.UNLOCKED:
        return "Learning is locked. Suggestions are kept and can be learned later."
    left, limit = status.changes_left_today, status.budget.changes_per_day
    return f"Learning is unlocked. {left} of {limit} changes left today."


def _nearest(zoom: float, steps: Sequence[float]) -> int:
    return min(range(len(steps)), key=lambda index: abs(steps[index] - zoom))
