"""The style sheet of the whole application, generated from the tokens and the zoom.

Widgets choose a look by a dynamic property, never by a sheet of their own: ``role`` on labels, ``kind`` on buttons,
``box`` on frames. Rules know colours only by token name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_RULES = """
* { outline: none; }
QWidget { font-size: 14px; }
QMainWindow, QDialog, QWidget[box="bg"] { background: @bg; color: @text; }
QToolTip { background: @surface; color: @text; border: 1px solid @line; padding: 4px 6px; font-size: 12px; }

QLabel { background: transparent; color: @text; }
QLabel[role="muted"] { color: @muted; }
QLabel[role="small"] { color: @muted; font-size: 12px; }
QLabel[role="small-text"] { color: @text; font-size: 12px; }
QLabel[role="title"] { font-weight: 600; }
QLabel[role="heading"] { font-weight: 600; font-size: 13px; }
QLabel[role="body13"] { font-size: 13px; }
QLabel[role="page"] { font-weight: 600; font-size: 20px; }
QLabel[role="good"] { color: @accent; }
QLabel[role="warn"] { color: @warn; }
QLabel[role="bad"] { color: @bad; }
QLabel[tone="good"] { color: @accent; }
QLabel[tone="warn"] { color: @warn; }
QLabel[tone="bad"] { color: @bad; }

QFrame[box="side"] { background: @side; border: none; border-right: 1px solid @line; }
QFrame[box="panel"] { background: @bg; border: none; border-left: 1px solid @line; }
QFrame[box="header"] { background: @bg; border: none; border-bottom: 1px solid @line; }
QFrame[box="foot"] { background: transparent; border: none; border-top: 1px solid @line; }
QFrame[box="rule"] { background: @line; border: none; }
QFrame[box="card"] { background: @surface; border: 1px solid @line; border-radius: 10px; }
QFrame[box="approval"] {
  background: @surface; border: 1px solid @line; border-left: 3px solid @accent; border-radius: 10px;
}
QFrame[box="approval"][tone="bad"] { border-left-color: @bad; }
QFrame[box="approval"][tone="warn"] { border-left-color: @warn; }
QFrame[box="approval"][tone="quiet"] { border-left-color: @line; }
QFrame[box="lesson"] { background: @accent_soft; border: none; border-radius: 8px; }
QFrame[box="notice"] { background: @warn_soft; border: none; border-radius: 8px; }
QFrame[box="own"] { background: @own; border: none; border-radius: 14px; }
QFrame[box="code"] { background: @code; border: 1px solid @line; border-radius: 8px; }
QFrame[box="failure"] { background: @bad_soft; border: none; border-radius: 8px; }
QFrame[box="banner"] { background: @bad_soft; border: none; border-bottom: 1px solid @line; }
QFrame[box="toast"] { background: @text; border: none; border-radius: 8px; }
QFrame[box="toast"] QLabel { color: @bg; }
QFrame[box="composer"] { background: @surface; border: 1px solid @line; border-radius: 14px; }
QFrame[box="composer"][active="true"] { border: 1px solid @accent; }

