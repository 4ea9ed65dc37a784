from __future__ import annotations

import asyncio
import time

from PySide6.QtCore import QMimeData, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.chat.api import MessageState
from app.errors import ErrorInfo, UserError
from app.ui.answer_parts import Failure
from app.ui.links import LinkDialog
from app.ui.markdown.view import TextBlock
from app.ui.messages import AnswerItem, OwnItem
from app.ui.page import ConversationPage
from app.ui.transcript import message_key
from tests.ui.fakes import World, message, usual_world
from tests.ui.harness import Driver, drive

NO_MODEL = UserError("send the message", hint="No model is loaded yet. Choose one in Settings.")


def answers(page: ConversationPage) -> list[AnswerItem]:
    scroller = page.scroller
    widgets = [scroller.widget_of(entry.key) for entry in scroller.entries()]
    return [widget for widget in widgets if isinstance(widget, AnswerItem)]


def shown_text(item: AnswerItem) -> str:
    return "\n".join(
        block.pane.toPlainText() if hasattr(block, "pane") else block.toPlainText() for block in item.body.blocks()
    )


def place_of(item: AnswerItem) -> str:
    siblings = item.meta.siblings
    return siblings.place.text() if siblings is not None and siblings.isVisible() else ""


def test_a_sent_message_and_its_answer_appear_and_the_field_is_empty() -> None:
    async def scenario(d: Driver) -> None:
        d.world.chats.script = lambda text: ["Hello", " **Ana**"]
        await d.type("I am Ana")
        await d.until(lambda: ("send", chat, "I am Ana") in d.world.chats.calls and not d.window.desk.streaming)
        await d.settle()
        assert d.text == ""
        assert "Hello Ana" in shown_text(answers(d.window.page)[-1])

    world = usual_world()
    chat = next(iter(world.chats.chats))
    drive(scenario, world)


def test_text_streams_in_before_the_answer_is_complete() -> None:
    async def scenario(d: Driver) -> None:
        d.world.chats.hold = asyncio.Event()
        d.world.chats.script = lambda text: ["First part. ", "Second part."]
        await d.type("Go")
        await d.until(lambda: "First part" in shown_text(answers(d.window.page)[-1]))
        item = answers(d.window.page)[-1]
        assert "Second" not in shown_text(item)
        assert item.busy
        assert not item.meta.isVisible()
        assert d.window.page.composer.stop.isVisible()
        d.core.run(_set(d.world.chats.hold))
        await d.until(lambda: "Second part" in shown_text(item))
        await d.until(item.meta.isVisible)
        assert d.window.page.composer.send.isVisible()

    drive(scenario)


async def _set(event: asyncio.Event) -> None:
    event.set()


def test_escape_stops_and_keeps_what_has_come() -> None:
    async def scenario(d: Driver) -> None:
        d.world.chats.hold = asyncio.Event()
        d.world.chats.script = lambda text: ["Kept. ", "Lost."]
        await d.type("Go")
        await d.until(lambda: "Kept" in shown_text(answers(d.window.page)[-1]))
        d.window.page.composer.edit.setFocus()
        d.key(Qt.Key.Key_Escape)
        await d.until(lambda: answers(d.window.page)[-1].message.state is MessageState.STOPPED)
        assert shown_text(answers(d.window.page)[-1]) == "Kept. "[:-1] or "Kept" in shown_text(
            answers(d.window.page)[-1]
        )
        assert "Lost" not in shown_text(answers(d.window.page)[-1])
        assert "stopped" in answers(d.window.page)[-1].meta.origin.text()

    drive(scenario)


def test_a_refused_message_stays_in_the_field_with_a_plain_reason() -> None:
    async def scenario(d: Driver) -> None:
        d.world.chats.refuse_next = NO_MODEL
        await d.type("Do not lose me")
        await d.until(d.window.page.banner.isVisible)
        assert d.text == "Do not lose me"
        assert not d.window.page.composer.edit.isReadOnly()
        assert "No model is loaded yet" in d.window.page.banner.words.text()
        QTest.keyClick(d.window.page.composer.edit, Qt.Key.Key_Return)
        await d.until(lambda: d.text == "")

    drive(scenario)


