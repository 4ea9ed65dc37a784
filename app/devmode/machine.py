"""The wizard's second page: what this machine has, beside what learning needs. Measures, changes nothing."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil

from app.devmode.api import MachineCheck
from app.errors import AppError

NEEDED_MEMORY_BYTES = 3 * 10**9
NEEDED_DISK_BYTES = 2 * 10**9
SLOW_STEP_S = 5.0
"""Above this, one lesson takes longer than people wait for."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What the machine has to give."""

    memory_bytes: int
    """Free for programs now."""
    disk_bytes: int
    """Free where the home is."""
    backed_up: bool | None
    """Whether the home lies in a folder that a known backup or sync program covers; None if that cannot be told."""


class Machine(Protocol):
    """Measures the machine."""

    def resources(self) -> Resources:
        """Return what it has. Raises KnownError if the home cannot be reached."""
        ...


class Probes(Protocol):
    """What only other rooms can measure."""

    async def store_problems(self) -> list[str]:
        """Return what is wrong with the store, in plain sentences."""
        ...

    async def trial_step_s(self) -> float:
        """Train one step on a throw-away lesson and return its seconds. Raises AppError if training cannot run."""
        ...


_BACKUP_FOLDERS = ("dropbox", "onedrive", "nextcloud", "icloud", "google drive", "syncthing", "mobile documents")


class ThisMachine:
    """The machine the app runs on."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def resources(self) -> Resources:
        """Return free memory, free disk, and whether a backup is evident."""
        return Resources(psutil.virtual_memory().available, shutil.disk_usage(self._home).free, self._backed_up())

    def _backed_up(self) -> bool | None:
        parts = [part.casefold() for part in self._home.resolve().parts]
        covered = any(name in part for name in _BACKUP_FOLDERS for part in parts)
        return True if covered else None


async def check_machine(machine: Machine, probes: Probes) -> list[MachineCheck]:
    """Measure everything; a check that cannot be made is a line that says why."""
    has = machine.resources()
    return [
        _memory(has.memory_bytes),
        _disk(has.disk_bytes),
        _backup(backed_up=has.backed_up),
        await _store(probes),
        await _trainer(probes),
    ]


def _gb(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.1f} GB"


def _memory(free_bytes: int) -> MachineCheck:
    words = f"{_gb(free_bytes)} of memory free, {_gb(NEEDED_MEMORY_BYTES)} needed"
    return MachineCheck("Memory", words, free_bytes >= NEEDED_MEMORY_BYTES)


def _disk(free_bytes: int) -> MachineCheck:
    words = f"{_gb(free_bytes)} of disk free, {_gb(NEEDED_DISK_BYTES)} needed"
    return MachineCheck("Disk", words, free_bytes >= NEEDED_DISK_BYTES)


def _backup(*, backed_up: bool | None) -> MachineCheck:
    if backed_up:
        return MachineCheck("Backup", "Your home folder lies in a folder that is synchronised", ok=True)
    return MachineCheck("Backup", "No backup seen. Every version can be undone, but not a lost disk", ok=True)


async def _store(probes: Probes) -> MachineCheck:
    try:
        problems = await probes.store_problems()
    except AppError as error:
        problems = [error.sentence()]
    return MachineCheck("Storage", problems[0] if problems else "Everything stored was read and is sound", not problems)


async def _trainer(probes: Probes) -> MachineCheck:
    try:
        seconds = await probes.trial_step_s()
    except AppError as error:
        return MachineCheck("Learning speed", error.sentence(), ok=False)
    words = f"{seconds:.1f} seconds for one step of learning"
    if seconds > SLOW_STEP_S:
        words += "; a lesson will take several minutes"
    return MachineCheck("Learning speed", words, ok=True)
