from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QWidget

from app.ui.card_flow import FlowRow
from app.ui.theme import Theme
from tests.ui_parts.seeing import settle


@pytest.fixture
def row(theme: Theme) -> QWidget:
    del theme
    box = QWidget()
    flow = FlowRow(box)
    buttons = [QPushButton(text) for text in ("First", "Second one", "Third")]
    last = QPushButton("Last")
    flow.place(list(buttons))
    flow.set_trailing(last)
    box.buttons = [*buttons, last]  # type: ignore[attr-defined]
    return box


def height(box: QWidget, width: int) -> int:
    flow = box.layout()
    assert isinstance(flow, FlowRow)
    return flow.heightForWidth(width)


def laid_out(box: QWidget, width: int) -> list[tuple[int, int]]:
    box.resize(width, height(box, width))
    box.show()
    settle()
    return [(button.x(), button.y()) for button in box.buttons]  # type: ignore[attr-defined]


def test_with_room_all_stand_in_one_line_and_the_last_at_the_far_end(row: QWidget) -> None:
    places = laid_out(row, 600)
    assert len({y for _, y in places}) == 1
    last = row.buttons[-1]  # type: ignore[attr-defined]
    assert last.geometry().right() == 599


def test_without_room_it_goes_on_below_and_asks_for_the_height(row: QWidget) -> None:
    wide, narrow = height(row, 600), height(row, 140)
    assert narrow > wide
    places = laid_out(row, 140)
    assert len({y for _, y in places}) > 1
    assert max(x for x, _ in places) < 140


def test_hidden_buttons_leave_no_gap(row: QWidget) -> None:
    before = laid_out(row, 600)
    row.buttons[0].hide()  # type: ignore[attr-defined]
    settle()
    after = laid_out(row, 600)
    assert after[1][0] == before[0][0]


def test_it_mirrors_where_one_reads_from_right_to_left(row: QWidget) -> None:
    row.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    places = laid_out(row, 600)
    assert places[0][0] > places[1][0] > places[-1][0]
    assert places[-1][0] == 0


def test_an_empty_row_takes_no_room(theme: Theme) -> None:
    del theme
    box = QWidget()
    assert FlowRow(box).heightForWidth(100) == 0
