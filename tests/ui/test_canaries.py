"""Rendering a message reads no file and opens no connection. Each canary is proven to be able to sing."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QLabel, QTextBrowser, QWidget

from app.ui.app import make_application
from app.ui.markdown.panes import Pane
from app.ui.theme import Theme
from tests.ui.fakes import World, usual_world
from tests.ui.harness import Driver, drive

MAGENTA = QColor(255, 0, 255)


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    image = QImage(64, 64, QImage.Format.Format_RGB32)
    image.fill(MAGENTA)
    path = tmp_path / "canary.png"
    assert image.save(str(path))
    return path


@contextmanager
def listener() -> Iterator[tuple[int, list[bytes]]]:
    """Listen on a port and record whoever comes."""
    heard: list[bytes] = []
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(0.1)
    done = threading.Event()

    def serve() -> None:
        while not done.is_set():
            try:
                connection, _ = server.accept()
            except TimeoutError:
                continue
            connection.settimeout(0.5)
            try:
                heard.append(connection.recv(200) or b"connected")
            except TimeoutError:
                heard.append(b"connected")
            connection.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield server.getsockname()[1], heard
    finally:
        done.set()
        thread.join()
        server.close()


def sings(widget: QWidget) -> bool:
    """Return whether any pixel of the canary is on the widget."""
    image = widget.grab().toImage()
    return any(
        image.pixelColor(x, y) == MAGENTA for x in range(0, image.width(), 2) for y in range(0, image.height(), 2)
    )


def attempts(canary: Path, port: int) -> str:
    return "\n\n".join(
        [
            f"![a]({canary})",
            f"![a](file://{canary})",
            f"![a](http://127.0.0.1:{port}/leak?d=1)",
            f'<img src="{canary}" onerror="x">',
            f"<img src=http://127.0.0.1:{port}/html>",
            f"![a][r] and [![b]({canary})](http://127.0.0.1:{port}/)",
            f"[r]: {canary}",
            f"| ![a]({canary}) |\n|-|\n| ![a](http://127.0.0.1:{port}/table) |",
            f"> - ![a]({canary})",
            f"```html\n<img src={canary}>\n```",
            f"`<img src={canary}>`",
            f"<style>@import url(http://127.0.0.1:{port}/css)</style>",
            f'<link rel="stylesheet" href="http://127.0.0.1:{port}/css2">',
            "[a](javascript:alert(1))",
        ]
    )


def test_no_message_draws_a_file_or_asks_a_server(canary: Path) -> None:
    with listener() as (port, heard):
        text = attempts(canary, port)
        world = World()
        world.chats.add(text[:60], text, text, text, text)

        async def scenario(d: Driver) -> None:
            d.window.page.composer.edit.setPlainText(text)
            await d.settle(0.3)
            for key in [entry.key for entry in d.window.page.scroller.entries()]:
                widget = d.window.page.scroller.show_item(key)
                assert widget is not None
                await d.settle(0.1)
                assert not sings(widget)
                assert not sings(d.window)

        drive(scenario, world)
        assert heard == []


def test_nothing_is_loaded_while_an_image_streams_in_letter_by_letter(canary: Path) -> None:
    with listener() as (port, heard):
        world = World()
        world.chats.script = lambda _: list(f"![a]({canary}) <img src={canary}> ![b](http://127.0.0.1:{port}/x)\n\nend")
        world.chats.delay_s = 0.003

        async def scenario(d: Driver) -> None:
            await d.type("Show me")
            await d.until(lambda: d.window.desk.streaming)
            while d.window.desk.streaming:
                assert not sings(d.window.page.scroller)
                await d.settle(0.02)
            assert not sings(d.window)

        drive(scenario, world)
        assert heard == []


def test_titles_reasons_and_cards_are_plain_text(canary: Path) -> None:
    world = usual_world()
    markup = f'<img src="{canary}"> <b>x</b>'
    chat = next(iter(world.chats.chats.values()))
    chat.title = markup
    world.learning.all["p1"] = replace(world.learning.all["p1"], prompt=markup, answer=markup, why=markup)
    world.learning.timeline = [
        replace(version, title=markup, note=markup, source=markup) for version in world.learning.timeline
    ]

    async def scenario(d: Driver) -> None:
        d.window.page.banner.say(markup)
        d.window.page.toast.say(markup)
        d.window.page.composer.attach(markup)
        await d.settle(0.3)
        assert not sings(d.window)

    drive(scenario, world)


def test_a_pane_given_an_image_by_mistake_still_draws_nothing(canary: Path) -> None:
    theme = Theme(make_application())
    pane = Pane(theme)
    pane.resize(300, 200)
    pane.show_html(f'<img src="{canary}"><img src="file://{canary}"><img src="{canary.name}">')
    assert not sings(pane)
    assert isinstance(pane.loadResource(2, str(canary)), QImage)
    theme.deleteLater()


def test_the_canary_can_sing(canary: Path) -> None:
    make_application()
    for widget in (QTextBrowser(), QLabel()):
        widget.setText(f'<img src="{canary}">')
        widget.resize(200, 200)
        assert sings(widget)


def test_the_listener_can_hear() -> None:
    with listener() as (port, heard), socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"GET /")
        connection.recv(1)
    assert heard == [b"GET /"]
