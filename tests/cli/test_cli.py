"""Every command does what ``docs/cli.md`` says: its fields, its exit codes, and nothing else on standard output."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import app
from app.__main__ import main
from app.devmode.api import SENTENCE
from app.errors import ErrorInfo, KnownError, VerificationError
from tests.cli.rig import Json, Rig
from tests.support.learning import CAT, DOG
from tests.support.real import real_base

ROOT = Path(app.__file__).parent.parent
SECONDS = {"train", "gate", "activate", "self_test", "restore", "total"}
TAUGHT = {"proposal", "commit", "verdict", "evidence", "seconds", "state", "reason"}
COMMIT = {"id", "parents", "lessons", "verdict", "time", "active"}
CHECK = {"rule", "outcome", "words", "value", "limit", "unit", "details"}


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Rig:
    return Rig(tmp_path, monkeypatch, capsys)


@pytest.fixture
def learned(rig: Rig) -> tuple[Rig, Json]:
    """A home in which one lesson was learned."""
    rig.unlock()
    ran = rig.teach(*DOG)
    assert ran.code == 0
    return rig, ran.json


# --- ask ------------------------------------------------------------------------------------------------------------


def test_ask_answers_with_the_version_in_use(rig: Rig) -> None:
    ran = rig.run("ask", "Hello?", "--json")
    assert ran.code == 0
    assert set(ran.json) == {"text", "commit", "tokens", "seconds"}
    assert ran.json["text"] == "I would say: Hello?"
    assert ran.json["tokens"] == 4
    assert ran.json["seconds"] >= 0
    assert ran.json["commit"] == rig.run("log", "--json").json["commits"][0]["id"]


def test_ask_at_an_earlier_version_answers_as_that_one_and_changes_nothing(learned: tuple[Rig, Json]) -> None:
    rig, taught = learned
    base = rig.run("log", "--json").json["commits"][-1]["id"]
    before, now = rig.run("ask", DOG[0], "--at", base, "--json"), rig.run("ask", DOG[0], "--json")
    assert (before.json["text"] == DOG[1], now.json["text"]) == (False, DOG[1])
    assert (before.json["commit"], now.json["commit"]) == (base, taught["commit"])
    assert rig.run("log", "--json").json["commits"][0]["active"]


def test_ask_without_json_prints_the_answer_alone(rig: Rig) -> None:
    assert rig.run("ask", "Hello?").out == "I would say: Hello?\n"


def test_asking_needs_no_unlocking_and_starts_no_trainer(rig: Rig) -> None:
    rig.run("ask", "Hello?")
    assert (rig.trainer.warmed, rig.trainer.jobs) == (0, [])


# --- teach ----------------------------------------------------------------------------------------------------------


def test_teach_and_approve_returns_version_verdict_evidence_and_seconds(learned: tuple[Rig, Json]) -> None:
    rig, taught = learned
    assert set(taught) == TAUGHT
    assert (taught["verdict"], taught["state"], taught["reason"]) == ("accept", "proven", "")
    assert set(taught["seconds"]) == SECONDS
    assert taught["seconds"]["total"] >= taught["seconds"]["train"]
    assert taught["evidence"]
    assert all(set(check) == CHECK for check in taught["evidence"])
    assert taught["commit"] == rig.run("log", "--json").json["commits"][0]["id"]


def test_progress_of_teaching_goes_to_standard_error(rig: Rig) -> None:
    rig.unlock()
    ran = rig.teach(*DOG)
    assert "learning" in ran.err
    assert "checking" in ran.err


def test_teach_without_approval_waits_as_a_card_also_while_locked(rig: Rig) -> None:
    ran = rig.run("teach", "--prompt", DOG[0], "--answer", DOG[1], "--json")
    assert ran.code == 0
    assert (ran.json["state"], ran.json["commit"], ran.json["verdict"], ran.json["evidence"]) == (
        *("surfaced", None, None),
        [],
    )
    assert ran.json["proposal"]
    assert rig.trainer.jobs == []


def test_teach_and_approve_while_locked_is_refused(rig: Rig) -> None:
    ran = rig.teach(*DOG)
    assert ran.code == 1
    assert ran.error["subject"] == "learning is locked"
    assert ran.error["hint"]
    assert rig.trainer.jobs == []


def test_a_rejected_lesson_is_exit_code_1_with_verdict_and_reason(rig: Rig) -> None:
    rig.unlock()
    rig.gate.script.extend([("locality",)] * 3)
    ran = rig.teach(*DOG)
    assert ran.code == 1
    assert set(ran.json) == TAUGHT
    assert (ran.json["verdict"], ran.json["commit"], ran.json["state"]) == ("reject", None, "rejected")
    assert ran.json["reason"] == "would have changed: locality"
    assert [check["rule"] for check in ran.json["evidence"] if check["outcome"] == "reject"] == ["locality"]


def test_a_lesson_that_failed_is_exit_code_1_with_the_error(rig: Rig) -> None:
    rig.unlock()
    rig.trainer.endings.append(ErrorInfo("KnownError", "could not run the trainer", "it was killed", "", True))
    ran = rig.teach(*DOG)
    assert ran.code == 1
    assert set(ran.json) == {*TAUGHT, "error"}
    assert ran.error == {"what": "could not run the trainer", "subject": "it was killed", "hint": "", "retryable": True}
    assert ran.json["verdict"] is None


def test_teaching_what_is_known_is_refused(learned: tuple[Rig, Json]) -> None:
    rig, _ = learned
    ran = rig.teach(*DOG)
    assert ran.code == 1
    assert "already" in ran.error["hint"]


# --- log, show, rollback, lessons -----------------------------------------------------------------------------------


def test_log_lists_versions_newest_first_and_ends_with_the_base(learned: tuple[Rig, Json]) -> None:
    rig, _ = learned
    rig.teach(*CAT)
    commits = rig.run("log", "--json").json["commits"]
    assert all(set(commit) == COMMIT for commit in commits)
    assert [len(commit["lessons"]) for commit in commits] == [1, 1, 0]
    assert [commit["parents"] for commit in commits] == [[commits[1]["id"]], [commits[2]["id"]], []]
    assert [commit["verdict"] for commit in commits] == ["accept", "accept", None]
    assert [commit["active"] for commit in commits] == [True, False, False]


def test_a_missing_verdict_does_not_keep_the_versions_from_being_listed(learned: tuple[Rig, Json]) -> None:
    rig, taught = learned
    shown = rig.run("show", taught["commit"], "--json").json
    assert shown["evidence"]["outcome"] == "accept"
    for path in (rig.home / "objects").rglob("*"):
        if path.is_file() and b"ownmind-verdict-1" in path.read_bytes():
            path.unlink()
    assert [commit["verdict"] for commit in rig.run("log", "--json").json["commits"]] == [None, None]


def test_show_tells_what_a_version_learned_holds_and_how_it_was_made(learned: tuple[Rig, Json]) -> None:
    rig, taught = learned
    shown = rig.run("show", taught["commit"][:12], "--json").json
    assert set(shown) == {*COMMIT, "number", "action", "title", "scale", "holds", "recipe", "evidence"}
    assert (shown["number"], shown["action"], shown["title"], shown["scale"]) == (1, "learn", "Your dog's name", 1.0)
    assert [(lesson["prompt"], lesson["answer"]) for lesson in shown["holds"]] == [DOG]
    assert shown["recipe"]["format"] == "ownmind-recipe-1"
    assert shown["evidence"]["adapter_sha256"]


def test_show_of_the_base_has_neither_recipe_nor_evidence(rig: Rig) -> None:
    shown = rig.run("show", "0", "--json").json
    assert (shown["recipe"], shown["evidence"], shown["holds"], shown["action"]) == (None, None, [], "root")


def test_rollback_takes_any_version_into_use_also_while_locked_and_forth_again(learned: tuple[Rig, Json]) -> None:
    rig, taught = learned
    rig.run("lock")
    ran = rig.run("rollback", "0", "--json")
    assert ran.code == 0
    assert set(ran.json) == {"commit", "seconds"}
    assert rig.run("ask", DOG[0], "--json").json["text"] != DOG[1]
    assert rig.run("rollback", taught["commit"], "--json").json["commit"] == taught["commit"]
    assert rig.run("ask", DOG[0], "--json").json["text"] == DOG[1]


@pytest.mark.parametrize("command", [["show"], ["rollback"], ["ask", "Hello?", "--at"]])
def test_a_version_that_does_not_exist_is_refused(rig: Rig, command: list[str]) -> None:
    ran = rig.run(*command, "beef0000", "--json")
    assert ran.code == 1
    assert ran.error["what"] == "could not find a version"


def test_lessons_lists_the_ledger_and_what_the_version_in_use_holds(learned: tuple[Rig, Json]) -> None:
    rig, taught = learned
    rig.teach(*CAT)
    rig.run("rollback", taught["commit"])
    lessons = rig.run("lessons", "--json").json["lessons"]
    assert all(set(lesson) == {*"id kind prompt answer learned commit active".split()} for lesson in lessons)  # noqa: SIM905
    assert [(lesson["answer"], lesson["active"]) for lesson in lessons] == [(DOG[1], True), (CAT[1], False)]
    assert lessons[0]["kind"] == "fact"


def test_forget_makes_a_version_without_the_lesson(learned: tuple[Rig, Json]) -> None:
    rig, _ = learned
    rig.teach(*CAT)
    dog, cat = rig.run("lessons", "--json").json["lessons"]
    ran = rig.run("forget", dog["id"], "--json")
    assert ran.code == 0
    assert set(ran.json) == TAUGHT
    assert ran.json["verdict"] == "accept"
    assert [item["id"] for item in rig.run("show", ran.json["commit"], "--json").json["holds"]] == [cat["id"]]
    assert rig.run("ask", DOG[0], "--json").json["text"] != DOG[1]
    assert rig.run("ask", CAT[0], "--json").json["text"] == CAT[1]


def test_forgetting_is_done_also_when_the_gate_has_doubts(learned: tuple[Rig, Json]) -> None:
    rig, _ = learned
    rig.teach(*CAT)
    dog, _ = rig.run("lessons", "--json").json["lessons"]
    rig.gate.script.append(("held_out",))
    ran = rig.run("forget", dog["id"], "--json")
    assert (ran.code, ran.json["verdict"]) == (0, "reject")


def test_forgetting_while_locked_or_of_nothing_is_refused(learned: tuple[Rig, Json]) -> None:
    rig, _ = learned
    assert rig.run("forget", "nothing", "--json").code == 1
    rig.run("lock")
    (dog,) = rig.run("lessons", "--json").json["lessons"]
    ran = rig.run("forget", dog["id"], "--json")
    assert (ran.code, ran.error["subject"]) == (1, "learning is locked")


# --- doctor, unlock, lock, models -----------------------------------------------------------------------------------


@pytest.mark.parametrize("deep", [[], ["--deep"]])
def test_doctor_finds_nothing_wrong_with_a_sound_home(learned: tuple[Rig, Json], deep: list[str]) -> None:
    rig, _ = learned
    ran = rig.run("doctor", *deep, "--json")
    assert (ran.code, ran.json) == (0, {"ok": True, "problems": []})


def test_doctor_names_what_is_missing_and_exits_with_3(learned: tuple[Rig, Json]) -> None:
    rig, taught = learned
    shown = rig.run("show", taught["commit"], "--json").json
    sha256 = shown["evidence"]["adapter_sha256"]
    (rig.home / "objects" / sha256[:2] / sha256[2:]).unlink()
    ran = rig.run("doctor", "--json")
    assert ran.code == 3
    assert set(ran.json) == {"ok", "problems"}
    assert not ran.json["ok"]
    assert all(set(problem) == {"rule", "subject", "words"} for problem in ran.json["problems"])


def test_doctor_names_a_changed_history_and_everything_but_changes_goes_on(learned: tuple[Rig, Json]) -> None:
    rig, _ = learned
    log = rig.home / "audit" / "log"
    log.write_bytes(log.read_bytes().replace(b'"accept"', b'"reject"').replace(b"proven", b"broken", 1))
    assert rig.run("doctor", "--json").code == 3
    assert rig.run("ask", "Hello?", "--json").code == 0
    assert rig.teach(*CAT).code == 1


def test_unlock_needs_the_sentence_and_says_what_is_left_for_today(rig: Rig) -> None:
    ran = rig.run("unlock", "--accept", SENTENCE, "--changes-per-day", "7", "--json")
    assert (ran.code, ran.json) == (0, {"state": "unlocked", "changes_left_today": 7})
    assert "weights" in ran.err  # the disclaimer


@pytest.mark.parametrize("sentence", ["yes", "", SENTENCE[:-1]])
def test_another_sentence_does_not_unlock(rig: Rig, sentence: str) -> None:
    ran = rig.run("unlock", "--accept", sentence, "--json")
    assert ran.code == 1
    assert SENTENCE in ran.error["hint"]
    assert rig.teach(*DOG).code == 1


@pytest.mark.parametrize("count", ["0", "-1", "100000"])
def test_a_budget_without_sense_does_not_unlock(rig: Rig, count: str) -> None:
    assert rig.run("unlock", "--accept", SENTENCE, f"--changes-per-day={count}", "--json").code == 1


def test_lock_takes_effect_at_once(rig: Rig) -> None:
    rig.unlock()
    ran = rig.run("lock", "--json")
    assert (ran.code, ran.json) == (0, {"state": "locked"})
    assert rig.teach(*DOG).code == 1


def test_models_lists_the_base_with_its_passport(rig: Rig) -> None:
    (model,) = rig.run("models", "--json").json["models"]
    assert (model["id"], model["active"], model["serving"]) == (rig.base.passport.id, True, "base.gguf")
    assert {"name", "architecture", "licence", "quantisation", "layers", "adaptable"} <= set(model)


# --- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["bogus"],
        ["teach", "--prompt", "x"],
        ["ask"],
        ["show"],
        ["ask", "x", "--temperature", "warm"],
        ["log", "--unknown"],
    ],
)
def test_wrong_usage_is_exit_code_2_and_one_object_with_json(rig: Rig, arguments: list[str]) -> None:
    plain = rig.run(*arguments)
    assert (plain.code, plain.out) == (2, "")
    assert plain.err.startswith("Could not understand the command")
    with_json = rig.run(*arguments, "--json")
    assert with_json.code == 2
    assert with_json.error["subject"]


def test_without_json_an_error_is_one_sentence_on_standard_error(rig: Rig) -> None:
    ran = rig.run("show", "beef0000")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.strip().count("\n") == 0
    assert ran.err.startswith("Could not find a version")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KnownError("load the model", "it is too large for the memory", "Close other programs."), 3),
        (VerificationError("load the model", "base.gguf", "It is damaged."), 1),
    ],
)
def test_a_model_that_does_not_load_is_told_with_its_reason(rig: Rig, error: KnownError, code: int) -> None:
    rig.runtime.broken = error
    ran = rig.run("ask", "Hello?", "--json")
    assert ran.code == code
    assert ran.error["subject"] == error.subject


def test_a_file_where_the_home_should_be_is_refused(rig: Rig, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    ran = rig.run("log", "--home", str(tmp_path / "file"), "--json")
    assert ran.code == 1
    assert "Choose a folder" in ran.error["hint"]


def test_a_home_that_cannot_be_made_is_the_environments_fault(rig: Rig) -> None:
    assert rig.run("log", "--home", "/proc/ownmind", "--json").code == 3


def test_home_on_the_command_line_wins_over_the_environment(rig: Rig, tmp_path: Path) -> None:
    rig.run("log", "--home", str(tmp_path / "other"))
    assert (tmp_path / "other" / "ownmind.db").exists()
    assert not rig.home.exists()


HOLD = """
import sys
from pathlib import Path
from app.clock import SystemClock
from app.store.home import Home, Store
Store.open(Home(Path(sys.argv[1])), SystemClock())
print("open", flush=True)
sys.stdin.read()
"""


def test_a_home_that_is_open_elsewhere_is_refused_with_who_has_it_and_works_once_it_is_closed(rig: Rig) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(rig.home)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == b"open\n"
        ran = rig.run("log", "--json")
        assert ran.code == 1
        assert ran.error["retryable"]
        assert str(holder.pid) in ran.error["hint"]
    finally:
        holder.stdin.close()
        holder.wait()
        holder.stdout.close()
    assert rig.run("log", "--json").code == 0


def test_what_the_last_session_left_is_said_on_standard_error_only(rig: Rig) -> None:
    rig.unlock()
    log = rig.home / "audit" / "log"
    log.write_bytes(log.read_bytes() + b'{"torn')
    ran = rig.run("log", "--json")
    assert ran.code == 0
    assert ran.json["commits"]


def test_the_documents_name_every_field_of_every_command(rig: Rig) -> None:
    """What these tests hold the commands to is what people read."""
    text = (ROOT / "docs" / "cli.md").read_text("utf-8")
    parts = dict(re.findall(r"### `(\w+)(.*?)(?=\n### |\n## |\Z)", text, re.DOTALL))
    fields = {
        "ask": {"text", "commit", "tokens", "seconds"},
        "teach": {*TAUGHT, *SECONDS, *CHECK, "error"},
        "log": COMMIT,
        "show": {"number", "action", "title", "scale", "holds", "recipe", "evidence"},
        "rollback": {"commit", "seconds"},
        "lessons": {*"id kind prompt answer learned commit active".split()},  # noqa: SIM905
        "doctor": {"ok", "problems", "rule", "subject", "words"},
        "unlock": {"state", "changes_left_today"},
        "models": {"models", "serving", "active"},
    }
    for command, names in fields.items():
        missing = {name for name in names if f"`{name}`" not in parts[command]}
        assert not missing, (command, missing)
    assert set(parts) == {*fields, "forget"}


# --- the real model -------------------------------------------------------------------------------------------------


@pytest.mark.real
def test_ask_on_the_real_model_answers_greedily_and_the_same_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def prepared(_: Path, __: object) -> object:
        return real_base()

    monkeypatch.setattr("app.cli.prepare_embedded", prepared)
    texts = []
    for _ in range(2):
        capsys.readouterr()
        assert main(["ask", "What is the capital of France?", "--home", str(tmp_path / "home"), "--json"]) == 0
        out = capsys.readouterr().out
        assert out.count("\n") == 1
        texts.append(out)
    assert "Paris" in texts[0]
    answers = [re.sub(r'"seconds": [\d.]+', "", text) for text in texts]
    assert answers[0] == answers[1]
