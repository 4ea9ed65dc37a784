"""The home folder as a line: where it is, and a button that opens it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QWidget

from app.ui.card_flow import FlowRow
from app.ui.card_prose import Prose
from app.ui.theme import Theme
from app.ui.widgets import Button, Label, column

_BREAK = "\u200b"
"""Lets a path wrap after a separator; taken out of nothing that is opened."""


def open_in_file_manager(path: str) -> bool:
    """Open a folder in the system's file manager; return whether the system took it."""
    return QDesktopServices.openUrl(QUrl.fromLocalFile(path))


class FolderLine(QWidget):
    """Shows a path and opens it."""

    def __init__(self, theme: Theme, path: str, *, opener: Callable[[str], bool] = open_in_file_manager) -> None:
        super().__init__()
        self._theme = theme
        self._path = path
        self._opener = opener
        self.path = Prose(_breakable(path), selectable=True)
        self.path.setAccessibleName(path)
        self.path.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.open = Button(theme, "Open the folder")
        self.problem = Label(role="bad", wrap=True)
        self.problem.hide()
        self.open.clicked.connect(self._open)
        self._flow = FlowRow()
        self._flow.addWidget(self.open)
        self._column = column(self)
        self._column.addWidget(self.path)
        self._column.addLayout(self._flow)
        self._column.addWidget(self.problem)
        theme.changed.connect(self._restyle)
        self._restyle()

    def _open(self) -> None:
        opened = self._opener(self._path)
        self.problem.setText("" if opened else "The system did not open it. The path above is where it lies.")
        self.problem.setVisible(not opened)

    def _restyle(self) -> None:
        self._column.setSpacing(self._theme.px(8))


def _breakable(path: str) -> str:
    return path.replace("/", f"/{_BREAK}").replace("\\", f"\\{_BREAK}")
