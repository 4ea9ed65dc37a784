"""Developer mode: no way to the weights without it, and a budget that no clock refunds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import select, update

from app.clock import FakeClock
from app.devmode.api import SENTENCE, Budget, DevState
from app.devmode.machine import Resources, ThisMachine
from app.devmode.service import CLICKS, DeveloperMode
from app.errors import DeniedError, KnownError, UserError
from app.store.database import Database
from app.store.tables import SettingRow, SpendingRow

GB = 10**9
GOOD = Resources(memory_bytes=20 * GB, disk_bytes=50 * GB, backed_up=True)


@dataclass
class FakeMachine:
    has: Resources = GOOD

    def resources(self) -> Resources:
        return self.has


@dataclass
class FakeProbes:
    problems: list[str] = field(default_factory=list)
    step_s: float = 0.9
    error: KnownError | None = None

    async def store_problems(self) -> list[str]:
        return self.problems

    async def trial_step_s(self) -> float:
        if self.error is not None:
            raise self.error
        return self.step_s


class Room:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = FakeClock(datetime(2026, 5, 10, 12, tzinfo=UTC))
        self.database = Database(folder / "ownmind.db", self.clock)
        self.log: list[tuple[str, dict[str, Any]]] = []
        self.refuse = False
        self.machine, self.probes = FakeMachine(), FakeProbes()
        self.mode = self.start()

    def start(self) -> DeveloperMode:
        """Make it anew, as the next start of the app does."""
        return DeveloperMode(
            self.database,
            self.audit,
            self.clock,
            machine=self.machine,
            probes=self.probes,
            local_day=lambda moment: moment.date(),
        )

    def audit(self, kind: str, payload: dict[str, Any]) -> None:
        if self.refuse:
            raise KnownError("write to the history")
        self.log.append((kind, payload))

    def find(self) -> None:
        for _ in range(CLICKS):
            self.mode.click_version()

    def unlock(self, changes_per_day: int = 50) -> None:
        self.find()
        self.mode.unlock(SENTENCE, Budget(changes_per_day))


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    it = Room(tmp_path)
    yield it
    it.database.close()


# --- the way in -----------------------------------------------------------------------------------------------------


def test_a_new_home_is_locked_and_says_how_to_unlock(room: Room):
    assert room.mode.status().state is DevState.LOCKED
    with pytest.raises(DeniedError, match="Open About and click the version number seven times"):
        room.mode.require()


def test_seven_clicks_find_the_wizard_and_not_one_less(room: Room):
    assert [room.mode.click_version() for _ in range(6)] == [6, 5, 4, 3, 2, 1]
    assert room.mode.status().state is DevState.LOCKED
    assert room.mode.click_version() == 0
    assert room.mode.status().state is DevState.FOUND
    assert room.mode.click_version() == 0
    assert room.log == [("devmode", {"from": "locked", "to": "found", "budget": ""})]


def test_clicks_do_not_add_up_over_starts_but_the_found_wizard_stays_found(room: Room):
    room.mode.click_version()
    assert room.start().click_version() == CLICKS - 1
    room.find()
    assert room.start().status().state is DevState.FOUND


def test_found_is_not_unlocked(room: Room):
    room.find()
    with pytest.raises(DeniedError):
        room.mode.require()


def test_without_the_wizard_the_sentence_does_not_help(room: Room):
    with pytest.raises(DeniedError):
        room.mode.unlock(SENTENCE, Budget())
    assert room.mode.status().state is DevState.LOCKED


@pytest.mark.parametrize(
    "typed",
    [
        SENTENCE,
        SENTENCE.upper(),
        f"  {SENTENCE}.  ",
        SENTENCE.replace(" ", "   "),
        SENTENCE.lower() + "\n",
        SENTENCE + " .",
    ],
)
def test_the_sentence_is_compared_without_case_space_and_final_dot(room: Room, typed: str):
    room.find()
    assert room.mode.unlock(typed, Budget()).state is DevState.UNLOCKED


@pytest.mark.parametrize("typed", ["", "yes", SENTENCE[:-1], SENTENCE + "!", SENTENCE.replace("change", "not change")])
def test_any_other_sentence_is_refused(room: Room, typed: str):
    room.find()
    with pytest.raises(UserError, match="Type exactly"):
        room.mode.unlock(typed, Budget())
    assert room.mode.status().state is DevState.FOUND


@pytest.mark.parametrize(
    "budget",
    [Budget(0), Budget(-1), Budget(10**6), Budget(5, 0.0), Budget(5, -0.1), Budget(5, 2.0), Budget(5, float("nan"))],
)
def test_a_budget_that_makes_no_sense_is_refused(room: Room, budget: Budget):
    room.find()
    with pytest.raises(UserError):
        room.mode.unlock(SENTENCE, budget)
    assert room.mode.status().state is DevState.FOUND


def test_unlocked_it_stays_unlocked_over_a_new_start_and_is_in_the_audit_log(room: Room):
    room.find()
    room.mode.unlock(SENTENCE, Budget(7, 0.02))
    again = room.start()
    assert again.require() == Budget(7, 0.02)
    assert room.log[-1] == ("devmode", {"from": "found", "to": "unlocked", "budget": "7 a day, size 0.02"})


def test_a_move_that_cannot_be_audited_did_not_happen(room: Room):
    room.find()
    room.refuse = True
    with pytest.raises(KnownError):
        room.mode.unlock(SENTENCE, Budget())
    assert room.mode.status().state is DevState.FOUND


# --- the way out ----------------------------------------------------------------------------------------------------


def test_locking_takes_effect_at_once_and_the_wizard_must_be_found_again(room: Room):
    room.unlock()
    room.mode.require()
    assert room.mode.lock().state is DevState.LOCKED
    with pytest.raises(DeniedError):
        room.mode.require()
    with pytest.raises(DeniedError):
        room.mode.unlock(SENTENCE, Budget())
    assert room.mode.click_version() == CLICKS - 1


def test_locking_holds_even_if_it_cannot_be_written_down(room: Room):
    room.unlock()
    room.refuse = True
    with pytest.raises(KnownError):
        room.mode.lock()
    with pytest.raises(DeniedError):
        room.mode.require()
    with pytest.raises(DeniedError):
        room.mode.unlock(SENTENCE, Budget())
    room.refuse = False
    room.unlock()
    room.mode.require()


def test_locking_twice_is_one_entry(room: Room):
    room.unlock()
    room.mode.lock()
    before = len(room.log)
    room.mode.lock()
    assert len(room.log) == before


@pytest.mark.parametrize("damaged", ["", "null", '"open"', "{", "\x00\x00", "1"])
def test_a_state_that_cannot_be_read_is_locked(room: Room, damaged: str):
    room.unlock()
    with room.database.session() as session:
        session.exec(update(SettingRow).where(SettingRow.name == "devmode/state").values(value=damaged))  # type: ignore[arg-type]
    assert room.mode.status().state is DevState.LOCKED
    with pytest.raises(DeniedError):
        room.mode.require()


@pytest.mark.parametrize("damaged", ["", "null", "{}", '{"changes_per_day": "many", "size_limit": 1}', "\x00"])
def test_a_budget_that_cannot_be_read_allows_nothing(room: Room, damaged: str):
    room.unlock()
    with room.database.session() as session:
        session.exec(update(SettingRow).where(SettingRow.name == "devmode/budget").values(value=damaged))  # type: ignore[arg-type]
    with pytest.raises(DeniedError):
        room.mode.require()


# --- the budget -----------------------------------------------------------------------------------------------------


def test_a_spent_budget_refuses_and_says_when_it_goes_on(room: Room):
    room.unlock(changes_per_day=2)
    room.mode.spend("commit1")
    assert room.mode.status().changes_left_today == 1
    room.mode.spend("commit2")
    with pytest.raises(DeniedError, match="Today's 2 changes are used"):
        room.mode.require()
    assert room.start().status().changes_left_today == 0


def test_the_next_day_brings_a_new_budget(room: Room):
    room.unlock(changes_per_day=1)
    room.mode.spend("commit1")
    room.clock.wall += timedelta(days=1)
    assert room.mode.require().changes_per_day == 1


@pytest.mark.parametrize("back", [timedelta(days=1), timedelta(days=400), timedelta(hours=13)])
def test_a_clock_that_goes_backwards_refunds_nothing(room: Room, back: timedelta):
    room.unlock(changes_per_day=1)
    room.clock.wall -= timedelta(days=3)
    room.mode.spend("on the 7th")
    room.clock.wall += timedelta(days=3)
    room.mode.spend("on the 10th")
    room.clock.wall -= back
    with pytest.raises(DeniedError):
        room.mode.require()
    room.mode.spend("forced")
    with room.database.session() as session:
        assert [row.day for row in session.exec(select(SpendingRow))] == ["2026-05-07", "2026-05-10", "2026-05-10"]


def test_a_day_is_the_persons_day_not_the_one_in_greenwich(tmp_path: Path):
    room = Room(tmp_path)
    east = timezone(timedelta(hours=10))
    mode = DeveloperMode(
        room.database,
        room.audit,
        FakeClock(datetime(2026, 5, 10, 20, tzinfo=UTC)),
        machine=room.machine,
        probes=room.probes,
        local_day=lambda moment: moment.astimezone(east).date(),
    )
    mode.spend("late")
    with room.database.session() as session:
        assert date.fromisoformat(session.exec(select(SpendingRow)).one().day) == date(2026, 5, 11)
    room.database.close()


def test_raising_the_limit_gives_more_changes_today(room: Room):
    room.unlock(changes_per_day=1)
    room.mode.spend("commit1")
    assert room.mode.unlock(SENTENCE, Budget(3)).changes_left_today == 2


def test_lowering_the_limit_below_what_was_spent_leaves_nothing(room: Room):
    room.unlock(changes_per_day=3)
    room.mode.spend("commit1")
    room.mode.spend("commit2")
    assert room.mode.unlock(SENTENCE, Budget(1)).changes_left_today == 0


# --- the machine ----------------------------------------------------------------------------------------------------


def test_a_good_machine_passes_every_check_in_words(room: Room):
    checks = asyncio.run(room.mode.check_machine())
    assert [check.name for check in checks] == ["Memory", "Disk", "Backup", "Storage", "Learning speed"]
    assert all(check.ok for check in checks)
    assert checks[0].words == "20.0 GB of memory free, 3.0 GB needed"


def test_what_is_short_or_broken_fails_its_own_line(room: Room):
    room.machine.has = Resources(memory_bytes=1 * GB, disk_bytes=1 * GB, backed_up=None)
    room.probes.problems = ["An object is damaged."]
    room.probes.error = KnownError("start the trainer", "", "It is not installed.")
    checks = {check.name: check for check in asyncio.run(room.mode.check_machine())}
    assert {name for name, check in checks.items() if not check.ok} == {"Memory", "Disk", "Storage", "Learning speed"}
    assert checks["Storage"].words == "An object is damaged."
    assert "It is not installed." in checks["Learning speed"].words
    assert "No backup seen" in checks["Backup"].words


def test_a_slow_trainer_is_told_before_unlocking(room: Room):
    room.probes.step_s = 8.0
    checks = {check.name: check for check in asyncio.run(room.mode.check_machine())}
    assert "several minutes" in checks["Learning speed"].words


def test_this_machine_measures_itself(tmp_path: Path):
    has = ThisMachine(tmp_path).resources()
    assert has.memory_bytes > 0
    assert has.disk_bytes > 0


def test_a_home_in_a_synchronised_folder_counts_as_backed_up(tmp_path: Path):
    folder = tmp_path / "Dropbox" / "ownmind"
    folder.mkdir(parents=True)
    assert ThisMachine(folder).resources().backed_up is True
