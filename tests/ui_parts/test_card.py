from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QInputMethodEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QScrollArea, QVBoxLayout, QWidget

from app.approvals.api import ProposalState
from app.errors import UserError
from app.learning.api import CardView, Resolution
from app.ui.card import ApprovalCard
from app.ui.card_text import Act
from app.ui.theme import Scheme, Theme
from tests.ui_parts.cards import BASE, CONFLICT, STATES, card
from tests.ui_parts.seeing import cut_texts, focused, heard, settle, show

CTRL_ALT = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier
CTRL = Qt.KeyboardModifier.ControlModifier


def shown(theme: Theme, view: CardView, *, locked: bool = False, width: int = 696) -> ApprovalCard:
    it = ApprovalCard(theme, locked=locked)
    it.set_card(view)
    show(it, width)
    return it


def press(it: ApprovalCard, act: Act) -> None:
    button = it.button(act)
    assert button is not None, f"no button for {act}"
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


BUTTONS: dict[str, tuple[str, Act, str, tuple[object, ...]]] = {
    "learn it": ("surfaced", Act.LEARN, "learn", (None,)),
    "not now": ("surfaced", Act.NOT_NOW, "decline", (False,)),
    "replace": ("conflict", Act.REPLACE, "learn", (Resolution.REPLACE,)),
    "keep both": ("conflict", Act.KEEP_BOTH, "learn", (Resolution.KEEP_BOTH,)),
    "cancel a conflict": ("conflict", Act.NOT_NOW, "decline", (False,)),
    "stop": ("training", Act.STOP, "cancel", ()),
    "undo": ("proven", Act.UNDO, "undo", ()),
    "use it again": ("undone", Act.USE_AGAIN, "use_again", ()),
    "try again": ("failed", Act.TRY_AGAIN, "try_again", ()),
    "try a stopped one again": ("cancelled", Act.TRY_AGAIN, "try_again", ()),
    "learn a declined one after all": ("declined", Act.LEARN, "learn", (None,)),
}


@pytest.mark.parametrize("case", BUTTONS)
def test_each_button_says_what_the_person_wants(theme: Theme, case: str) -> None:
    state, act, signal, values = BUTTONS[case]
    it = shown(theme, STATES[state])
    said = heard(getattr(it, signal))
    press(it, act)
    assert said == [values]


def test_never_for_this_is_in_the_menu(theme: Theme) -> None:
    it = shown(theme, BASE)
    said = heard(it.decline)
    (entry,) = it.buttons.menu.actions()
    assert entry.text() == "Never for this"
    entry.trigger()
    assert said == [(True,)]


def test_the_menu_opens_without_an_event_loop_of_its_own(theme: Theme) -> None:
    it = shown(theme, BASE)
    QTest.mouseClick(it.buttons.more, Qt.MouseButton.LeftButton)
    assert it.buttons.menu.isVisible()
    it.buttons.menu.close()


@pytest.mark.parametrize(("view", "act"), [("surfaced", Act.LEARN), ("conflict", Act.KEEP_BOTH)])
def test_a_locked_card_asks_to_unlock_instead_of_learning(theme: Theme, view: str, act: Act) -> None:
    it = shown(theme, STATES[view], locked=True)
    learn, unlock = heard(it.learn), heard(it.unlock_requested)
    press(it, act)
    assert learn == []
    assert unlock == [(Resolution.KEEP_BOTH if act is Act.KEEP_BOTH else None,)]
    it.set_locked(False)
    press(it, act)
    assert len(learn) == 1


def test_a_second_click_before_the_answer_does_nothing(theme: Theme) -> None:
    it = shown(theme, BASE)
    said = heard(it.learn)
    press(it, Act.LEARN)
    press(it, Act.LEARN)
    assert len(said) == 1


def test_a_refusal_is_said_inline_and_the_card_can_be_tried_again(theme: Theme) -> None:
    it = shown(theme, BASE)
    said = heard(it.learn)
    press(it, Act.LEARN)
    it.show_problem(UserError("learn this", hint="Shorten the answer.").info())
    settle()
    assert it.problem.isVisible()
    assert "Shorten the answer." in it.problem.text()
    press(it, Act.LEARN)
    assert len(said) == 2


