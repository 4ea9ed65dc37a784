from __future__ import annotations

import asyncio

from PySide6.QtGui import QColor, QImage

from app.ui.markdown.code import DARK_CODE, LIGHT_CODE
from app.ui.markdown.view import CodeBlock
from app.ui.theme import DARK, Scheme
from tests.ui.fakes import World
from tests.ui.harness import Driver, drive
from tests.ui.test_chatting import answers

CODE = "Text\n\n```python\ndef reverse(head):\n    return None  # nothing\n```\n"


def colors_in(block: CodeBlock) -> set[str]:
    found = set()
    document = block.pane.document()
    paragraph = document.begin()
    while paragraph.isValid():
        for span in paragraph.textFormats():
            found.add(span.format.foreground().color().name())
        paragraph = paragraph.next()
    return found


def test_code_on_screen_recolours_at_once_and_keeps_its_text() -> None:
    async def scenario(d: Driver) -> None:
        block = answers(d.window.page)[-1].body.last_code()
        assert block is not None
        assert LIGHT_CODE.keyword in colors_in(block)
        d.theme.set_scheme(Scheme.DARK)
        block = answers(d.window.page)[-1].body.last_code()
        assert block is not None
        assert DARK_CODE.keyword in colors_in(block)
        assert LIGHT_CODE.keyword not in colors_in(block)
        assert block.pane.toPlainText() == "def reverse(head):\n    return None  # nothing"
        await d.settle(0.2)
        assert corner(d) == QColor(DARK.side)
        d.theme.set_scheme(Scheme.LIGHT)

    world = World()
    world.settings.values["ui.scheme"] = "light"
    world.chats.add("Code", "Show code", CODE)
    drive(scenario, world)


def corner(d: Driver) -> QColor:
    image: QImage = d.window.grab().toImage()
    return image.pixelColor(2, image.height() // 2)


def test_an_open_fence_is_plain_and_is_coloured_once_when_it_closes() -> None:
    world = World()
    world.settings.values["ui.scheme"] = "light"
    world.chats.hold = asyncio.Event()
    world.chats.script = lambda _: [CODE.rstrip("`\n"), "\n```\n"]

    async def scenario(d: Driver) -> None:
        await d.type("Show code")
        await d.until(lambda: answers(d.window.page) and answers(d.window.page)[-1].body.last_code())
        block = answers(d.window.page)[-1].body.last_code()
        assert block is not None
        assert LIGHT_CODE.keyword not in colors_in(block)
        assert world.chats.hold is not None
        await d.bridge.do(world.chats.hold.set)
        await d.until(lambda: LIGHT_CODE.keyword in colors_in(block))
        assert answers(d.window.page)[-1].body.last_code() is block

    drive(scenario, world)


def test_a_fence_that_grows_letter_by_letter_ends_exact_and_leaves_the_rest_alone() -> None:
    text = "````md\n```py\nx = 1\n```\n````\n\nAnd **then** `more`."
    world = World()
    world.chats.add("Code", "First", "An earlier answer")
    world.chats.script = lambda _: list(text)
    world.chats.delay_s = 0.002

    async def scenario(d: Driver) -> None:
        first = answers(d.window.page)[0]
        await d.type("Show code")
        await d.until(lambda: d.window.desk.streaming)
        await d.until(lambda: not d.window.desk.streaming)
        await d.settle(0.1)
        assert answers(d.window.page)[0] is first
        blocks = answers(d.window.page)[-1].body.blocks()
        assert [type(block).__name__ for block in blocks] == ["CodeBlock", "TextBlock"]
        assert isinstance(blocks[0], CodeBlock)
        assert blocks[0].pane.toPlainText() == "```py\nx = 1\n```"
        assert answers(d.window.page)[-1].message.text == text
        await d.type("Next turn")
        await d.until(lambda: len(answers(d.window.page)) == 3)

    drive(scenario, world)


def test_text_of_any_script_arrives_without_replacement_characters() -> None:
    text = "日本語 한국어 مرحبا 👩‍👩‍👧‍👦 e\u0301 𝔘"
    world = World()
    world.chats.script = lambda _: list(text)

    async def scenario(d: Driver) -> None:
        await d.type("Say it")
        await d.until(lambda: answers(d.window.page) and not d.window.desk.streaming)
        await d.settle(0.1)
        block = answers(d.window.page)[-1].body.blocks()[0]
        assert not isinstance(block, CodeBlock)
        assert block.toPlainText() == text

    drive(scenario, world)
