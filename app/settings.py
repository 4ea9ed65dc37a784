"""Small values that outlive the app, by name: theme, zoom, what is visible, how to answer.

One JSON object of strings in one file, replaced as a whole. A file that cannot be read is set aside and everything
starts from its defaults: settings never keep the app from starting. Typed reading is up to whoever owns a name.

``get`` may be called from any thread, ``set`` from one.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from app.errors import KnownError

_LARGEST_CHARS = 1_000_000


class SettingsFile:
    """The settings of one home.

    Attributes:
        notes: Plain sentences about what opening it has repaired.
    """

    def __init__(self, path: Path) -> None:
        """Read what is there. Raises nothing: what cannot be read counts as not set."""
        self._path = path
        self.notes: list[str] = []
        self._values = self._read()

    def get(self, name: str) -> str | None:
        """Return what was set, or None."""
        return self._values.get(name)

    def set(self, name: str, value: str) -> None:
        """Store a value; it is on disk when this returns. Raises KnownError if the disk refuses: nothing changed."""
        if self._values.get(name) == value:
            return
        changed = {**self._values, name: value}
        self._write(changed)
        self._values = changed

    def _read(self) -> dict[str, str]:
        try:
            with self._path.open(encoding="utf-8") as file:
                found = json.loads(file.read(_LARGEST_CHARS))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            self._set_aside()
            return {}
        return {name: value for name, value in found.items() if isinstance(value, str)}

    def _set_aside(self) -> None:
        aside = self._path.with_suffix(".broken.json")
        try:
            self._path.replace(aside)
        except OSError:
            self.notes.append("The settings could not be read. The defaults are used.")
            return
        self.notes.append(f"The settings were damaged and are set aside as {aside.name}. The defaults are used.")

    def _write(self, values: dict[str, str]) -> None:
        temporary = self._path.with_suffix(".new.json")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("w", encoding="utf-8") as file:
                json.dump(values, file, indent=1, sort_keys=True, ensure_ascii=False)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            hint = "The disk may be full, or the home folder may be read-only."
            raise KnownError("save the settings", self._path.name, hint) from error
