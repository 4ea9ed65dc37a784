"""Drives the real window offscreen, over the real store and the real embedded model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from PySide6.QtCore import QEvent, QPoint, Qt, qInstallMessageHandler
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from app.__main__ import services_of
from app.devmode.api import SENTENCE
from app.model.api import BaseFiles, Role
from app.tasks import CoreThread, TaskSet
from app.ui.app import make_application, make_loop
from app.ui.bridge import Bridge
from app.ui.card import ApprovalCard
from app.ui.card_text import Act
from app.ui.preferences import load
from app.ui.theme import Theme
from app.ui.transcript import card_key
from app.ui.window import MainWindow
from app.wiring import App, open_app
from tests.support.real import real_base
from tests.ui.harness import QtWarnings  # sets the offscreen platform first

T = TypeVar("T")
ANSWER_S = 60.0
LESSON_S = 420.0
"""Far above what a lesson takes on an idle machine: these tests prove that it works, the benchmark how fast."""


@dataclass
class RealDriver:
    """The window, and the app behind it for looking (never for doing)."""

    window: MainWindow
    app: App
    bridge: Bridge
    theme: Theme

    async def until(self, condition: Callable[[], object], *, within: float = ANSWER_S) -> None:
        """Let the window live until something is so."""
        deadline = asyncio.get_running_loop().time() + within
        while not condition():
            if asyncio.get_running_loop().time() > deadline:
                raise AssertionError("it never came about")
            await asyncio.sleep(0.02)

    async def say(self, text: str) -> str:
        """Type a message, send it, wait for the answer and return it."""
        edit = self.window.page.composer.edit
        await self.until(lambda: not self.window.desk.streaming)
        edit.setFocus()
        QTest.keyClicks(edit, text)
        QTest.keyClick(edit, Qt.Key.Key_Return)
        await self.until(lambda: self.window.desk.streaming)
        await self.until(lambda: not self.window.desk.streaming)
        return await self.last_answer()

    async def last_answer(self) -> str:
        """Return the last answer of the open conversation, as it is stored."""
        chats = await self.bridge.call(self.app.chats.list())
        view = await self.bridge.call(self.app.chats.open(chats[0].id))
        return next(message.text for message in reversed(view.messages) if message.role is Role.ASSISTANT)

    def cards(self) -> list[ApprovalCard]:
        """Return the cards that are on screen."""
        scroller = self.window.page.scroller
        widgets = [scroller.widget_of(entry.key) for entry in scroller.entries() if entry.key.startswith(card_key(""))]
        return [widget for widget in widgets if isinstance(widget, ApprovalCard)]

    async def card(self) -> ApprovalCard:
        """Wait for a card and return the last one."""
        await self.until(self.cards)
        return self.cards()[-1]

    async def press(self, act: Act) -> None:
        """Click a button of the last card."""
        await self.until(lambda: self.cards() and self.cards()[-1].button(act))
        button = self.cards()[-1].button(act)
        assert button is not None
        click(button)


def click(widget: QWidget) -> None:
    """Click the middle of a widget."""
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, QPoint())


async def unlock_as_a_person(d: RealDriver) -> None:
    """Seven clicks on the version number, then the wizard to its last page, the sentence, and Unlock."""
    dialogs = d.window.dialogs
    await d.until(lambda: dialogs.about is not None and dialogs.about.isVisible())
    assert dialogs.about is not None
    for _ in range(7):
        click(dialogs.about.version)
        await asyncio.sleep(0.05)
    await d.until(lambda: dialogs.wizard is not None and dialogs.wizard.isVisible())
    wizard = dialogs.wizard
    assert wizard is not None
    for _ in range(4):
        await d.until(wizard.next.isEnabled)
        click(wizard.next)
    QTest.keyClicks(wizard.sentence.line, SENTENCE)
    await d.until(wizard.unlock.isEnabled)
    click(wizard.unlock)


def drive_real(home: Path, scenario: Callable[[RealDriver], Coroutine[Any, Any, T]]) -> T:
    """Run a scenario in the real window on a home folder. A Qt warning fails it."""
    application = make_application()
    warnings = QtWarnings()
    qInstallMessageHandler(warnings)
    loop = make_loop(application)
    asyncio.set_event_loop(loop)
    core = CoreThread()
    try:
        result = loop.run_until_complete(_session(home, core, scenario))
        application.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    finally:
        core.close()
        asyncio.set_event_loop(None)
        loop.close()
        qInstallMessageHandler(None)
    assert warnings.lines == []
    return result


async def _session(home: Path, core: CoreThread, scenario: Callable[[RealDriver], Coroutine[Any, Any, T]]) -> T:
    app = await core.call(_opened(home, real_base()))
    notices = await core.call(app.start())
    bridge = Bridge(core)
    tasks = TaskSet()
    preferences = load(app.settings)
    theme = Theme(make_application(), scheme=preferences.scheme, zoom=preferences.zoom)
    window = MainWindow(
        theme=theme,
        bridge=bridge,
        services=services_of(app, home, notices),
        settings=app.settings,
        preferences=preferences,
        tasks=tasks,
    )
    window.resize(1360, 860)
    window.show()
    await window.begin()
    try:
        return await scenario(RealDriver(window, app, bridge, theme))
    finally:
        window.hide()
        await window.end()
        await tasks.close()
        bridge.close()
        await core.call(app.close())


async def _opened(home: Path, base: BaseFiles) -> App:
    return open_app(home, base)
