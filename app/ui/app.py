"""Runs the desktop app: one QApplication, one asyncio loop on its thread, one window.

Start: ``run(services, core, settings)``. A caller that must not build its services twice asks ``raise_running`` first.

The end is always in this order: the window hides, what is unsaved is stored, tasks end, the services shut down on the
core, the loop ends. Nothing spins Qt's event loop by hand.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import FrameType, TracebackType
from typing import Any

from PySide6.QtCore import QMessageLogContext, QSocketNotifier, QtMsgType, qInstallMessageHandler
from PySide6.QtWidgets import QApplication

from app.errors import AppError
from app.tasks import CoreThread, TaskSet
from app.ui.bridge import Bridge
from app.ui.preferences import Preferences, load
from app.ui.services import Services, Settings
from app.ui.single import FirstInstance, raise_other
from app.ui.theme import Theme
from app.ui.watch import SlowTurns
from app.ui.window import MainWindow

log = logging.getLogger(__name__)
_QT_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}


def raise_running(home: str) -> bool:
    """Bring the window that is open on this home to the front; return False if there is none."""
    return raise_other(home)


def run(services: Services, core: CoreThread, settings: Settings) -> int:
    """Show the window and stay until it is closed; return the exit code. Call on the main thread."""
    app = make_application()
    loop = make_loop(app)
    asyncio.set_event_loop(loop)
    preferences = core.run(_loaded(settings))
    session = Session(app, services, core, settings, preferences)
    try:
        loop.run_until_complete(session.run())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    return 0


def make_application() -> QApplication:
    """Return the process's QApplication, with Qt's messages in our log."""
    qInstallMessageHandler(_log_qt)
    existing = QApplication.instance()
    app = existing if isinstance(existing, QApplication) else QApplication(sys.argv[:1])
    app.setApplicationName("Ownmind")
    app.setApplicationDisplayName("Ownmind")
    app.setDesktopFileName("ownmind")
    app.setQuitOnLastWindowClosed(False)
    return app


def make_loop(app: QApplication) -> asyncio.AbstractEventLoop:
    """Return an asyncio loop that runs inside Qt's."""
    os.environ["QT_API"] = "pyside6"
    # Imported here: the binding it takes is decided by the line above.
    import qasync  # noqa: PLC0415

    loop: asyncio.AbstractEventLoop = qasync.QEventLoop(app)
    # The loop's own executor would start ten Qt threads.
    loop.set_default_executor(ThreadPoolExecutor(max_workers=2, thread_name_prefix="window"))
    return loop


async def _loaded(settings: Settings) -> Preferences:
    return load(settings)


class Session:
    """One run of the window, from showing it to the end of everything behind it."""

    def __init__(
        self, app: QApplication, services: Services, core: CoreThread, settings: Settings, preferences: Preferences
    ) -> None:
        self._app, self._services, self._core, self._settings = app, services, core, settings
        self._preferences = preferences
        self._tasks = TaskSet()
        self.window: MainWindow | None = None

    async def run(self) -> None:
        """Show the window and stay until the person closes it."""
        loop = asyncio.get_running_loop()
        closed: asyncio.Future[None] = loop.create_future()
        bridge = Bridge(self._core)
        theme = Theme(self._app, scheme=self._preferences.scheme, zoom=self._preferences.zoom)
        window = self.window = MainWindow(
            theme=theme,
            bridge=bridge,
            services=self._services,
            settings=self._settings,
            preferences=self._preferences,
            tasks=self._tasks,
        )
        undo = self._install_hooks(window, loop)
        first = FirstInstance(self._services.home)
        first.raised.connect(window.raise_up)
        window.close_asked.connect(partial(_settle, closed))
        window.show()
        watch = SlowTurns(window) if os.environ.get("OWNMIND_DEV") == "1" else None
        self._tasks.start(self._begin(window), "begin")
        try:
            await closed
        finally:
            log.info("the window closes%s", f"; slowest turn {watch.worst_s:.3f} s" if watch else "")
            first.close()
            await self._end(window, bridge)
            undo()

    async def _begin(self, window: MainWindow) -> None:
        await window.begin()
        log.info("the window is usable")

    async def _end(self, window: MainWindow, bridge: Bridge) -> None:
        window.hide()
        try:
            await window.end()
        except AppError as error:
            log.warning("not everything was kept: %s", error.info().what)
        finally:
            await self._tasks.close()
            bridge.close()
            await self._core.call(_shut_down(self._services))

    def _install_hooks(self, window: MainWindow, loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
        """Show and log whatever nobody caught, and close on Ctrl+C; return what takes that back."""

        def from_hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            del kind, trace
            if not isinstance(error, KeyboardInterrupt):
                window.problems.show_any(error)

        def from_loop(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            error = context.get("exception")
            if isinstance(error, BaseException):
                window.problems.show_any(error)
            else:
                log.error("the loop reports: %s", context.get("message"))

        before = sys.excepthook
        sys.excepthook = from_hook
        loop.set_exception_handler(from_loop)
        signals = ClosingSignals(window.close)

        def undo() -> None:
            sys.excepthook = before
            signals.close()

        return undo


class ClosingSignals:
    """Turns SIGINT and SIGTERM into closing the window. Qt waits in C++, so Python must be woken by a socket."""

    def __init__(self, close: Callable[[], object]) -> None:
        self._close = close
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)
        self._write.setblocking(False)
        self._before = signal.set_wakeup_fd(self._write.fileno(), warn_on_full_buffer=False)
        self._handlers = {number: signal.signal(number, _nothing) for number in (signal.SIGINT, signal.SIGTERM)}
        self._notifier = QSocketNotifier(self._read.fileno(), QSocketNotifier.Type.Read)
        self._notifier.activated.connect(self._woken)

    def close(self) -> None:
        """Put everything back."""
        self._notifier.setEnabled(False)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._before)
        self._read.close()
        self._write.close()

    def _woken(self) -> None:
        if set(self._read.recv(64)) & {signal.SIGINT, signal.SIGTERM}:
            self._close()


def _nothing(number: int, frame: FrameType | None) -> None:
    """Only the wake-up matters."""


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def _shut_down(services: Services) -> None:
    await services.shutdown()


def _log_qt(kind: QtMsgType, context: QMessageLogContext, message: str) -> None:
    logging.getLogger("qt").log(_QT_LEVELS.get(kind, logging.WARNING), "%s (%s)", message, context.category)
