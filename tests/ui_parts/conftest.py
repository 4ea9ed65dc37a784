"""An offscreen application, and Qt's own warnings as failures."""

from __future__ import annotations

import os
from collections.abc import Iterator

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from PySide6.QtCore import QEvent, QMessageLogContext, QtMsgType, qInstallMessageHandler
from PySide6.QtWidgets import QApplication

from app.ui.theme import Scheme, Theme

HARMLESS = "This plugin does not support "
"""What the offscreen platform says about raising windows and grabbing the keyboard."""


@pytest.fixture(scope="session")
def app() -> QApplication:
    existing = QApplication.instance()
    return existing if isinstance(existing, QApplication) else QApplication([])


@pytest.fixture(autouse=True)
def _qt_is_silent() -> Iterator[None]:
    said: list[str] = []

    def note(kind: QtMsgType, context: QMessageLogContext, text: str) -> None:
        if kind is not QtMsgType.QtDebugMsg and not text.startswith(HARMLESS):
            said.append(text)

    before = qInstallMessageHandler(note)
    yield
    qInstallMessageHandler(before)
    assert said == []


@pytest.fixture
def theme(app: QApplication) -> Iterator[Theme]:
    it = Theme(app, scheme=Scheme.LIGHT)
    yield it
    for window in app.topLevelWidgets():
        window.close()
        window.deleteLater()
    it.set_zoom(1.0)
    it.deleteLater()
    app.sendPostedEvents(None, QEvent.Type.DeferredDelete)
