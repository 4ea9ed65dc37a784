from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.devmode.api import DevState, DevStatus
from app.errors import KnownError
from app.ui.about import AboutDialog
from app.ui.theme import Scheme, Theme
from tests.ui_parts.calls import FakeCalls, turns
from tests.ui_parts.seeing import cut_texts, heard, settle


def drive(theme: Theme, calls: FakeCalls, act: Callable[[AboutDialog], Awaitable[None]]) -> None:
    async def run() -> None:
        about = AboutDialog(theme, calls, version="0.1.0", home="/home/ana/.local/share/ownmind")
        about.open()
        about.activateWindow()
        settle()
        await turns()
        await act(about)
        about.close()
        await turns()

    asyncio.run(run())


@pytest.mark.parametrize("key", [None, Qt.Key.Key_Return, Qt.Key.Key_Space])
def test_the_seventh_click_on_the_version_finds_developer_mode(theme: Theme, key: Qt.Key | None) -> None:
    hints: list[str] = []

    async def act(about: AboutDialog) -> None:
        said = heard(about.wizard_requested)
        about.version.setFocus()
        for click in range(7):
            assert said == [], f"after {click} clicks"
            if key is None:
                QTest.mouseClick(about.version, Qt.MouseButton.LeftButton)
            else:
                QTest.keyClick(about.version, key)
            await turns()
            hints.append(about.hint.text())
        assert said == [()]
        QTest.mouseClick(about.version, Qt.MouseButton.LeftButton)
        await turns()
        assert said == [()]

    drive(theme, FakeCalls(DevState.LOCKED), act)
    assert hints[:2] == ["", ""]
    assert hints[2:] == [
        "4 more clicks to developer mode",
        "3 more clicks to developer mode",
        "2 more clicks to developer mode",
        "1 more click to developer mode",
        "Developer mode found",
    ]


def test_fast_clicks_all_count(theme: Theme) -> None:
    async def act(about: AboutDialog) -> None:
        said = heard(about.wizard_requested)
        for _ in range(7):
            about.version.click()
        await turns()
        assert said == [()]

    drive(theme, FakeCalls(DevState.LOCKED), act)


def test_once_unlocked_clicks_lead_nowhere_and_the_state_is_said(theme: Theme) -> None:
    calls = FakeCalls(DevState.UNLOCKED)

    async def act(about: AboutDialog) -> None:
        assert about.hint.text() == "Learning is unlocked."
        about.version.click()
        await turns()

    drive(theme, calls, act)
    assert calls.clicks == 7


def test_a_click_that_cannot_be_counted_says_why(theme: Theme) -> None:
    calls = FakeCalls(DevState.LOCKED)
    calls.fail = KnownError("count this", "the database", "Another program uses it.")

    async def act(about: AboutDialog) -> None:
        about.version.click()
        await turns()
        assert "Another program uses it." in about.hint.text()

    drive(theme, calls, act)


def test_a_state_that_cannot_be_read_is_said(theme: Theme) -> None:
    class Broken(FakeCalls):
        async def status(self) -> DevStatus:
            raise KnownError("read developer mode", hint="The database is locked.")

    async def act(about: AboutDialog) -> None:
        assert "The database is locked." in about.hint.text()

    drive(theme, Broken(), act)


def test_licences_and_the_home_folder_are_there(theme: Theme) -> None:
    async def act(about: AboutDialog) -> None:
        words = " ".join(label.words() for label in about.findChildren(type(about.folder.path)))
        for name in ("SmolLM2", "MiniLM", "Apache-2.0", "LGPL-3.0"):
            assert name in words
        assert about.folder.path.accessibleName() == "/home/ana/.local/share/ownmind"

    drive(theme, FakeCalls(), act)


@pytest.mark.parametrize("zoom", [1.0, 2.0])
@pytest.mark.parametrize("scheme", [Scheme.LIGHT, Scheme.DARK])
def test_no_text_is_cut(theme: Theme, scheme: Scheme, zoom: float) -> None:
    theme.set_scheme(scheme)
    theme.set_zoom(zoom)

    async def act(about: AboutDialog) -> None:
        for _ in range(4):
            about.version.click()
        await turns()
        settle()
        assert cut_texts(about) == []

    drive(theme, FakeCalls(DevState.LOCKED), act)