def test_showing_the_same_card_again_builds_nothing(theme: Theme) -> None:
    it = shown(theme, BASE)
    before = [it.button(act) for act in (Act.LEARN, Act.WORDING, Act.NOT_NOW)]
    it.set_card(replace(BASE))
    assert [it.button(act) for act in (Act.LEARN, Act.WORDING, Act.NOT_NOW)] == before


def test_progress_moves_the_bar_and_leaves_the_buttons_alone(theme: Theme) -> None:
    it = shown(theme, STATES["training"])
    stop = it.button(Act.STOP)
    it.set_card(STATES["gating"])
    assert it.button(Act.STOP) is stop
    assert it.bar.value() == 740
    assert it.buttons.aside.text() == "checking · about 4 seconds left"


def test_a_share_out_of_range_does_not_leave_the_bar(theme: Theme) -> None:
    it = shown(theme, card(ProposalState.TRAINING, share=3.0))
    assert it.bar.value() == it.bar.maximum()


def test_the_keyboard_stays_in_the_card_when_its_buttons_change(theme: Theme) -> None:
    it = shown(theme, BASE)
    button = it.button(Act.LEARN)
    assert button is not None
    button.setFocus()
    QTest.keyClick(button, Qt.Key.Key_Space)
    it.set_card(STATES["training"])
    assert focused() is it


# --- keys -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_the_approve_keys_learn_a_focused_card(theme: Theme, key: Qt.Key) -> None:
    it = shown(theme, BASE)
    it.setFocus()
    said = heard(it.learn)
    QTest.keyClick(it, key, CTRL_ALT)
    assert said == [(None,)]


def test_the_deny_keys_decline_a_focused_card_and_stop_a_running_one(theme: Theme) -> None:
    it = shown(theme, BASE)
    it.setFocus()
    declined, stopped = heard(it.decline), heard(it.cancel)
    QTest.keyClick(it, Qt.Key.Key_Backspace, CTRL_ALT)
    it.set_card(STATES["training"])
    QTest.keyClick(it, Qt.Key.Key_Backspace, CTRL_ALT)
    assert (declined, stopped) == ([(False,)], [()])


def test_the_keys_reach_only_the_card_that_has_the_focus(theme: Theme) -> None:
    both = QWidget()
    layout = QVBoxLayout(both)
    first, second = ApprovalCard(theme), ApprovalCard(theme)
    for it in (first, second):
        it.set_card(BASE)
        layout.addWidget(it)
    show(both, 700)
    said = heard(first.learn), heard(second.learn)
    second.setFocus()
    QTest.keyClick(second, Qt.Key.Key_Return, CTRL_ALT)
    assert said == ([], [(None,)])


def test_the_approve_keys_lead_to_a_choice_but_do_not_make_it(theme: Theme) -> None:
    it = shown(theme, STATES["conflict"])
    it.setFocus()
    said = heard(it.learn)
    QTest.keyClick(it, Qt.Key.Key_Return, CTRL_ALT)
    assert said == []
    assert focused() is it.button(Act.REPLACE)


def test_every_button_can_be_reached_with_tab(theme: Theme) -> None:
    it = shown(theme, BASE)
    it.setFocus()
    seen = set()
    for _ in range(8):
        QTest.keyClick(focused(), Qt.Key.Key_Tab)
        seen.add(focused())
    assert {it.button(Act.LEARN), it.button(Act.WORDING), it.button(Act.NOT_NOW), it.buttons.more} <= seen


# --- wording --------------------------------------------------------------------------------------------------------


def editing(theme: Theme, view: CardView = BASE) -> ApprovalCard:
    it = shown(theme, view)
    press(it, Act.WORDING)
    settle()
    return it


