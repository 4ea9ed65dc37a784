"""Prepares a base once: reads the model file, writes what engine and trainer load, then the record that says so.

May be killed at any moment. A file counts only once it is complete, on the drive and read back; the next run keeps
those and makes the rest. Runs in a child (``base_child``), since it keeps a core busy for seconds.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from app.errors import DeniedError, KnownError, VerificationError
from app.model.api import Passport
from app.model.base_convert import Tick, Write, write_serving, write_training
from app.model.base_manifest import (
    MANIFEST,
    PASSPORT,
    SERVING,
    TRAINING,
    WEIGHTS,
    FileRecord,
    Manifest,
    check_files,
    file_sha256,
    looks_unchanged,
    read_manifest,
    record_of,
    write_manifest,
)
from app.model.base_tokenizer import model_config, tokenizer_config, tokenizer_json
from app.model.gguf_check import GgufInfo, check_gguf
from app.model.passport import passport_json, passport_of
from app.store.disk import disk_errors
from app.store.files import TEMPORARY_PREFIX, Files, make_folders, write_durably
from app.store.lock import HomeLock

Progress = Callable[[str, float], None]
"""Told what is being done, in a few words, and the share of the whole that is done. May raise to stop."""

_STATE = "finished.json"
"""Files that are complete, while the preparation is not."""
_LOCK = "lock"
_WAIT_S = 0.2
_SPARE_BYTES = 64_000_000


def prepare_base(source: Path, bases: Path, *, files: Files, progress: Progress) -> Path:
    """Prepare the base in ``source`` below ``bases`` and return its folder; only what is missing is made.

    Two processes that prepare at the same time take turns, and the second finds everything done.

    Raises: VerificationError (a bad file), UserError (a model that cannot learn here), KnownError (disk).
    """
    progress("Reading the model file", 0.0)
    info = check_gguf(source)
    with disk_errors("prepare the model", source.name):
        origin = record_of(source)
        passport = passport_of(info, origin.sha256)
        folder = bases / passport.id
        make_folders(files, folder / TRAINING)
        with _turn(bases, progress):
            if not _is_ready(folder, source, origin, files):
                _Preparation(source, origin, info, passport, folder, files, progress).run()
    progress("Ready", 1.0)
    return folder


@contextlib.contextmanager
def _turn(bases: Path, progress: Progress) -> Iterator[None]:
    """Hold the lock on all bases; wait while another process has it, telling so."""
    while True:
        try:
            lock = HomeLock(bases / _LOCK)
            break
        except DeniedError:
            progress("Waiting for another window to prepare the model", 0.0)
            time.sleep(_WAIT_S)
    try:
        yield
    finally:
        lock.release()


def _is_ready(folder: Path, source: Path, origin: FileRecord, files: Files) -> bool:
    """Return whether the base is whole; if its source has moved, note where it is now."""
    try:
        manifest = check_files(folder, deep=False)
    except VerificationError:
        return False
    if (manifest.source, manifest.source_record) != (str(source), origin):
        write_manifest(files, folder, replace(manifest, source=str(source), source_record=origin))
    if files.exists(folder / _STATE):  # an earlier run ended right after its last step
        files.unlink(folder / _STATE)
    return True


@dataclass
class _Preparation:
    source: Path
    origin: FileRecord
    info: GgufInfo
    passport: Passport
    folder: Path
    files: Files
    progress: Progress

    def __post_init__(self) -> None:
        self.finished = _read_finished(self.folder)

    def run(self) -> None:
        if self.files.exists(self.folder / MANIFEST):  # complete once, but damaged: keep what is still whole
            self._save_finished()
            self.files.unlink(self.folder / MANIFEST)
        self._remove_temporary()
        self._check_space()
        self._make(SERVING, self._write_serving, "Unpacking the weights", (0.05, 0.6))
        serving = check_gguf(self.folder / SERVING)
        self._make(WEIGHTS, partial(self._write_training, serving), "Arranging them for learning", (0.6, 0.95))
        self._write_small_files()
        if not looks_unchanged(self.source, self.origin):
            raise VerificationError("prepare the model", self.source.name, "The file changed meanwhile. Try again.")
        manifest = Manifest(self.passport, str(self.source), self.origin, self.finished)
        write_manifest(self.files, self.folder, manifest)
        self.files.unlink(self.folder / _STATE)

    def _make(self, name: str, write_to: Callable[[Write, Tick], None], words: str, part: tuple[float, float]) -> None:
        """Make one large file, unless an earlier run finished it and it still has the hash it had then."""
        path = self.folder / name
        known = self.finished.get(name)
        if known and path.exists() and file_sha256(path) == known.sha256:
            self.finished[name] = record_of(path, known.sha256)
            return
        temporary = path.with_name(f"{TEMPORARY_PREFIX}{path.name}")

        def tick(share: float) -> None:
            self.progress(words, part[0] + share * (part[1] - part[0]))

        tick(0.0)
        with temporary.open("wb") as file:
            write_to(file.write, tick)
        self.files.sync(temporary)
        self.files.rename(temporary, path)
        self.files.sync_folder(path.parent)
        self._note(name, record_of(path))

    def _note(self, name: str, record: FileRecord) -> None:
        self.finished[name] = record
        self._save_finished()

    def _save_finished(self) -> None:
        value = {key: [r.size, r.mtime_ns, r.sha256] for key, r in self.finished.items()}
        write_durably(self.files, self.folder / _STATE, json.dumps(value).encode())

    def _write_serving(self, write: Write, tick: Tick) -> None:
        write_serving(self.source, self.info, write, tick)

    def _write_training(self, serving: GgufInfo, write: Write, tick: Tick) -> None:
        write_training(self.folder / SERVING, serving, write, tick)

    def _write_small_files(self) -> None:
        meta = self.info.metadata
        tied = all(tensor.name != "output.weight" for tensor in self.info.tensors)
        contents = {
            f"{TRAINING}/tokenizer.json": tokenizer_json(meta),
            f"{TRAINING}/tokenizer_config.json": _json(tokenizer_config(meta)),
            f"{TRAINING}/config.json": _json(model_config(meta, tied=tied)),
            PASSPORT: _json(passport_json(self.passport)),
        }
        for name, data in contents.items():
            write_durably(self.files, self.folder / name, data)
            self.finished[name] = record_of(self.folder / name)

    def _check_space(self) -> None:
        """Refuse before writing what would not fit: both files take two bytes for each number."""
        numbers = sum(_elements(tensor.shape) for tensor in self.info.tensors)
        needed = sum(2 * numbers for name in (SERVING, WEIGHTS) if name not in self.finished) + _SPARE_BYTES
        free = self.files.free_bytes(self.folder)
        if free < needed:
            hint = f"It needs {needed / 1e6:.0f} MB on the disk, and {free / 1e6:.0f} MB are free. Free some space."
            raise KnownError("prepare the model", self.source.name, hint)

    def _remove_temporary(self) -> None:
        for folder in (self.folder, self.folder / TRAINING):
            for name in self.files.list(folder):
                if name.startswith(TEMPORARY_PREFIX):
                    self.files.unlink(folder / name)


def _elements(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def _json(value: object) -> bytes:
    return json.dumps(value, indent=1, ensure_ascii=False).encode()


def _read_finished(folder: Path) -> dict[str, FileRecord]:
    """Return what an earlier run had finished; anything unreadable counts as nothing, for hashes decide in the end."""
    with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
        value = json.loads((folder / _STATE).read_bytes())
        return {name: FileRecord(int(size), int(time), str(sha)) for name, (size, time, sha) in value.items()}
    with contextlib.suppress(OSError, VerificationError):
        return dict(read_manifest(folder).files)
    return {}
