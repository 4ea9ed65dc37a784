"""Every key that works anywhere in the window, in one table: the actions, their help, and their words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QDialog, QGridLayout, QMainWindow, QScrollArea, QWidget

from app.ui.theme import Theme
from app.ui.widgets import Button, Label, column, row

Standard = QKeySequence.StandardKey
Keys = str | QKeySequence.StandardKey


@dataclass(frozen=True, slots=True)
class Shortcut:
    """One action."""

    name: str
    words: str
    keys: tuple[Keys, ...]


SHORTCUTS = (
    Shortcut("new", "New chat", (Standard.New, "Ctrl+Shift+O")),
    Shortcut("palette", "Go to a chat, or do something", ("Ctrl+K",)),
    Shortcut("find", "Find in this chat", (Standard.Find,)),
    Shortcut("search", "Search chats", ("Ctrl+Shift+F",)),
    Shortcut("rename", "Rename this chat", ("F2",)),
    Shortcut("delete", "Delete this chat", ("Ctrl+Shift+Backspace",)),
    Shortcut("undo", "Undo deleting", (Standard.Undo,)),
    Shortcut("focus", "Go to the message field", ("Shift+Esc",)),
    Shortcut("stop", "Stop the answer", ("Esc",)),
    Shortcut("again", "Answer again", ("Ctrl+R",)),
    Shortcut("edit", "Edit the last answer", ("Ctrl+E",)),
    Shortcut("copy", "Copy the answer", ("Ctrl+Shift+C",)),
    Shortcut("copy_code", "Copy the last code", ("Ctrl+Shift+;",)),
    Shortcut("before", "Previous message", ("Alt+Up",)),
    Shortcut("after", "Next message", ("Alt+Down",)),
    Shortcut("latest", "Jump to latest", ("Ctrl+End",)),
    Shortcut("sidebar", "Show or hide the sidebar", ("Ctrl+B",)),
    Shortcut("versions", "Show or hide versions", ("Ctrl+Shift+M",)),
    Shortcut("larger", "Larger", (Standard.ZoomIn, "Ctrl+=")),
    Shortcut("smaller", "Smaller", (Standard.ZoomOut,)),
    Shortcut("normal", "Normal size", ("Ctrl+0",)),
    Shortcut("settings", "Settings", ("Ctrl+,",)),
    Shortcut("help", "These shortcuts", ("F1", "Ctrl+/")),
    Shortcut("quit", "Quit", (Standard.Quit, "Ctrl+Q")),
)
CARD_KEYS = (("Learn what a card proposes", "Ctrl+Alt+Return"), ("Not now", "Ctrl+Alt+Backspace"))


def sequences(shortcut: Shortcut) -> list[QKeySequence]:
    """Return the platform's key sequences of one shortcut, each once."""
    found: list[QKeySequence] = []
    for keys in shortcut.keys:
        made = [QKeySequence(keys)] if isinstance(keys, str) else QKeySequence.keyBindings(keys)
        found += [one for one in made if not one.isEmpty() and one not in found]
    return found


def install(window: QMainWindow, handlers: dict[str, Callable[[], None]]) -> dict[str, QAction]:
    """Add an action for each shortcut that has a handler; return the actions by name."""
    actions = {}
    for shortcut in SHORTCUTS:
        action = QAction(shortcut.words, window)
        action.setShortcuts(sequences(shortcut))
        action.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
        action.triggered.connect(handlers[shortcut.name])
        window.addAction(action)
        actions[shortcut.name] = action
    return actions


class ShortcutsDialog(QDialog):
    """The table, for people."""

    def __init__(self, theme: Theme, actions: dict[str, QAction], parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Keyboard shortcuts")
        inside = QWidget()
        inside.setProperty("box", "scroll")
        grid = QGridLayout(inside)
        grid.setContentsMargins(0, 0, theme.px(8), 0)
        grid.setVerticalSpacing(theme.px(6))
        lines = [(shortcut.words, _native(_typed(actions[shortcut.name].shortcuts()))) for shortcut in SHORTCUTS]
        lines += [(words, _native([QKeySequence(keys)])) for words, keys in CARD_KEYS]
        lines += [("Send, new line", "Enter, Shift+Enter"), ("Edit the last answer, in an empty field", "Up")]
        for number, (words, keys) in enumerate(lines):
            grid.addWidget(Label(words), number, 0)
            grid.addWidget(Label(keys, role="muted"), number, 1, Qt.AlignmentFlag.AlignRight)
        area = QScrollArea()
        area.setWidget(inside)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        close = Button(theme, "Close")
        close.clicked.connect(self.accept)
        foot = row()
        foot.addStretch(1)
        foot.addWidget(close)
        layout = column(self, margins=(theme.px(24), theme.px(20), theme.px(18), theme.px(18)), gap=theme.px(12))
        layout.addWidget(Label("Keyboard shortcuts", role="page"))
        layout.addWidget(area, 1)
        layout.addLayout(foot)
        room = self.screen().availableSize()
        self.resize(min(theme.px(480), room.width()), min(theme.px(620), room.height()))
        close.setFocus()


def _typed(keys: list[QKeySequence]) -> list[QKeySequence]:
    """Return the sequences that an ordinary keyboard has: none of its multimedia keys."""
    return [key for key in keys if key[0].key() < Qt.Key.Key_Back]  # type: ignore[index]


def _native(keys: list[QKeySequence]) -> str:
    return "  or  ".join(key.toString(QKeySequence.SequenceFormat.NativeText) for key in keys[:2])
