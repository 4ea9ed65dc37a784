from __future__ import annotations

import asyncio
from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.approvals.api import ProposalState
from app.devmode.api import SENTENCE, DevState
from app.errors import DeniedError
from app.learning.api import CardView
from app.ui.card import ApprovalCard
from app.ui.card_text import Act
from app.ui.theme import Scheme
from app.ui.transcript import card_key
from tests.ui.fakes import FakeDevMode, World, usual_world
from tests.ui.harness import Driver, drive


def the_card(d: Driver, ident: str = "p1") -> ApprovalCard:
    widget = d.window.page.scroller.widget_of(card_key(ident))
    assert isinstance(widget, ApprovalCard)
    return widget


def press(d: Driver, act: Act, ident: str = "p1") -> None:
    button = the_card(d, ident).button(act)
    assert button is not None
    d.click(button)


def locked_world() -> World:
    world = usual_world()
    world.devmode.state = DevState.LOCKED
    return world


def test_a_card_that_comes_while_chatting_appears_below_its_message() -> None:
    async def scenario(d: Driver) -> None:
        await d.type("He is called Rex")
        await d.until(lambda: ("send", chat, "He is called Rex") in d.world.chats.calls and not d.window.desk.streaming)
        asked = d.world.chats.view(chat).messages[-2]
        card = CardView("p9", chat, asked.id, ProposalState.SURFACED, "You corrected me.", "Q", "A", None)
        await d.bridge.do(d.world.learning.put, card)
        await d.until(lambda: d.window.page.scroller.widget_of(card_key("p9")))
        keys = [entry.key for entry in d.window.page.scroller.entries()]
        assert keys[-3:] == [f"m:{asked.id}", card_key("p9"), f"m:{d.world.chats.last(chat).id}"]

    world = usual_world()
    chat = next(iter(world.chats.chats))
    drive(scenario, world)


def test_a_card_of_another_chat_does_not_appear_here() -> None:
    async def scenario(d: Driver) -> None:
        before = d.window.page.scroller.entries()
        other = replace(d.world.learning.all["p1"], id="p8", chat="elsewhere")
        await d.bridge.do(d.world.learning.put, other)
        await d.settle()
        assert d.window.page.scroller.entries() == before

    drive(scenario)


def test_learn_it_runs_through_its_stages_to_learned_and_undo_takes_it_back() -> None:
    async def scenario(d: Driver) -> None:
        press(d, Act.LEARN)
        await d.until(lambda: ("approve", "p1", None) in d.world.learning.calls)
        await d.until(lambda: the_card(d).card is not None and the_card(d).card.state is ProposalState.QUEUED)  # type: ignore[union-attr]
        await d.bridge.call(d.world.learning.advance("p1", title="Learned: your dog's name", version=15))
        await d.until(lambda: the_card(d).title.text() == "Learned: your dog's name")
        press(d, Act.UNDO)
        await d.until(lambda: ("undo", "p1") in d.world.learning.calls)
        await d.until(lambda: the_card(d).card.state is ProposalState.UNDONE)  # type: ignore[union-attr]

    drive(scenario)


def test_chatting_goes_on_while_a_lesson_is_being_learned_and_the_panel_shows_it() -> None:
    async def scenario(d: Driver) -> None:
        running = replace(
            d.world.learning.all["p1"], state=ProposalState.TRAINING, stage="learning", share=0.4, seconds_left=9.0
        )
        await d.bridge.do(d.world.learning.put, running)
        await d.until(d.window.panel.now.isVisible)
        await d.type("Meanwhile")
        await d.until(lambda: any(call[0] == "send" for call in d.world.chats.calls) and not d.window.desk.streaming)
        d.click(d.window.panel.now.stop)
        await d.until(lambda: ("cancel", "p1") in d.world.learning.calls)
        await d.until(lambda: not d.window.panel.now.isVisible())

    drive(scenario)


def test_an_error_is_said_on_the_card_and_the_card_can_be_tried_again() -> None:
    async def scenario(d: Driver) -> None:
        d.world.devmode.refusal = DeniedError("learn it", hint="Today's budget is used up.")
        press(d, Act.LEARN)
        await d.until(lambda: "budget" in the_card(d).problem.text())
        button = the_card(d).button(Act.LEARN)
        assert button is not None
        assert button.isEnabled()
        assert not d.window.page.banner.isVisible()

    drive(scenario)


def test_locked_learning_leads_through_about_and_the_wizard_to_the_lesson() -> None:
    async def scenario(d: Driver) -> None:
        assert d.window.sidebar.foot.words().startswith("Learning is locked")
        press(d, Act.LEARN)
        await d.until(lambda: d.window.dialogs.about is not None and d.window.dialogs.about.isVisible())
        await d.until(lambda: ("wanted", "p1") in d.world.learning.calls)
        about = d.window.dialogs.about
        assert about is not None
        for _ in range(7):
            d.click(about.version)
            await d.settle(0.03)
        await d.until(lambda: d.window.dialogs.wizard is not None and d.window.dialogs.wizard.isVisible())
        wizard = d.window.dialogs.wizard
        assert wizard is not None
        for _ in range(4):
            await d.until(wizard.next.isEnabled)
            d.click(wizard.next)
            await d.settle(0.05)
        assert d.world.devmode.status().state is DevState.FOUND
        QTest.keyClicks(wizard.sentence.line, SENTENCE)
        await d.until(wizard.unlock.isEnabled)
        d.click(wizard.unlock)
        await d.until(lambda: ("approve", "p1", None) in d.world.learning.calls)
        assert d.world.devmode.status().state is DevState.UNLOCKED
        await d.until(lambda: "unlocked" in d.window.sidebar.foot.words())

    world = locked_world()
    drive(scenario, world)


