"""A real process, really killed or suspended, at every file operation and at random moments."""

from __future__ import annotations

import os
import random
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.model.lineage import Lineage
from app.store.canonical import digest
from tests.lineage.interrupted import ACKNOWLEDGED
from tests.lineage.made import QuickFiles, new_commit, open_lineage

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks and signals")
MODULE = [sys.executable, "-m", "tests.lineage.interrupted"]
REPOSITORY = Path(__file__).parents[2]


def check(root: Path, acknowledged: list[str]) -> Lineage:
    """I1, I2, I3 and I5 after a kill."""
    lineage = open_lineage(root, QuickFiles())
    lineage.recover()
    lineage._audit.verify()
    assert lineage.locked is None
    known = [commit.id for commit in lineage.log()]
    assert set(acknowledged) <= set(known)
    for commit in lineage.log():
        assert lineage.available(commit)
    head = lineage.head()
    assert head.delta is None or digest(lineage.delta(head)) == head.delta
    assert lineage._refs.get(lineage.ref) == head.id
    return lineage


def run(mode: str, folder: Path) -> int:
    done = subprocess.run(
        [*MODULE, mode, str(folder)], cwd=REPOSITORY, check=True, capture_output=True, text=True, timeout=300
    )
    return int(done.stdout)


def acknowledged_in(root: Path) -> list[str]:
    note = root / ACKNOWLEDGED
    return note.read_text(encoding="ascii").split() if note.exists() else []


def test_a_kill_at_any_file_operation_leaves_no_half_version(tmp_path: Path):
    """Row 27. At most the blobs of one commit are left without a name, for the collector."""
    homes = run("every", tmp_path)
    assert homes > 80
    for at in range(homes):
        root = tmp_path / str(at)
        acknowledged = acknowledged_in(root)
        lineage = check(root, acknowledged)
        assert len(lineage.log()) - 1 - len(acknowledged) in {0, 1}
        orphans = set(lineage._objects.names()) - lineage.reachable()
        assert len(orphans) <= 4
        again = lineage.commit(new_commit(lineage, 3))
        assert open_lineage(root, QuickFiles()).head() == again


def test_a_suspend_at_any_file_operation_changes_nothing(tmp_path: Path):
    """Row 36: hours pass, the clock even goes back, and the commit goes on as a whole."""
    for at in range(run("suspend", tmp_path)):
        root = tmp_path / str(at)
        lineage = check(root, acknowledged_in(root))
        assert [commit.number for commit in lineage.log()] == [2, 1, 0]


def test_a_kill_at_a_random_moment_loses_no_acknowledged_version(tmp_path: Path):
    seed = int(os.environ.get("OWNMIND_TEST_SEED", "0")) or random.randrange(1 << 32)
    moments = random.Random(seed)
    acknowledged: list[str] = []
    for _ in range(4):
        acknowledged += _killed_after(tmp_path, moments.uniform(0.0, 0.4))
        lineage = check(tmp_path, acknowledged)
        assert len(lineage.log()) - 1 >= len(acknowledged), f"seed {seed}"
    assert acknowledged, f"seed {seed}"


def _killed_after(folder: Path, wait_s: float) -> list[str]:
    """Run commits until the first is acknowledged and some moments more; return what was acknowledged."""
    with subprocess.Popen([*MODULE, "endless", str(folder)], cwd=REPOSITORY, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        select.select([process.stdout], [], [], 60)
        time.sleep(wait_s)
        process.kill()
        lines = process.stdout.read().split(b"\n")
    return [line.decode("ascii") for line in lines[:-1]]
