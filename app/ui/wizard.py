"""The wizard that unlocks learning: five pages in one calm window. Nothing is unlocked before the last page.

Open it with ``open()``; it never runs an event loop of its own. Closing it at any point leaves everything as it was.

Signals:
    UnlockWizard.unlocked(status): learning is unlocked; carries a ``DevStatus``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QDialog, QScrollArea, QStackedWidget, QWidget

from app.devmode.api import Budget
from app.errors import AppError
from app.ui.card_text import problem_words
from app.ui.theme import Theme
from app.ui.widgets import Button, Kind, Label, column, row, rule
from app.ui.wizard_calls import DevCalls
from app.ui.wizard_choice import let_enter_press
from app.ui.wizard_folder import open_in_file_manager
from app.ui.wizard_pages import ChangesPage, LimitsPage, MachinePage, Page, SentencePage, SnapshotsPage
from app.ui.wizard_tasks import DialogTasks

WIDTH_PX, HEIGHT_PX = 560, 540


class UnlockWizard(QDialog):
    """Five pages, Back always possible."""

    unlocked = Signal(object)

    def __init__(
        self,
        theme: Theme,
        calls: DevCalls,
        *,
        home: str,
        budget: Budget | None = None,
        parent: QWidget | None = None,
        opener: Callable[[str], bool] = open_in_file_manager,
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._calls = calls
        self._tasks = DialogTasks()
        self._measuring: asyncio.Task[None] | None = None
        self._unlocking: asyncio.Task[None] | None = None
        self.machine = MachinePage(theme)
        self.limits = LimitsPage(theme, budget or Budget())
        self.sentence = SentencePage(theme)
        self.pages: tuple[Page, ...] = (
            ChangesPage(theme),
            self.machine,
            self.limits,
            SnapshotsPage(theme, home, opener),
            self.sentence,
        )
        self._build()
        self._connect()
        self._show_page(0)

    # --- building ---------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self.stack = QStackedWidget()
        for page in self.pages:
            self.stack.addWidget(_scrolling(page))
        self.step = Label(role="small")
        self.leave = Button(self._theme, "Not now", kind=Kind.TEXT)
        self.back = Button(self._theme, "Back")
        self.next = Button(self._theme, "Next", kind=Kind.PRIMARY)
        self.unlock = Button(self._theme, "Unlock learning", kind=Kind.PRIMARY)
        self._foot = row()
        self._foot.addWidget(self.leave)
        self._foot.addStretch(1)
        for button in (self.back, self.next, self.unlock):
            self._foot.addWidget(button)
        self._column = column(self)
        self._column.addWidget(self.step)
        self._column.addWidget(self.stack, 1)
        self._column.addWidget(rule())
        self._column.addLayout(self._foot)

    def _connect(self) -> None:
        self.leave.clicked.connect(self.reject)
        self.back.clicked.connect(self._go_back)
        self.next.clicked.connect(self._go_on)
        self.unlock.clicked.connect(self._start_unlock)
        self.machine.measure_requested.connect(self._measure)
        self.sentence.ready_changed.connect(self.unlock.setEnabled)
        self._theme.changed.connect(self._restyle)
        self._restyle()

    def _restyle(self) -> None:
        px = self._theme.px
        self._column.setContentsMargins(px(24), px(18), px(24), px(18))
        self._column.setSpacing(px(10))
        self._foot.setSpacing(px(8))
        self._fit()

    def _fit(self) -> None:
        room = self.screen().availableSize()
        width = min(self._theme.px(WIDTH_PX), room.width())
        height = min(self._theme.px(HEIGHT_PX), room.height())
        self.resize(width, height)

    def showEvent(self, event: QShowEvent) -> None:
        """Fit the screen it opens on."""
        super().showEvent(event)
        self._fit()
        self.next.setFocus()

    # --- pages ------------------------------------------------------------------------------------------------------

    @property
    def index(self) -> int:
        """Which page is shown, from 0."""
        return self.stack.currentIndex()

    def _go_on(self) -> None:
        self._show_page(self.index + 1)

    def _go_back(self) -> None:
        self._show_page(self.index - 1)

    def _show_page(self, index: int) -> None:
        page = self.pages[index]
        last = index == len(self.pages) - 1
        self.stack.setCurrentIndex(index)
        self.step.setText(f"Step {index + 1} of {len(self.pages)}")
        self.setWindowTitle(f"Unlock learning: {page.title.lower()}")
        self.setAccessibleName(self.windowTitle())
        self.back.setEnabled(index > 0)
        self.next.setVisible(not last)
        self.unlock.setVisible(last)
        self.unlock.setEnabled(self.sentence.ready)
        let_enter_press(self, self.unlock if last else self.next)
        (page.first_control() or self.next).setFocus(Qt.FocusReason.OtherFocusReason)
        if page is self.machine and not self.machine.measured:
            self._measure()

    # --- measuring and unlocking ------------------------------------------------------------------------------------

    def _measure(self) -> None:
        if self._measuring is None or self._measuring.done():
            self.machine.show_measuring()
            self._measuring = self._tasks.start(self._check_machine(), "measure the machine")

    async def _check_machine(self) -> None:
        try:
            checks = await self._calls.check_machine()
        except AppError as error:
            self.machine.show_problem(problem_words(error.info()))
        else:
            self.machine.show_checks(checks)

    def _start_unlock(self) -> None:
        if self.sentence.ready and (self._unlocking is None or self._unlocking.done()):
            self._set_busy(busy=True)
            self._unlocking = self._tasks.start(self._unlock(), "unlock learning")

    async def _unlock(self) -> None:
        try:
            status = await self._calls.unlock(self.sentence.line.text(), self.limits.budget())
        except AppError as error:
            self._set_busy(busy=False)
            self.sentence.show_problem(problem_words(error.info()))
            return
        self.accept()
        self.unlocked.emit(status)

    def _set_busy(self, *, busy: bool) -> None:
        self.unlock.setEnabled(not busy and self.sentence.ready)
        self.back.setEnabled(not busy)
        self.sentence.line.setEnabled(not busy)

    def done(self, result: int) -> None:
        """End what is still being measured. What was sent to be unlocked may still have been: whoever opens asks."""
        self._tasks.cancel_all()
        super().done(result)


def _scrolling(page: Page) -> QScrollArea:
    area = QScrollArea()
    area.setWidget(page)
    area.setWidgetResizable(True)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    return area
