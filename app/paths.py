"""Where a person's home folder is: what was asked for, else ``OWNMIND_HOME``, else the system's place for data."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import platformdirs

from app.errors import UserError

VARIABLE = "OWNMIND_HOME"


def home_folder(argument: str | Path | None = None, *, environ: Mapping[str, str] | None = None) -> Path:
    """Return the absolute path of the home folder; it need not exist yet.

    Args:
        argument: The value of ``--home``; it wins.
        environ: The environment; the process's own if None.

    Raises: UserError if what stands at that place is a file.
    """
    named = argument or (os.environ if environ is None else environ).get(VARIABLE)
    folder = Path(named).expanduser() if named else Path(platformdirs.user_data_dir("ownmind", appauthor=False))
    folder = Path(os.path.abspath(folder))  # noqa: PTH100 - resolve() would follow a link that the person may move
    if folder.exists() and not folder.is_dir():
        raise UserError("use the home folder", folder.name, "A file stands in its place. Choose a folder.")
    return folder


def settings_file(home: Path) -> Path:
    """Return where the settings of a home are kept."""
    return home / "settings.json"
