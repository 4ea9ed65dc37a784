"""Immutable blobs named by the SHA-256 of their bytes: ``objects/ab/cdef…``.

Once ``put`` has returned, the blob survives a power cut. Every read checks the hash, so what comes back is what was
put or an error. The store does not know what refers to a blob; see ``collect.py`` for removing what nothing names.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from app.errors import BugError, KnownError, VerificationError
from app.store.canonical import digest as sha256
from app.store.disk import disk_errors, from_os_error
from app.store.files import TEMPORARY_PREFIX, Files, make_folders, write_durably

_DIGEST = re.compile(r"[0-9a-f]{64}")
_FOLDER = re.compile(r"[0-9a-f]{2}")


class Objects:
    """A folder of blobs.

    Attributes:
        fresh: Digests put since this store was opened. They may not be named by anything yet; never collect them.
    """

    def __init__(self, root: Path, files: Files) -> None:
        self._root = root
        self._files = files
        self._ready: set[Path] = set()
        self._sound: dict[str, int] = {}
        self.fresh: set[str] = set()

    def put(self, data: bytes) -> str:
        """Store a blob durably and return its digest. Putting it again is harmless and mends a damaged copy.

        Raises: KnownError (disk full, not writable); then nothing of the blob is left under its name.
        """
        name = sha256(data)
        path = self.path(name)
        with disk_errors("save an object", name[:12]):
            self._make_ready(path.parent)
            if self._holds(path, name):
                # An earlier put may have failed between its rename and this.
                self._files.sync_folder(path.parent)
            else:
                write_durably(self._files, path, data)
        self.fresh.add(name)
        return name

    def require_space(self, size_bytes: int) -> None:
        """Check before writing that twice the size is free: the blob, and room for what records it.

        Raises: KnownError with the space that is needed.
        """
        folder = self._root if self._files.exists(self._root) else self._root.parent
        with disk_errors("look for free space", folder.name):
            free = self._files.free_bytes(folder)
        if free < (needed := 2 * size_bytes):
            hint = f"{_mb(needed)} are needed and {_mb(free)} are free. Free some space; nothing was changed."
            raise KnownError("save to the disk", "the disk is full", hint)

    def get(self, name: str) -> bytes:
        """Return a blob.

        Raises: VerificationError if its bytes do not match its name, KnownError if it is missing or unreadable.
        """
        try:
            data = self._files.read(self.path(name))
        except FileNotFoundError as error:
            raise KnownError("read an object", name[:12], "Its file is missing.", retryable=False) from error
        except OSError as error:
            raise from_os_error(error, "read an object", name[:12]) from error
        if sha256(data) != name:
            raise VerificationError("read an object", name[:12], "Its file is damaged; it was not used.")
        return data

    def intact(self, name: str) -> bool:
        """Return whether a blob is there and undamaged.

        It is read once a session; later only its presence and length are looked at, since lists ask often. ``get``
        verifies every time.
        """
        try:
            if name not in self._sound:
                self._sound[name] = len(self.get(name))
            return self._files.size_bytes(self.path(name)) == self._sound[name]
        except (KnownError, VerificationError, OSError):
            return False

    def has(self, name: str) -> bool:
        """Return whether a file of that name is there, unread."""
        return self._files.exists(self.path(name))

    def names(self) -> list[str]:
        """Return the digests of all blobs, sorted."""
        return [folder + rest for folder, rest in self._walk() if _DIGEST.fullmatch(folder + rest)]

    def remove(self, name: str) -> None:
        """Remove a blob. Only for the collector: it must know that nothing names it."""
        with disk_errors("remove an object", name[:12]):
            with contextlib.suppress(FileNotFoundError):
                self._files.unlink(self.path(name))
            self._files.sync_folder(self.path(name).parent)

    def leftovers(self) -> list[Path]:
        """Return temporary files that an interrupted ``put`` left."""
        return [self._root / folder / rest for folder, rest in self._walk() if rest.startswith(TEMPORARY_PREFIX)]

    def path(self, name: str) -> Path:
        """Return where a blob stands. Raises BugError for anything but a digest, so no name can leave the folder."""
        if not _DIGEST.fullmatch(name):
            raise BugError("find an object", "not a SHA-256 digest")
        return self._root / name[:2] / name[2:]

    def _make_ready(self, folder: Path) -> None:
        """Make a folder's own name durable, once a session: that it exists does not say that it would survive."""
        if folder not in self._ready:
            make_folders(self._files, self._root)
            self._files.make_folder(folder)
            self._files.sync_folder(self._root)
            self._ready.add(folder)

    def _holds(self, path: Path, name: str) -> bool:
        try:
            return sha256(self._files.read(path)) == name
        except OSError:
            return False

    def _walk(self) -> Iterator[tuple[str, str]]:
        for folder in self._files.list(self._root):
            if _FOLDER.fullmatch(folder):
                for rest in self._files.list(self._root / folder):
                    yield folder, rest


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f} MB"
