from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.clock import FakeClock
from app.errors import KnownError
from app.learning.api import VersionView
from app.ui.theme import Scheme, Theme
from app.ui.versions import SHOWN_AT_FIRST, VersionsPanel
from tests.ui_parts.cards import STATES
from tests.ui_parts.seeing import cut_texts, focused, heard, settle

NOW = datetime(2026, 11, 30, 10, 30, tzinfo=UTC)
BASE = VersionView(
    "base",
    0,
    "SmolLM2",
    NOW - timedelta(days=9),
    "",
    "F16 · Apache-2.0",
    active=False,
    rejected=False,
    base=True,
    available=True,
)


def version(number: int, **changes: object) -> VersionView:
    made = VersionView(
        f"c{number}",
        number,
        f"Lesson {number}",
        NOW - timedelta(hours=20 - number),
        "Walks with Biscuit",
        "1 lesson · all checks passed",
        active=False,
        rejected=False,
        base=False,
        available=True,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


TIMELINE = [
    version(3, active=True, time=NOW),
    version(2, title="A lesson whose file is gone", available=False),
    replace(version(9), id="p9", number=None, title="capital of Australia", rejected=True, note="would change others"),
    version(1),
    BASE,
]


@pytest.fixture
def panel(theme: Theme) -> VersionsPanel:
    it = VersionsPanel(theme, clock=FakeClock(NOW))
    it.resize(312, 700)
    it.show_view(TIMELINE)
    it.show()
    it.activateWindow()
    settle()
    return it


def click(panel: VersionsPanel, commit: str) -> None:
    row = panel.row(commit)
    assert row is not None
    QTest.mouseClick(row, Qt.MouseButton.LeftButton, pos=row.title.geometry().center())
    settle()


def test_the_timeline_stands_in_its_order_on_screen(panel: VersionsPanel) -> None:
    assert [row.version.id for row in panel.rows()] == [version.id for version in TIMELINE]
    tops = [row.mapTo(panel, row.rect().topLeft()).y() for row in panel.rows()]
    assert tops == sorted(tops)


def test_another_version_can_be_used(panel: VersionsPanel) -> None:
    said = heard(panel.use_requested)
    click(panel, "c1")
    row = panel.row("c1")
    assert row is not None
    QTest.mouseClick(row.use, Qt.MouseButton.LeftButton)
    assert said == [("c1",)]


@pytest.mark.parametrize("commit", ["c2", "p9"])
def test_what_cannot_be_gone_to_offers_nothing(panel: VersionsPanel, commit: str) -> None:
    click(panel, commit)
    row = panel.row(commit)
    assert row is not None
    assert not row.choices.isVisible()


def test_the_version_in_use_offers_only_a_question(panel: VersionsPanel) -> None:
    click(panel, "c3")
    row = panel.row("c3")
    assert row is not None
    assert not row.use.isVisible()
    assert row.ask.isVisible()


def test_only_one_row_is_open_and_a_second_click_closes_it(panel: VersionsPanel) -> None:
    click(panel, "c1")
    click(panel, "c3")
    assert [row.is_open for row in panel.rows()] == [True, False, False, False, False]
    click(panel, "c3")
    assert not any(row.is_open for row in panel.rows())


def test_a_version_is_asked_with_the_keyboard_alone(panel: VersionsPanel) -> None:
    said = heard(panel.ask_requested)
    first = panel.rows()[0]
    first.setFocus()
    for _ in range(3):
        QTest.keyClick(focused(), Qt.Key.Key_Down)
    row = panel.row("c1")
    assert row is not None
    assert focused() is row
    QTest.keyClick(row, Qt.Key.Key_Return)
    QTest.keyClick(row, Qt.Key.Key_Tab)
    QTest.keyClick(focused(), Qt.Key.Key_Tab)
    assert focused() is row.ask
    QTest.keyClick(row.ask, Qt.Key.Key_Space)
    settle()
    assert focused() is row.area.prompt
    QTest.keyClicks(row.area.prompt, "Who am I?")
    QTest.keyClick(row.area.prompt, Qt.Key.Key_Return)
    assert said == [("c1", "Who am I?")]
    assert row.is_open
    QTest.keyClick(row.area.prompt, Qt.Key.Key_Escape)
    assert not row.area.isVisible()


def ask(panel: VersionsPanel, commit: str, prompt: str) -> None:
    click(panel, commit)
    row = panel.row(commit)
    assert row is not None
    QTest.mouseClick(row.ask, Qt.MouseButton.LeftButton)
    row.area.prompt.setText(prompt)
    QTest.keyClick(row.area.prompt, Qt.Key.Key_Return)


def test_a_second_question_waits_for_the_first_answer(panel: VersionsPanel) -> None:
    said = heard(panel.ask_requested)
    ask(panel, "c1", "Who am I?")
    row = panel.row("c1")
    assert row is not None
    QTest.keyClick(row.area.prompt, Qt.Key.Key_Return)
    assert len(said) == 1
    panel.show_answer("c1", "You are Ana.")
    QTest.keyClick(row.area.prompt, Qt.Key.Key_Return)
    assert len(said) == 2


def test_an_answer_is_plain_text_and_survives_an_update(panel: VersionsPanel) -> None:
    ask(panel, "c1", "Who am I?")
    hostile = "<img src=/etc/passwd>You are <b>Ana</b>."
    panel.show_answer("c1", hostile)
    panel.show_view([version(4, active=True), *(replace(v, active=False) for v in TIMELINE)])
    settle()
    row = panel.row("c1")
    assert row is not None
    assert row.area.answer.isVisible()
    assert row.area.answer.words() == hostile
    assert "<img" not in row.area.answer.text()
    assert row.area.prompt.text() == "Who am I?"


def test_a_failure_is_said_beside_the_version(panel: VersionsPanel) -> None:
    panel.show_problem("c1", KnownError("use this version", hint="Free some memory.").info())
    settle()
    row = panel.row("c1")
    assert row is not None
    assert row.area.problem.isVisible()
    assert "Free some memory." in row.area.problem.text()


def test_an_answer_for_a_version_that_left_the_screen_is_dropped(panel: VersionsPanel) -> None:
    panel.show_view([BASE])
    panel.show_answer("c1", "late")
    panel.show_problem("c1", KnownError("ask").info())
    assert [row.version.id for row in panel.rows()] == ["base"]


def test_showing_the_same_list_again_keeps_every_row(panel: VersionsPanel) -> None:
    before = panel.rows()
    panel.show_view([replace(version) for version in TIMELINE])
    assert panel.rows() == before


def test_moving_the_head_keeps_the_rows_and_moves_the_mark(panel: VersionsPanel) -> None:
    before = panel.rows()
    panel.show_view([replace(v, active=v.id == "c1") for v in TIMELINE])
    assert panel.rows() == before
    assert "in use" in panel.rows()[3].accessibleName()
    assert "in use" not in panel.rows()[0].accessibleName()


def test_with_nothing_learned_it_says_how_to_begin(panel: VersionsPanel) -> None:
    assert not panel.empty.isVisible()
    panel.show_view([replace(BASE, active=True)])
    settle()
    assert panel.empty.isVisible()


def test_many_versions_come_in_portions_and_the_base_is_always_there(theme: Theme) -> None:
    panel = VersionsPanel(theme, clock=FakeClock(NOW))
    panel.show_view([*(version(number, time=NOW) for number in range(300, 0, -1)), BASE])
    panel.resize(312, 600)
    panel.show()
    settle()
    assert len(panel.rows()) == SHOWN_AT_FIRST + 1
    assert panel.rows()[-1].version.base
    QTest.mouseClick(panel.older, Qt.MouseButton.LeftButton)
    assert len(panel.rows()) == 2 * SHOWN_AT_FIRST + 1


def test_the_running_lesson_is_shown_with_its_time_and_can_be_stopped(panel: VersionsPanel) -> None:
    said = heard(panel.stop_requested)
    assert not panel.now.isVisible()
    panel.show_running(STATES["gating"])
    settle()
    assert panel.now.isVisible()
    assert panel.now.state.text() == "checking · about 4 seconds left"
    QTest.mouseClick(panel.now.stop, Qt.MouseButton.LeftButton)
    assert said == [("p1",)]
    panel.show_running(STATES["proven"])
    assert not panel.now.isVisible()


def test_just_now_does_not_stay_just_now(theme: Theme) -> None:
    clock = FakeClock(NOW)
    panel = VersionsPanel(theme, clock=clock)
    panel.show_view(TIMELINE)
    panel.show()
    settle()
    assert panel.rows()[0].when.text().startswith("just now")
    panel.hide()
    clock.wall = NOW + timedelta(days=1)
    panel.show()
    settle()
    assert panel.rows()[0].when.text().startswith("yesterday")


def test_the_version_in_use_is_marked_in_the_accent_and_the_others_are_hollow(
    panel: VersionsPanel, theme: Theme
) -> None:
    def middle(commit: str) -> str:
        row = panel.row(commit)
        assert row is not None
        y = row.title.geometry().top() + row.title.fontMetrics().height() // 2
        return row.grab().toImage().pixelColor(8, y).name()

    assert middle("c3") == theme.color("accent").name()
    assert middle("c1") == theme.color("bg").name()


@pytest.mark.parametrize("zoom", [1.0, 2.0])
@pytest.mark.parametrize("scheme", [Scheme.LIGHT, Scheme.DARK])
def test_no_text_is_cut(theme: Theme, scheme: Scheme, zoom: float) -> None:
    theme.set_scheme(scheme)
    theme.set_zoom(zoom)
    panel = VersionsPanel(theme, clock=FakeClock(NOW))
    panel.show_view(TIMELINE)
    panel.show_running(STATES["training"])
    panel.resize(round(312 * zoom), round(900 * zoom))
    panel.show()
    ask(panel, "c1", "Who am I?")
    panel.show_answer("c1", "You are Ana, and your dog is called Biscuit. " * 3)
    settle()
    assert cut_texts(panel) == []