def test_leaving_the_way_to_unlocking_learns_nothing() -> None:
    async def scenario(d: Driver) -> None:
        press(d, Act.LEARN)
        await d.until(lambda: d.window.dialogs.about is not None)
        about = d.window.dialogs.about
        assert about is not None
        about.reject()
        await d.settle(0.1)
        assert d.window.dialogs.about is None
        d.world.devmode.state = DevState.UNLOCKED
        await d.window.dialogs.refresh()
        await d.settle(0.1)
        assert not any(call[0] == "approve" for call in d.world.learning.calls)

    drive(scenario, locked_world())


def test_locking_in_settings_is_seen_on_open_cards_and_in_the_indicator() -> None:
    async def scenario(d: Driver) -> None:
        d.key(Qt.Key.Key_Comma, Qt.KeyboardModifier.ControlModifier)
        await d.until(lambda: d.window.dialogs.settings is not None and d.window.dialogs.settings.isVisible())
        settings = d.window.dialogs.settings
        assert settings is not None
        settings.lock.click()
        await d.until(lambda: d.window.sidebar.foot.words().startswith("Learning is locked"))
        settings.accept()
        press(d, Act.LEARN)
        await d.settle(0.1)
        assert not any(call[0] == "approve" for call in d.world.learning.calls)

    drive(scenario)


def test_settings_take_effect_at_once_and_are_remembered() -> None:
    async def scenario(d: Driver) -> None:
        d.window.dialogs.open_settings()
        await d.until(lambda: d.window.dialogs.settings is not None)
        settings = d.window.dialogs.settings
        assert settings is not None
        settings.scheme_changed.emit(Scheme.DARK)
        settings.instructions_changed.emit("Answer briefly.")
        await d.until(lambda: d.world.settings.values.get("answer.instructions") == "Answer briefly.")
        assert d.theme.dark
        assert d.world.settings.values["ui.scheme"] == "dark"
        settings.accept()

    drive(scenario)


def test_going_to_a_version_and_asking_one_reach_the_use_cases() -> None:
    async def scenario(d: Driver) -> None:
        d.window.panel.ask_requested.emit("commit-12", "Who?")
        await d.until(lambda: ("ask_version", "commit-12", "Who?") in d.world.learning.calls)
        d.window.panel.use_requested.emit("commit-12")
        await d.until(lambda: d.window.header.version.text() == "Version 12 · SmolLM2")

    drive(scenario)


def test_keys_decide_the_focused_card() -> None:
    async def scenario(d: Driver) -> None:
        the_card(d).setFocus()
        assert QApplication.focusWidget() is the_card(d)
        d.key(Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier)
        await d.until(lambda: ("approve", "p1", None) in d.world.learning.calls)

    drive(scenario)


def test_a_card_on_screen_warms_the_trainer_once() -> None:
    async def scenario(d: Driver) -> None:
        await d.until(lambda: ("opened", "p1") in d.world.learning.calls)
        await d.window.desk.refresh()
        await d.settle(0.1)
        assert d.world.learning.calls.count(("opened", "p1")) == 1

    drive(scenario)


def test_a_failed_lesson_is_proposed_and_approved_again() -> None:
    world = usual_world()
    world.learning.all["p1"] = replace(world.learning.all["p1"], state=ProposalState.CANCELLED)

    async def scenario(d: Driver) -> None:
        press(d, Act.TRY_AGAIN)
        await d.until(lambda: ("approve", "p1", None) in d.world.learning.calls)
        assert any(call[0] == "reword" for call in d.world.learning.calls)

    drive(scenario, world)


def test_a_thousand_progress_events_do_not_hold_the_window_up() -> None:
    async def scenario(d: Driver) -> None:
        card = replace(d.world.learning.all["p1"], state=ProposalState.TRAINING, stage="learning")

        def flood() -> None:
            for step in range(1000):
                d.world.learning.put(replace(card, share=step / 1000, seconds_left=10 - step / 100))

        loop = asyncio.get_running_loop()
        started = loop.time()
        await d.bridge.do(flood)
        await d.until(lambda: the_card(d).card is not None and the_card(d).card.share > 0.99)  # type: ignore[union-attr]
        assert loop.time() - started < 6

    drive(scenario)


def test_the_indicator_counts_down() -> None:
    world = usual_world()
    world.devmode = FakeDevMode(left=3)
    world.learning.devmode = world.devmode

    async def scenario(d: Driver) -> None:
        assert "3 of 50 changes left today" in d.window.sidebar.foot.words()
        d.world.devmode.spend("a lesson")
        await d.bridge.call(d.world.learning.use("commit-12"))
        await d.until(lambda: "2 of 50" in d.window.sidebar.foot.words())

    drive(scenario, world)
