"""One answer as a column of blocks, also while it streams.

New text is shown at a steady cadence: every 33 ms, more slowly where showing it takes longer than that allows. Blocks
that are final keep their widgets; only the tail changes.

Signals:
    MarkdownView.link_asked(address): see ``Pane``.
    MarkdownView.copied(): code was copied.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QTextBlock, QTextBlockFormat, QTextCursor
from PySide6.QtWidgets import QApplication, QFrame, QWidget

from app.ui.markdown.blocks import Block, Segmenter
from app.ui.markdown.code import DARK_CODE, LIGHT_CODE, colored
from app.ui.markdown.panes import CodePane, Pane
from app.ui.markdown.render import to_html
from app.ui.theme import Theme
from app.ui.widgets import Button, Kind, Label, column, row

_FIXED = QTextBlockFormat.LineHeightTypes.FixedHeight.value
CADENCE_MS = 33
SLOWEST_MS = 250
_COST_SHARE = 6
"""Showing text takes at most one sixth of the time."""


class TextBlock(Pane):
    """A run of text."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self.block = Block("")
        self._references: dict[str, Any] = {}

    def set_block(self, block: Block, references: dict[str, Any]) -> None:
        """Show a block; showing the same again does nothing."""
        if (block, references) != (self.block, self._references):
            self.block, self._references = block, dict(references)
            self.render_block()

    def render_block(self) -> None:
        """Show the block in the present theme."""
        theme = self._theme
        self.document().setDefaultFont(theme.font())
        self.document().setIndentWidth(theme.px(22))
        self.document().setDefaultStyleSheet(_document_sheet(theme))
        mono = theme.mono().family()
        self.show_html(to_html(self.block.source, asdict(theme.tokens), mono=mono, references=self._references))

    def shape_lines(self) -> None:
        """Trim the outer margins too: the column adds its own."""
        super().shape_lines()
        _trim(self)


class CodeBlock(QFrame):
    """A fence: its language, a button that copies it, and the code."""

    copied = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setProperty("box", "code")
        self._theme = theme
        self._block = Block("", "")
        self._label = Label(role="small")
        self._copy = Button(theme, "Copy", kind=Kind.META, icon="copy", name="Copy this code")
        self._copy.clicked.connect(self.copy)
        self.pane = CodePane(theme)
        top = row(gap=8)
        top.addWidget(self._label)
        top.addStretch(1)
        top.addWidget(self._copy)
        layout = column(self, margins=(theme.px(12), theme.px(6), theme.px(6), theme.px(10)), gap=theme.px(4))
        layout.addLayout(top)
        layout.addWidget(self.pane)

    def set_block(self, block: Block, references: dict[str, Any]) -> None:
        """Show a block; showing the same again does nothing."""
        del references
        if block != self._block or not self._label.text():
            self._block = block
            self.render_block()

    def render_block(self) -> None:
        """Show the block in the present theme. A fence that is still open stays plain."""
        block = self._block
        self._label.setText(block.language or "code")
        self.pane.setAccessibleName(f"Code, {block.language or 'no language named'}")
        self.pane.document().setDefaultFont(self._theme.mono())
        self.pane.setFont(self._theme.mono())
        text = block.source.rstrip("\n")
        if not block.closed:
            self.pane.show_growing(text)
            return
        shown = colored(text, block.language or "", DARK_CODE if self._theme.dark else LIGHT_CODE)
        if shown is None:
            self.pane.show_plain(text)
        else:
            self.pane.show_html(f'<pre style="margin: 0">{shown}</pre>')

    def copy(self) -> None:
        """Put the code on the clipboard, exactly as it came."""
        QApplication.clipboard().setText(self._block.source)
        self.copied.emit()


