"""Derived adapter files in ``home/serving/``: made from the canonical bytes when wanted, and never trusted blindly.

Everything here can be deleted at any time. A file is used only if its hash is the one noted when it was made; a
damaged, cut or missing one is made again from the object store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Literal

from app.errors import VerificationError
from app.model.adapters.canonical import read_adapter
from app.model.adapters.gguf import gguf_adapter
from app.model.adapters.mlx import CONFIG, WEIGHTS, mlx_adapter
from app.model.api import AdapterRef, BaseFiles
from app.store.canonical import digest
from app.store.disk import disk_errors
from app.store.files import Files, RealFiles, make_folders, write_durably

Form = Literal["gguf", "mlx"]

_CHARACTERS_OF_HASH = 64


class ServingFiles:
    """The derived files of one base.

    Args:
        folder: ``home/serving``.
        base: The base whose adapters these are.
        form: What the engine loads: a GGUF file, or the folder of mlx-lm's two files.
    """

    def __init__(self, folder: Path, base: BaseFiles, *, form: Form = "gguf", files: Files | None = None) -> None:
        self._folder = folder / base.passport.id[:16] / form
        self._passport = base.passport
        self._form = form
        self._files = files or RealFiles()

    def ref(self, sha256: str, load: Callable[[], bytes], *, scale: float = 1.0) -> AdapterRef:
        """Return the adapter as the engine takes it, its file made first if need be.

        Args:
            sha256: Identity of the canonical bytes.
            load: Returns those bytes; called only if the file has to be made.
            scale: Strength to serve with.

        Raises: VerificationError if the canonical bytes are not what they should be; KnownError (disk).
        """
        if len(sha256) != _CHARACTERS_OF_HASH or not set(sha256) <= set("0123456789abcdef"):
            raise VerificationError("use an adapter", "a version", "Its hash is not one.")
        with disk_errors("prepare an adapter", sha256[:12]):
            if not self._is_whole(sha256):
                self._make(sha256, load())
        return AdapterRef(sha256, self._folder / self._name(sha256), scale)

    def prune(self, keep: Collection[str]) -> None:
        """Remove derived files of all but these adapters; best effort."""
        with disk_errors("tidy up derived adapters", self._folder.name):
            for note in self._files.list(self._folder):
                sha256, dot, _ = note.partition(".note")
                if dot and sha256 not in keep:
                    self._remove(sha256)

    def _name(self, sha256: str) -> str:
        return f"{sha256}.gguf" if self._form == "gguf" else sha256

    def _names(self, sha256: str) -> tuple[str, ...]:
        return (f"{sha256}.gguf",) if self._form == "gguf" else (f"{sha256}/{WEIGHTS}", f"{sha256}/{CONFIG}")

    def _is_whole(self, sha256: str) -> bool:
        """Return whether every derived file has the hash noted for it; a few milliseconds."""
        try:
            note = json.loads(self._files.read(self._folder / f"{sha256}.note"))
            return all(digest(self._files.read(self._folder / name)) == note[name] for name in self._names(sha256))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return False

    def _make(self, sha256: str, data: bytes) -> None:
        if digest(data) != sha256:
            raise VerificationError("use an adapter", sha256[:12], "Its bytes are not the ones that were learned.")
        derived = self._derived(sha256, data)
        for name, content in derived.items():
            path = self._folder / name
            make_folders(self._files, path.parent)
            write_durably(self._files, path, content)
        note = {name: digest(content) for name, content in derived.items()}
        write_durably(self._files, self._folder / f"{sha256}.note", json.dumps(note).encode())

    def _derived(self, sha256: str, data: bytes) -> dict[str, bytes]:
        adapter = read_adapter(data, self._passport, sha256[:12])
        if self._form == "gguf":
            contents = [gguf_adapter(adapter, self._passport, sha256)]
        else:
            weights, config = mlx_adapter(adapter, self._passport)
            contents = [weights, json.dumps(config).encode()]
        return dict(zip(self._names(sha256), contents, strict=True))

    def _remove(self, sha256: str) -> None:
        """Remove the note first: without it, whatever is left counts for nothing."""
        self._files.unlink(self._folder / f"{sha256}.note")
        for name in self._names(sha256):
            if self._files.exists(self._folder / name):
                self._files.unlink(self._folder / name)
