"""Grabs the window and its dialogs, driven by fake use cases, in light and dark, at 100 % and 200 %.

    python scripts/screenshots.py FOLDER [--font Inter] [--scene NAME] [--scale 1 2] [--scheme light dark]

Each scheme and scale runs in a process of its own, since Qt reads its scale once. Look at the pictures: nothing may be
clipped, overlapping or unreadable.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from tests.ui.fakes import World
    from tests.ui.harness import Driver

Scene = Callable[["Driver"], Awaitable["QWidget"]]


def main() -> int:
    """Take what was asked for."""
    options = _options()
    if len(options.scheme) == 1 and len(options.scale) == 1:
        _take(options.folder, options.scheme[0], options.scale[0], options.font, options.scene)
        return 0
    for scheme in options.scheme:
        for scale in options.scale:
            command = [sys.executable, __file__, str(options.folder), "--scheme", scheme, "--scale", scale]
            command += ["--font", options.font] if options.font else []
            command += ["--scene", *options.scene] if options.scene else []
            subprocess.run(command, check=True, env={**os.environ, "QT_SCALE_FACTOR": scale})
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--font", default="")
    parser.add_argument("--scene", nargs="*", default=[])
    parser.add_argument("--scale", nargs="*", default=["1", "2"])
    parser.add_argument("--scheme", nargs="*", default=["light", "dark"])
    return parser.parse_args()


# Imports stand inside functions: the scale must be set before Qt is imported.


def _take(folder: Path, scheme: str, scale: str, font: str, wanted: list[str]) -> None:
    from app.ui.app import make_application
    from tests.ui.harness import drive

    folder.mkdir(parents=True, exist_ok=True)
    app = make_application()
    if font:
        chosen = app.font()
        chosen.setFamily(font)
        app.setFont(chosen)
    for name, (make, scene, size) in _scenes().items():
        if wanted and name not in wanted:
            continue
        world = make()
        world.settings.values["ui.scheme"] = scheme
        if name.endswith("zoomed"):
            world.settings.values["ui.zoom"] = "2.0"

        async def shoot(driver: Driver, scene: Scene = scene, name: str = name) -> None:
            widget = await scene(driver)
            await driver.settle(0.3)
            widget.grab().save(str(folder / f"{name}-{scheme}-{scale}x.png"))

        drive(shoot, world, size=size)


def _scenes() -> dict[str, tuple[Callable[[], World], Scene, tuple[int, int]]]:
    from tests.ui.fakes import World, usual_world

    wide, narrow = (1360, 860), (700, 860)
    return {
        "conversation": (usual_world, _conversation, wide),
        "learned": (_learned_world, _conversation, wide),
        "answers": (_long_world, _conversation, wide),
        "cards": (_cards_world, _conversation, (1360, 1900)),
        "editing": (usual_world, _editing, wide),
        "failed": (_failed_world, _conversation, wide),
        "streaming": (usual_world, _streaming, wide),
        "toast": (usual_world, _toast, wide),
        "banner": (usual_world, _banner, wide),
        "first-run": (World, _conversation, wide),
        "narrow": (usual_world, _conversation, narrow),
        "zoomed": (_learned_world, _conversation, wide),
        "settings": (usual_world, _settings, wide),
        "about": (usual_world, _about, wide),
        "shortcuts": (usual_world, _shortcuts, wide),
        "link": (usual_world, _link, wide),
        "find": (_long_world, _find, wide),
        "palette": (usual_world, _palette, wide),
        **{f"wizard-{page + 1}": (usual_world, _wizard(page), wide) for page in range(5)},
    }


# --- worlds ---------------------------------------------------------------------------------------------------------


def _learned_world() -> World:
    from tests.ui.fakes import usual_world
    from tests.ui_parts.cards import STATES

    world = usual_world()
    chat, after = world.learning.all["p1"].chat, world.learning.all["p1"].after
    world.learning.all["p2"] = replace(STATES["proven"], id="p2", chat=chat, after=after)
    running = replace(
        STATES["training"], id="p3", chat="other", prompt="What should I call you?", answer="Call me Ana."
    )
    world.learning.all["p3"] = running
    return world


def _cards_world() -> World:
    from tests.ui.fakes import usual_world
    from tests.ui_parts.cards import STATES

    world = usual_world()
    chat, after = world.learning.all["p1"].chat, world.learning.all["p1"].after
    world.learning.all = {name: replace(card, id=name, chat=chat, after=after) for name, card in STATES.items()}
    return world


def _long_world() -> World:
    from tests.ui.fakes import usual_world

    world = usual_world()
    world.chats.add(
        "Reverse a linked list",
        "How do I reverse a linked list in Python? Compare the ways.",
        ANSWER,
        "line\n" * 60,
        "That was long. مرحبا، كيف حالك؟ And a [link](https://example.org/path).",
        days_ago=0,
    )
    return world


def _failed_world() -> World:
    from app.chat.api import MessageState
    from app.errors import ErrorInfo
    from tests.ui.fakes import message, usual_world

    world = usual_world()
    chat = world.chats.add("Letter to the landlord", "Write to my landlord about the heating.", days_ago=0)
    error = ErrorInfo(
        "KnownError",
        "could not answer",
        "",
        "The model ran out of memory and was started again. Close other programs, or start a new chat.",
        retryable=True,
    )
    world.chats.append(chat, message("f1", "Dear Ms Rossi, the heat", state=MessageState.FAILED, error=error))
    return world


# --- scenes ---------------------------------------------------------------------------------------------------------


async def _conversation(driver: Driver) -> QWidget:
    from app.learning.api import CardChanged

    for card in driver.world.learning.all.values():
        driver.window.lessons.take(CardChanged(card))
    await driver.settle(0.3)
    return driver.window


async def _editing(driver: Driver) -> QWidget:
    driver.window.page.edit_last_answer()
    return driver.window


async def _streaming(driver: Driver) -> QWidget:
    driver.world.chats.hold = asyncio.Event()
    driver.world.chats.script = lambda _: [ANSWER[:700], "more"]
    await driver.type("How do I reverse a linked list?")
    await driver.until(lambda: driver.window.desk.streaming)
    return driver.window


async def _toast(driver: Driver) -> QWidget:
    driver.window.desk.delete(driver.world.chats.add("Gone", "Hello"))
    await driver.until(driver.window.page.toast.isVisible)
    return driver.window


async def _banner(driver: Driver) -> QWidget:
    driver.window.page.banner.say("Could not store the message. The disk is full: free 40 MB and try again.")
    return driver.window


async def _settings(driver: Driver) -> QWidget:
    driver.window.dialogs.open_settings()
    await driver.until(lambda: driver.window.dialogs.settings)
    return driver.window.dialogs.settings or driver.window


async def _about(driver: Driver) -> QWidget:
    driver.window.dialogs.open_about()
    return driver.window.dialogs.about or driver.window


async def _shortcuts(driver: Driver) -> QWidget:
    from app.ui.shortcuts import ShortcutsDialog

    driver.window.actions_by_name["help"].trigger()
    return driver.window.findChild(ShortcutsDialog) or driver.window


async def _find(driver: Driver) -> QWidget:
    driver.window.page.find_bar.begin()
    driver.window.page.find_bar.field.setText("list")
    return driver.window


async def _palette(driver: Driver) -> QWidget:
    from app.ui.palette import Palette

    driver.window.actions_by_name["palette"].trigger()
    return driver.window.findChild(Palette) or driver.window


async def _link(driver: Driver) -> QWidget:
    from app.ui.links import ask_to_open

    address = "https://example.org/a/long/path?with=parameters&and=more&that=goes+on+for+a+while#end"
    return ask_to_open(driver.theme, address, driver.window) or driver.window


def _wizard(page: int) -> Scene:
    async def scene(driver: Driver) -> QWidget:
        driver.window.dialogs.open_wizard()
        wizard = driver.window.dialogs.wizard
        await driver.settle()
        for _ in range(page):
            driver.click(wizard.next)  # type: ignore[union-attr]
            await driver.settle(0.1)
        return wizard or driver.window

    return scene


ANSWER = '''There are two usual ways.

## Iteratively

Walk along the list and turn each `next` around. It needs **no extra memory**:

```python
def reverse(head: Node | None) -> Node | None:
    """Return the list turned around."""
    before = None
    while head is not None:
        head.next, before, head = before, head, head.next
    return before
```

## Recursively

1. Reverse the rest of the list.
2. Append the head to it.
   - Python's recursion limit is about 1,000,
   - so this is for short lists.

| Way | Time | Memory |
|---|:-:|--:|
| Iterative | O(n) | O(1) |
| Recursive | O(n) | O(n) |

> Prefer the first, unless the list is short and you like the second better.
'''


if __name__ == "__main__":
    raise SystemExit(main())
