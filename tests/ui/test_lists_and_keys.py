from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QLineEdit, QMenu, QWidget

from app.chat.api import ChatSummary
from app.devmode.api import DevStatus
from app.errors import KnownError
from app.ui.app import make_application
from app.ui.chatlist import ChatList, Heading, group_of, rows
from app.ui.markdown.panes import Pane
from app.ui.messages import AnswerItem
from app.ui.palette import Palette
from app.ui.shortcuts import SHORTCUTS, ShortcutsDialog, sequences
from app.ui.theme import ZOOM_STEPS
from tests.ui.fakes import World, usual_world
from tests.ui.harness import Driver, drive

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
CTRL, SHIFT, ALT = (
    Qt.KeyboardModifier.ControlModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.AltModifier,
)


@pytest.mark.parametrize(
    ("days", "group"), [(0.0, "Today"), (1.5, "Last week"), (6.9, "Last week"), (20.0, "Earlier"), (-3.0, "Today")]
)
def test_chats_are_grouped_by_the_day_of_their_last_use(days: float, group: str) -> None:
    assert group_of(NOW - timedelta(days=days), NOW) == group


def test_the_filter_wants_every_word_in_any_order_and_case_and_leaves_no_empty_group() -> None:
    chats = [
        ChatSummary("a", "Recipe for Lentil soup", NOW),
        ChatSummary("b", "Soup kitchens", NOW - timedelta(days=3)),
        ChatSummary("c", "Straße nach Rom", NOW - timedelta(days=30)),
    ]
    assert rows(chats, "SOUP recipe", NOW) == [Heading("Today"), chats[0]]
    assert rows(chats, "strasse", NOW) == [Heading("Earlier"), chats[2]]
    assert rows(chats, "nothing", NOW) == []
    assert len(rows(chats, "", NOW)) == 6


def index_of(chats: ChatList, title: str) -> int:
    model = chats.model()
    return next(row for row in range(model.rowCount()) if model.index(row, 0).data() == title)


def test_typing_in_search_filters_and_down_and_enter_lead_into_the_list() -> None:
    async def scenario(d: Driver) -> None:
        d.key(Qt.Key.Key_F, CTRL | SHIFT)
        search = d.window.sidebar.search
        assert QApplication.focusWidget() is search
        QTest.keyClicks(search, "tri")
        assert [chat.title for chat in d.window.sidebar.chats.shown()] == ["Trip to Trieste"]
        QTest.keyClick(search, Qt.Key.Key_Down)
        d.key(Qt.Key.Key_Down)
        await d.until(lambda: d.window.header.title.whole() == "Trip to Trieste")
        search.setFocus()
        QTest.keyClick(search, Qt.Key.Key_Escape)
        assert len(d.window.sidebar.chats.shown()) == 6
        QTest.keyClicks(search, "zzz")
        assert d.window.sidebar.nothing.isVisible()

    drive(scenario)


def test_f2_renames_in_place_and_escape_leaves_it() -> None:
    async def scenario(d: Driver) -> None:
        chat = d.window.desk.current
        assert chat is not None
        d.key(Qt.Key.Key_F2)
        editor = d.window.sidebar.chats.findChild(QLineEdit)
        assert editor is not None
        assert editor.text() == "Walks with Biscuit"
        editor.setText("Dropped")
        QTest.keyClick(editor, Qt.Key.Key_Escape)
        await d.settle()
        assert d.world.chats.chats[chat].title == "Walks with Biscuit"
        d.key(Qt.Key.Key_F2)
        editor = d.window.sidebar.chats.findChildren(QLineEdit)[-1]
        editor.setText("  A new   name ")
        QTest.keyClick(editor, Qt.Key.Key_Return)
        await d.until(lambda: d.world.chats.chats[chat].title == "A new name")
        await d.until(lambda: d.window.header.title.whole() == "A new name")
        assert d.window.windowTitle().startswith("A new name")

    drive(scenario)


def test_a_blank_title_changes_nothing() -> None:
    async def scenario(d: Driver) -> None:
        d.key(Qt.Key.Key_F2)
        editor = d.window.sidebar.chats.findChild(QLineEdit)
        assert editor is not None
        editor.setText("   ")
        QTest.keyClick(editor, Qt.Key.Key_Return)
        await d.settle()
        assert d.window.sidebar.chats.shown()[0].title == "Walks with Biscuit"
        assert not d.window.page.banner.isVisible()

    drive(scenario)


