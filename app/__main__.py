"""Starts Ownmind: the window, or one command of the command line."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app import __version__
from app.errors import AppError, DeniedError
from app.log import catch_crashes, loop_crash, start_logging_if_writable
from app.paths import home_folder
from app.store.home import Home
from app.tasks import CoreThread

if TYPE_CHECKING:
    from app.model.api import BaseFiles
    from app.ui.services import Services
    from app.wiring import App


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for and return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if _wants_window(given):
        return _window(given)
    from app.cli import run  # noqa: PLC0415 - the window needs none of it at start

    return run(given)


def _wants_window(given: list[str]) -> bool:
    return not given or (given[0].startswith("--home") and len(given) <= 2)  # noqa: PLR2004 - the option and its value


def _window(given: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="ownmind")
    parser.add_argument("--home")
    try:
        root = home_folder(parser.parse_args(given).home)
        return _run_window(root)
    except AppError as error:
        _tell(error.sentence())
        return 1 if isinstance(error, DeniedError) else 3


def _run_window(root: Path) -> int:
    from app.ui.app import raise_running, run  # noqa: PLC0415 - Qt only for the window
    from app.wiring import prepare_embedded  # noqa: PLC0415

    if raise_running(str(root)):
        return 0
    base = asyncio.run(prepare_embedded(root, _progress()))
    core = CoreThread(loop_crash())
    app = core.run(_opened(root, base))
    start_logging_if_writable(Home(root).logs)  # until the process ends, so that what ends it is logged
    catch_crashes(_tell)  # the window puts its own banner in place of this while it is open
    try:
        notices = core.run(app.start())
        services = services_of(app, root, notices)
        return run(services, core, app.settings)
    finally:
        core.close()


def _tell(sentence: str) -> None:
    print(sentence, file=sys.stderr)  # noqa: T201 - there is no window to say it in


def services_of(app: App, root: Path, notices: Sequence[str]) -> Services:
    """Return what the window is given."""
    from app.ui.services import Services  # noqa: PLC0415 - Qt's room, for the window only

    return Services(
        chats=app.chats,
        learning=app.learning,
        learning_events=app.learning_events,
        devmode=app.devmode,
        model_name=app.base.passport.name,
        app_version=__version__,
        home=str(root),
        notices=tuple(notices),
        shutdown=app.close,
    )


def _progress() -> Callable[[str, float], None]:
    """Say each stage of the first preparation once, on standard error."""
    said: set[str] = set()

    def progress(words: str, _: float) -> None:
        if words not in said:
            said.add(words)
            _tell(words)

    return progress


async def _opened(root: Path, base: BaseFiles) -> App:
    """Open the home on the core thread: the database belongs to the thread that opened it."""
    from app.wiring import open_app  # noqa: PLC0415

    return open_app(root, base)


if __name__ == "__main__":
    sys.exit(main())
