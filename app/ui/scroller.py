"""A column of items of which only those near the window are widgets.

The column knows every item by its key and height; widgets exist for what is visible and ``AROUND`` items beyond.
Heights of items that have no widget are remembered or estimated. Whatever changes above the window, the item at its
top stays where it is. At the bottom, the column follows what is new until the person scrolls away.

Signals:
    Scroller.away_changed(away): whether the newest item is out of sight.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QApplication, QScrollArea, QWidget

from app.ui.theme import COLUMN_PX, Theme

AROUND = 20
GAP_PX = 18
EDGE_PX = 22
SIDE_PX = 24
NEAR_PX = 6
"""So close to the end counts as being there."""
_BATCH_S = 0.008


@dataclass(frozen=True, slots=True)
class Entry:
    """One item: what identifies it, what it shows, and a guess of its height in pixels until it has been seen."""

    key: str
    value: object
    guess_px: int = 80


class Scroller(QScrollArea):
    """The column.

    Args:
        build: Makes the widget for an entry.
        update: Shows another value in a widget that was built for the same key; False if it must be built anew.
        keep: Whether a widget must stay although it is out of sight: it is being edited or is streaming.
    """

    away_changed = Signal(bool)

    def __init__(
        self,
        theme: Theme,
        *,
        build: Callable[[Entry], QWidget],
        update: Callable[[QWidget, Entry], bool],
        keep: Callable[[QWidget], bool],
    ) -> None:
        super().__init__()
        self._theme = theme
        self._build, self._update, self._keep = build, update, keep
        self._entries: list[Entry] = []
        self._index: dict[str, int] = {}
        self._widgets: dict[str, QWidget] = {}
        self._heights: dict[str, tuple[int, int]] = {}
        self._tops: list[int] = [0]
        self._placed: list[str] = []
        self._ordered: list[str] = []
        self._following = True
        self._placing = False
        self._away = False
        self._content = QWidget()
        self._content.setProperty("box", "scroll")
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setWidget(self._content)
        self._soon = QTimer(self, singleShot=True, interval=0)
        self._soon.timeout.connect(self._place)
        self._rest = QTimer(self, singleShot=True, interval=1)
        self._rest.timeout.connect(self._mount_rest)
        self.verticalScrollBar().valueChanged.connect(self._scrolled)
        theme.changing.connect(self._drop_unseen)
        theme.changed.connect(self._restyle)

    # --- items ------------------------------------------------------------------------------------------------------

    def set_entries(self, entries: Sequence[Entry]) -> None:
        """Show these items. Widgets of items that stay are kept and updated."""
        before = {entry.key: entry for entry in self._entries}
        self._entries = list(entries)
        self._index = {entry.key: number for number, entry in enumerate(entries)}
        for key in [key for key in self._widgets if key not in self._index]:
            self._unmount(key)
        for entry in entries:
            if before.get(entry.key) != entry:
                self._refresh(entry)
        self._place()

    def entries(self) -> tuple[Entry, ...]:
        """Return the items, top to bottom."""
        return tuple(self._entries)

    def mounted(self) -> dict[str, QWidget]:
        """Return the widgets that exist now, by key."""
        return dict(self._widgets)

    def widget_of(self, key: str) -> QWidget | None:
        """Return the widget of one item, if it exists now."""
        return self._widgets.get(key)

    def forget(self) -> None:
        """Drop everything, heights too: another conversation comes."""
        for key in list(self._widgets):
            self._unmount(key)
        self._entries, self._index, self._heights, self._tops = [], {}, {}, [0]
        self._following = True

    # --- scrolling --------------------------------------------------------------------------------------------------

    @property
    def following(self) -> bool:
        """Whether the column stays at its end when something is added."""
        return self._following

    def to_end(self) -> None:
        """Go to the newest item and follow from there."""
        self._following = True
        self._place()

    def show_item(self, key: str) -> QWidget | None:
        """Scroll so that one item is in sight, and return its widget."""
        if key not in self._index:
            return None
        self._following = False
        top, bottom = self._span(self._index[key])
        bar, page = self.verticalScrollBar(), self.viewport().height()
        if top < bar.value() or bottom - top > page:
            bar.setValue(top - self._theme.px(EDGE_PX))
        elif bottom > bar.value() + page:
            bar.setValue(bottom - page + self._theme.px(EDGE_PX))
        self._place()
        return self._widgets.get(key)

    def neighbour(self, key: str | None, step: int) -> str | None:
        """Return the key of the item before (-1) or after (1) another, or the last one."""
        if not self._entries:
            return None
        if key not in self._index:
            return self._entries[-1].key
        number = min(max(self._index[key] + step, 0), len(self._entries) - 1)
        return self._entries[number].key

    def key_at_focus(self) -> str | None:
        """Return the key of the item that has the keyboard focus, if one has."""
        focused = QApplication.focusWidget()
        if focused is None:
            return None
        return next((k for k, w in self._widgets.items() if w is focused or w.isAncestorOf(focused)), None)

    def _scrolled(self, value: int) -> None:
        if self._placing:
            return
        self._following = value >= self.verticalScrollBar().maximum() - NEAR_PX
        self._place()

    # --- placing ----------------------------------------------------------------------------------------------------

    def place_soon(self) -> None:
        """Place everything again once the present event is done."""
        if not self._soon.isActive():
            self._soon.start()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Notice that an item wants another size."""
        if event.type() is QEvent.Type.LayoutRequest and not self._placing:
            self.place_soon()
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place everything for the new width."""
        super().resizeEvent(event)
        self._place()

    def _place(self) -> None:
        if self._placing:
            return
        self._placing = True
        try:
            anchor = self._anchor()
            self._measure()
            self._settle(anchor)
            while self._mount(self._near(0)):  # what is mounted may be shorter than guessed and leave room for more
                self._measure()
                self._settle(anchor)
            self._arrange()
        finally:
            self._placing = False
        self._report_away()
        self._rest.start()

    def _anchor(self) -> tuple[str, int] | None:
        """Return the item at the top of the window and how far above the window it begins."""
        if self._following or not self._entries or len(self._tops) <= 1:
            return None
        value = self.verticalScrollBar().value()
        number = min(max(bisect_right(self._tops, value) - 1, 0), len(self._tops) - 2)
        for key_number in (number, number + 1):
            if key_number < len(self._placed) and self._placed[key_number] in self._index:
                return self._placed[key_number], value - self._tops[key_number]
        return None

    def _measure(self) -> None:
        width, gap = self._column_width(), self._theme.px(GAP_PX)
        for key, widget in self._widgets.items():
            self._heights[key] = width, _height(widget, width)
        top, tops = self._theme.px(EDGE_PX), []
        for entry in self._entries:
            tops.append(top)
            top += self._height_of(entry) + gap
        self._tops = [*tops, top - gap + self._theme.px(EDGE_PX)] if tops else [0]
        self._placed = [entry.key for entry in self._entries]
        self._content.resize(self.viewport().width(), max(self._tops[-1], self.viewport().height()))

    def _height_of(self, entry: Entry) -> int:
        _, height = self._heights.get(entry.key, (0, 0))
        return height or self._theme.px(entry.guess_px)

    def _settle(self, anchor: tuple[str, int] | None) -> None:
        bar = self.verticalScrollBar()
        if self._following:
            bar.setValue(bar.maximum())
        elif anchor is not None and anchor[0] in self._index:
            bar.setValue(self._tops[self._index[anchor[0]]] + anchor[1])

    def _arrange(self) -> None:
        width = self._column_width()
        left = (self.width() - width) // 2
        for key, widget in self._widgets.items():
            widget.setGeometry(left, self._tops[self._index[key]], width, self._heights[key][1])

    def _column_width(self) -> int:
        room = self.width() - 2 * self._theme.px(SIDE_PX)
        return max(min(self._theme.px(COLUMN_PX), room), 40)

    def _span(self, number: int) -> tuple[int, int]:
        return self._tops[number], self._tops[number] + self._height_of(self._entries[number])

    def _report_away(self) -> None:
        bar = self.verticalScrollBar()
        away = bar.maximum() - bar.value() > self.viewport().height() // 2 and not self._following
        if away != self._away:
            self._away = away
            self.away_changed.emit(away)

    # --- widgets ----------------------------------------------------------------------------------------------------

    def _near(self, around: int) -> range:
        """Return the numbers of the items that are visible, and ``around`` more at each end."""
        if not self._entries:
            return range(0)
        value = self.verticalScrollBar().value()
        first = max(bisect_right(self._tops, value) - 1, 0)
        last = max(bisect_right(self._tops, value + self.viewport().height()) - 1, 0)
        return range(max(first - around, 0), min(last + around + 1, len(self._entries)))

    def _mount(self, wanted: range, *, until: float = float("inf")) -> bool:
        """Make missing widgets; return whether there was one to make."""
        missing = [number for number in wanted if self._entries[number].key not in self._widgets]
        for number in missing:
            entry = self._entries[number]
            widget = self._build(entry)
            widget.setParent(self._content)
            widget.installEventFilter(self)
            widget.show()
            self._widgets[entry.key] = widget
            if time.monotonic() > until:
                break
        return bool(missing)

    def _mount_rest(self) -> None:
        """Make and drop widgets beyond the window, a little at a time."""
        wanted = self._near(AROUND)
        self._drop_outside(wanted)
        if self._mount(wanted, until=time.monotonic() + _BATCH_S):
            self._place()
        else:
            self._order_focus()

    def _drop_outside(self, wanted: range) -> None:
        kept = {self._entries[number].key for number in wanted}
        for key in [key for key, widget in self._widgets.items() if key not in kept and not self._keep(widget)]:
            self._unmount(key)

    def _drop_unseen(self) -> None:
        self._drop_outside(self._near(0))

    def _refresh(self, entry: Entry) -> None:
        widget = self._widgets.get(entry.key)
        if widget is not None and not self._update(widget, entry):
            self._unmount(entry.key)

    def _unmount(self, key: str) -> None:
        widget = self._widgets.pop(key)
        widget.removeEventFilter(self)
        widget.setParent(None)
        widget.deleteLater()

    def _order_focus(self) -> None:
        """Let Tab go through the items from top to bottom, whenever they were made."""
        shown = sorted(self._widgets, key=self._index.__getitem__)
        if shown == self._ordered:
            return
        self._ordered = shown
        stops: list[QWidget] = [self]
        for key in shown:
            widget = self._widgets[key]
            inner = [w for w in widget.findChildren(QWidget) if w.focusPolicy() & Qt.FocusPolicy.TabFocus]
            stops += [widget, *inner] if widget.focusPolicy() & Qt.FocusPolicy.TabFocus else inner
        for first, second in pairwise(stops):
            QWidget.setTabOrder(first, second)

    def _restyle(self) -> None:
        self._heights.clear()
        self.place_soon()


def _height(widget: QWidget, width: int) -> int:
    layout = widget.layout()
    if layout is not None and layout.hasHeightForWidth():
        return max(layout.totalHeightForWidth(width), layout.totalMinimumSize().height())
    return widget.heightForWidth(width) if widget.hasHeightForWidth() else widget.sizeHint().height()
