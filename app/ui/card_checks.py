"""The table of checks on a card: what was checked, and its result in a word or in numbers."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QWidget

from app.ui.card_text import Row, Tone
from app.ui.theme import Theme
from app.ui.widgets import Label, set_look

_TONES = {Tone.ACCENT: "good", Tone.WARN: "warn", Tone.BAD: "bad", Tone.QUIET: ""}
MAX_DETAILS = 8
"""Items named below a check; the rest is counted."""


class ChecksTable(QWidget):
    """Rows of words and results. Setting the same rows again does nothing."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._rows: tuple[Row, ...] = ()
        self._labels: list[Label] = []
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setColumnStretch(0, 1)
        theme.changed.connect(self._restyle)
        self._restyle()

    def set_rows(self, rows: tuple[Row, ...]) -> None:
        """Show these rows."""
        if rows == self._rows:
            return
        self._rows = rows
        self._clear()
        for row in rows:
            self._add(row)

    def texts(self) -> list[str]:
        """Return every text shown, in reading order."""
        return [label.text() for label in self._labels]

    def _clear(self) -> None:
        for label in self._labels:
            self._grid.removeWidget(label)
            label.hide()
            label.deleteLater()
        self._labels = []

    def _add(self, row: Row) -> None:
        line = self._grid.rowCount()
        words = Label(row.words, role="body13", wrap=True)
        result = Label(row.result, role="body13")
        set_look(result, "tone", _TONES[row.tone])
        result.setAccessibleName(f"{row.words}: {row.result}")
        top = Qt.AlignmentFlag.AlignTop
        self._grid.addWidget(words, line, 0, top)
        self._grid.addWidget(result, line, 1, top)
        self._labels += [words, result]
        if row.details:
            details = Label(_details(row.details), role="small", wrap=True)
            self._grid.addWidget(details, line + 1, 0, 1, 2)
            self._labels.append(details)

    def _restyle(self) -> None:
        self._grid.setHorizontalSpacing(self._theme.px(18))
        self._grid.setVerticalSpacing(self._theme.px(4))


def _details(details: tuple[str, ...]) -> str:
    lines = [f"· {detail}" for detail in details[:MAX_DETAILS]]
    if len(details) > MAX_DETAILS:
        lines.append(f"and {len(details) - MAX_DETAILS} more")
    return "\n".join(lines)
