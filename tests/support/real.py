"""The real embedded model for tests marked ``real``: prepared once, kept between runs, shared by every room.

Example:
    @pytest.mark.real
    def test_it_answers():
        base = real_base()
        adapter = small_adapter(base, tmp_path, seed=1)
"""

from __future__ import annotations

import asyncio
import functools
import os
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil

from app.model.adapters.canonical import tensor_names, write_adapter
from app.model.adapters.serving import ServingFiles
from app.model.api import AdapterRef, BaseFiles
from app.model.bases import embedded_source, prepare
from app.store.canonical import digest

INNER = 1536
"""Inner width of the embedded model's MLPs, which its passport does not name."""


@functools.cache
def real_base() -> BaseFiles:
    """Return the embedded model, prepared: seconds the first time on a machine, milliseconds after."""
    folder = cache_folder() / "bases"
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder / "lock"), ThreadPoolExecutor(1) as thread:  # a loop may be running on this one
        return thread.submit(lambda: asyncio.run(prepare(embedded_source(), folder))).result()


def cache_folder() -> Path:
    """Return the folder where tests keep what is expensive to make."""
    given = os.environ.get("OWNMIND_TEST_CACHE")
    user = os.getuid() if hasattr(os, "getuid") else 0
    return Path(given) if given else Path(tempfile.gettempdir()) / f"ownmind-tests-{user}"


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Wait while another living test run prepares the same base."""
    while True:
        try:
            with lock.open("x", encoding="ascii") as file:
                file.write(str(os.getpid()))
            break
        except FileExistsError:
            if not _held(lock):
                lock.unlink(missing_ok=True)
            time.sleep(0.1)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _held(lock: Path) -> bool:
    try:
        return bool(psutil.pid_exists(int(lock.read_text(encoding="ascii"))))
    except FileNotFoundError:
        return False
    except ValueError:  # made just now, its number not yet written
        return time.time() - lock.stat().st_mtime < 5


def canonical_adapter(
    base: BaseFiles,
    *,
    seed: int,
    strength: float = 0.3,
    modules: tuple[str, ...] = ("gate_proj", "up_proj", "down_proj"),
    layers: tuple[int, int] = (6, 15),
    rank: int = 8,
) -> bytes:
    """Return the bytes of a random adapter that changes answers, of the size and place real ones have."""
    random = np.random.default_rng(seed)
    hidden = base.passport.hidden
    values = hidden // base.passport.heads * base.passport.kv_heads
    sizes = {
        "gate_proj": (hidden, INNER), "up_proj": (hidden, INNER), "down_proj": (INNER, hidden),
        "q_proj": (hidden, hidden), "k_proj": (hidden, values), "v_proj": (hidden, values), "o_proj": (hidden, hidden),
    }  # fmt: skip
    tensors = {}
    for layer in range(layers[0], layers[1] + 1):
        for module in modules:
            inputs, outputs = sizes[module]
            part = "mlp" if module.endswith(("gate_proj", "up_proj", "down_proj")) else "self_attn"
            down, up = tensor_names(f"model.layers.{layer}.{part}.{module}")
            tensors[down] = random.normal(0, 1 / np.sqrt(inputs), (rank, inputs)).astype(np.float32)
            tensors[up] = random.normal(0, strength, (outputs, rank)).astype(np.float32)
    return write_adapter(tensors, base.passport, rank=rank, alpha=2.0 * rank)


def small_adapter(base: BaseFiles, folder: Path, *, seed: int, scale: float = 1.0, strength: float = 0.3) -> AdapterRef:
    """Return a random adapter as the engine takes it."""
    data = canonical_adapter(base, seed=seed, strength=strength)
    return ServingFiles(folder, base).ref(digest(data), lambda: data, scale=scale)
