"""Why a child process ended, in words: from its exit code, and on Linux from the kernel's count of memory kills."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from app.errors import KnownError

_SIGNALS = {
    "SIGSEGV": "it crashed (segmentation fault)",
    "SIGABRT": "it gave up (aborted)",
    "SIGBUS": "a file it was reading changed or vanished (bus error)",
    "SIGILL": "it was built for another processor (illegal instruction)",
    "SIGFPE": "it crashed (arithmetic error)",
    "SIGTERM": "it was ended from outside",
    "SIGINT": "it was interrupted",
    "SIGHUP": "it was ended with its terminal",
    "SIGKILL": "it was killed from outside",
}

_WINDOWS = {
    0xC0000005: "it crashed (access violation)",
    0xC0000409: "it gave up (aborted)",
    0xC000001D: "it was built for another processor (illegal instruction)",
    0xC0000135: "a library it needs is missing",
}

_WINDOWS_NO_MEMORY = {0xC0000017, 0xC000012D, 0xC00000FD}

_NO_MEMORY_MARKS = ("bad_alloc", "failed to allocate", "Cannot allocate memory", "MemoryError")
"""What C++, ggml, libc and Python write as they abort for want of memory: the exit code alone cannot tell."""

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class MemoryKills:
    """The kernel's count of processes it killed for memory. It only grows, so two readings tell of a kill between."""

    count: int

    @classmethod
    def now(cls) -> MemoryKills:
        """Read the counters of the machine and of this control group; 0 where there are none."""
        return cls(_counter(Path("/proc/vmstat")) + _counter(Path("/sys/fs/cgroup/memory.events")))


def _counter(path: Path) -> int:
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))


def reason(name: str, code: int, *, killed_for_memory: bool, last_lines: Sequence[str]) -> KnownError:
    """Return the error that says why the child called ``name`` ended with this exit code."""
    if _no_memory(code, killed_for_memory=killed_for_memory, last_lines=last_lines):
        free = psutil.virtual_memory().available // _MIB
        hint = f"{free} MB are free now. Close other programs, or use a shorter context or a smaller model."
        return KnownError(f"run the {name}", "there was not enough memory", hint)
    return KnownError(f"run the {name}", _words(code), "It can be started again; nothing you wrote is lost.")


def _no_memory(code: int, *, killed_for_memory: bool, last_lines: Sequence[str]) -> bool:
    if code == -getattr(signal, "SIGKILL", 9):
        return killed_for_memory
    if code & 0xFFFFFFFF in _WINDOWS_NO_MEMORY and sys.platform == "win32":
        return True
    return code != 0 and any(mark in line for line in last_lines for mark in _NO_MEMORY_MARKS)


def _words(code: int) -> str:
    if sys.platform == "win32":
        return _WINDOWS.get(code & 0xFFFFFFFF, f"it ended with code {code & 0xFFFFFFFF:#x}")
    if code >= 0:
        return "it ended by itself" if code == 0 else f"it ended with code {code}"
    try:
        return _SIGNALS.get(signal.Signals(-code).name, f"it was ended by {signal.Signals(-code).name}")
    except ValueError:
        return f"it was ended by signal {-code}"