def test_a_title_being_edited_survives_a_refresh_of_the_list() -> None:
    async def scenario(d: Driver) -> None:
        d.key(Qt.Key.Key_F2)
        editor = d.window.sidebar.chats.findChild(QLineEdit)
        assert editor is not None
        QTest.keyClicks(editor, "Half")
        d.world.chats.add("Came meanwhile", "Hello")
        await d.window.desk.refresh()
        assert editor.isVisible()
        QTest.keyClicks(editor, " done")
        QTest.keyClick(editor, Qt.Key.Key_Return)
        await d.until(lambda: any(chat.title == "Half done" for chat in d.window.sidebar.chats.shown()))
        assert any(chat.title == "Came meanwhile" for chat in d.window.sidebar.chats.shown())

    drive(scenario)


def test_deleting_is_undone_from_the_toast_and_the_draft_comes_back() -> None:
    async def scenario(d: Driver) -> None:
        chat = d.window.desk.current
        assert chat is not None
        await d.type("half a thought", enter=False)
        d.key(Qt.Key.Key_Backspace, CTRL | SHIFT)
        await d.until(d.window.page.toast.isVisible)
        await d.until(lambda: d.window.desk.current != chat)
        assert d.world.chats.chats[chat].deleted
        await d.until(lambda: all(row.id != chat for row in d.window.sidebar.chats.shown()))
        d.click(d.window.page.toast.button)
        await d.until(lambda: d.window.desk.current == chat)
        assert not d.world.chats.chats[chat].deleted
        assert d.text == "half a thought"

    drive(scenario)


def test_undo_by_key_takes_back_a_deletion_when_there_is_no_typing_to_undo() -> None:
    async def scenario(d: Driver) -> None:
        chat = d.window.desk.current
        d.window.desk.delete_current()
        await d.until(lambda: d.window.desk.current != chat)
        d.window.page.composer.edit.setFocus()
        d.key(Qt.Key.Key_Z, CTRL)
        await d.until(lambda: d.window.desk.current == chat)

    drive(scenario)


def test_deleting_the_last_chat_leaves_a_new_one() -> None:
    world = World()
    only = world.chats.add("Only", "Hello")

    async def scenario(d: Driver) -> None:
        d.window.desk.delete(only)
        await d.until(lambda: d.window.desk.current not in {None, only})
        assert d.window.page.empty.isVisible()

    drive(scenario, world)


def test_the_menu_deletes_the_chat_it_was_opened_on_whatever_is_chosen_meanwhile() -> None:
    async def scenario(d: Driver) -> None:
        chats = d.window.sidebar.chats
        first, second = chats.shown()[1], chats.shown()[2]
        row = chats.model().index(index_of(chats, first.title), 0)
        chats.customContextMenuRequested.emit(chats.visualRect(row).center())
        menu = chats.findChild(QMenu)
        assert menu is not None
        d.window.desk.open(second.id)
        await d.until(lambda: d.window.desk.current == second.id)
        delete = next(action for action in menu.actions() if action.text() == "Delete")
        delete.trigger()
        menu.close()
        await d.until(lambda: d.world.chats.chats[first.id].deleted)
        assert not d.world.chats.chats[second.id].deleted
        assert d.window.desk.current == second.id

    drive(scenario)


def test_new_chat_opens_an_empty_one_and_only_one() -> None:
    async def scenario(d: Driver) -> None:
        count = len(d.world.chats.chats)
        d.key(Qt.Key.Key_N, CTRL)
        await d.until(d.window.page.empty.isVisible)
        d.key(Qt.Key.Key_N, CTRL)
        await d.settle()
        assert len(d.world.chats.chats) == count + 1
        assert QApplication.focusWidget() is d.window.page.composer.edit

    drive(scenario)


