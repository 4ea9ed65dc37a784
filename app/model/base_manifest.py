"""The record that makes a prepared base complete: which files, how large, with which hash.

It is written last, so its presence means that every file before it reached the disk whole. Sizes and times are compared
at every start; hashes only when a time differs, or in a deep check.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.errors import VerificationError
from app.model.api import Passport
from app.model.passport import passport_from_json, passport_json
from app.store.disk import disk_errors
from app.store.files import Files, RealFiles, write_durably

MANIFEST = "manifest.json"
FORMAT = "ownmind-base-1"
SERVING = "serving-f16.gguf"
TRAINING = "training"
WEIGHTS = f"{TRAINING}/model.safetensors"
PASSPORT = "passport.json"

REPAIR_HINT = "The base is prepared again by itself at the next start; this takes about ten seconds."


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One file of a prepared base, or its source."""

    size: int
    mtime_ns: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything about one prepared base. ``source`` is where it was made from, kept to recognise it quickly."""

    passport: Passport
    source: str
    source_record: FileRecord
    files: Mapping[str, FileRecord]


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def record_of(path: Path, sha256: str | None = None) -> FileRecord:
    """Return the record of a file as it is now; the hash is computed unless given."""
    stat = path.stat()
    return FileRecord(stat.st_size, stat.st_mtime_ns, sha256 or file_sha256(path))


def looks_unchanged(path: Path, record: FileRecord) -> bool:
    """Return whether size and time are still those of the record."""
    stat = path.stat()
    return (stat.st_size, stat.st_mtime_ns) == (record.size, record.mtime_ns)


def write_manifest(files: Files, folder: Path, manifest: Manifest) -> None:
    """Write the record durably. Raises OSError."""
    value = {
        "format": FORMAT,
        "passport": passport_json(manifest.passport),
        "source": {"path": manifest.source, **_record_json(manifest.source_record)},
        "files": {name: _record_json(record) for name, record in sorted(manifest.files.items())},
    }
    write_durably(files, folder / MANIFEST, json.dumps(value, indent=1).encode())


def read_manifest(folder: Path) -> Manifest:
    """Return the record of a prepared base.

    Raises: VerificationError if there is none, it is damaged, or it stands in a folder of another base; OSError.
    """
    try:
        value = json.loads((folder / MANIFEST).read_bytes())
        if value["format"] != FORMAT:
            raise _damaged(folder, "It was written by another version of Ownmind.")
        passport = passport_from_json(value["passport"], folder.name)
        source = value["source"]
        records = {name: _record(entry) for name, entry in value["files"].items()}
        manifest = Manifest(passport, source["path"], _record(source), records)
    except FileNotFoundError as error:
        raise _damaged(folder, "Its preparation was not finished.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(folder, "Its record is damaged.") from error
    if manifest.passport.id != folder.name or not {SERVING, WEIGHTS, PASSPORT} <= records.keys():
        raise _damaged(folder, "Its record is of another base.")
    return manifest


def check_files(folder: Path, *, deep: bool) -> Manifest:
    """Compare every file with the record and return it.

    A file whose time alone differs (a home that was copied) is read and hashed, and the record brought up to date. A
    deep check that finds damage withdraws the record, so that the base is made again.

    Raises: VerificationError naming the file.
    """
    with disk_errors("open the prepared base", folder.name[:12]):
        manifest = read_manifest(folder)
        moved: dict[str, FileRecord] = {}
        for name, record in manifest.files.items():
            path = folder / name
            if not path.exists() or path.stat().st_size != record.size:
                raise _changed(name)
            if deep or not looks_unchanged(path, record):
                moved[name] = _read_again(folder, name, record)
        if any(manifest.files[name] != record for name, record in moved.items()):
            manifest = replace(manifest, files={**manifest.files, **moved})
            with contextlib.suppress(OSError):  # a home that can only be read is hashed at every start instead
                write_manifest(RealFiles(), folder, manifest)
    return manifest


def _read_again(folder: Path, name: str, record: FileRecord) -> FileRecord:
    """Return the record of a file that still has its hash."""
    if file_sha256(folder / name) != record.sha256:
        with contextlib.suppress(OSError):
            (folder / MANIFEST).unlink()
        raise _changed(name)
    return record_of(folder / name, record.sha256)


def _changed(name: str) -> VerificationError:
    return VerificationError("open the prepared base", name, f"The file is missing or was changed. {REPAIR_HINT}")


def _record_json(record: FileRecord) -> dict[str, Any]:
    return {"bytes": record.size, "mtime_ns": record.mtime_ns, "sha256": record.sha256}


def _record(entry: Mapping[str, Any]) -> FileRecord:
    return FileRecord(int(entry["bytes"]), int(entry["mtime_ns"]), str(entry["sha256"]))


def _damaged(folder: Path, reason: str) -> VerificationError:
    return VerificationError("open the prepared base", folder.name[:12], f"{reason} {REPAIR_HINT}")