def test_a_refusal_that_comes_after_leaving_the_chat_keeps_the_text_as_its_draft() -> None:
    async def scenario(d: Driver) -> None:
        first = d.window.desk.current
        assert first is not None
        other = d.window.sidebar.chats.shown()[1].id
        d.world.chats.refuse_next = NO_MODEL
        d.window.page.composer.edit.setPlainText("Do not lose me")
        d.window.page.composer.submit()
        d.window.desk.open(other)
        await d.until(lambda: d.window.desk.current == other)
        await d.until(lambda: d.world.chats.chats[first].draft == "Do not lose me")

    drive(scenario)


def test_blank_text_is_not_sent() -> None:
    async def scenario(d: Driver) -> None:
        await d.type("   ")
        await d.settle()
        assert not any(call[0] == "send" for call in d.world.chats.calls)

    drive(scenario)


def test_shift_enter_begins_a_line_and_ctrl_enter_sends() -> None:
    async def scenario(d: Driver) -> None:
        edit = d.window.page.composer.edit
        await d.type("one", enter=False)
        QTest.keyClick(edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
        await d.type("two", enter=False)
        assert d.text == "one\ntwo"
        QTest.keyClick(edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
        await d.until(lambda: any(call[2:] == ("one\ntwo",) for call in d.world.chats.calls if call[0] == "send"))

    drive(scenario)


def test_a_failed_answer_says_why_and_can_be_tried_again() -> None:
    async def scenario(d: Driver) -> None:
        d.world.chats.fail_next = ErrorInfo(
            "KnownError", "could not answer", "", "The model ran out of memory.", retryable=True
        )
        await d.type("Go")
        await d.until(lambda: answers(d.window.page)[-1].message.state is MessageState.FAILED)
        item = answers(d.window.page)[-1]
        assert item.failure is not None
        assert "The model ran out of memory." in item.failure.words()
        assert item.failure.isVisible()
        d.click(item.failure.button)
        await d.until(lambda: answers(d.window.page)[-1].message.state is MessageState.COMPLETE)
        assert not answers(d.window.page)[-1].findChildren(Failure)

    drive(scenario)


def test_again_keeps_the_earlier_answer_as_a_sibling_to_go_back_to() -> None:
    async def scenario(d: Driver) -> None:
        d.world.chats.script = lambda text: ["A new answer"]
        first = answers(d.window.page)[-1]
        old_text = shown_text(first)
        d.click(first.meta.again)
        await d.until(lambda: shown_text(answers(d.window.page)[-1]) == "A new answer")
        await d.until(lambda: place_of(answers(d.window.page)[-1]) == "2 of 2")
        item = answers(d.window.page)[-1]
        assert item.meta.siblings is not None
        assert not item.meta.siblings.after.isEnabled()
        d.click(item.meta.siblings.before)
        await d.until(lambda: shown_text(answers(d.window.page)[-1]) == old_text)
        assert place_of(answers(d.window.page)[-1]) == "1 of 2"

    drive(scenario, world_with("Ask", "An answer"))


def world_with(*turns: str) -> World:
    world = World()
    world.chats.add("A chat", *turns)
    return world


def test_good_marks_an_answer_and_takes_it_back() -> None:
    async def scenario(d: Driver) -> None:
        item = answers(d.window.page)[-1]
        d.click(item.meta.good)
        await d.until(lambda: d.world.chats.last(chat).liked)
        await d.until(lambda: item.message.liked)
        assert item.meta.good.isChecked()
        d.click(item.meta.good)
        await d.until(lambda: not d.world.chats.last(chat).liked)
        await d.until(lambda: not item.message.liked)
        assert not item.meta.good.isChecked()

    world = world_with("Ask", "An answer")
    chat = next(iter(world.chats.chats))
    drive(scenario, world)


def test_an_answer_is_edited_in_place_and_cancel_changes_nothing() -> None:
    async def scenario(d: Driver) -> None:
        item = answers(d.window.page)[-1]
        d.click(item.meta.edit)
        assert item.editor is not None
        assert item.editor.edit.toPlainText() == "An **answer**"
        assert not item.body.isVisible()
        item.editor.edit.setPlainText("Something else")
        d.click(item.editor.drop)
        assert item.body.isVisible()
        assert not any(call[0] == "edit" for call in d.world.chats.calls)
        d.click(item.meta.edit)
        item.editor.edit.setPlainText("My own words")
        d.click(item.editor.save)
        await d.until(lambda: shown_text(answers(d.window.page)[-1]) == "My own words")
        assert "edited by you" in answers(d.window.page)[-1].meta.origin.text()

    drive(scenario, world_with("Ask", "An **answer**"))


def test_escape_leaves_an_edit_and_an_empty_edit_cannot_be_saved() -> None:
    async def scenario(d: Driver) -> None:
        item = answers(d.window.page)[-1]
        item.start_editing()
        assert item.editor is not None
        item.editor.edit.setPlainText("  ")
        assert not item.editor.save.isEnabled()
        QTest.keyClick(item.editor.edit, Qt.Key.Key_Escape)
        assert not item.editor.isVisible()

    drive(scenario, world_with("Ask", "An answer"))


def test_copy_gives_the_answer_as_it_was_written_and_code_as_it_came() -> None:
    text = "Some **bold**\n\n```python\nx = 1\n\ty = 2\n```\n"

    async def scenario(d: Driver) -> None:
        item = answers(d.window.page)[-1]
        d.click(item.meta.copy)
        assert QApplication.clipboard().text() == text
        d.window.page.copy_code()
        assert QApplication.clipboard().text() == "x = 1\n\ty = 2\n"
        assert d.window.page.toast.isVisible()

    drive(scenario, world_with("Ask", text))


def test_an_answer_goes_on_while_another_chat_is_shown() -> None:
    async def scenario(d: Driver) -> None:
        first = d.window.desk.current
        assert first is not None
        other = d.window.sidebar.chats.shown()[2].id
        d.world.chats.hold = asyncio.Event()
        d.world.chats.script = lambda text: ["One. ", "Two."]
        await d.type("Go")
        await d.until(lambda: "One" in shown_text(answers(d.window.page)[-1]))
        d.window.desk.open(other)
        await d.until(lambda: d.window.desk.current == other)
        assert "One" not in shown_text(answers(d.window.page)[-1])
        assert not d.window.page.composer.stop.isVisible()
        d.window.desk.open(first)
        await d.until(lambda: d.window.desk.current == first)
        await d.until(lambda: "One" in shown_text(answers(d.window.page)[-1]))
        assert d.window.page.composer.stop.isVisible()
        d.core.run(_set(d.world.chats.hold))
        await d.until(lambda: "Two" in shown_text(answers(d.window.page)[-1]))

    drive(scenario)


def test_the_chat_asked_for_last_is_the_one_shown() -> None:
    async def scenario(d: Driver) -> None:
        ids = [chat.id for chat in d.window.sidebar.chats.shown()]
        for _ in range(3):
            for chat in ids:
                d.window.desk.open(chat)
        await d.until(lambda: d.window.desk.current == ids[-1])
        await d.settle(0.2)
        assert d.window.desk.current == ids[-1]
        assert d.window.header.title.whole() == d.world.chats.chats[ids[-1]].title

    drive(scenario)


def test_a_left_over_streaming_message_counts_as_stopped() -> None:
    world = world_with("Ask")
    chat = next(iter(world.chats.chats))
    world.chats.append(chat, message("cut", "Half an ans", state=MessageState.STREAMING))

    async def scenario(d: Driver) -> None:
        item = answers(d.window.page)[-1]
        assert item.message.state is MessageState.STOPPED
        assert item.meta.isVisible()
        assert shown_text(item) == "Half an ans"

    drive(scenario, world)


def test_a_paste_of_twenty_thousand_lines_is_quick_and_becomes_an_attachment() -> None:
    text = "\n".join(f"line {number} with some words in it" for number in range(20_000))

    async def scenario(d: Driver) -> None:
        edit = d.window.page.composer.edit
        await d.type("Look at this:", enter=False)
        QApplication.clipboard().setText(text)
        started = time.perf_counter()
        edit.setFocus()
        edit.paste()
        await d.settle(0)
        assert time.perf_counter() - started < 1.0
        assert d.text == "Look at this:"
        assert d.window.page.composer.text() == f"Look at this:\n\n{text}"
        started = time.perf_counter()
        QTest.keyClick(edit, Qt.Key.Key_Return)
        await d.until(lambda: any(call[0] == "send" for call in d.world.chats.calls))
        await d.until(lambda: not d.window.desk.streaming)
        assert time.perf_counter() - started < 2.0
        sent = next(call[2] for call in d.world.chats.calls if call[0] == "send")
        assert sent == f"Look at this:\n\n{text}"

    world = usual_world()
    world.chats.script = lambda _: ["Long."]
    drive(scenario, world)


def test_a_long_message_shows_its_beginning_and_opens_on_demand() -> None:
    text = "\n".join(f"line {number}" for number in range(20_000))

    async def scenario(d: Driver) -> None:
        item = d.window.page.scroller.widget_of(d.window.page.scroller.entries()[0].key)
        assert isinstance(item, OwnItem)
        assert item.height() < 500
        started = time.perf_counter()
        d.click(item.more)
        await d.settle(0.05)
        assert time.perf_counter() - started < 1.0
        assert item.whole is not None
        assert item.whole.toPlainText() == text

    drive(scenario, world_with(text, "Thanks"))


def test_a_message_of_one_megabyte_on_one_line_holds_nothing_up() -> None:
    async def scenario(d: Driver) -> None:
        started = time.perf_counter()
        await d.window.desk.refresh()
        await d.settle(0)
        assert time.perf_counter() - started < 1.0

    drive(scenario, world_with("x" * 1_000_000, "ok"))


def test_files_and_images_are_not_pasted() -> None:
    async def scenario(d: Driver) -> None:
        data = QMimeData()
        data.setHtml("<b>bold</b><img src='file:///etc/passwd'>")
        data.setText("bold")
        d.window.page.composer.edit.insertFromMimeData(data)
        assert d.text == "bold"

    drive(scenario)


def test_enter_and_escape_while_composing_neither_send_nor_stop() -> None:
    async def scenario(d: Driver) -> None:
        edit = d.window.page.composer.edit
        edit.setFocus()
        d.compose(edit, "にほん")
        QTest.keyClick(edit, Qt.Key.Key_Return)
        QTest.keyClick(edit, Qt.Key.Key_Enter)
        await d.settle()
        assert not any(call[0] == "send" for call in d.world.chats.calls)
        d.compose(edit, "", "日本")
        assert d.text == "日本"
        QTest.keyClick(edit, Qt.Key.Key_Return)
        await d.until(lambda: any(call[0] == "send" for call in d.world.chats.calls))
        sent = [call[2] for call in d.world.chats.calls if call[0] == "send"]
        assert sent == ["日本"]

    drive(scenario)


def test_escape_while_composing_does_not_stop_an_answer() -> None:
    async def scenario(d: Driver) -> None:
        d.world.chats.hold = asyncio.Event()
        d.world.chats.script = lambda text: ["One. ", "Two."]
        await d.type("Go")
        await d.until(lambda: d.window.desk.streaming)
        edit = d.window.page.composer.edit
        d.compose(edit, "한")
        QTest.keyClick(edit, Qt.Key.Key_Escape)
        await d.settle()
        assert ("stop",) not in d.world.chats.calls
        d.compose(edit, "")
        QTest.keyClick(edit, Qt.Key.Key_Escape)
        await d.until(lambda: ("stop",) in d.world.chats.calls)

    drive(scenario)


def test_syllables_committed_piece_by_piece_arrive_once_each() -> None:
    words = "이전과 같은지 확인해보자"

    async def scenario(d: Driver) -> None:
        edit = d.window.page.composer.edit
        edit.setFocus()
        for syllable in words:
            d.compose(edit, syllable)
            d.compose(edit, "", syllable)
        QTest.keyClicks(edit, " ok")
        assert d.text == words + " ok"

    drive(scenario)


def test_a_suggestion_starts_the_first_chat_and_never_replaces_typed_text() -> None:
    async def scenario(d: Driver) -> None:
        page = d.window.page
        assert page.empty.isVisible()
        d.window.page.composer.edit.setPlainText("mine")
        d.click(page.empty.suggestions[0])
        assert d.text.startswith("mine\n")
        page.composer.set_text("")
        d.click(page.empty.suggestions[2])
        await d.until(lambda: answers(page))
        assert ("send", d.window.desk.current, "What is my dog's name?") in d.world.chats.calls
        assert not page.empty.isVisible()

    drive(scenario, World())


def test_following_the_end_stops_when_the_person_scrolls_away() -> None:
    turns = [f"Question {number}" if number % 2 == 0 else f"Answer {number} " + "words " * 80 for number in range(40)]

    async def scenario(d: Driver) -> None:
        page, scroller = d.window.page, d.window.page.scroller
        bar = scroller.verticalScrollBar()
        assert bar.value() == bar.maximum()
        d.world.chats.hold = asyncio.Event()
        d.world.chats.script = lambda text: ["Start. ", "More.\n\n" * 30]
        await d.type("Go")
        await d.until(lambda: d.window.desk.streaming)
        await d.settle(0.1)
        assert page.jump.isHidden()
        bar.setValue(bar.maximum() - 900)
        await d.settle(0.1)
        assert not page.scroller.following
        assert page.jump.isVisible()
        before = top_item(d)
        d.core.run(_set(d.world.chats.hold))
        await d.until(lambda: not d.window.desk.streaming)
        await d.settle(0.2)
        assert top_item(d) == before
        d.click(page.jump)
        await d.settle(0.1)
        assert bar.value() == bar.maximum()
        assert not page.jump.isVisible()

    drive(scenario, world_with(*turns))


def top_item(d: Driver) -> tuple[str, int]:
    scroller = d.window.page.scroller
    top = scroller.verticalScrollBar().value()
    tops = {key: widget.y() for key, widget in scroller.mounted().items() if widget.y() + widget.height() > top}
    key = min(tops, key=tops.__getitem__)
    return key, tops[key] - top


def test_only_what_is_near_is_a_widget() -> None:
    turns = [f"Message {number} " + "word " * (number % 50) for number in range(2000)]

    async def scenario(d: Driver) -> None:
        scroller = d.window.page.scroller
        await d.until(lambda: len(scroller.mounted()) > 20)
        bar = scroller.verticalScrollBar()
        for place in (0.0, 0.5, 0.25, 1.0):
            bar.setValue(round(bar.maximum() * place))
            await d.settle(0.4)
            assert len(scroller.mounted()) < 80
            visible = [w for w in scroller.mounted().values() if not w.visibleRegion().isEmpty()]
            assert visible
        assert bar.value() == bar.maximum()

    drive(scenario, world_with(*turns))


def test_scrolling_up_keeps_the_item_at_the_top_in_place_while_heights_become_known() -> None:
    turns = [f"Message {number} " + "word " * (37 * number % 400) for number in range(200)]

    async def scenario(d: Driver) -> None:
        bar = d.window.page.scroller.verticalScrollBar()
        bar.setValue(bar.maximum() // 2)
        before = top_item(d)
        await d.settle(0.8)
        assert top_item(d) == before

    drive(scenario, world_with(*turns))


def test_a_link_asks_before_it_opens_and_others_do_nothing() -> None:
    async def scenario(d: Driver) -> None:
        page = d.window.page
        page.link_asked.emit("javascript:alert(1)")
        page.link_asked.emit("file:///etc/passwd")
        assert d.window.findChildren(LinkDialog) == []
        page.link_asked.emit("https://example.org/x")
        dialog = d.window.findChild(LinkDialog)
        assert dialog is not None
        opened: list[str] = []
        dialog._opener = lambda address: opened.append(address) is None  # type: ignore[func-returns-value]
        QTest.keyClick(dialog, Qt.Key.Key_Return)
        assert opened == []
        dialog.open_button.click()
        assert opened == ["https://example.org/x"]

    drive(scenario)


def test_clicking_a_link_in_an_answer_asks() -> None:
    async def scenario(d: Driver) -> None:
        item = answers(d.window.page)[-1]
        pane = item.body.blocks()[0]
        assert isinstance(pane, TextBlock)
        point = pane.cursorRect(pane.textCursor()).center()
        for x in range(4, 200, 6):
            point.setX(x)
            if pane.anchorAt(point):
                break
        assert pane.anchorAt(point) == "https://example.org/a"
        QTest.mouseClick(pane.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, point)
        await d.settle()
        assert d.window.findChild(LinkDialog) is not None

    drive(scenario, world_with("Ask", "See [this page](https://example.org/a) now"))


def test_messages_of_the_person_are_never_markup() -> None:
    text = "<b>not bold</b> ![x](/etc/passwd) **stars**"

    async def scenario(d: Driver) -> None:
        item = d.window.page.scroller.widget_of(message_key(d.world.chats.view(chat).messages[0].id))
        assert isinstance(item, OwnItem)
        assert item.pane.toPlainText() == text

    world = world_with(text, "ok")
    chat = next(iter(world.chats.chats))
    drive(scenario, world)