def test_each_chat_keeps_its_own_draft() -> None:
    async def scenario(d: Driver) -> None:
        first, second = (chat.id for chat in d.window.sidebar.chats.shown()[:2])
        await d.type("for the first", enter=False)
        d.window.desk.open(second)
        await d.until(lambda: d.window.desk.current == second)
        assert d.text == ""
        await d.type("for the second", enter=False)
        d.window.desk.open(first)
        await d.until(lambda: d.window.desk.current == first)
        assert d.text == "for the first"
        d.window.desk.open(second)
        await d.until(lambda: d.window.desk.current == second)
        assert d.text == "for the second"

    drive(scenario)


def test_a_draft_is_stored_a_moment_after_typing_and_when_the_window_closes() -> None:
    world = usual_world()
    chat = next(iter(world.chats.chats))

    async def first(d: Driver) -> None:
        await d.type("kept", enter=False)
        await d.until(lambda: d.world.chats.chats[chat].draft == "kept")
        await d.type(" too", enter=False)

    drive(first, world)
    assert world.chats.chats[chat].draft == "kept too"

    async def second(d: Driver) -> None:
        assert d.text == "kept too"

    drive(second, world)


def test_the_window_opens_on_the_chat_that_was_open_last() -> None:
    world = usual_world()
    other = list(world.chats.chats)[3]

    async def first(d: Driver) -> None:
        d.window.desk.open(other)
        await d.until(lambda: d.window.desk.current == other)
        await d.until(lambda: d.world.settings.values.get("ui.chat") == other)

    async def second(d: Driver) -> None:
        assert d.window.desk.current == other

    drive(first, world)
    drive(second, world)


def test_columns_are_shown_hidden_and_remembered() -> None:
    world = usual_world()

    async def first(d: Driver) -> None:
        assert d.window.sidebar.isVisible()
        assert d.window.panel.isVisible()
        d.key(Qt.Key.Key_B, CTRL)
        d.key(Qt.Key.Key_M, CTRL | SHIFT)
        assert not d.window.sidebar.isVisible()
        assert not d.window.panel.isVisible()
        await d.until(lambda: d.world.settings.values.get("ui.panel") == "no")

    async def second(d: Driver) -> None:
        assert not d.window.sidebar.isVisible()
        assert not d.window.panel.isVisible()

    drive(first, world)
    drive(second, world)


def test_a_narrow_window_gives_the_conversation_its_room_first() -> None:
    async def scenario(d: Driver) -> None:
        assert d.window.sidebar.isVisible()
        assert not d.window.panel.isVisible()
        d.window.toggle_panel()
        await d.settle()
        assert d.window.panel.isVisible()
        assert not d.window.sidebar.isVisible()
        assert d.window.page.width() >= 380

    drive(scenario, size=(760, 700))


def test_zoom_by_key_is_seen_and_remembered() -> None:
    async def scenario(d: Driver) -> None:
        before = d.window.sidebar.width()
        for _ in range(3):
            d.key(Qt.Key.Key_Plus, CTRL)
        await d.settle(0.2)
        assert d.theme.zoom == ZOOM_STEPS[ZOOM_STEPS.index(1.0) + 3]
        assert d.window.sidebar.width() > before
        assert d.world.settings.values["ui.zoom"] == str(d.theme.zoom)
        d.key(Qt.Key.Key_0, CTRL)
        assert d.theme.zoom == 1.0

    drive(scenario)


def test_the_whole_first_conversation_works_by_keyboard_alone() -> None:
    async def scenario(d: Driver) -> None:
        assert QApplication.focusWidget() is d.window.page.composer.edit
        QTest.keyClicks(d.window.page.composer.edit, "Hello there")
        d.key(Qt.Key.Key_Return)
        await d.until(lambda: d.window.page.last_answer() is not None and not d.window.desk.streaming)
        await d.settle(0.2)
        d.key(Qt.Key.Key_Up, ALT)
        item = d.window.page.scroller.widget_of(d.window.page.scroller.entries()[-1].key)
        assert isinstance(item, AnswerItem)
        assert QApplication.focusWidget() is item
        for _ in range(12):
            if QApplication.focusWidget() is item.meta.good:
                break
            d.key(Qt.Key.Key_Tab)
        assert QApplication.focusWidget() is item.meta.good
        d.key(Qt.Key.Key_Space)
        await d.until(lambda: item.message.liked)
        d.key(Qt.Key.Key_Escape, SHIFT)
        assert QApplication.focusWidget() is d.window.page.composer.edit
        d.key(Qt.Key.Key_Up)
        assert item.editing
        assert item.editor is not None
        QTest.keyClicks(item.editor.edit, "Hi. ")
        d.key(Qt.Key.Key_Return, CTRL)
        await d.until(lambda: d.window.page.last_answer() is not None and d.window.page.last_answer().edited)  # type: ignore[union-attr]
        d.key(Qt.Key.Key_R, CTRL)
        await d.until(lambda: any(call[0] == "regenerate" for call in d.world.chats.calls))

    world = World()
    drive(scenario, world)


