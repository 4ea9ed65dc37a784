"""Small adapters and lineages for tests of versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from app.clock import Clock, FakeClock
from app.model.adapters.canonical import write_adapter
from app.model.api import Passport
from app.model.lineage import Lineage, NewCommit
from app.store.audit import AuditLog
from app.store.canonical import digest
from app.store.files import Files, RealFiles
from app.store.objects import Objects
from app.store.refs import Refs

BASE = "ba5e" * 16
PASSPORT = Passport(
    id=BASE,
    name="Tiny",
    weights_sha256="0" * 64,
    architecture="llama",
    tokenizer_sha256="0" * 64,
    template_sha256="0" * 64,
    quantisation="F16",
    licence="Apache-2.0",
    layers=2,
    hidden=4,
    heads=1,
    kv_heads=1,
    vocabulary=8,
    adaptable=("gate_proj",),
)


class QuickFiles(RealFiles):
    """A real disk without waiting for it: for tests in which processes die, but the power stays on."""

    def sync(self, path: Path) -> None:
        assert path.exists()

    def sync_folder(self, folder: Path) -> None:
        assert folder.is_dir()


def tensors(seed: int = 1, *, rank: int = 2, layers: int = 1) -> dict[str, np.ndarray[Any, Any]]:
    random = np.random.default_rng(seed)
    found = {}
    for layer in range(layers):
        prefix = f"base_model.model.model.layers.{layer}.mlp.gate_proj"
        found[f"{prefix}.lora_A.weight"] = random.standard_normal((rank, 4)).astype(np.float32)
        found[f"{prefix}.lora_B.weight"] = random.standard_normal((3, rank)).astype(np.float32)
    return found


def adapter(seed: int = 1) -> bytes:
    return write_adapter(tensors(seed), PASSPORT, rank=2, alpha=4.0)


def verdict(delta: bytes | None, parent_delta: str | None, **changes: Any) -> dict[str, Any]:
    sha = None if delta is None else digest(delta)
    return {"outcome": "accept", "adapter_sha256": sha, "parent_sha256": parent_delta, "seconds": 1.5} | changes


def new_commit(lineage: Lineage, seed: int = 1, **changes: Any) -> NewCommit:
    """A sound request on top of the version in use, but for ``changes``."""
    head = lineage.head()
    delta = changes.pop("delta", adapter(seed))
    fields: dict[str, Any] = {
        "parent": head.id,
        "delta": delta,
        "scale": 0.8,
        "lessons": (f"lesson-{seed}",),
        "action": "learn",
        "title": f"lesson {seed}",
        "recipe": {"learning_rate": 2e-3, "seed": seed},
        "data": {"targets": [["a", "b"]], "seed": seed},
        "verdict": verdict(delta, head.delta),
        "decision": f"proposal-{seed}",
        "conversation": "chat",
        "written_norm": 0.0125,
    }
    return NewCommit(**(fields | changes))


def open_lineage(root: Path, files: Files, clock: Clock | None = None, *, passport: Passport = PASSPORT) -> Lineage:
    """A lineage straight on a disk, without a database or a lock."""
    clock = clock or FakeClock()
    audit = AuditLog.open(root / "audit", files, clock)
    return Lineage.open(Objects(root / "objects", files), Refs(root / "refs", files, clock), audit, passport, clock)


def audit_of(root: Path, files: Files) -> AuditLog:
    return AuditLog.open(root / "audit", files, FakeClock(), read_only=True)
