"""A program for ``test_kill.py``: forks itself once per file operation of a commit and interrupts that child there.

``python -m tests.lineage.interrupted every FOLDER`` makes one home per operation, killed by SIGKILL at it;
``python -m tests.lineage.interrupted suspend FOLDER`` stops the child instead, for hours by its clock, then lets it go
on; ``python -m tests.lineage.interrupted endless FOLDER`` commits until it is killed and prints each acknowledged
version. Both first modes print how many homes they made. Linux and macOS.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

from app.clock import FakeClock
from app.store.files import RealFiles
from tests.lineage.made import QuickFiles, new_commit, open_lineage

ACKNOWLEDGED = "acknowledged"


class InterruptedFiles(QuickFiles):
    """A real disk that calls ``act`` before its operation number ``at``."""

    def __init__(self, at: int, act: Callable[[], None]) -> None:
        self._left = at
        self._act = act

    def _step(self) -> None:
        self._left -= 1
        if self._left == -1:
            self._act()

    def write(self, path: Path, data: bytes) -> None:
        self._step()
        super().write(path, data)

    def append(self, path: Path, data: bytes) -> None:
        self._step()
        half = len(data) // 2
        super().append(path, data[:half])
        self._step()
        super().append(path, data[half:])

    def truncate(self, path: Path, size_bytes: int) -> None:
        self._step()
        super().truncate(path, size_bytes)

    def sync(self, path: Path) -> None:
        self._step()
        super().sync(path)

    def rename(self, source: Path, target: Path) -> None:
        self._step()
        super().rename(source, target)

    def unlink(self, path: Path) -> None:
        self._step()
        super().unlink(path)

    def make_folder(self, folder: Path) -> None:
        self._step()
        super().make_folder(folder)

    def sync_folder(self, folder: Path) -> None:
        self._step()
        super().sync_folder(folder)


def commit_twice(root: Path, at: int, act: Callable[[FakeClock], None]) -> None:
    clock = FakeClock()
    files = InterruptedFiles(at, lambda: act(clock))
    root.mkdir()
    lineage = open_lineage(root, files, clock)
    for seed in (1, 2):
        made = lineage.commit(new_commit(lineage, seed))
        with (root / ACKNOWLEDGED).open("a", encoding="ascii") as file:
            file.write(made.id + "\n")


def forked(work: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    _, status = os.waitpid(child, os.WUNTRACED)
    while os.WIFSTOPPED(status):
        os.kill(child, signal.SIGCONT)
        _, status = os.waitpid(child, os.WUNTRACED)
    return os.waitstatus_to_exitcode(status)


def kill(_clock: FakeClock) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def every(folder: Path) -> int:
    for at in range(1000):
        if forked(partial(commit_twice, folder / str(at), at, kill)) == 0:
            return at + 1
    raise OverflowError


def suspend(folder: Path) -> int:
    for at in range(1000):
        stopped = folder / f"stopped-{at}"

        def stop(clock: FakeClock, *, stopped: Path = stopped, at: int = at) -> None:
            stopped.touch()
            os.kill(os.getpid(), signal.SIGSTOP)
            clock.wall += timedelta(hours=9 if at % 2 else -9)

        assert forked(partial(commit_twice, folder / str(at), at, stop)) == 0
        if not stopped.exists():
            return at + 1
    raise OverflowError


def endless(folder: Path) -> None:
    lineage = open_lineage(folder, RealFiles())
    seed = len(lineage.log())
    while True:
        made = lineage.commit(new_commit(lineage, seed))
        sys.stdout.write(made.id + "\n")
        sys.stdout.flush()
        if seed % 3 == 0:
            lineage.move_head(lineage.get(made.parents[0]), "undo")
        seed += 1


if __name__ == "__main__":
    mode, where = sys.argv[1], Path(sys.argv[2])
    if mode == "endless":
        endless(where)
    sys.stdout.write(f"{every(where) if mode == 'every' else suspend(where)}\n")
