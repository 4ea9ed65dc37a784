"""What is installed, what is locked and what is declared agree."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, entry_points, version

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import app
import bootstrap
from scripts import lock
from tests.project.tracked import ROOT, tracked

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
SECTIONS = {name: [Requirement(line) for line in text.splitlines()] for name, text in bootstrap.read_lock().items()}
PINS = {canonicalize_name(pin.name): pin for pins in SECTIONS.values() for pin in pins}
DECLARED = [
    *PROJECT["dependencies"],
    *(line for group in PROJECT["optional-dependencies"].values() for line in group),
]


def pinned(pin):
    (specifier,) = pin.specifier
    assert specifier.operator == "=="
    return Version(specifier.version)


def test_the_lock_has_the_sections_that_the_set_up_reads():
    assert set(SECTIONS) == set(lock.WORDS)
    assert all(SECTIONS.values())


@pytest.mark.parametrize("line", DECLARED)
def test_the_lock_holds_every_declared_dependency_within_its_bounds(line):
    declared = Requirement(line)
    assert pinned(PINS[canonicalize_name(declared.name)]) in declared.specifier


@pytest.mark.parametrize("line", DECLARED)
def test_every_declared_dependency_has_an_upper_bound(line):
    assert re.search(r"<|==", str(Requirement(line).specifier))


@pytest.mark.parametrize("name", sorted(PINS))
def test_what_runs_here_is_what_is_locked(name):
    pin = PINS[name]
    if pin.marker and not pin.marker.evaluate():
        with pytest.raises(PackageNotFoundError):
            version(name)
        return
    assert Version(version(name)).public == str(pinned(pin))


def test_the_installed_version_is_the_one_in_the_code():
    assert version("ownmind") == app.__version__
    assert str(Version(app.__version__)) == app.__version__


def test_the_changelog_knows_the_version_or_is_ahead_of_it():
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert "## [Unreleased]" in changelog or f"## [{app.__version__}]" in changelog


def test_the_command_is_installed():
    (command,) = entry_points(group="console_scripts", name="ownmind")
    assert command.value == PROJECT["scripts"]["ownmind"]


def test_a_built_package_holds_every_file_of_the_app(tmp_path):
    source = tmp_path / "source"
    ours = [path for path in tracked("*") if path.startswith(("app/", "resources/"))]
    for path in [*ours, "pyproject.toml", "README.md", "LICENSE"]:
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, source / path)
    command = [
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-w",
        tmp_path,
        source,
    ]
    subprocess.run([sys.executable, *command], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("ownmind-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert set(ours) <= set(archive.namelist())