class MarkdownView(QWidget):
    """The blocks of one answer."""

    link_asked = Signal(str)
    copied = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._blocks: list[TextBlock | CodeBlock] = []
        self._segmenter = Segmenter()
        self._final = 0
        self._layout = column(self, gap=theme.px(10))
        self._timer = QTimer(self, singleShot=True, interval=CADENCE_MS)
        self._timer.timeout.connect(self._show_tail)
        theme.changed.connect(self._restyle)

    def set_text(self, text: str) -> None:
        """Show a finished text."""
        self.begin()
        self._segmenter.feed(text)
        self.finish()

    def begin(self) -> None:
        """Start over with nothing. The widgets are kept for what comes."""
        self._timer.stop()
        self._segmenter = Segmenter()
        self._final = 0

    def feed(self, text: str) -> None:
        """Append text that will be shown at the next beat."""
        self._segmenter.feed(text)
        if not self._timer.isActive():
            self._timer.start()

    def finish(self) -> None:
        """Show everything now; nothing more comes."""
        self._timer.stop()
        blocks = self._segmenter.finish()
        self._show(self._final, blocks)
        self._final += len(blocks)
        self._drop(self._final)
        self._resolve_links()

    def blocks(self) -> list[TextBlock | CodeBlock]:
        """Return the blocks, top to bottom."""
        return list(self._blocks)

    def last_code(self) -> CodeBlock | None:
        """Return the last piece of code, if there is any."""
        return next((block for block in reversed(self._blocks) if isinstance(block, CodeBlock)), None)

    def _show_tail(self) -> None:
        started = time.perf_counter()
        final = self._segmenter.commit()
        self._show(self._final, final)
        self._final += len(final)
        pending = self._segmenter.pending()
        self._show(self._final, pending)
        self._drop(self._final + len(pending))
        cost_ms = 1000 * (time.perf_counter() - started)
        self._timer.setInterval(round(min(max(CADENCE_MS, _COST_SHARE * cost_ms), SLOWEST_MS)))

    def _show(self, start: int, blocks: list[Block]) -> None:
        for index, block in enumerate(blocks, start):
            self._widget_for(index, block).set_block(block, self._segmenter.references)

    def _widget_for(self, index: int, block: Block) -> TextBlock | CodeBlock:
        wanted = CodeBlock if block.is_code else TextBlock
        if index < len(self._blocks):
            if isinstance(self._blocks[index], wanted):
                return self._blocks[index]
            self._drop(index)
        widget = wanted(self._theme)
        if isinstance(widget, CodeBlock):
            widget.copied.connect(self.copied)
        else:
            widget.link_asked.connect(self.link_asked)
        self._blocks.append(widget)
        self._layout.addWidget(widget)
        return widget

    def _drop(self, start: int) -> None:
        for widget in self._blocks[start:]:
            self._layout.removeWidget(widget)
            widget.hide()
            widget.deleteLater()
        del self._blocks[start:]

    def _resolve_links(self) -> None:
        # A link's address may be defined below the link.
        for widget in self._blocks:
            if isinstance(widget, TextBlock):
                widget.set_block(widget.block, self._segmenter.references)

    def _restyle(self) -> None:
        self._layout.setSpacing(self._theme.px(10))
        for widget in self._blocks:
            widget.render_block()


def _document_sheet(theme: Theme) -> str:
    px = theme.px
    return (
        f"p {{ margin-top: 0; margin-bottom: {px(8)}px; }}"
        f"ul, ol {{ margin-top: 0; margin-bottom: {px(8)}px; }}"
        f"li {{ margin-bottom: {px(3)}px; }}"
        f"h1 {{ font-size: {px(20)}px; font-weight: 600; margin-top: {px(10)}px; margin-bottom: {px(6)}px; }}"
        f"h2 {{ font-size: {px(17)}px; font-weight: 600; margin-top: {px(10)}px; margin-bottom: {px(6)}px; }}"
        f"h3, h4, h5, h6 {{ font-size: {px(15)}px; font-weight: 600; margin-top: {px(8)}px;"
        f" margin-bottom: {px(4)}px; }}"
        f"pre {{ margin-top: 0; margin-bottom: {px(8)}px; }}"
        f"a {{ color: {theme.tokens.accent}; }}"
    )


def _trim(pane: Pane) -> None:
    document = pane.document()
    _change_block(document.firstBlock(), lambda shape: shape.setTopMargin(0))
    last = document.lastBlock()
    if last.length() <= 1 < document.blockCount():
        # Qt ends every text with a paragraph, also after a table, where it would be an empty line.
        _change_block(last, lambda shape: shape.setLineHeight(1, _FIXED))
    _change_block(last, lambda shape: shape.setBottomMargin(0))


def _change_block(block: QTextBlock, change: Callable[[QTextBlockFormat], None]) -> None:
    shape = block.blockFormat()
    change(shape)
    QTextCursor(block).setBlockFormat(shape)