def test_alt_up_and_down_walk_through_the_messages() -> None:
    async def scenario(d: Driver) -> None:
        scroller = d.window.page.scroller
        keys = [entry.key for entry in scroller.entries()]
        d.key(Qt.Key.Key_Up, ALT)
        assert scroller.key_at_focus() == keys[-1]
        d.key(Qt.Key.Key_Up, ALT)
        assert scroller.key_at_focus() == keys[-2]
        d.key(Qt.Key.Key_Down, ALT)
        assert scroller.key_at_focus() == keys[-1]

    drive(scenario)


def test_tab_goes_through_the_messages_from_top_to_bottom_and_then_to_the_field() -> None:
    async def scenario(d: Driver) -> None:
        await d.settle(0.3)
        d.window.page.scroller.setFocus()
        tops, seen = [], 0
        for _ in range(60):
            d.key(Qt.Key.Key_Tab)
            focused = QApplication.focusWidget()
            assert focused is not None
            if focused is d.window.page.composer.edit:
                break
            if (key := d.window.page.scroller.key_at_focus()) is not None:
                seen += 1
                tops.append(d.window.page.scroller.mounted()[key].y())
        assert QApplication.focusWidget() is d.window.page.composer.edit
        assert seen > 5
        assert tops == sorted(tops)

    drive(scenario)


def test_every_control_has_a_name_for_those_who_cannot_see_it() -> None:
    async def scenario(d: Driver) -> None:
        for widget in d.window.findChildren(QWidget):
            is_control = (
                isinstance(widget, (QAbstractButton, QLineEdit)) or widget.focusPolicy() & Qt.FocusPolicy.TabFocus
            )
            if is_control and widget.isVisible() and not widget.objectName().startswith("qt_"):
                name = widget.accessibleName() or getattr(widget, "text", lambda: "")()
                assert name, f"{type(widget).__name__} in {type(widget.parent()).__name__}"

    drive(scenario)


def test_no_key_means_two_things_and_each_has_words() -> None:
    make_application()
    seen: dict[str, str] = {}
    for shortcut in SHORTCUTS:
        assert shortcut.words
        assert sequences(shortcut), shortcut.name
        for sequence in sequences(shortcut):
            text = sequence.toString(QKeySequence.SequenceFormat.PortableText)
            assert text not in seen, f"{text}: {shortcut.name} and {seen[text]}"
            seen[text] = shortcut.name


def test_help_shows_every_shortcut() -> None:
    async def scenario(d: Driver) -> None:
        d.key(Qt.Key.Key_F1)
        dialog = d.window.findChild(ShortcutsDialog)
        assert dialog is not None
        words = " ".join(label.text() for label in dialog.findChildren(QLabel))
        for shortcut in SHORTCUTS:
            assert shortcut.words in words
        dialog.accept()

    drive(scenario)


def test_a_click_on_a_chat_opens_it() -> None:
    async def scenario(d: Driver) -> None:
        chats = d.window.sidebar.chats
        rect = chats.visualRect(chats.model().index(index_of(chats, "Trip to Trieste"), 0))
        QTest.mouseClick(chats.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, rect.center())
        await d.until(lambda: d.window.header.title.whole() == "Trip to Trieste")
        heading = chats.visualRect(chats.model().index(0, 0))
        QTest.mouseClick(
            chats.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, heading.center() + QPoint(0, 0)
        )
        await d.settle()
        assert d.window.header.title.whole() == "Trip to Trieste"

    drive(scenario)


