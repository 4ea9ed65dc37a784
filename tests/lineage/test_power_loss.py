"""Every crash point of a commit, with every disk a power cut may leave there.

Checked each time, after a new start: acknowledged commits survive (I1), the version in use is one logged, verified
version (I2), the history verifies (I3), answers are possible (I4), trying again works and changes nothing twice (I5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from app.model.lineage import Lineage
from app.store.audit import AuditLog
from app.store.canonical import digest
from app.store.collect import Collector
from app.store.faults import ForgetfulFiles, PowerCut, PowerLossFiles
from app.store.objects import Objects
from tests.lineage.made import new_commit, open_lineage

ROOT = Path("/home-of-test")
Act = Callable[[Lineage], str | None]
Forgets = Callable[[str, Path], bool]


class BrokenPromiseError(AssertionError):
    """An invariant does not hold on some disk."""


def promise(what: str, holds: bool) -> None:
    if not holds:
        raise BrokenPromiseError(what)


def check_disk(disk: PowerLossFiles, acknowledged: list[str]) -> None:
    lineage = open_lineage(ROOT, disk)
    lineage.recover()
    head = lineage.head()
    known = {commit.id: commit for commit in lineage.log()}
    for commit_id in acknowledged:
        promise("I1: an acknowledged version is in the history", commit_id in known)
        promise("I1: an acknowledged version can be used", lineage.available(known[commit_id]))
    promise("I2: the version in use is in the history", head.id in known)
    promise("I2: its bytes are its own", head.delta is None or digest(lineage.delta(head)) == head.delta)
    AuditLog.open(ROOT / "audit", disk, lineage._clock).verify()  # I3
    promise("I3: nothing is locked", lineage.locked is None)
    promise("I4: there is something to answer with", lineage.available(head))
    for commit in known.values():
        promise("every logged version is whole", all(lineage._objects.intact(name) for name in _names(commit)))
    again = open_lineage(ROOT, disk)
    again.recover()
    promise("I5: recovering twice is recovering once", again.head() == head and len(again.log()) == len(known))
    retried = again.commit(new_commit(again, 9))
    promise("I5: the next commit works", open_lineage(ROOT, disk).head() == retried)


def _names(commit) -> list[str]:
    return [name for name in (commit.delta, commit.recipe, commit.data, commit.verdict) if name]


@dataclass
class Explored:
    cuts: int = 0
    disks: int = 0
    heads: set[str] = field(default_factory=set)


def explore(act: Act, *, before: Act | None = None, forgets: Forgets = lambda _op, _path: False) -> Explored:
    """Cut the power before each operation of ``act``, and once after it; check every disk that may be left."""
    found = Explored()
    while True:
        disk = ForgetfulFiles(ROOT.parent, forgets=forgets)
        disk.make_folder(ROOT)
        disk.sync_folder(ROOT.parent)
        acknowledged = []
        lineage = open_lineage(ROOT, disk) if before is not None else None
        if before is not None and lineage is not None:
            acknowledged += [made for made in [before(lineage)] if made]
        start = disk.count
        disk.cut_at = start + found.cuts
        done = False
        try:
            lineage = lineage or open_lineage(ROOT, disk)
            acknowledged += [made for made in [act(lineage)] if made]
            done = True
        except PowerCut:
            pass
        for left in disk.disks():
            found.disks += 1
            check_disk(left, acknowledged)
        found.cuts += 1
        if done:
            return found


def learn(seed: int) -> Act:
    return lambda lineage: lineage.commit(new_commit(lineage, seed)).id


def undo(lineage: Lineage) -> None:
    lineage.move_head(lineage.root(), "undo")


def test_a_commit_survives_a_power_cut_at_any_point():
    found = explore(learn(2), before=learn(1))
    assert found.cuts > 30
    assert found.disks > 100


def test_the_first_start_survives_a_power_cut_at_any_point():
    assert explore(lambda _lineage: None).cuts > 10


def test_undo_survives_a_power_cut_at_any_point():
    assert explore(undo, before=learn(1)).cuts > 5


def test_several_commits_and_an_undo_survive_a_power_cut_at_any_point():
    def act(lineage: Lineage) -> None:
        learn(2)(lineage)
        undo(lineage)
        learn(3)(lineage)

    assert explore(act, before=learn(1)).disks > 300


def test_recovery_itself_survives_a_power_cut_at_any_point():
    """First cut: between log entry and head. Then the start after it is cut everywhere."""
    disk = PowerLossFiles(ROOT.parent)
    disk.make_folder(ROOT)
    disk.sync_folder(ROOT.parent)
    lineage = open_lineage(ROOT, disk)
    ref_before = disk.read(ROOT / "refs" / lineage.ref)
    made = lineage.commit(new_commit(lineage, 1)).id
    log = disk.read(ROOT / "audit" / "log")
    for torn in (0, 7):
        cut = 0
        done = False
        while not done:
            broken = next(iter(disk.disks()))
            broken.write(ROOT / "refs" / lineage.ref, ref_before)
            broken.write(ROOT / "audit" / "log", log + b"\0" * torn)
            broken.sync(ROOT / "refs" / lineage.ref)
            broken.sync(ROOT / "audit" / "log")
            broken.cut_at = broken.count + cut
            try:
                open_lineage(ROOT, broken).recover()
                done = True
            except PowerCut:
                pass
            for left in broken.disks():
                check_disk(left, [made])
            cut += 1
        assert cut > 3


def test_collecting_never_loses_a_named_object_whenever_the_power_goes():
    def collect(session: str) -> Act:
        def act(lineage: Lineage) -> None:
            objects = Objects(ROOT / "objects", lineage._objects._files)
            Collector(objects, ROOT / "condemned", objects._files, session).run(lineage.reachable())

        return act

    def before(lineage: Lineage) -> str:
        lineage._objects.put(b"an orphan of a commit that never came")
        collect("first")(lineage)
        return lineage.commit(new_commit(lineage, 1)).id

    assert explore(collect("second"), before=before).cuts > 5


@dataclass(frozen=True)
class Planted:
    forgets: Forgets
    breaks: str


PLANTED = {
    "blobs are not fsynced": Planted(lambda op, path: op == "sync" and "objects" in path.parts, "can be used"),
    "folders of blobs are not fsynced": Planted(
        lambda op, path: op == "sync_folder" and path.parent.name == "objects", "can be used"
    ),
    "the folder of those folders is not fsynced": Planted(
        lambda op, path: op == "sync_folder" and path.name == "objects", "can be used"
    ),
    "the log is not fsynced": Planted(lambda op, path: op == "sync" and path.name == "log", "is in the history"),
    "the folder of the log is not fsynced": Planted(
        lambda op, path: op == "sync_folder" and path.name == "audit", "is in the history"
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_caught(bug: str):
    planted = PLANTED[bug]
    with pytest.raises(BrokenPromiseError, match=f"I1: .*{planted.breaks}"):
        explore(learn(2), before=learn(1), forgets=planted.forgets)
