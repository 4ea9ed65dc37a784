"""Adapters of one base, checked before native code sees them and kept loaded while they are likely to come back.

Before an adapter acts:

(1) the file is well-formed GGUF;
(2) it says of itself that it is a LoRA for this architecture and this very base, made from the weights that were asked;
(3) every tensor is one half of a pair of the announced rank, in 16 or 32 bits, and all its numbers are finite;
(4) llama.cpp takes it, which compares every shape with the base's;
(5) the loaded adapter tells the hash that was asked for.

The caller has made sure of the file's bytes; here they are not hashed again.
"""

from __future__ import annotations

import ctypes
import os
from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app.errors import VerificationError
from app.model.api import AdapterRef
from app.model.engine.backends.llama_native import Model, lib
from app.model.gguf_check import GgufInfo, GgufTensor, check_gguf

KEPT = 3
"""Adapters kept loaded, those that act included: a megabyte each after one lesson, and up to twenty after many."""

_FLOATS: Mapping[int, np.dtype[Any]] = {0: np.dtype("<f4"), 1: np.dtype("<f2")}


@dataclass(frozen=True, slots=True, eq=False)
class LoadedAdapter:
    """An adapter that llama.cpp has taken. Itself only: two loads of one file are two adapters."""

    pointer: Any
    sha256: str
    """As the loaded adapter tells it."""


class Adapters:
    """Loads and keeps the adapters of one base."""

    def __init__(self, model: Model, *, base: str, architecture: str) -> None:
        self._model = model
        self._base = base
        self._architecture = architecture
        self._loaded: OrderedDict[tuple[object, ...], LoadedAdapter] = OrderedDict()

    def get(self, ref: AdapterRef, in_use: Collection[LoadedAdapter]) -> LoadedAdapter:
        """Return the adapter, loaded; those ``in_use`` are never freed. Raises VerificationError."""
        key = (ref.sha256, *_identity(ref.path))
        if key not in self._loaded:
            self._loaded[key] = self._load(ref)
            self._make_room({*in_use, self._loaded[key]})
        self._loaded.move_to_end(key)
        return self._loaded[key]

    def _load(self, ref: AdapterRef) -> LoadedAdapter:
        info = check_gguf(ref.path)  # (1)
        self._check_head(info.metadata, ref)  # (2)
        _check_tensors(info, ref.path)  # (3)
        pointer = lib.llama_adapter_lora_init(self._model.pointer, os.fsencode(ref.path))
        if not pointer:  # (4)
            raise _refused(ref, "It does not fit this model.")
        told = _told(pointer, "ownmind.sha256")
        if told != ref.sha256:  # (5)
            lib.llama_adapter_lora_free(pointer)
            raise _refused(ref, "It changed while it was loaded.")
        return LoadedAdapter(pointer, told)

    def _check_head(self, metadata: Mapping[str, Any], ref: AdapterRef) -> None:
        if metadata.get("general.type") != "adapter" or metadata.get("adapter.type") != "lora":
            raise _refused(ref, "It is not a LoRA adapter.")
        if metadata.get("general.architecture") != self._architecture:
            raise _refused(ref, "It was made for another kind of model.")
        if metadata.get("ownmind.base") != self._base:
            raise _refused(ref, "It was made for another base model.")
        if metadata.get("ownmind.sha256") != ref.sha256:
            raise _refused(ref, "It holds other weights than it should.")

    def _make_room(self, keep: Collection[LoadedAdapter]) -> None:
        for key, adapter in list(self._loaded.items()):
            if len(self._loaded) <= KEPT:
                return
            if adapter not in keep:
                del self._loaded[key]
                lib.llama_adapter_lora_free(adapter.pointer)


def _identity(path: Path) -> tuple[object, ...]:
    """Return what changes when a file does; a missing one is found by the check."""
    try:
        status = path.stat()
    except OSError:
        return (str(path),)
    return (str(path), status.st_mtime_ns, status.st_size, status.st_ino)


def _check_tensors(info: GgufInfo, path: Path) -> None:
    """Refuse what is no set of complete, finite pairs of the announced rank."""
    rank = info.metadata.get("ownmind.rank")
    halves: dict[str, dict[str, GgufTensor]] = {}
    for tensor in info.tensors:
        stem, _, half = tensor.name.rpartition(".")
        halves.setdefault(stem, {})[half] = tensor
    for pair in halves.values():
        if set(pair) != {"lora_a", "lora_b"} or any(len(tensor.shape) != 2 for tensor in pair.values()):  # noqa: PLR2004
            raise _broken(path, "Its tensors are not pairs of matrices.")
        if not pair["lora_a"].shape[0] == pair["lora_b"].shape[1] == rank:
            raise _broken(path, "Its rank is not what it says.")
    if not halves:
        raise _broken(path, "It is empty.")
    if not all(_finite(tensor, path) for tensor in info.tensors):
        raise _broken(path, "It holds values that are not numbers.")


def _finite(tensor: GgufTensor, path: Path) -> bool:
    kind = _FLOATS.get(tensor.kind)
    if kind is None:
        raise _broken(path, "Its numbers have an unexpected form.")
    count = tensor.size // kind.itemsize
    values = np.fromfile(path, kind, count, offset=tensor.offset)
    return len(values) == count and bool(np.isfinite(values).all())


def _told(pointer: int, key: str) -> str:
    buffer = ctypes.create_string_buffer(512)
    count = lib.llama_adapter_meta_val_str(pointer, key.encode(), buffer, len(buffer))
    return buffer.value.decode("utf-8", "replace") if count >= 0 else ""


def _refused(ref: AdapterRef, reason: str) -> VerificationError:
    return VerificationError("use what was learned", f"version {ref.sha256[:12]}", f"{reason} Nothing of it was used.")


def _broken(path: Path, reason: str) -> VerificationError:
    return VerificationError("use what was learned", path.name, f"{reason} Nothing of it was used.")
