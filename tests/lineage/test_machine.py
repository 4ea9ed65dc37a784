"""Any order of commits, moves, collections, restarts, power cuts and tampering, against a small reference model.

The model knows what was acknowledged; the real lineage runs on the power-loss disk. After every step the two agree,
and after every power cut the five invariants hold on the disk that happened to be left.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from app.clock import FakeClock
from app.errors import KnownError, VerificationError
from app.model.lineage import Lineage
from app.model.lineage.records import blobs_of
from app.store.audit import AuditLog
from app.store.canonical import digest
from app.store.collect import Collector
from app.store.faults import PowerCut, PowerLossFiles
from tests.lineage.made import adapter, new_commit, open_lineage

ROOT = Path("/home-of-test")
SEEDS = st.integers(1, 6)
LOG = ROOT / "audit" / "log"


@dataclass
class Model:
    """What must be true, as far as anyone was told."""

    versions: list[str] = field(default_factory=list)
    """Acknowledged ids, oldest first."""
    held: dict[str, tuple[str, ...]] = field(default_factory=dict)
    weights: dict[str, str | None] = field(default_factory=dict)
    head: str = ""

    def add(self, commit, before: tuple[str, ...]) -> None:
        self.versions.append(commit.id)
        gone = commit.action == "forget"
        kept = tuple(lesson for lesson in before if not (gone and lesson in commit.lessons))
        self.held[commit.id] = kept if gone else tuple(dict.fromkeys((*before, *commit.lessons)))
        self.weights[commit.id] = commit.delta
        self.head = commit.id


class LineageMachine(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.disk = PowerLossFiles(ROOT.parent)
        self.disk.make_folder(ROOT)
        self.disk.sync_folder(ROOT.parent)
        self.clock = FakeClock(datetime(2026, 6, 1, tzinfo=UTC))
        self.sessions = 0
        self.model = Model()
        self.open()
        self.model.add(self.lineage.root(), ())

    def open(self) -> list[str]:
        self.sessions += 1
        self.lineage: Lineage = open_lineage(ROOT, self.disk, self.clock)
        self.collector = Collector(self.lineage._objects, ROOT / "condemned", self.disk, str(self.sessions))
        return self.lineage.recover()

    # --- what people and the app do

    @rule(seed=SEEDS, action=st.sampled_from(["learn", "learn", "forget", "rebuild"]))
    def commit(self, seed: int, action: str) -> None:
        made = self.lineage.commit(new_commit(self.lineage, seed, action=action))
        self.model.add(made, self.model.held[self.model.head])

    @rule(pick=st.integers(0, 100), proven=st.booleans())
    def move_head(self, pick: int, proven: bool) -> None:
        target = self.lineage.get(self.model.versions[pick % len(self.model.versions)])
        self.lineage.move_head(target, "use")
        self.model.head = target.id
        self.lineage.note_active(target, target.delta)
        if proven:
            self.lineage.note_proven(target)
        assert self.lineage.unproven() is None or not proven

    @rule(hours=st.integers(-50, 50))
    def turn_the_clock(self, hours: int) -> None:
        self.clock.wall += timedelta(hours=hours)

    @rule()
    def orphan(self) -> None:
        """A commit that never came to its entry."""
        self.lineage._objects.put(f"orphan of session {self.sessions}".encode())

    @rule()
    def collect(self) -> None:
        self.collector.run(self.lineage.reachable())

    @rule()
    def restart(self) -> None:
        self.open()

    @rule(seed=SEEDS)
    def stale_commit_is_refused(self, seed: int) -> None:
        stale = new_commit(self.lineage, seed, parent="0" * 64)
        self.refused(stale, KnownError)

    @rule()
    def swapped_delta_is_refused(self) -> None:
        wrong = new_commit(self.lineage, 1).verdict
        self.refused(new_commit(self.lineage, 2, delta=adapter(2), verdict=wrong), VerificationError)

    def refused(self, new, error: type[Exception]) -> None:
        before = len(self.lineage._audit.entries)
        try:
            self.lineage.commit(new)
        except error:
            assert len(self.lineage._audit.entries) == before
            return
        raise AssertionError("it was not refused")

    # --- what the world does

    @rule(seed=SEEDS, after=st.integers(0, 22), which=st.integers(0, 30))
    def lose_power_early_in_a_commit(self, seed: int, after: int, which: int) -> None:
        self.lose_power(seed, after, which, "commit")

    @rule(seed=SEEDS, after=st.integers(23, 36), which=st.integers(0, 30))
    def lose_power_late_in_a_commit(self, seed: int, after: int, which: int) -> None:
        self.lose_power(seed, after, which, "commit")

    @rule(after=st.integers(0, 12), which=st.integers(0, 30), what=st.sampled_from(["undo", "gc"]))
    def lose_power_in_something_short(self, after: int, which: int, what: str) -> None:
        self.lose_power(1, after, which, what)

    def lose_power(self, seed: int, after: int, which: int, what: str) -> None:
        """Cut the power in the middle of something, and go on from one of the disks that may be left."""
        acts = {
            "commit": lambda: self.commit(seed, "learn"),
            "undo": lambda: self.move_head(0, proven=False),
            "gc": self.collect,
        }
        before = self.model.head
        self.disk.cut_at = self.disk.count + after
        with contextlib.suppress(PowerCut):
            acts[what]()
        self.disk.cut_at = None
        left = list(islice(self.disk.disks(), which + 1))
        self.disk = left[min(which, len(left) - 1)]
        self.open()
        self.take_in_what_was_not_acknowledged(before)

    def take_in_what_was_not_acknowledged(self, before: str) -> None:
        """A cut step has either happened or not; whatever it is now, it stays."""
        unknown = [commit for commit in self.lineage.log() if commit.id not in self.model.held]
        assert len(unknown) <= 1
        for commit in unknown:
            self.model.add(commit, self.model.held[before])
        head = self.lineage.head().id
        assert head in {self.model.head, before, self.lineage.root().id}
        self.model.head = head

    @precondition(lambda self: len(self.lineage._audit.entries) > 3)
    @rule(where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), turns=st.integers(0, 3))
    def tamper(self, where: float, bit: int, turns: int) -> None:
        """Flip one bit of the history anywhere but in its last entry, with the app closed; then bring it back."""
        sound = self.disk.read(LOG)
        data = bytearray(sound)
        data[int(where * data.rindex(b"\n", 0, len(data) - 1))] ^= 1 << bit
        self.replace_log(bytes(data))
        for _ in range(turns + 1):
            self.open()
            assert self.lineage.locked is not None
            self.refused(new_commit(self.lineage, 1), VerificationError)
            assert self.lineage.available(self.lineage.head()), "answers go on"
            assert self.disk.read(LOG) == bytes(data), "a changed history is evidence"
        self.replace_log(sound)
        self.open()

    def replace_log(self, data: bytes) -> None:
        self.disk.write(LOG, data)
        self.disk.sync(LOG)

    # --- what must hold

    @invariant()
    def what_was_acknowledged_is_there(self) -> None:
        assert [commit.id for commit in self.lineage.log()] == self.model.versions[::-1]
        for commit in self.lineage.log():
            assert all(self.lineage._objects.intact(name) for name in blobs_of(commit))
            assert commit.delta == self.model.weights[commit.id]
            assert self.lineage.holds(commit) == self.model.held[commit.id]

    @invariant()
    def what_is_in_use_is_one_logged_version(self) -> None:
        head = self.lineage.head()
        assert head.delta is None or digest(self.lineage.delta(head)) == head.delta
        assert head.id == self.model.head
        assert self.lineage._refs.get(self.lineage.ref) == head.id

    @invariant()
    def the_history_verifies(self) -> None:
        AuditLog.open(ROOT / "audit", self.disk, self.clock, read_only=True).verify()


LineageMachine.TestCase.settings = settings(
    max_examples=80, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLineageMachine = LineageMachine.TestCase
