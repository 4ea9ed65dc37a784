from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.devmode.api import SENTENCE, Budget, DevState, DevStatus, MachineCheck
from app.errors import DeniedError, KnownError
from app.ui.theme import Scheme, Theme
from app.ui.wizard import UnlockWizard
from tests.ui_parts.calls import FakeCalls, turns
from tests.ui_parts.seeing import cut_texts, focused, heard, settle

HOME = "/home/ana/.local/share/ownmind"


def drive(
    theme: Theme, calls: FakeCalls, act: Callable[[UnlockWizard], Awaitable[None]], **how: object
) -> UnlockWizard:
    """Open a wizard inside a running loop, act on it, close it."""

    async def run() -> UnlockWizard:
        wizard = UnlockWizard(theme, calls, home=HOME, **how)  # type: ignore[arg-type]
        wizard.open()
        wizard.activateWindow()
        settle()
        await act(wizard)
        await turns()
        wizard.close()
        await turns()
        return wizard

    return asyncio.run(run())


async def go(wizard: UnlockWizard, page: int) -> None:
    while wizard.index < page:
        QTest.mouseClick(wizard.next, Qt.MouseButton.LeftButton)
        await turns()
    settle()


def test_it_has_five_pages_and_back_leads_to_each_again(theme: Theme) -> None:
    async def act(wizard: UnlockWizard) -> None:
        titles = []
        for page in range(5):
            await go(wizard, page)
            titles.append(wizard.pages[wizard.index].title)
            assert wizard.step.text() == f"Step {page + 1} of 5"
            assert wizard.back.isEnabled() is (page > 0)
        assert len(set(titles)) == 5
        for page in (3, 2, 1, 0):
            QTest.mouseClick(wizard.back, Qt.MouseButton.LeftButton)
            assert wizard.index == page

    drive(theme, FakeCalls(), act)


def test_nothing_is_unlocked_before_the_last_page_nor_by_leaving(theme: Theme) -> None:
    calls = FakeCalls()

    async def act(wizard: UnlockWizard) -> None:
        await go(wizard, 4)
        wizard.sentence.line.setText(SENTENCE)
        QTest.mouseClick(wizard.leave, Qt.MouseButton.LeftButton)

    drive(theme, calls, act)
    assert calls.unlocks == []
    assert calls.state is DevState.FOUND


@pytest.mark.parametrize(
    ("typed", "ready"),
    [
        (SENTENCE, True),
        (f"  {SENTENCE.upper()} ", True),
        (SENTENCE[:-1], False),
        (f"{SENTENCE}.", True),
        (SENTENCE.replace(" ", "  "), True),
        (f"not {SENTENCE}", False),
        ("", False),
        ("yes", False),
    ],
)
def test_unlock_waits_for_the_sentence(theme: Theme, typed: str, ready: bool) -> None:
    async def act(wizard: UnlockWizard) -> None:
        await go(wizard, 4)
        assert not wizard.unlock.isEnabled()
        QTest.keyClicks(wizard.sentence.line, typed)
        assert wizard.unlock.isEnabled() is ready

    drive(theme, FakeCalls(), act)


def test_a_wrong_sentence_is_not_sent_by_enter(theme: Theme) -> None:
    calls = FakeCalls()

    async def act(wizard: UnlockWizard) -> None:
        await go(wizard, 4)
        QTest.keyClicks(wizard.sentence.line, "I understand")
        QTest.keyClick(wizard.sentence.line, Qt.Key.Key_Return)
        await turns()
        assert wizard.isVisible()

    drive(theme, calls, act)
    assert calls.unlocks == []