def test_other_words_are_handed_over_as_typed(theme: Theme) -> None:
    it = editing(theme)
    said = heard(it.reword)
    it.editor.answer.setPlainText("  He is called Biscuit.\n")
    QTest.mouseClick(it.editor.keep, Qt.MouseButton.LeftButton)
    assert said == [("What is my dog's name?", "He is called Biscuit.")]


def test_a_rejected_lesson_can_be_reworded(theme: Theme) -> None:
    it = editing(theme, STATES["rejected"])
    said = heard(it.reword)
    it.editor.prompt.setPlainText("Capital of Australia?")
    QTest.keyClick(it.editor.prompt, Qt.Key.Key_Return, CTRL)
    assert said == [("Capital of Australia?", "The capital of Australia is Canberra.")]


def test_an_empty_wording_cannot_be_used(theme: Theme) -> None:
    it = editing(theme)
    said = heard(it.reword)
    it.editor.answer.setPlainText("   \n")
    QTest.keyClick(it.editor.answer, Qt.Key.Key_Return, CTRL)
    assert not it.editor.keep.isEnabled()
    assert said == []


def test_the_same_words_close_the_editor_and_ask_for_nothing(theme: Theme) -> None:
    it = editing(theme)
    said = heard(it.reword)
    QTest.mouseClick(it.editor.keep, Qt.MouseButton.LeftButton)
    assert said == []
    assert not it.editor.isVisible()


def test_typed_words_survive_updates_of_the_card(theme: Theme) -> None:
    it = editing(theme)
    it.editor.answer.setPlainText("half a sentence")
    it.set_card(replace(BASE, seconds_left=12.0))
    it.set_locked(True)
    theme.set_scheme(Scheme.DARK)
    assert it.editor.isVisible()
    assert it.editor.answer.toPlainText() == "half a sentence"


def test_typed_words_survive_a_refusal(theme: Theme) -> None:
    it = editing(theme)
    it.editor.answer.setPlainText("too long")
    QTest.mouseClick(it.editor.keep, Qt.MouseButton.LeftButton)
    it.show_problem(UserError("use these words", hint="Shorten them.").info())
    assert it.editor.isVisible()
    assert it.editor.answer.toPlainText() == "too long"
    assert it.editor.keep.isEnabled()


def test_the_new_wording_closes_the_editor(theme: Theme) -> None:
    it = editing(theme)
    it.editor.answer.setPlainText("He is called Biscuit.")
    QTest.mouseClick(it.editor.keep, Qt.MouseButton.LeftButton)
    it.set_card(replace(BASE, answer="He is called Biscuit."))
    settle()
    assert not it.editor.isVisible()
    assert it.lesson.answer.label.words() == "He is called Biscuit."


def test_escape_leaves_the_wording_but_not_while_an_input_method_composes(theme: Theme) -> None:
    it = editing(theme)
    field = it.editor.answer
    QApplication.sendEvent(field, QInputMethodEvent("이전", []))
    said = heard(it.reword)
    QTest.keyClick(field, Qt.Key.Key_Escape)
    QTest.keyClick(field, Qt.Key.Key_Return, CTRL)
    QTest.keyClick(field, Qt.Key.Key_Return, CTRL_ALT)
    QTest.keyClick(field, Qt.Key.Key_Backspace, CTRL_ALT)
    assert it.editor.isVisible()
    assert said == []
    done = QInputMethodEvent("", [])
    done.setCommitString("이전")
    QApplication.sendEvent(field, done)
    QTest.keyClick(field, Qt.Key.Key_Escape)
    assert not it.editor.isVisible()


# --- being seen -----------------------------------------------------------------------------------------------------


def test_opened_is_said_once_and_only_for_an_open_question(theme: Theme) -> None:
    it = ApprovalCard(theme)
    said = heard(it.opened)
    it.set_card(STATES["proven"])
    show(it, 600)
    assert said == []
    it.set_card(BASE)
    settle()
    it.set_card(replace(BASE, seconds_left=9.0))
    it.update()
    settle()
    assert said == [()]


