"""About: which version this is, under which licences, and where everything is kept.

The version number is a button. Seven clicks on it find developer mode; only the last four say so.

Signals:
    AboutDialog.wizard_requested(): the wizard may open now.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QDialog, QScrollArea, QWidget

from app.devmode.api import DevState
from app.errors import AppError
from app.ui.card_prose import Prose
from app.ui.card_text import problem_words
from app.ui.theme import Theme
from app.ui.widgets import Button, Kind, Label, column, row
from app.ui.wizard_calls import DevCalls
from app.ui.wizard_choice import let_enter_press
from app.ui.wizard_folder import FolderLine, open_in_file_manager
from app.ui.wizard_tasks import DialogTasks

HINT_FROM = 4
"""Clicks left from which the hint is shown."""

LICENCES = (
    ("Ownmind", "Apache-2.0"),
    ("SmolLM2-135M-Instruct, the model it comes with", "Apache-2.0, Hugging Face"),
    ("all-MiniLM-L6-v2, which compares meanings in the checks", "Apache-2.0, Sentence Transformers"),
    ("Qt and PySide, which draw this window", "LGPL-3.0, The Qt Company"),
    ("llama.cpp, which runs the model", "MIT"),
    ("PyTorch and PEFT, which train it", "BSD-3-Clause and Apache-2.0"),
)


class AboutDialog(QDialog):
    """Opens with ``open()``."""

    wizard_requested = Signal()

    def __init__(
        self,
        theme: Theme,
        calls: DevCalls,
        *,
        version: str,
        home: str,
        parent: QWidget | None = None,
        opener: Callable[[str], bool] = open_in_file_manager,
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._calls = calls
        self._tasks = DialogTasks()
        self._state = DevState.LOCKED
        self._asked = False
        self.version = Button(theme, f"Version {version}", kind=Kind.LINK)
        self.hint = Label(role="small", wrap=True)
        self.folder = FolderLine(theme, home, opener=opener)
        self.close_button = Button(theme, "Close")
        self.setWindowTitle("About Ownmind")
        self._build()
        theme.changed.connect(self._restyle)
        self._restyle()

    def _build(self) -> None:
        inside = QWidget()
        inside.setProperty("box", "scroll")
        self._text = column(inside)
        self._text.addWidget(Label("Ownmind", role="page"))
        self._text.addWidget(self.version, 0, Qt.AlignmentFlag.AlignLeft)
        self._text.addWidget(self.hint)
        self._text.addWidget(Prose("Talk with a language model that is yours, and teach it by correcting it."))
        self._folder_title = Label("Everything is kept here", role="title", wrap=True)
        self._licence_title = Label("Licences", role="title", wrap=True)
        self._text.addWidget(self._folder_title)
        self._text.addWidget(self.folder)
        self._text.addWidget(self._licence_title)
        for name, licence in LICENCES:
            self._text.addWidget(Prose(f"{name}: {licence}", role="muted"))
        self._text.addStretch(1)
        area = QScrollArea()
        area.setWidget(inside)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        foot = row()
        foot.addStretch(1)
        foot.addWidget(self.close_button)
        self._column = column(self)
        self._column.addWidget(area, 1)
        self._column.addLayout(foot)
        self.version.clicked.connect(self._click)
        self.close_button.clicked.connect(self.accept)
        let_enter_press(self, self.close_button)

    def _restyle(self) -> None:
        px = self._theme.px
        self._column.setContentsMargins(px(24), px(20), px(24), px(18))
        self._column.setSpacing(px(12))
        self._text.setSpacing(px(6))
        for title in (self._folder_title, self._licence_title):
            title.setContentsMargins(0, px(12), 0, 0)
        room = self.screen().availableSize()
        self.resize(min(px(520), room.width()), min(px(580), room.height()))

    def showEvent(self, event: QShowEvent) -> None:
        """Look at developer mode's state and start counting afresh."""
        super().showEvent(event)
        self._asked = False
        self.close_button.setFocus()
        self._tasks.start(self._look(), "look at developer mode")

    def done(self, result: int) -> None:
        """End what is still being asked."""
        self._tasks.cancel_all()
        super().done(result)

    async def _look(self) -> None:
        try:
            self._state = (await self._calls.status()).state
        except AppError as error:
            self.hint.setText(problem_words(error.info()))
            return
        self.hint.setText("Learning is unlocked." if self._state is DevState.UNLOCKED else "")

    def _click(self) -> None:
        self._tasks.start(self._count(), "count a click")

    async def _count(self) -> None:
        if self._state is DevState.UNLOCKED:
            return
        try:
            left = await self._calls.click_version()
        except AppError as error:
            self.hint.setText(problem_words(error.info()))
            return
        self._say(left)

    def _say(self, left: int) -> None:
        if left > HINT_FROM:
            return
        clicks = "1 more click" if left == 1 else f"{left} more clicks"
        self.hint.setText(f"{clicks} to developer mode" if left else "Developer mode found")
        if not left and not self._asked:
            self._asked = True
            self.wizard_requested.emit()
