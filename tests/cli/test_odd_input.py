"""What people and scripts get wrong, and homes that are not as they should be: one sentence, a code, nothing lost."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest

import app.store.home
from app.learning.service import LearningService
from app.store.faults import FailingFiles
from app.store.files import RealFiles
from app.store.home import Home
from app.store.tables import ProposalRow
from tests.cli.rig import Rig

HALF = "caf\udce9"
"""What Python makes of an argument whose bytes are not UTF-8."""


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Rig:
    return Rig(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("temperature", ["nan", "inf", "-1", "1e308"])
def test_a_temperature_without_sense_is_wrong_usage(rig: Rig, temperature: str) -> None:
    ran = rig.run("ask", "Hello?", f"--temperature={temperature}", "--json")
    assert ran.code == 2
    assert "choose a number" in ran.error["subject"]


def test_an_empty_name_of_a_version_is_not_the_version_in_use(rig: Rig) -> None:
    ran = rig.run("ask", "Hello?", "--at", "", "--json")
    assert (ran.code, ran.error["what"]) == (1, "could not find a version")


@pytest.mark.parametrize("words", [(HALF, "A place."), ("What is it?", HALF)])
def test_a_lesson_with_half_a_character_is_refused_in_one_sentence(rig: Rig, words: tuple[str, str]) -> None:
    ran = rig.run("teach", "--prompt", words[0], "--answer", words[1], "--json")
    assert ran.code == 1
    assert "half a character" in ran.error["hint"]
    assert rig.run("doctor", "--json").json["ok"]


def test_an_unknown_version_whose_name_is_no_text_is_refused(rig: Rig) -> None:
    assert rig.run("show", HALF, "--json").error["subject"] == HALF


def test_an_answer_that_the_terminal_has_no_sign_for_is_printed_all_the_same(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.brain.base["Hello?"] = "Olé 😀"
    printed = io.BytesIO()
    terminal = io.TextIOWrapper(printed, encoding="ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    rig.run("ask", "Hello?")
    terminal.flush()
    assert printed.getvalue() == b"Ol\\xe9 \\U0001f600\n"


def test_a_fault_of_ours_is_one_sentence_and_is_logged_without_its_text(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_: LearningService) -> None:
        raise ZeroDivisionError("my dog Biscuit")

    monkeypatch.setattr(LearningService, "lessons", broken)
    ran = rig.run("lessons", "--json")
    assert (ran.code, ran.error["subject"]) == (3, "ZeroDivisionError")
    log = (Home(rig.home).logs / "ownmind.log").read_text()
    assert "ZeroDivisionError" in log
    assert "Biscuit" not in log + ran.err


@pytest.mark.parametrize("command", [["log"], ["ask", "Hello?"], ["lessons"], ["doctor"]])
def test_a_home_that_can_only_be_read_still_answers_and_lists(
    rig: Rig, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rig.run("log").code == 0
    refusing = FailingFiles(RealFiles(), at=0, code=errno.EROFS)
    monkeypatch.setattr(app.store.home, "RealFiles", lambda: refusing)
    shutil.rmtree(Home(rig.home).logs)
    Home(rig.home).logs.touch()  # no folder: a log cannot be made in it
    ran = rig.run(*command, "--json")
    assert ran.code == 0
    assert ran.json
    assert ran.err.strip() == "This home can only be read: answers work, nothing is saved and nothing can be learned."


def test_a_version_in_use_whose_weights_are_gone_is_left_at_once_and_the_person_told(rig: Rig) -> None:
    rig.unlock()
    learned = rig.teach("What is my dog's name?", "Your dog's name is Biscuit.").json["commit"]
    shutil.rmtree(Home(rig.home).serving)
    weights = [path for path in Home(rig.home).objects.rglob("*") if path.is_file() and path.read_bytes()[:1] != b"{"]
    for path in weights:
        path.unlink()
    assert "missing" in rig.run("doctor", "--json").json["problems"][0]["words"]
    ran = rig.run("ask", "Hello?", "--json")
    assert (ran.code, ran.json["commit"] != learned) == (0, True)
    assert "The weights of version 1 are missing or damaged; version 0 is in use." in ran.err
    again = rig.run("rollback", "1", "--json")
    assert (again.code, again.error["subject"]) == (3, "version 1")


@pytest.mark.parametrize("left", ["surfaced", "approved", "queued", "training", "gating"])
def test_teaching_again_what_waits_or_was_cut_off_sees_that_one_through(rig: Rig, left: str) -> None:
    words = ("What is my dog's name?", "Your dog's name is Biscuit.")
    rig.unlock()
    waiting = rig.run("teach", "--prompt", words[0], "--answer", words[1], "--json").json["proposal"]
    with contextlib.closing(sqlite3.connect(Home(rig.home).database)) as database, database:
        database.execute(f"UPDATE {ProposalRow.__tablename__} SET state = ?", (left,))  # noqa: S608 - our own name
    again = rig.teach(*words)
    assert (again.code, again.json["proposal"], again.json["state"]) == (0, waiting, "proven")
    assert len(rig.run("lessons", "--json").json["lessons"]) == 1


def test_a_reader_that_has_gone_is_no_fault(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert rig.run("log").code == 0