def test_a_card_below_the_fold_is_not_opened_yet(theme: Theme) -> None:
    area = QScrollArea()
    inside = QWidget()
    layout = QVBoxLayout(inside)
    layout.addSpacing(3000)
    it = ApprovalCard(theme)
    said = heard(it.opened)
    it.set_card(BASE)
    layout.addWidget(it)
    area.setWidget(inside)
    area.setWidgetResizable(True)
    area.resize(700, 400)
    area.show()
    settle()
    assert said == []
    area.verticalScrollBar().setValue(area.verticalScrollBar().maximum())
    settle()
    assert said == [()]


def test_text_from_people_and_models_is_never_markup(theme: Theme) -> None:
    hostile = "<img src=/etc/passwd><b>bold</b> &amp; <a href='javascript:x'>a</a>"
    it = shown(theme, replace(BASE, prompt=hostile, answer=hostile, why=hostile))
    for label in (it.body, it.lesson.prompt.label, it.lesson.answer.label):
        assert hostile in label.words()
        assert "<img" not in label.text()
        assert "<b>" not in label.text()
    it.set_card(card(ProposalState.TRAINING, prompt=hostile))
    assert it.title.textFormat() is Qt.TextFormat.PlainText


def test_a_very_long_lesson_is_cut_until_asked_for(theme: Theme) -> None:
    text = "word " * 4000
    it = shown(theme, replace(BASE, answer=text))
    part = it.lesson.answer
    assert len(part.label.words()) < 1300
    QTest.mouseClick(part.more, Qt.MouseButton.LeftButton)
    assert part.label.words() == text


def test_the_details_open_and_close(theme: Theme) -> None:
    it = shown(theme, STATES["rejected"])
    few = it.checks.texts()
    press(it, Act.DETAILS)
    assert any("Austria" in text for text in it.checks.texts())
    assert any("limit" in text for text in it.checks.texts())
    press(it, Act.DETAILS)
    assert it.checks.texts() == few


def test_a_reopened_conflict_can_be_left_again(theme: Theme) -> None:
    it = shown(theme, card(ProposalState.DECLINED, conflict=CONFLICT))
    declined = heard(it.decline)
    press(it, Act.REOPEN)
    assert it.button(Act.REPLACE) is not None
    press(it, Act.NOT_NOW)
    assert it.button(Act.REPLACE) is None
    assert declined == []


@pytest.mark.parametrize("name", STATES)
def test_a_screen_reader_hears_what_the_card_says(theme: Theme, name: str) -> None:
    it = shown(theme, STATES[name])
    assert it.accessibleName() == it.title.text()
    assert all(button.accessibleName() for button in it.findChildren(type(it.buttons.more)))
    if name == "surfaced":
        assert "Biscuit" in it.accessibleDescription()


@pytest.mark.parametrize("width", [696, 380])
@pytest.mark.parametrize("zoom", [1.0, 2.0])
@pytest.mark.parametrize("scheme", [Scheme.LIGHT, Scheme.DARK])
def test_no_text_is_cut_in_any_state(theme: Theme, scheme: Scheme, zoom: float, width: int) -> None:
    theme.set_scheme(scheme)
    theme.set_zoom(zoom)
    for name, view in STATES.items():
        it = shown(theme, view, locked=True, width=round(width * zoom))
        assert cut_texts(it) == [], name
        if it.button(Act.DETAILS) is not None:
            press(it, Act.DETAILS)
            show(it, round(width * zoom))
            assert cut_texts(it) == [], f"details of {name}"
        it.close()
        it.deleteLater()


def test_a_change_of_theme_and_zoom_reaches_a_card_on_screen(theme: Theme) -> None:
    it = shown(theme, BASE)
    height = it.title.fontMetrics().height()
    light = it.grab().toImage().pixelColor(it.width() // 2, 12)
    theme.set_scheme(Scheme.DARK)
    theme.set_zoom(2.0)
    settle()
    show(it, 1392)
    assert it.title.fontMetrics().height() > height * 1.7
    assert it.grab().toImage().pixelColor(it.width() // 2, 24).lightness() < light.lightness()
