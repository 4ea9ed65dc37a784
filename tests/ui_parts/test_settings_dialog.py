from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.devmode.api import Budget, DevState, DevStatus
from app.errors import KnownError
from app.ui.settings_dialog import PAUSE_MS, AnswerStyle, SettingsDialog, SettingsView
from app.ui.theme import Scheme, Theme
from tests.ui_parts.seeing import cut_texts, heard, settle

VIEW = SettingsView(
    Scheme.LIGHT, 1.0, AnswerStyle.BALANCED, "Answer briefly.", DevStatus(DevState.UNLOCKED, Budget(), 41)
)
LOCKED = DevStatus(DevState.LOCKED, Budget(), 50)


@pytest.fixture
def dialog(theme: Theme) -> SettingsDialog:
    it = SettingsDialog(theme, home="/home/ana/.local/share/ownmind")
    it.show_view(VIEW)
    it.open()
    it.activateWindow()
    settle()
    return it


def test_it_shows_what_is_set_and_says_nothing_by_showing_it(theme: Theme) -> None:
    it = SettingsDialog(theme, home="/home")
    signals = (it.scheme_changed, it.zoom_changed, it.style_changed, it.instructions_changed)
    said = [heard(signal) for signal in signals]
    it.show_view(VIEW)
    it.open()
    QTest.qWait(PAUSE_MS + 50)
    it.close()
    assert it.schemes[Scheme.LIGHT].isChecked()
    assert it.styles[AnswerStyle.BALANCED].isChecked()
    assert it.zoom.text() == "100%"
    assert it.instructions.toPlainText() == "Answer briefly."
    assert said == [[], [], [], []]


def test_each_choice_takes_effect_at_once(dialog: SettingsDialog) -> None:
    schemes, styles = heard(dialog.scheme_changed), heard(dialog.style_changed)
    QTest.mouseClick(dialog.schemes[Scheme.DARK], Qt.MouseButton.LeftButton)
    QTest.mouseClick(dialog.styles[AnswerStyle.EXACT], Qt.MouseButton.LeftButton)
    assert schemes == [(Scheme.DARK,)]
    assert styles == [(AnswerStyle.EXACT,)]


def test_choices_move_with_the_arrow_keys(dialog: SettingsDialog) -> None:
    styles = heard(dialog.style_changed)
    dialog.styles[AnswerStyle.BALANCED].setFocus()
    QTest.keyClick(dialog.styles[AnswerStyle.BALANCED], Qt.Key.Key_Down)
    assert dialog.styles[AnswerStyle.INVENTIVE].isChecked()
    assert styles == [(AnswerStyle.INVENTIVE,)]


def test_the_size_steps_between_its_ends(dialog: SettingsDialog) -> None:
    said = heard(dialog.zoom_changed)
    for _ in range(12):
        QTest.mouseClick(dialog.larger, Qt.MouseButton.LeftButton)
    assert said[-1] == (2.0,)
    assert len(said) == len(set(said))
    assert not dialog.larger.isEnabled()
    QTest.mouseClick(dialog.smaller, Qt.MouseButton.LeftButton)
    assert said[-1] == (1.75,)


def test_instructions_are_handed_over_after_a_pause_and_not_per_key(dialog: SettingsDialog) -> None:
    said = heard(dialog.instructions_changed)
    QTest.keyClicks(dialog.instructions, "Kindly. ")
    assert said == []
    QTest.qWait(PAUSE_MS + 100)
    assert said == [("Kindly. Answer briefly.",)]


def test_closing_at_once_does_not_lose_what_was_typed(dialog: SettingsDialog) -> None:
    said = heard(dialog.instructions_changed)
    QTest.keyClicks(dialog.instructions, "Kindly. ")
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert said == [("Kindly. Answer briefly.",)]


def test_what_is_being_typed_is_not_overwritten(dialog: SettingsDialog) -> None:
    QTest.keyClicks(dialog.instructions, "Kindly. ")
    dialog.show_view(replace(VIEW, zoom=1.25))
    assert dialog.instructions.toPlainText().startswith("Kindly.")
    assert dialog.zoom.text() == "125%"


def test_learning_can_be_locked_when_unlocked_and_the_way_to_unlock_is_offered_when_not(dialog: SettingsDialog) -> None:
    lock, unlock = heard(dialog.lock_requested), heard(dialog.unlock_requested)
    assert dialog.developer.words() == "Learning is unlocked. 41 of 50 changes left today."
    assert not dialog.unlock.isVisible()
    QTest.mouseClick(dialog.lock, Qt.MouseButton.LeftButton)
    dialog.show_view(replace(VIEW, developer=LOCKED))
    settle()
    assert "locked" in dialog.developer.words()
    assert not dialog.lock.isVisible()
    QTest.mouseClick(dialog.unlock, Qt.MouseButton.LeftButton)
    assert (lock, unlock) == ([()], [()])


def test_a_value_that_cannot_be_stored_is_said_inline(dialog: SettingsDialog) -> None:
    dialog.show_problem(KnownError("save the setting", hint="The disk is full.").info())
    settle()
    assert dialog.problem.isVisible()
    assert "The disk is full." in dialog.problem.text()


@pytest.mark.parametrize("zoom", [1.0, 2.0])
@pytest.mark.parametrize("scheme", [Scheme.LIGHT, Scheme.DARK])
@pytest.mark.parametrize("developer", [VIEW.developer, LOCKED])
def test_no_text_is_cut(theme: Theme, scheme: Scheme, zoom: float, developer: DevStatus) -> None:
    theme.set_scheme(scheme)
    theme.set_zoom(zoom)
    it = SettingsDialog(theme, home="/home/ana/" + "a-long-folder-name/" * 6 + "ownmind")
    it.show_view(replace(VIEW, scheme=scheme, zoom=zoom, developer=developer))
    it.open()
    settle()
    assert cut_texts(it) == []
