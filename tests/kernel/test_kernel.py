"""Paths and settings: where a home is, and values that outlive the app."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from app.errors import KnownError, UserError
from app.paths import home_folder, settings_file
from app.settings import SettingsFile

# --- paths ----------------------------------------------------------------------------------------------------------


def test_the_argument_wins_over_the_variable_over_the_systems_place(tmp_path: Path):
    environ = {"OWNMIND_HOME": str(tmp_path / "variable")}
    assert home_folder(tmp_path / "argument", environ=environ) == tmp_path / "argument"
    assert home_folder(None, environ=environ) == tmp_path / "variable"
    assert home_folder("", environ={"OWNMIND_HOME": ""}).name == "ownmind"
    assert home_folder(None, environ={}).is_absolute()


def test_a_relative_or_tilde_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home_folder("here", environ={}) == tmp_path / "here"
    assert home_folder("~/mind", environ={}) == tmp_path / "mind"


def test_a_file_in_the_homes_place_is_refused(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError):
        home_folder(tmp_path / "file", environ={})


# --- settings -------------------------------------------------------------------------------------------------------


def test_what_was_set_is_there_after_a_new_start(tmp_path: Path):
    path = settings_file(tmp_path)
    first = SettingsFile(path)
    assert first.get("ui.zoom") is None
    first.set("ui.zoom", "1.25")
    first.set("answer.instructions", "Be brief.\nAlways. é \u2028")
    again = SettingsFile(path)
    assert (again.get("ui.zoom"), again.get("answer.instructions")) == ("1.25", "Be brief.\nAlways. é \u2028")
    assert again.notes == []
    assert sorted(file.name for file in tmp_path.iterdir()) == ["settings.json"]


@pytest.mark.parametrize(
    "damaged", [b"", b"\x00" * 40, b"{", b"[]", b"null", b"\xff\xfe", b'"text"', b"[" * 100_000, b'{"a": 1' + b" " * 10]
)
def test_a_damaged_file_is_set_aside_and_the_defaults_are_used(tmp_path: Path, damaged: bytes):
    path = settings_file(tmp_path)
    path.write_bytes(damaged)
    settings = SettingsFile(path)
    assert settings.get("ui.zoom") is None
    assert len(settings.notes) == 1
    assert (tmp_path / "settings.broken.json").read_bytes() == damaged
    settings.set("ui.zoom", "1")
    assert SettingsFile(path).get("ui.zoom") == "1"


def test_values_of_other_kinds_are_passed_over(tmp_path: Path):
    path = settings_file(tmp_path)
    path.write_text(json.dumps({"a": 1, "b": "yes", "c": None, "d": ["x"]}))
    settings = SettingsFile(path)
    assert [settings.get(name) for name in "abcd"] == [None, "yes", None, None]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs a folder that refuses")
def test_a_disk_that_refuses_changes_nothing(tmp_path: Path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    settings = SettingsFile(blocked / "settings.json")
    with pytest.raises(KnownError):
        settings.set("ui.zoom", "2")
    assert settings.get("ui.zoom") is None


def test_setting_the_same_value_writes_nothing(tmp_path: Path):
    path = settings_file(tmp_path)
    settings = SettingsFile(path)
    settings.set("a", "1")
    path.unlink()
    settings.set("a", "1")
    assert not path.exists()
