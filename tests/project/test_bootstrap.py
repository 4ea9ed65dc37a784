"""The set-up on machines that lack something, interrupted, repeated and doubled."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

import bootstrap
from tests.project.tracked import ROOT

posix = pytest.mark.skipif(os.name == "nt", reason="the stand-in for the environment's Python is a shell script")
EMPTY_LOCK = "".join(f"## {name}: nothing\n" for name in bootstrap.read_lock())


@pytest.fixture
def checkout(tmp_path):
    """A checkout that needs nothing installed."""
    shutil.copy(ROOT / "bootstrap.py", tmp_path)
    (tmp_path / "requirements.lock").write_text(EMPTY_LOCK)
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


def run(checkout, *arguments):
    command = [sys.executable, str(checkout / "bootstrap.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=checkout.parent)


def finished(checkout):
    """Make the checkout look set up, with a stand-in for its Python that prints its arguments."""
    python = checkout / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "ran $*"\n')
    python.chmod(0o755)
    stamps = (
        "import bootstrap\n"
        "for step in bootstrap.steps(develop=True, offscreen=True):\n"
        "    step.stamp.parent.mkdir(exist_ok=True)\n"
        "    step.stamp.write_text(step.key, 'utf-8')\n"
    )
    subprocess.run([sys.executable, "-c", stamps], check=True, cwd=checkout)


@posix
def test_a_finished_set_up_goes_straight_to_the_app(checkout):
    finished(checkout)
    answer = run(checkout, "run", "ask", "Hello")
    assert answer.stdout == "ran -m app ask Hello\n"


@posix
def test_a_finished_set_up_costs_no_noticeable_time(checkout):
    finished(checkout)

    def processor_seconds(*command):
        seconds = []
        for _ in range(7):
            began = os.times()
            subprocess.run([sys.executable, *command], check=True, capture_output=True)
            ended = os.times()
            seconds.append(ended.children_user + ended.children_system - began.children_user - began.children_system)
        return min(seconds)

    assert processor_seconds(str(checkout / "bootstrap.py"), "run", "x") - processor_seconds("-c", "pass") < 0.05


@posix
def test_an_edited_lock_file_repeats_only_what_it_changes(checkout):
    finished(checkout)
    (checkout / "requirements.lock").write_text(
        EMPTY_LOCK.replace("## dev: nothing\n", "## dev: nothing\nno-such==1\n")
    )
    listing = "import bootstrap\nprint([s.name for s in bootstrap.steps(develop=True, offscreen=True) if not s.done()])"
    answer = subprocess.run([sys.executable, "-c", listing], check=True, cwd=checkout, capture_output=True, text=True)
    assert answer.stdout == "['develop']\n"


@pytest.mark.skipif(bool(bootstrap.missing_libraries(offscreen=True)), reason="this machine lacks Qt's libraries")
def test_an_interrupted_set_up_goes_on_where_it_stopped(checkout):
    first = run(checkout, "setup")  # really makes .venv; the project itself is not there and fails to install
    assert first.returncode == bootstrap.ENVIRONMENT_EXIT
    assert "Creating .venv" in first.stdout
    assert first.stdout.splitlines()[-1].startswith("pip could not install the above.")
    second = run(checkout, "setup")
    assert second.stdout.splitlines()[0] == "[1/2] Installing Ownmind …"


@pytest.mark.skipif(sys.platform == "win32", reason="uses the lock of POSIX systems")
def test_a_second_set_up_waits_for_the_first(checkout):
    if sys.platform != "win32":
        import fcntl  # noqa: PLC0415  # not on Windows

        with (checkout / ".venv.lock").open("a") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            command = [sys.executable, str(checkout / "bootstrap.py"), "setup"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as second:
                assert second.stdout is not None
                assert "Another set-up" in second.stdout.readline()
                assert second.poll() is None
                second.terminate()
        assert not (checkout / ".venv").exists()


def test_an_old_python_is_told_what_to_install(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(bootstrap.SetupError, match=r"Python 3\.11 or newer is needed, this is 3\.9\.2\. Install"):
        bootstrap.require_python()


def test_an_old_python_can_read_the_script_far_enough_to_say_so():
    ast.parse((ROOT / "bootstrap.py").read_text("utf-8"), feature_version=(3, 8))


def test_a_python_without_venv_is_told_which_package_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    with pytest.raises(bootstrap.SetupError, match=r"apt install python3\.\d+-venv"):
        bootstrap.require_machine()


def test_a_full_disk_is_told_before_anything_is_written(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=10**9))
    monkeypatch.setattr(bootstrap, "VENV", tmp_path / "none")
    with pytest.raises(bootstrap.SetupError, match=r"needs 4 GB .* 1\.0 GB are free"):
        bootstrap.require_machine()


@posix
def test_a_missing_compiler_is_told_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(bootstrap.SetupError, match=r"A C\+\+ compiler is needed .*(g\+\+|xcode-select)"):
        bootstrap.require_compiler()


@posix
def test_a_compiler_without_its_library_is_told_apart(monkeypatch, tmp_path):
    compiler = tmp_path / "c++"
    compiler.write_text("#!/bin/sh\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(bootstrap.SetupError, match="cannot compile a small program"):
        bootstrap.require_compiler()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere the wheels bring everything")
def test_missing_window_libraries_are_one_line_to_paste(monkeypatch):
    monkeypatch.setattr(bootstrap, "WINDOW_LIBRARIES", {"libnowhere.so.9": "libnowhere9", "libc.so.6": "libc6"})
    with pytest.raises(bootstrap.SetupError) as caught:
        bootstrap.require_libraries(offscreen=True)
    assert "sudo apt install libnowhere9 (" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_verb_lists_the_known_ones(capsys):
    assert bootstrap.main(["fly"]) == 2
    assert all(f"  {verb} " in capsys.readouterr().out for verb in ["run"])


def test_a_benchmark_that_does_not_exist_is_a_usage_error(monkeypatch, capsys):
    monkeypatch.setattr(bootstrap, "set_up", lambda **_: None)
    assert bootstrap.main(["bench", "no-such-benchmark"]) == 2
    assert "No benchmark is called no-such-benchmark" in capsys.readouterr().out


def test_linters_go_on_after_a_failure_so_that_one_run_shows_all(monkeypatch, capsys):
    monkeypatch.setattr(bootstrap, "set_up", lambda **_: None)
    monkeypatch.setattr(bootstrap, "run_python", lambda *_: 1)
    assert bootstrap.main(["test"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "Failed: ruff check, ruff format, mypy, lint-imports, pytest"
