"""Asking before a link is opened: the address is shown whole, and only web and mail addresses are offered."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QApplication, QDialog, QWidget

from app.ui.markdown.render import safe_link
from app.ui.theme import Theme
from app.ui.widgets import Button, Kind, Label, column, frame, row

WIDTH_PX = 480
_SHOWN_CHARS = 2000


def open_address(address: str) -> bool:
    """Hand an address to the system's browser or mail program."""
    return QDesktopServices.openUrl(QUrl(address, QUrl.ParsingMode.StrictMode))


class LinkDialog(QDialog):
    """Shows where a link leads. Nothing is opened unless the person says so."""

    def __init__(
        self, theme: Theme, address: str, parent: QWidget, *, opener: Callable[[str], bool] = open_address
    ) -> None:
        super().__init__(parent)
        self._address = address
        self._opener = opener
        self.setWindowTitle("Open this address?")
        self.setMinimumWidth(theme.px(WIDTH_PX))
        host = QUrl(address).host(QUrl.ComponentFormattingOption.FullyEncoded)
        layout = column(self, margins=(theme.px(20), theme.px(18), theme.px(20), theme.px(16)), gap=theme.px(12))
        layout.addWidget(Label("Open this address in another program?", role="title"))
        layout.addWidget(Label(f"It leads to {host}." if host else "It writes a mail.", role="muted", wrap=True))
        layout.addWidget(self._address_box(theme, address))
        self.open_button = Button(theme, "Open", kind=Kind.PRIMARY)
        self.copy_button = Button(theme, "Copy address")
        self.cancel_button = Button(theme, "Cancel", kind=Kind.TEXT)
        buttons = row(gap=theme.px(8))
        for button in (self.open_button, self.copy_button, self.cancel_button):
            buttons.addWidget(button)
        buttons.addStretch(1)
        layout.addLayout(buttons)
        self.open_button.clicked.connect(self._open)
        self.copy_button.clicked.connect(self._copy)
        self.cancel_button.clicked.connect(self.reject)
        # Enter, pressed once too often, must not open anything.
        self.cancel_button.setFocus()

    @staticmethod
    def _address_box(theme: Theme, address: str) -> QWidget:
        box = frame("code")
        # A zero-width space after each separator lets a long address go over several lines.
        words = address[:_SHOWN_CHARS]
        for sign in "/?&=-_.%":
            words = words.replace(sign, f"{sign}\u200b")
        label = Label(words, wrap=True)
        label.setAccessibleName(address)
        column(box, margins=(theme.px(12), theme.px(8), theme.px(12), theme.px(8))).addWidget(label)
        return box

    def _open(self) -> None:
        self.accept()
        self._opener(self._address)

    def _copy(self) -> None:
        QApplication.clipboard().setText(self._address)
        self.accept()


def ask_to_open(theme: Theme, address: str, parent: QWidget) -> LinkDialog | None:
    """Ask about an address, or do nothing if it is none that may be opened."""
    allowed = safe_link(address)
    if allowed is None:
        return None
    dialog = LinkDialog(theme, allowed, parent)
    dialog.open()
    dialog.finished.connect(dialog.deleteLater)
    return dialog
