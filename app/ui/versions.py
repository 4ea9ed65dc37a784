"""The lineage panel: what was learned when, from where, which version is in use, and what is being learned now.

It shows values and says by signals what the person wants. Showing the same list again does nothing; an open row, a
typed question and its answer survive every update.

Signals:
    VersionsPanel.use_requested(commit): make this version the one in use.
    VersionsPanel.ask_requested(commit, prompt): ask it; answer with ``show_answer`` or ``show_problem``.
    VersionsPanel.stop_requested(card): stop the lesson that is being learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget

from app.clock import Clock, SystemClock
from app.errors import ErrorInfo
from app.learning.api import CardView, VersionView
from app.ui.card_prose import Prose
from app.ui.card_text import RUNNING, problem_words
from app.ui.theme import Theme
from app.ui.versions_now import NowSection
from app.ui.versions_row import VersionRow
from app.ui.versions_text import version_face
from app.ui.widgets import Button, Kind, Label, column

SHOWN_AT_FIRST = 60
"""Rows made before the person asks for older ones; the base is always shown."""
REFRESH_MS = 60_000
"""How often "just now" is looked at again."""

EMPTY = (
    "Nothing learned yet. When you correct an answer, I ask whether to learn it. Each lesson becomes a version here, "
    "and you can go back to any of them."
)


class VersionsPanel(QFrame):
    """The panel beside the conversation."""

    use_requested = Signal(str)
    ask_requested = Signal(str, str)
    stop_requested = Signal(str)

    def __init__(self, theme: Theme, *, clock: Clock | None = None) -> None:
        super().__init__()
        self._theme = theme
        self._clock = clock or SystemClock()
        self._versions: tuple[VersionView, ...] = ()
        self._rows: list[VersionRow] = []
        self._limit = SHOWN_AT_FIRST
        self._timer = QTimer(self, interval=REFRESH_MS)
        self._timer.timeout.connect(self._refresh_times)
        self._build()
        theme.changed.connect(self._restyle)
        self._restyle()

    # --- what the shell calls ---------------------------------------------------------------------------------------

    def show_view(self, versions: Sequence[VersionView]) -> None:
        """Show the timeline, newest first, the base last. Idempotent."""
        if tuple(versions) == self._versions:
            return
        self._versions = tuple(versions)
        self._render()

    def show_running(self, card: CardView | None) -> None:
        """Show the lesson that is being learned; None or a card at rest shows none."""
        self.now.show_view(card if card is not None and card.state in RUNNING else None)

    def show_answer(self, commit: str, text: str) -> None:
        """Show what a version answered; nothing happens if it is not on screen any more."""
        if (row := self.row(commit)) is not None:
            row.area.show_answer(text)

    def show_problem(self, commit: str, error: ErrorInfo) -> None:
        """Say beside the version why it could not be asked or used."""
        if (row := self.row(commit)) is not None:
            row.area.is_wanted = True
            row.set_open(True)
            row.set_version(row.version, row.face)
            row.area.show_problem(problem_words(error))

    def row(self, commit: str) -> VersionRow | None:
        """Return the row of one version, if it is on screen."""
        return next((row for row in self._rows if row.version.id == commit), None)

    def rows(self) -> list[VersionRow]:
        """Return the rows as they stand, from the top."""
        return list(self._rows)

    # --- building ---------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self.heading = Label("Versions", role="heading")
        self.empty = Prose(EMPTY, role="muted")
        self.older = Button(self._theme, kind=Kind.TEXT)
        self.older.clicked.connect(self._show_older)
        self.now = NowSection(self._theme)
        self.now.stop_requested.connect(self.stop_requested)
        inside = QWidget()
        inside.setProperty("box", "scroll")
        self._list = column(inside)
        self._list.addWidget(self.empty)
        self._list.addWidget(self.older, 0, Qt.AlignmentFlag.AlignLeft)
        self._list.addStretch(1)
        self.area = QScrollArea()
        self.area.setWidget(inside)
        self.area.setWidgetResizable(True)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._column = column(self)
        for part in (self.heading, self.area, self.now):
            self._column.addWidget(part)
        self._column.setStretch(1, 1)
        self.setAccessibleName("Versions")
        self.older.hide()
        self.empty.hide()

    def _restyle(self) -> None:
        px = self._theme.px
        self._column.setContentsMargins(px(16), px(14), px(8), px(14))
        self._column.setSpacing(px(8))
        self.empty.setContentsMargins(0, 0, px(8), px(6))

    # --- showing ----------------------------------------------------------------------------------------------------

    def _render(self) -> None:
        shown = self._shown()
        kept = {row.version.id: row for row in self._rows}
        rows = [self._row_for(version, kept) for version in shown]
        for row in kept.values():
            if row not in rows:
                row.hide()
                row.deleteLater()
        self._place(rows)
        hidden = len(self._versions) - len(shown)
        self.older.setText(f"Show {hidden} older versions")
        self.older.setVisible(hidden > 0)
        self.empty.setVisible(not any(not version.base for version in self._versions))

    def _shown(self) -> list[VersionView]:
        head = self._versions[: self._limit]
        return [*head, *(version for version in self._versions[self._limit :] if version.base or version.active)]

    def _row_for(self, version: VersionView, kept: dict[str, VersionRow]) -> VersionRow:
        shown = version_face(version, now=self._clock.now().astimezone())
        row = kept.get(version.id)
        if row is not None:
            row.set_version(version, shown)
            return row
        row = VersionRow(self._theme, version, shown)
        row.chosen.connect(self._choose)
        row.moved.connect(self._move)
        row.use_requested.connect(self.use_requested)
        row.ask_requested.connect(self.ask_requested)
        return row

    def _place(self, rows: list[VersionRow]) -> None:
        for index, (old, new) in enumerate(zip_longest(self._rows, rows)):
            if new is not None and new is not old:
                self._list.insertWidget(index + 1, new)
        self._rows = rows
        for index, row in enumerate(rows):
            row.set_edge(first=index == 0, last=index == len(rows) - 1)

    def _show_older(self) -> None:
        self._limit += SHOWN_AT_FIRST
        self._render()

    # --- what the person does ---------------------------------------------------------------------------------------

    def _choose(self, commit: str) -> None:
        for row in self._rows:
            row.set_open(row.version.id == commit and not row.is_open)

    def _move(self, step: int) -> None:
        here = next((i for i, row in enumerate(self._rows) if row.hasFocus()), None)
        if here is None:
            return
        there = min(max(here + step, 0), len(self._rows) - 1)
        self._rows[there].setFocus(Qt.FocusReason.OtherFocusReason)
        self.area.ensureWidgetVisible(self._rows[there])

    # --- time passes ------------------------------------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:
        """Bring the times up to date."""
        super().showEvent(event)
        self._refresh_times()
        self._timer.start()

    def changeEvent(self, event: QEvent) -> None:
        """Stop looking at the clock while nobody sees it."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.WindowStateChange and not self.isVisible():
            self._timer.stop()

    def _refresh_times(self) -> None:
        if not self.isVisible():
            self._timer.stop()
            return
        now = self._clock.now().astimezone()
        for row in self._rows:
            shown = version_face(row.version, now=now)
            if shown != row.face:
                row.set_version(row.version, shown)