def test_the_keyboard_alone_unlocks_with_the_limits_chosen(theme: Theme) -> None:
    calls = FakeCalls()
    said: list[tuple[object, ...]] = []

    async def act(wizard: UnlockWizard) -> None:
        nonlocal said
        said = heard(wizard.unlocked)
        for page in range(4):
            assert wizard.index == page
            if page == 2:
                wizard.limits.changes.selectAll()
                QTest.keyClicks(wizard.limits.changes, "12")
                QTest.keyClick(wizard.limits.changes, Qt.Key.Key_Tab)
                QTest.keyClick(focused(), Qt.Key.Key_Up)
            QTest.keyClick(focused(), Qt.Key.Key_Return)
            await turns()
            settle()
        assert focused() is wizard.sentence.line
        QTest.keyClicks(wizard.sentence.line, SENTENCE.lower())
        QTest.keyClick(wizard.sentence.line, Qt.Key.Key_Return)
        await turns()
        assert not wizard.isVisible()

    drive(theme, calls, act)
    assert calls.unlocks == [(SENTENCE.lower(), Budget(12, 0.02))]
    assert said == [(DevStatus(DevState.UNLOCKED, Budget(12, 0.02), 41),)]


def test_unlocking_twice_at_once_asks_once(theme: Theme) -> None:
    calls = FakeCalls()

    async def act(wizard: UnlockWizard) -> None:
        calls.hold = asyncio.Event()
        calls.hold.set()
        await go(wizard, 4)
        wizard.sentence.line.setText(SENTENCE)
        calls.hold = asyncio.Event()
        QTest.mouseClick(wizard.unlock, Qt.MouseButton.LeftButton)
        await turns()
        QTest.mouseClick(wizard.unlock, Qt.MouseButton.LeftButton)
        QTest.keyClick(wizard.sentence.line, Qt.Key.Key_Return)
        calls.hold.set()
        await turns()

    drive(theme, calls, act)
    assert len(calls.unlocks) == 1


def test_a_refusal_is_said_on_the_page_and_leaves_the_sentence(theme: Theme) -> None:
    calls = FakeCalls()

    async def act(wizard: UnlockWizard) -> None:
        await go(wizard, 4)
        wizard.sentence.line.setText(SENTENCE)
        calls.fail = DeniedError("unlock learning", hint="Find developer mode in About first.")
        QTest.mouseClick(wizard.unlock, Qt.MouseButton.LeftButton)
        await turns()
        settle()
        assert wizard.sentence.problem.isVisible()
        assert "Find developer mode in About first." in wizard.sentence.problem.text()
        assert wizard.sentence.line.text() == SENTENCE
        assert wizard.unlock.isEnabled()
        assert wizard.back.isEnabled()

    drive(theme, calls, act)


def test_enter_presses_the_button_that_has_the_focus(theme: Theme) -> None:
    async def act(wizard: UnlockWizard) -> None:
        await go(wizard, 2)
        wizard.back.setFocus()
        QTest.keyClick(wizard.back, Qt.Key.Key_Return)
        assert wizard.index == 1

    drive(theme, FakeCalls(), act)


# --- this machine ---------------------------------------------------------------------------------------------------


def test_measuring_says_so_and_then_shows_each_line(theme: Theme) -> None:
    calls = FakeCalls()

    async def act(wizard: UnlockWizard) -> None:
        calls.hold = asyncio.Event()
        await go(wizard, 1)
        assert wizard.machine.bar.isVisible()
        calls.hold.set()
        await turns()
        settle()
        assert not wizard.machine.bar.isVisible()
        assert wizard.machine.lines.count() == len(calls.checks)

    drive(theme, calls, act)


def test_the_machine_is_measured_once_however_often_one_comes_by(theme: Theme) -> None:
    calls = FakeCalls()

    async def act(wizard: UnlockWizard) -> None:
        await go(wizard, 2)
        QTest.mouseClick(wizard.back, Qt.MouseButton.LeftButton)
        await turns()

    drive(theme, calls, act)
    assert calls.measured == 1


def test_too_little_is_said_in_words_and_can_be_measured_again(theme: Theme) -> None:
    calls = FakeCalls()
    calls.checks = [MachineCheck("Memory", "1.9 GB of memory, 3 GB needed", ok=False)]

    async def act(wizard: UnlockWizard) -> None:
        await go(wizard, 1)
        assert "Learning may fail" in wizard.machine.advice.words()
        assert wizard.next.isEnabled()
        calls.checks = [MachineCheck("Memory", "4 GB of memory, 3 GB needed", ok=True)]
        QTest.mouseClick(wizard.machine.again, Qt.MouseButton.LeftButton)
        await turns()
        assert not wizard.machine.advice.isVisible()
        assert wizard.machine.lines.count() == 1

    drive(theme, calls, act)


