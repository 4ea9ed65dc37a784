"""Opens an app in an empty home and teaches it, for benchmarks: one process, warm, as in the window."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

from app.devmode.api import SENTENCE, Budget
from app.learning.api import Lesson
from app.wiring import App, open_app, prepare_embedded

LESSONS = Path(__file__).with_name("lessons.json")


def read_lessons(path: Path = LESSONS) -> list[Lesson]:
    """Return the lessons of a file: a list of objects with ``prompt`` and ``answer``."""
    items = json.loads(path.read_text(encoding="utf-8"))
    return [Lesson(item["prompt"], item["answer"]) for item in items]


@contextlib.asynccontextmanager
async def opened(home: Path) -> AsyncIterator[App]:
    """Open a fresh home with learning unlocked, and warm everything that a card on screen warms."""
    app = open_app(home, await prepare_embedded(home))
    await app.start()
    try:
        while app.devmode.click_version():
            pass
        app.devmode.unlock(SENTENCE, Budget(changes_per_day=1000))
        await app.engine.ready()
        await app.parts.prepared.warm()
        yield app
    finally:
        await app.close()


@dataclass
class PeakMemory:
    """Largest sum of proportional set sizes of this process and its children, in bytes; looks every two seconds."""

    bytes: int = 0

    def __enter__(self) -> Self:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(2.0):
            self.bytes = max(self.bytes, memory_now())


def memory_now() -> int:
    """Return the proportional set size (resident size where the system does not tell) of all our processes."""
    me = psutil.Process()
    total = 0
    for process in [me, *me.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            full = process.memory_full_info()
            total += getattr(full, "pss", full.rss)
    return total


def machine() -> dict[str, object]:
    """Return what the figures were measured on."""
    model = ""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    return {
        "date": time.strftime("%Y-%m-%d"),
        "cpu": model,
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "load_before": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }
