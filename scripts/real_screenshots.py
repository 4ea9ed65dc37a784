"""Grabs the real window on the real model: a card before it is approved, and after it was learned.

    python scripts/real_screenshots.py FOLDER [--font Inter]

Teaches one lesson in a throw-away home at 100 %, then opens that home again at 200 % and brings up another card.
Writes ``real-before`` and ``real-after`` in light and dark at both scales.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

if TYPE_CHECKING:
    from tests.e2e.real_window import RealDriver


def main() -> None:
    """Run both scales, each in a process of its own: Qt reads its scale once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--font", default="")
    parser.add_argument("--home", type=Path)
    options = parser.parse_args()
    if options.home is not None:
        _take(options.folder, options.home, options.font)
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, str(options.folder), "--home", str(Path(folder) / "home")]
        command += ["--font", options.font] if options.font else []
        for scale in ("1", "2"):
            subprocess.run(command, check=True, env={**os.environ, "QT_SCALE_FACTOR": scale})


def _take(folder: Path, home: Path, font: str) -> None:
    from PySide6.QtGui import QFont

    from app.ui.app import make_application
    from tests.e2e.real_window import drive_real

    if font:
        make_application().setFont(QFont(font))
    first = os.environ.get("QT_SCALE_FACTOR") != "2"
    drive_real(home, lambda d: _first(d, folder) if first else _second(d, folder))


async def _first(d: RealDriver, folder: Path) -> None:
    from app.approvals.api import ProposalState
    from app.ui.card_text import Act
    from tests.e2e.real_window import unlock_as_a_person

    await d.say("What is my dog's name? I want to print a name tag.")
    await d.say("No, it's Biscuit.")
    await d.card()
    await _grab(d, folder, "real-before-1x")
    await d.press(Act.LEARN)
    await unlock_as_a_person(d)
    await d.until(lambda: (card := d.cards()[-1].card) is not None and card.state is ProposalState.PROVEN, within=600)
    await _grab(d, folder, "real-after-1x")


async def _second(d: RealDriver, folder: Path) -> None:
    await asyncio.sleep(1)
    await _grab(d, folder, "real-after-2x")
    await d.say("Where do I live?")
    await d.say("No, I live in Trieste.")
    await d.until(lambda: (card := d.cards()[-1].card) is not None and card.prompt == "Where do I live?")
    await _grab(d, folder, "real-before-2x")


async def _grab(d: RealDriver, folder: Path, name: str) -> None:
    from app.ui.theme import Scheme

    for scheme in (Scheme.LIGHT, Scheme.DARK):
        d.theme.set_scheme(scheme)
        await asyncio.sleep(1.0)
        d.window.grab().save(str(folder / f"{name}-{scheme.value}.png"))


if __name__ == "__main__":
    main()
