"""File operations behind one narrow interface, so that a full disk and a power cut can be tested like anything else.

What the store needs from a disk, and nothing more. Two rules hold for every user of it:

- data is safe only after ``sync`` of the file, and a name only after ``sync_folder`` of the folder it stands in;
- a file that others may read is never written in place: it is written under a temporary name and renamed.

``faults.py`` has the implementations that fail and that lose power. This module knows no format.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Protocol

TEMPORARY_PREFIX = ".tmp-"
"""Names of files that nobody has promised anything about; the next start removes them."""

_PRIVATE_FILE = 0o600
_PRIVATE_FOLDER = 0o700
_REPLACE_TRIES = 20
_REPLACE_WAIT_S = 0.025


class Files(Protocol):
    """One disk. Every method raises OSError as the system does."""

    def read(self, path: Path) -> bytes:
        """Return the whole file."""
        ...

    def exists(self, path: Path) -> bool:
        """Return whether a file or folder stands there."""
        ...

    def size_bytes(self, path: Path) -> int:
        """Return the length of a file."""
        ...

    def list(self, folder: Path) -> list[str]:
        """Return the names in a folder, sorted; a missing folder has none."""
        ...

    def free_bytes(self, folder: Path) -> int:
        """Return how much may still be written there."""
        ...

    def write(self, path: Path, data: bytes) -> None:
        """Create or overwrite a file. Not durable before ``sync``."""
        ...

    def append(self, path: Path, data: bytes) -> None:
        """Add to the end of an existing file. Not durable before ``sync``."""
        ...

    def truncate(self, path: Path, size_bytes: int) -> None:
        """Cut a file. Not durable before ``sync``."""
        ...

    def sync(self, path: Path) -> None:
        """Return once the file's data has reached the drive."""
        ...

    def rename(self, source: Path, target: Path) -> None:
        """Put ``source`` in the place of ``target`` in one step. Not durable before ``sync_folder``."""
        ...

    def unlink(self, path: Path) -> None:
        """Remove a file. Not durable before ``sync_folder``."""
        ...

    def make_folder(self, folder: Path) -> None:
        """Create one folder if it is missing. Not durable before ``sync_folder`` of its parent."""
        ...

    def sync_folder(self, folder: Path) -> None:
        """Return once the names in the folder have reached the drive."""
        ...


class RealFiles:
    """The machine's disk."""

    def read(self, path: Path) -> bytes:
        """Return the whole file."""
        return path.read_bytes()

    def exists(self, path: Path) -> bool:
        """Return whether a file or folder stands there."""
        return path.exists()

    def size_bytes(self, path: Path) -> int:
        """Return the length of a file."""
        return path.stat().st_size

    def list(self, folder: Path) -> list[str]:
        """Return the names in a folder, sorted; a missing folder has none."""
        try:
            return sorted(os.listdir(folder))  # noqa: PTH208 - names only, and this is asked for 256 folders at start
        except FileNotFoundError:
            return []

    def free_bytes(self, folder: Path) -> int:
        """Return how much may still be written there."""
        return shutil.disk_usage(folder).free

    def write(self, path: Path, data: bytes) -> None:
        """Create or overwrite a file, readable by its owner only."""
        self._put(path, data, os.O_CREAT | os.O_TRUNC)

    def append(self, path: Path, data: bytes) -> None:
        """Add to the end of an existing file."""
        self._put(path, data, os.O_APPEND)

    def _put(self, path: Path, data: bytes, flags: int) -> None:
        descriptor = os.open(path, os.O_WRONLY | flags | getattr(os, "O_BINARY", 0), _PRIVATE_FILE)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        finally:
            os.close(descriptor)

    def truncate(self, path: Path, size_bytes: int) -> None:
        """Cut a file."""
        with path.open("r+b") as file:
            file.truncate(size_bytes)

    def sync(self, path: Path) -> None:
        """Return once the file's data has reached the drive."""
        # Windows flushes only through a handle that may write.
        descriptor = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        try:
            _flush(descriptor)
        finally:
            os.close(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        """Put ``source`` in the place of ``target`` in one step."""
        replace_patiently(source, target)

    def unlink(self, path: Path) -> None:
        """Remove a file."""
        path.unlink()

    def make_folder(self, folder: Path) -> None:
        """Create one folder, open to its owner only, if it is missing."""
        folder.mkdir(mode=_PRIVATE_FOLDER, exist_ok=True)

    def sync_folder(self, folder: Path) -> None:
        """Return once the names in the folder have reached the drive."""
        if sys.platform == "win32":
            return  # Windows has no such call: the rename itself is journalled
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            _flush(descriptor)
        except OSError as error:
            # Some network and overlay file systems cannot flush a folder and say so with EINVAL.
            if error.errno != errno.EINVAL:
                raise
        finally:
            os.close(descriptor)


def _flush(descriptor: int) -> None:
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415 - not there on Windows

        # On macOS fsync leaves the data in the drive's own cache; only this asks the drive to empty it.
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def replace_patiently(source: Path, target: Path) -> None:
    """Rename over ``target``; on Windows wait out whoever is scanning the file just now (half a second at most)."""
    tries = _REPLACE_TRIES if sys.platform == "win32" else 1
    for attempt in range(1, tries + 1):
        try:
            source.replace(target)
        except PermissionError:
            if attempt == tries:
                raise
            time.sleep(_REPLACE_WAIT_S)
        else:
            return


def make_folders(files: Files, folder: Path) -> None:
    """Create a folder and its missing parents, and make each name durable before anything is put below it."""
    if files.exists(folder):
        return
    make_folders(files, folder.parent)
    files.make_folder(folder)
    files.sync_folder(folder.parent)


def write_durably(files: Files, path: Path, data: bytes) -> None:
    """Replace a file so that at any moment, power cuts included, the old or the new content is there, whole.

    Raises: OSError; the old content is then untouched.
    """
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{path.name}")
    try:
        files.write(temporary, data)
        files.sync(temporary)
        files.rename(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            files.unlink(temporary)
        raise
    files.sync_folder(path.parent)