def test_finding_goes_from_the_newest_message_upwards_and_marks_the_words() -> None:
    turns = [f"Question {number} about " + ("lentils" if number % 10 == 0 else "rain") for number in range(60)]
    world = World()
    world.chats.add("Long", *turns)

    async def scenario(d: Driver) -> None:
        page = d.window.page
        d.key(Qt.Key.Key_F, CTRL)
        assert QApplication.focusWidget() is page.find_bar.field
        QTest.keyClicks(page.find_bar.field, "LENTILS")
        assert page.find_bar.place.text() == "6 of 6"
        d.key(Qt.Key.Key_Return)
        assert page.find_bar.place.text() == "5 of 6"
        entry = page.scroller.entries()[40]
        item = page.scroller.widget_of(entry.key)
        assert item is not None
        marked = [mark for pane in item.findChildren(Pane) for mark in pane.extraSelections()]
        assert [mark.cursor.selectedText() for mark in marked] == ["lentils"]
        top = page.scroller.verticalScrollBar().value()
        assert top <= item.y() <= top + page.scroller.viewport().height()
        d.key(Qt.Key.Key_Return, SHIFT)
        assert page.find_bar.place.text() == "6 of 6"
        page.find_bar.field.setText("nowhere")
        assert page.find_bar.place.text() == "not found"
        d.key(Qt.Key.Key_Escape)
        assert not page.find_bar.isVisible()
        assert QApplication.focusWidget() is page.composer.edit

    drive(scenario, world)


def test_the_palette_goes_to_chats_and_does_actions() -> None:
    async def scenario(d: Driver) -> None:
        d.key(Qt.Key.Key_K, CTRL)
        palette = d.window.findChild(Palette)
        assert palette is not None
        QTest.keyClicks(palette.field, "trieste")
        assert palette.shown() == ["Trip to Trieste"]
        QTest.keyClick(palette.field, Qt.Key.Key_Return)
        await d.until(lambda: d.window.header.title.whole() == "Trip to Trieste")
        d.window.actions_by_name["palette"].trigger()
        palette = d.window.findChildren(Palette)[-1]
        QTest.keyClicks(palette.field, "hide versions")
        QTest.keyClick(palette.field, Qt.Key.Key_Return)
        assert not d.window.panel.isVisible()

    drive(scenario)


def test_what_the_start_had_to_say_is_still_there_when_the_window_is_filled() -> None:
    world = usual_world()
    made = world.services
    world.services = lambda: made(notices=("A lesson was taken back.", "The settings were damaged."))  # type: ignore[assignment,misc]

    async def scenario(d: Driver) -> None:
        assert d.window.page.banner.isVisible()
        assert d.window.page.banner.words.text() == "A lesson was taken back.\nThe settings were damaged."

    drive(scenario, world)


def test_what_cannot_be_read_at_the_start_is_said_and_the_rest_is_shown() -> None:
    world = usual_world()

    def locked() -> DevStatus:
        raise KnownError("read the state of learning", "ownmind.db", "Another program holds the database.")

    world.devmode.status = locked  # type: ignore[method-assign]

    async def scenario(d: Driver) -> None:
        assert "Another program holds the database." in d.window.page.banner.words.text()
        assert d.window.header.title.whole() == "Walks with Biscuit"

    drive(scenario, world)


def test_an_offer_to_undo_is_not_pushed_away_by_mere_words() -> None:
    async def scenario(d: Driver) -> None:
        toast = d.window.page.toast
        toast.say("Chat deleted", action="Undo")
        toast.say("Copied")
        assert toast.button.isVisible()
        toast.act()
        toast.say("Copied")
        assert not toast.button.isVisible()

    drive(scenario)


def test_a_chat_is_deleted_while_another_waits_for_its_answer() -> None:
    async def scenario(d: Driver) -> None:
        first = d.window.desk.current
        victim = d.window.sidebar.chats.shown()[3].id
        d.world.chats.hold = asyncio.Event()
        d.world.chats.script = lambda _: ["One. ", "Two."]
        await d.type("Go")
        await d.until(lambda: d.window.desk.streaming)
        d.window.desk.delete(victim)
        await d.until(lambda: d.world.chats.chats[victim].deleted)
        assert d.window.desk.current == first
        assert d.window.desk.streaming
        await d.bridge.do(d.world.chats.hold.set)
        await d.until(lambda: not d.window.desk.streaming)

    drive(scenario)
