"""Putting widgets on the offscreen screen, and finding text that has too little room there."""

from __future__ import annotations

from PySide6.QtCore import SignalInstance
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QWidget

from app.ui.widgets import ElidedLabel


def settle() -> None:
    """Let Qt lay out, paint and deliver what is posted."""
    for _ in range(3):
        QTest.qWait(1)


def show(widget: QWidget, width: int) -> None:
    """Show a widget at this width and at the height that it asks for at that width."""
    widget.resize(width, 10)
    widget.show()
    settle()
    layout = widget.layout()
    assert layout is not None
    widget.resize(
        width, layout.totalHeightForWidth(width) if layout.hasHeightForWidth() else widget.sizeHint().height()
    )
    widget.activateWindow()
    settle()


def cut_texts(root: QWidget) -> list[str]:
    """Return what is shown with less room than it needs: labels by their lines, buttons by their hint."""
    cut = []
    for widget in root.findChildren(QWidget):
        if not widget.isVisible():
            continue
        if isinstance(widget, QLabel) and not isinstance(widget, ElidedLabel) and widget.text():
            wraps = widget.wordWrap()
            needed = widget.heightForWidth(widget.width()) if wraps else widget.sizeHint().height()
            narrow = not wraps and widget.width() < widget.sizeHint().width()
            if widget.height() < needed or narrow:
                cut.append(f"{widget.text()[:40]}: {widget.size().toTuple()}, needs {widget.sizeHint().toTuple()}")
        if isinstance(widget, QAbstractButton) and not _fits(widget):
            cut.append(f"button {widget.text()}: {widget.size().toTuple()}, needs {widget.sizeHint().toTuple()}")
        if not _is_inside(widget, root):
            cut.append(f"{type(widget).__name__} {widget.accessibleName()} reaches out of its parent")
    return cut


def _fits(button: QAbstractButton) -> bool:
    needed = button.sizeHint()
    return button.width() >= needed.width() and button.height() >= needed.height()


def _is_inside(widget: QWidget, root: QWidget) -> bool:
    parent = widget.parentWidget()
    return parent is None or widget is root or widget.width() <= max(parent.width(), 1)


def focused() -> QWidget:
    """Return what has the keyboard."""
    widget = QApplication.focusWidget()
    assert widget is not None, "nothing has the focus"
    return widget


def heard(signal: SignalInstance) -> list[tuple[object, ...]]:
    """Return a list that gets the values of every emission from now on."""
    said: list[tuple[object, ...]] = []

    def note(*values: object) -> None:
        said.append(values)

    signal.connect(note)
    return said
