"""Read-only text as tall as it is: runs of text, and code.

No pane ever loads a resource: ``loadResource`` answers every request with one blank pixel. Returning nothing would make
Qt open a local path by itself.

Signals:
    Pane.link_asked(address): a link was clicked or entered; nothing has been opened.
"""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, QUrl, Signal
from PySide6.QtGui import (
    QFontMetricsF,
    QImage,
    QKeyEvent,
    QKeySequence,
    QTextBlockFormat,
    QTextCursor,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QTextBrowser, QTextEdit

from app.ui.theme import LINE_HEIGHT, Theme

_SCALE_PERCENT = QTextBlockFormat.LineHeightTypes.ProportionalHeight.value


def _blank() -> QImage:
    image = QImage(1, 1, QImage.Format.Format_ARGB32)
    image.fill(0)
    return image


class Pane(QTextBrowser):
    """Text without scroll bars that asks for exactly the height it needs at a width."""

    link_asked = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._blank = _blank()
        self._measured: tuple[int, int] | None = None
        self.setFrameShape(QTextBrowser.Shape.NoFrame)
        self.setOpenLinks(False)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setUndoRedoEnabled(False)
        self.document().setDocumentMargin(0)
        self.document().setDefaultTextOption(_by_content(self.document().defaultTextOption()))
        # Not fixed: a layout would then hold it to the height that it had at another width.
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.anchorClicked.connect(self._ask)

    def loadResource(self, kind: int, name: QUrl | str) -> QImage:
        """Answer every request with one blank pixel."""
        del kind, name
        return self._blank

    def show_plain(self, text: str) -> None:
        """Show text as it is."""
        self.setPlainText(text)
        self.text_changed()

    def show_html(self, text: str) -> None:
        """Show HTML made by ``app.ui.markdown.render``."""
        self.setHtml(text)
        self.text_changed()
        has_links = "<a href" in text
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if has_links else Qt.FocusPolicy.ClickFocus)

    def text_changed(self) -> None:
        """Shape the lines, and ask for another size."""
        self.shape_lines()
        self._measured = None
        self.updateGeometry()

    def shape_lines(self) -> None:
        """Give the lines their height."""
        space_lines(self, self.line_height())

    def line_height(self) -> float:
        """Return the height of a line as a multiple of the font's size."""
        return LINE_HEIGHT

    def hasHeightForWidth(self) -> bool:
        """Return True: narrower means taller."""
        return True

    def heightForWidth(self, width: int) -> int:
        """Return the height of the whole text at a width, in pixels."""
        if self._measured is None or self._measured[0] != width:
            self._measured = width, self._measure(width)
        return self._measured[1]

    def sizeHint(self) -> QSize:
        """Return the size at the present width."""
        width = self.width() if self.testAttribute(Qt.WidgetAttribute.WA_Resized) else self._theme.px(560)
        return QSize(width, self.heightForWidth(width))

    def minimumSizeHint(self) -> QSize:
        """Return that it can be narrow, but never shorter than its text."""
        return QSize(self._theme.px(40), 0)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave scrolling to the conversation."""
        event.ignore()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Take keys that select, copy or follow a link, and leave the others to the conversation."""
        selects = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        follows = event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and self.textCursor().hasSelection()
        standard = any(
            event.matches(key) for key in (QKeySequence.StandardKey.Copy, QKeySequence.StandardKey.SelectAll)
        )
        if standard or follows or (selects and event.key() != Qt.Key.Key_Escape):
            super().keyPressEvent(event)
        else:
            event.ignore()

    def _measure(self, width: int) -> int:
        document = self.document()
        document.setTextWidth(width)
        return round(document.size().height() + 0.5)

    def _ask(self, url: QUrl) -> None:
        self.link_asked.emit(url.toString(QUrl.ComponentFormattingOption.FullyEncoded))


class CodePane(Pane):
    """Code: lines stay whole, and long ones scroll sideways."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self.setLineWrapMode(QTextBrowser.LineWrapMode.NoWrap)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self._shown = ""

    def line_height(self) -> float:
        """Return the height of a line as a multiple of the font's size."""
        return 1.45

    def show_growing(self, text: str) -> None:
        """Show code that is still coming; only what is new is laid out."""
        if text.startswith(self._shown) and self._shown:
            cursor = QTextCursor(self.document())
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(text[len(self._shown) :])
            self._measured = None
            self.updateGeometry()
        else:
            self.show_plain(text)
        self._shown = text

    def _measure(self, width: int) -> int:
        document = self.document()
        height = round(document.size().height() + 0.5)
        if document.idealWidth() > width:
            height += self.horizontalScrollBar().sizeHint().height()
        return height


def space_lines(edit: QTextEdit, height: float) -> None:
    """Give every line of a text the height of a multiple of its font's size."""
    font = edit.font()
    natural = QFontMetricsF(font).height() / font.pixelSize()
    spacing = QTextBlockFormat()
    spacing.setLineHeight(100 * height / natural, _SCALE_PERCENT)
    cursor = QTextCursor(edit.document())
    cursor.select(QTextCursor.SelectionType.Document)
    cursor.mergeBlockFormat(spacing)


def _by_content(option: QTextOption) -> QTextOption:
    # Each paragraph runs in the direction of its own script.
    option.setTextDirection(Qt.LayoutDirection.LayoutDirectionAuto)
    return option
