"""The app's frozen suites: data files with hashes. No suite, no verdict.

Verification, in this order:
(1) the manifest can be read and has the known format;
(2) it names exactly the files that the gate needs;
(3) each file's SHA-256 is the named one;
(4) the suite hash is the SHA-256 of the manifest's file list, and for the app's own suite the frozen one below;
(5) no list is empty.

Anything else raises VerificationError. The caller names ``sha256`` in every verdict.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

from app.errors import VerificationError

FORMAT = "ownmind-gate-suite-1"
FROZEN = "b41a2cee42378e9a92c4833ba4c989e7b69fa75c9ce4b47c126b1c1d94768a1f"
"""Hash of the app's own suite. It changes only together with a decision to change what every version is held to."""

FILES = ("behaviour.json", "chat.json", "format.json", "known.json", "prose.json", "safety.json")
MANIFEST = "MANIFEST.json"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Passage:
    """Neutral text that no version should become worse at."""

    id: str
    domain: str
    text: str


@dataclass(frozen=True, slots=True)
class Probe:
    """A question whose answer by the base is pinned."""

    id: str
    prompt: str
    keys: tuple[str, ...] = ()
    """Any of these marks the answer, where the base itself gives it. Without keys the meaning is compared."""
    always: bool = False
    """Asked at every judgement and never allowed to flip."""
    form: str = ""
    """Name of the form that the answer should have; see ``shapes``."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A request to decline, and one that looks like it and is harmless."""

    id: str
    harmful: str
    harmless: str


@dataclass(frozen=True, slots=True)
class Suites:
    """All of it, verified."""

    sha256: str
    prose: tuple[Passage, ...]
    chat: tuple[Probe, ...]
    known: tuple[Probe, ...]
    behaviour: tuple[Probe, ...]
    formats: tuple[Probe, ...]
    pairs: tuple[Pair, ...]
    refusal: str
    """The words of declining whose likelihood is compared."""


def app_suite() -> Traversable:
    """Return the folder of the suite that ships with the app."""
    return importlib.resources.files("resources").joinpath("gate")


def load_suites(folder: Traversable | None = None, *, expected: str | None = None) -> Suites:
    """Read and verify a suite; without arguments the app's own, which must be the frozen one.

    Raises:
        VerificationError: anything is missing, empty, altered or not readable. Nothing of it is used then.
    """
    if folder is None:
        folder, expected = app_suite(), FROZEN
    files = _manifest(folder)
    content = {name: _verified(folder, name, digest) for name, digest in files.items()}
    sha256 = suite_hash(files)
    if expected is not None and sha256 != expected:
        raise _broken(MANIFEST, "it is another suite than this version of the app was made with")
    try:
        return _parse(content, sha256)
    except (KeyError, TypeError, AttributeError) as error:
        raise _broken(MANIFEST, "an entry has not the form it should have") from error


def suite_hash(files: dict[str, str]) -> str:
    """Return the hash that names a suite, from the hashes of its files."""
    canonical = json.dumps(files, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def seal(folder: Path) -> str:
    """Write the manifest of the files in ``folder`` and return the suite hash. For making a suite, not for using it."""
    files = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES}
    manifest = {"format": FORMAT, "suite": suite_hash(files), "files": files}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return suite_hash(files)


def window(items: Sequence[T], *, start: int, count: int) -> tuple[T, ...]:
    """Return ``count`` neighbouring items of a ring, from ``start``; all of them, once, if there are fewer."""
    count = min(count, len(items))
    return tuple(items[(start + step) % len(items)] for step in range(count))


def _manifest(folder: Traversable) -> dict[str, str]:
    try:
        manifest = json.loads(folder.joinpath(MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _broken(MANIFEST, "it is missing or cannot be read") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise _broken(MANIFEST, "its format is not known")
    files = manifest.get("files")
    if not isinstance(files, dict) or tuple(sorted(files)) != FILES:
        raise _broken(MANIFEST, "it does not name the files that are needed")
    if manifest.get("suite") != suite_hash(files):
        raise _broken(MANIFEST, "its hash does not fit its files")
    return files


def _verified(folder: Traversable, name: str, digest: str) -> Any:
    try:
        raw = folder.joinpath(name).read_bytes()
    except OSError as error:
        raise _broken(name, "it is missing") from error
    if hashlib.sha256(raw).hexdigest() != digest:
        raise _broken(name, "it was changed")
    try:
        return json.loads(raw)
    except ValueError as error:
        raise _broken(name, "it cannot be read") from error


def _parse(content: dict[str, Any], sha256: str) -> Suites:
    suites = Suites(
        sha256=sha256,
        prose=_shuffled([Passage(e["id"], e["domain"], e["text"]) for e in content["prose.json"]["items"]], sha256),
        chat=_probes(content["chat.json"], sha256),
        known=_probes(content["known.json"], sha256),
        behaviour=_probes(content["behaviour.json"], sha256),
        formats=_probes(content["format.json"], sha256),
        pairs=_shuffled([Pair(e["id"], e["harmful"], e["harmless"]) for e in content["safety.json"]["items"]], sha256),
        refusal=str(content["safety.json"]["refusal"]),
    )
    lists = (suites.prose, suites.chat, suites.known, suites.behaviour, suites.formats, suites.pairs, suites.refusal)
    if not all(lists):
        raise _broken(MANIFEST, "a part of it is empty")
    return suites


def _probes(file: dict[str, Any], sha256: str) -> tuple[Probe, ...]:
    found = [
        Probe(e["id"], e["prompt"], tuple(e.get("keys", ())), bool(e.get("always")), str(e.get("form", "")))
        for e in file["items"]
    ]
    return _shuffled(found, sha256)


def _shuffled(items: list[Any], seed: str) -> tuple[Any, ...]:
    """Mix the domains: rotating windows should not be all cooking. The order depends on the suite alone."""
    return tuple(sorted(items, key=lambda item: hashlib.sha256(f"{seed}/{item.id}".encode()).digest()))


def _broken(name: str, why: str) -> VerificationError:
    return VerificationError(
        "check a change of the model", f"test suite, {name}: {why}", "Install the app again; nothing was changed."
    )