def test_a_measurement_that_fails_says_why(theme: Theme) -> None:
    calls = FakeCalls()
    calls.fail = KnownError("measure this machine", "the trainer", "Install the training part.")

    async def act(wizard: UnlockWizard) -> None:
        await go(wizard, 1)
        assert wizard.machine.problem.isVisible()
        assert "Install the training part." in wizard.machine.problem.text()
        assert wizard.machine.again.isVisible()

    drive(theme, calls, act)


def test_closing_ends_the_measurement(theme: Theme) -> None:
    calls = FakeCalls()

    async def act(wizard: UnlockWizard) -> None:
        calls.hold = asyncio.Event()
        await go(wizard, 1)
        wizard.close()
        await turns()
        assert [task for task in asyncio.all_tasks() if task.get_name() == "measure the machine"] == []

    drive(theme, calls, act)


def test_an_answer_that_comes_after_closing_touches_nothing(theme: Theme) -> None:
    calls = FakeCalls()

    async def act(wizard: UnlockWizard) -> None:
        calls.hold = asyncio.Event()
        await go(wizard, 1)
        wizard.close()
        wizard.deleteLater()
        settle()
        calls.hold.set()
        await turns()

    async def run() -> list[dict[str, object]]:
        failures: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
        wizard = UnlockWizard(theme, calls, home=HOME)
        wizard.open()
        await act(wizard)
        return failures

    assert asyncio.run(run()) == []


# --- limits and copies ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("typed", "value"), [("0", 1), ("", 1), ("7", 7), ("999", 500)])
def test_changes_a_day_stay_in_range(theme: Theme, typed: str, value: int) -> None:
    async def act(wizard: UnlockWizard) -> None:
        await go(wizard, 2)
        wizard.limits.changes.selectAll()
        QTest.keyClick(wizard.limits.changes, Qt.Key.Key_Delete)
        QTest.keyClicks(wizard.limits.changes, typed)
        assert wizard.limits.budget().changes_per_day == value

    drive(theme, FakeCalls(), act)


def test_the_limits_in_force_are_kept_unless_changed(theme: Theme) -> None:
    async def act(wizard: UnlockWizard) -> None:
        await go(wizard, 2)
        assert wizard.limits.budget() == Budget(33, 0.07)
        assert len(wizard.limits.sizes()) == 4

    drive(theme, FakeCalls(), act, budget=Budget(33, 0.07))


def test_the_copies_page_says_what_is_missing_and_opens_the_folder(theme: Theme) -> None:
    opened: list[str] = []

    def opener(path: str) -> bool:
        opened.append(path)
        return False

    async def act(wizard: UnlockWizard) -> None:
        await go(wizard, 3)
        page = wizard.pages[3]
        words = " ".join(label.words() for label in page.findChildren(type(page.say(""))))
        assert "not part of this version yet" in words
        folder = page.folder  # type: ignore[attr-defined]
        QTest.mouseClick(folder.open, Qt.MouseButton.LeftButton)
        assert folder.problem.isVisible()

    drive(theme, FakeCalls(), act, opener=opener)
    assert opened == [HOME]


@pytest.mark.parametrize("zoom", [1.0, 2.0])
@pytest.mark.parametrize("scheme", [Scheme.LIGHT, Scheme.DARK])
def test_no_text_is_cut_on_any_page(theme: Theme, scheme: Scheme, zoom: float) -> None:
    theme.set_scheme(scheme)
    theme.set_zoom(zoom)
    calls = FakeCalls()
    calls.checks.append(MachineCheck("Trainer", "The training part is not installed. " * 3, ok=False))

    async def act(wizard: UnlockWizard) -> None:
        for page in range(5):
            await go(wizard, page)
            if page == 4:
                wizard.sentence.show_problem("Could not unlock learning. Type the sentence as it stands there.")
                settle()
            assert cut_texts(wizard) == [], wizard.pages[page].title

    drive(theme, calls, act)
