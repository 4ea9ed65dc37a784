"""Text over several lines with room between them, which plain labels do not offer. Shown as it is, never as markup."""

from __future__ import annotations

import html

from PySide6.QtCore import Qt

from app.ui.widgets import Label

LINE_HEIGHT_PERCENT = 128
"""Of the font's own line, which is about 1.2 em: together the 1.55 em of the design."""


class Prose(Label):
    """A wrapping label with generous lines. Set its text with ``set_words``, read it with ``words``."""

    def __init__(self, words: str = "", *, role: str = "", selectable: bool = False) -> None:
        super().__init__(role=role, wrap=True)
        self._words = ""
        # Rich text only for the line height: every character of the words is escaped.
        self.setTextFormat(Qt.TextFormat.RichText)
        if selectable:
            self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.set_words(words)

    def set_words(self, words: str) -> None:
        """Show these words; nothing happens if they are shown already."""
        if words == self._words and self.text():
            return
        self._words = words
        body = html.escape(words).replace("\n", "<br>")
        style = f"line-height: {LINE_HEIGHT_PERCENT}%; white-space: pre-wrap"
        self.setText(f'<div style="{style}">{body}</div>' if words else "")
        self.setAccessibleName(words)

    def words(self) -> str:
        """Return the words as they were given."""
        return self._words