QPushButton {
  background: @surface; color: @text; border: 1px solid @line; border-radius: 8px; padding: 5px 13px;
}
QPushButton:hover { background: @hover; }
QPushButton:pressed { background: @line; }
QPushButton:disabled { color: @muted; background: transparent; }
QPushButton:focus { border: 2px solid @accent; padding: 4px 12px; }
QPushButton[kind="primary"] { background: @accent; border: 1px solid @accent; color: @on_accent; }
QPushButton[kind="primary"]:hover { border: 1px solid @text; }
QPushButton[kind="primary"]:pressed { background: @accent; border: 1px solid @text; }
QPushButton[kind="primary"]:disabled { background: @line; border-color: @line; color: @muted; }
QPushButton[kind="primary"]:focus { border: 2px solid @text; padding: 4px 12px; }
QPushButton[kind="text"] { background: transparent; border: 1px solid transparent; color: @muted; }
QPushButton[kind="text"]:hover { color: @text; background: @hover; }
QPushButton[kind="text"]:focus { border: 2px solid @accent; padding: 4px 12px; color: @text; }
QPushButton[kind="link"] {
  background: transparent; border: 1px solid transparent; border-radius: 4px; color: @text; padding: 0px 2px;
  font-size: 12px;
}
QPushButton[kind="link"]:hover { text-decoration: underline; }
QPushButton[kind="link"]:focus { border: 1px solid @accent; padding: 0px 2px; }
QPushButton[kind="foot"] {
  background: transparent; border: 1px solid transparent; border-radius: 8px; color: @muted; padding: 4px 8px;
  font-size: 12px; text-align: left;
}
QPushButton[kind="foot"]:hover { background: @hover; color: @text; }
QPushButton[kind="foot"]:focus { border: 2px solid @accent; padding: 3px 7px; }
QPushButton[kind="meta"] {
  background: transparent; border: 1px solid transparent; border-radius: 6px; color: @muted; padding: 1px 4px;
  font-size: 12px;
}
QPushButton[kind="meta"]:hover { color: @text; background: @hover; }
QPushButton[kind="meta"]:checked { color: @accent; }
QPushButton[kind="meta"]:focus { border: 1px solid @accent; color: @text; }
QPushButton[kind="icon"] {
  background: transparent; border: 1px solid transparent; border-radius: 8px; padding: 4px; color: @muted;
}
QPushButton[kind="icon"]:hover { background: @hover; color: @text; }
QPushButton[kind="icon"]:focus { border: 2px solid @accent; padding: 3px; }
QPushButton[kind="row"] {
  background: transparent; border: 1px solid transparent; border-radius: 8px; padding: 6px 9px; text-align: left;
}
QPushButton[kind="row"]:hover { background: @hover; }
QPushButton[kind="row"]:checked { background: @surface; border: 1px solid @line; }
QPushButton[kind="row"]:focus { border: 2px solid @accent; padding: 5px 8px; }
QPushButton[kind="new"] { text-align: left; padding: 7px 10px; }
QPushButton[kind="new"]:focus { padding: 6px 9px; }
QFrame[box="toast"] QPushButton { background: transparent; border: 1px solid @muted; color: @bg; padding: 3px 10px; }
QFrame[box="toast"] QPushButton:focus { border: 1px solid @bg; }

QLineEdit, QPlainTextEdit[box="field"], QTextEdit[box="field"] {
  background: @surface; color: @text; border: 1px solid @line; border-radius: 8px; padding: 5px 9px;
  selection-background-color: @accent; selection-color: @on_accent;
}
QLineEdit:focus, QPlainTextEdit[box="field"]:focus, QTextEdit[box="field"]:focus {
  border: 2px solid @accent; padding: 4px 8px;
}
QLineEdit:disabled { color: @muted; background: @bg; }
QLineEdit[box="quiet"] { background: transparent; border: 1px solid transparent; padding: 5px 4px 5px 2px; }
QLineEdit[box="quiet"]:hover { background: @hover; }
QLineEdit[box="quiet"]:focus { background: @surface; border: 2px solid @accent; padding: 4px 3px 4px 1px; }
QTextEdit[box="plain"], QTextBrowser, QPlainTextEdit[box="plain"] {
  background: transparent; border: none; padding: 0; color: @text;
  selection-background-color: @accent; selection-color: @on_accent;
}
QTextBrowser:focus { background: @hover; border-radius: 4px; }

QListView { background: transparent; border: none; }
QListWidget { color: @text; }
QListWidget::item { padding: 6px 9px; border-radius: 8px; }
QListWidget::item:selected { background: @hover; color: @text; }
QScrollArea, QScrollArea > QWidget > QWidget[box="scroll"] { background: transparent; border: none; }
QAbstractScrollArea::corner { background: transparent; border: none; }
QScrollBar:vertical { background: transparent; width: 10px; margin: 0; }
QScrollBar:horizontal { background: transparent; height: 10px; margin: 0; }
QScrollBar::handle { background: @line; border-radius: 3px; margin: 2px; min-height: 28px; min-width: 28px; }
QScrollBar::handle:hover { background: @muted; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }

QProgressBar { background: @line; border: none; border-radius: 2px; max-height: 4px; min-height: 4px; }
QProgressBar::chunk { background: @accent; border-radius: 2px; }
QMenu { background: @surface; color: @text; border: 1px solid @line; padding: 4px; }
QMenu::item { padding: 5px 22px 5px 12px; border-radius: 6px; }
QMenu::item:selected { background: @hover; }
QMenu::item:disabled { color: @muted; }
QMenu::separator { height: 1px; background: @line; margin: 4px 6px; }
QSplitter::handle { background: transparent; }
"""
_LENGTH = re.compile(r"(\d+)px")
_TOKEN = re.compile(r"@(\w+)")


def style_sheet(colors: Mapping[str, str], px: Callable[[float], int]) -> str:
    """Return the sheet for one table of colours. Lengths of 1 to 3 px are lines and stay as they are at any zoom."""

    def length(match: re.Match[str]) -> str:
        value = int(match[1])
        return f"{value if value <= 3 else px(value)}px"

    return _LENGTH.sub(length, _TOKEN.sub(lambda match: colors[match[1]], _RULES))
