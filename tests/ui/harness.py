"""Drives a real window offscreen, on the app's own loop, with fakes behind it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEvent, QPoint, Qt, QtMsgType, qInstallMessageHandler
from PySide6.QtGui import QInputMethodEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from app.tasks import CoreThread, TaskSet
from app.ui.app import make_application, make_loop
from app.ui.bridge import Bridge
from app.ui.preferences import Preferences, load
from app.ui.theme import Theme
from app.ui.window import MainWindow
from tests.ui.fakes import World, usual_world

T = TypeVar("T")
WAIT_S = 20.0
HARMLESS = ("propagateSizeHints", "This plugin does not support")
"""What the offscreen platform itself says."""


@dataclass
class Driver:
    """A window and everything behind it."""

    window: MainWindow
    world: World
    theme: Theme
    bridge: Bridge
    core: CoreThread
    tasks: TaskSet

    async def until(self, condition: Callable[[], object], *, within: float = WAIT_S) -> None:
        """Let the window live until something is so."""
        deadline = asyncio.get_running_loop().time() + within
        while not condition():
            if asyncio.get_running_loop().time() > deadline:
                raise AssertionError("it never came about")
            await asyncio.sleep(0.01)

    async def settle(self, seconds: float = 0.06) -> None:
        """Let the window live for a moment."""
        await asyncio.sleep(seconds)

    async def type(self, text: str, *, enter: bool = True) -> None:
        """Type into the composer."""
        edit = self.window.page.composer.edit
        edit.setFocus()
        QTest.keyClicks(edit, text)
        if enter:
            QTest.keyClick(edit, Qt.Key.Key_Return)
        await self.settle(0.01)

    def key(self, key: Qt.Key, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        """Press a key where the focus is."""
        QTest.keyClick(QApplication.focusWidget() or self.window, key, modifiers)

    def compose(self, widget: QWidget, preedit: str, commit: str = "") -> None:
        """Send what an input method sends."""
        event = QInputMethodEvent(preedit, [])
        if commit:
            event.setCommitString(commit)
        QApplication.sendEvent(widget, event)

    @staticmethod
    def click(widget: QWidget) -> None:
        QTest.mouseClick(widget, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, QPoint())

    @property
    def text(self) -> str:
        return self.window.page.composer.edit.toPlainText()


class QtWarnings:
    """Collects what Qt complains about."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, kind: QtMsgType, context: object, message: str) -> None:
        if kind is not QtMsgType.QtDebugMsg and not any(word in message for word in HARMLESS):
            self.lines.append(message)


def drive(
    scenario: Callable[[Driver], Coroutine[Any, Any, T]],
    world: World | None = None,
    *,
    size: tuple[int, int] = (1360, 860),
    begin: bool = True,
) -> T:
    """Run a scenario in a shown window. A Qt warning or an exception that nobody caught fails it."""
    app = make_application()
    warnings = QtWarnings()
    qInstallMessageHandler(warnings)
    loop = make_loop(app)
    asyncio.set_event_loop(loop)
    core = CoreThread()
    try:
        result = loop.run_until_complete(_session(app, core, world or usual_world(), scenario, size=size, begin=begin))
        app.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    finally:
        core.close()
        asyncio.set_event_loop(None)
        loop.close()
        qInstallMessageHandler(None)
    assert warnings.lines == []
    return result


async def _session(
    app: QApplication,
    core: CoreThread,
    world: World,
    scenario: Callable[[Driver], Coroutine[Any, Any, T]],
    *,
    size: tuple[int, int],
    begin: bool,
) -> T:
    loop = asyncio.get_running_loop()
    uncaught: list[BaseException | str] = []
    loop.set_exception_handler(lambda _, context: uncaught.append(context.get("exception") or context["message"]))
    preferences: Preferences = load(world.settings)
    theme = Theme(app, scheme=preferences.scheme, zoom=preferences.zoom)
    tasks, bridge = TaskSet(), Bridge(core)
    window = MainWindow(
        theme=theme,
        bridge=bridge,
        services=world.services(),
        settings=world.settings,
        preferences=preferences,
        tasks=tasks,
    )
    window.resize(*size)
    window.show()
    driver = Driver(window, world, theme, bridge, core, tasks)
    try:
        if begin:
            await window.begin()
            await driver.settle()
        result = await scenario(driver)
    finally:
        window.hide()
        await window.end()
        await tasks.close()
        bridge.close()
        window.deleteLater()
        theme.deleteLater()
    if uncaught:
        raise AssertionError(f"nobody caught {uncaught}")
    return result
