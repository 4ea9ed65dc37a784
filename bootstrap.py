"""Set-up and daily verbs of this checkout: ``python3 bootstrap.py VERB``; the Makefile is a thin layer over it.

Only the standard library is used, since this runs before anything is installed. Each step of the set-up leaves a stamp
with the hash of what it was made from, so a second run skips all of them, an interrupted one goes on where it stopped,
and an edited lock file repeats only what it changes. Once the stamps are there nothing needs the network.

Environment: ``OWNMIND_TORCH_INDEX`` names one more package index for torch (on Linux: for a CPU-only build, which is a
tenth of the size); ``CMAKE_ARGS`` is added to the flags that build llama.cpp.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from types import MappingProxyType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
STAMPS = VENV / "ownmind-setup"
LOCK_FILE = ROOT / "requirements.lock"
WINDOWS = os.name == "nt"
PYTHON = VENV / ("Scripts/python.exe" if WINDOWS else "bin/python")
OLDEST_PYTHON = (3, 11)
NEWER_PYTHONS = ("python3.13", "python3.12", "python3.11")
DISK_BYTES = 4_000_000_000
CMAKE_FLAGS = "-DLLAVA_BUILD=OFF -DGGML_NATIVE=ON"
ENVIRONMENT_EXIT = 3
INTERRUPTED_EXIT = 130
OFFLINE = MappingProxyType({"QT_QPA_PLATFORM": "offscreen", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"})
LINTERS = (
    ("ruff check", ("-m", "ruff", "check", ".")),
    ("ruff format", ("-m", "ruff", "format", "--check", ".")),
    ("mypy", ("-m", "mypy")),
    ("lint-imports", ("-c", "from importlinter.cli import lint_imports_command as main; main()")),
)

WINDOW_LIBRARIES = {  # what PySide6 links to and does not bring: file name → package of Debian and Ubuntu
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libX11.so.6": "libx11-6",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libxkbcommon.so.0": "libxkbcommon0",
}
WAYLAND_LIBRARIES = {"libwayland-client.so.0": "libwayland-client0", "libwayland-cursor.so.0": "libwayland-cursor0"}
X11_LIBRARIES = {
    "libX11-xcb.so.1": "libx11-xcb1",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
}


class SetupError(Exception):
    """Something of this machine is in the way; the text is one line that says what to do."""


@dataclass(frozen=True)
class Step:
    """One part of the set-up; done if its stamp holds ``key``."""

    name: str
    words: str
    key: str
    work: Callable[[], None]

    @property
    def stamp(self) -> Path:
        """Return the file that records what this step was made from."""
        return STAMPS / self.name

    def done(self) -> bool:
        """Return whether nothing has changed since this step ran to its end."""
        try:
            return self.stamp.read_text("utf-8") == self.key
        except OSError:
            return False


# --- what this machine must have ------------------------------------------------------------------------------------


def require_python() -> None:
    """Go on in a newer Python if this one is too old; raise SetupError if there is none."""
    if sys.version_info >= OLDEST_PYTHON:
        return
    for name in NEWER_PYTHONS:
        if path := shutil.which(name):
            os.execv(path, [path, __file__, *sys.argv[1:]])  # noqa: S606  # a Python found on PATH, no shell
    have = ".".join(map(str, sys.version_info[:3]))
    raise SetupError(f"Python 3.11 or newer is needed, this is {have}. Install python3.11 or newer and run this again.")


def require_machine() -> None:
    """Raise SetupError for what a first set-up cannot do without: a build of torch, venv, room on the disk."""
    if sys.platform == "darwin" and os.uname().machine == "x86_64":
        raise SetupError(
            "PyTorch has no builds for Intel Macs. On Apple silicon, use an arm64 Python instead of this one."
        )
    try:
        __import__("ensurepip")
        __import__("venv")
    except ImportError:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise SetupError(
            f"This Python lacks its venv module. On Debian or Ubuntu: sudo apt install python{version}-venv"
        ) from None
    free = shutil.disk_usage(ROOT).free
    if free < DISK_BYTES and not VENV.exists():
        raise SetupError(
            f"The set-up needs {DISK_BYTES / 1e9:.0f} GB on the disk of {ROOT}, {free / 1e9:.1f} GB are free."
        )


def require_compiler() -> None:
    """Raise SetupError unless a C++ program with a standard header compiles; needed to build llama.cpp."""
    if WINDOWS:
        return  # CMake finds the Visual Studio tools by itself and names them if they are missing
    import subprocess  # noqa: PLC0415  # not on the path of a start that has nothing to set up

    hint = {"darwin": "xcode-select --install"}.get(sys.platform, "sudo apt install g++ (Debian, Ubuntu)")
    candidates = [os.environ.get("CXX"), "c++", "g++", "clang++"]
    compiler = next((found for name in candidates if name and (found := shutil.which(name))), None)
    if compiler is None:
        raise SetupError(f"A C++ compiler is needed to build llama.cpp. Install one: {hint}")
    probe = [compiler, "-x", "c++", "-fsyntax-only", "-"]
    if subprocess.run(probe, input=b"#include <vector>\n", capture_output=True, check=False).returncode:
        raise SetupError(f"The C++ compiler {compiler} cannot compile a small program. Install a complete one: {hint}")


def missing_libraries(*, offscreen: bool) -> list[str]:
    """Return the Debian packages of system libraries that a Qt window (or only its offscreen form) lacks here."""
    if not sys.platform.startswith("linux"):
        return []
    missing = _not_loadable(WINDOW_LIBRARIES)
    if not offscreen and _not_loadable(WAYLAND_LIBRARIES):
        missing += _not_loadable(X11_LIBRARIES)
    return missing


def _not_loadable(libraries: dict[str, str]) -> list[str]:
    import ctypes  # noqa: PLC0415  # not on the path of a start that has nothing to set up

    missing = []
    for name, package in libraries.items():
        try:
            ctypes.CDLL(name)
        except OSError:
            missing.append(package)
    return missing


def require_libraries(*, offscreen: bool) -> None:
    """Raise SetupError that names the system packages to install."""
    if missing := missing_libraries(offscreen=offscreen):
        raise SetupError(
            f"Qt lacks system libraries. On Debian or Ubuntu: sudo apt install {' '.join(missing)} (elsewhere,"
            " the packages that hold the same libraries)"
        )


# --- the steps ------------------------------------------------------------------------------------------------------


def read_lock() -> dict[str, str]:
    """Return the sections of the lock file: name → its pins, one a line."""
    sections: dict[str, list[str]] = {}
    name = ""
    for line in LOCK_FILE.read_text("utf-8").splitlines():
        if line.startswith("## "):
            name = line[3:].split(":")[0]
            sections[name] = []
        elif line and not line.startswith("#"):
            sections[name].append(line)
    return {name: "".join(f"{line}\n" for line in pins) for name, pins in sections.items()}


def steps(*, develop: bool, offscreen: bool) -> list[Step]:
    """Return the set-up in order; ``develop`` adds what tests and linters need."""
    pins = read_lock()
    cmake = f"{CMAKE_FLAGS} {os.environ.get('CMAKE_ARGS', '')}".strip()
    torch_index = os.environ.get("OWNMIND_TORCH_INDEX", "")
    screen = "offscreen" if offscreen else "window"
    environment = f"{ROOT}\n{sys.version}\n"
    packages = pins["runtime"] + pins["train"] + pins["apple"]
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    plan = [
        Step("environment", "Creating .venv", environment + pins["tools"], lambda: make_environment(pins["tools"])),
        Step(f"libraries-{screen}", "Checking system libraries", "1", lambda: require_libraries(offscreen=offscreen)),
        Step("packages", "Installing packages (some minutes)", packages, lambda: pip_pins(packages, torch_index)),
        Step("engine", "Building llama.cpp (some minutes)", pins["built"] + cmake, lambda: build(pins["built"], cmake)),
        Step("models", "Installing models", pins["alone"], lambda: pip_pins(pins["alone"], "", "--no-deps")),
        Step("project", "Installing Ownmind", project, lambda: pip("--no-deps", "--no-build-isolation", "-e", ".")),
    ]
    if develop:
        tools = pins["dev"] + pins["mlx"]
        plan.append(Step("develop", "Installing test tools", tools, lambda: pip_pins(tools, "")))
    return plan


def make_environment(tools: str) -> None:
    """Create .venv, or keep one that works and is of this Python, and pin its installer."""
    import venv  # noqa: PLC0415  # Debian packages it apart

    require_machine()
    if not _environment_works():
        venv.EnvBuilder(clear=True, with_pip=True, symlinks=not WINDOWS).create(VENV)
    pip_pins(tools, "")


def _environment_works() -> bool:
    import subprocess  # noqa: PLC0415  # not on the path of a start that has nothing to set up

    stamp = STAMPS / "environment"
    if stamp.exists() and not stamp.read_text("utf-8").startswith(f"{ROOT}\n"):
        return False  # the checkout was moved: scripts in .venv name its old place
    same = f"import sys, pip; sys.exit(sys.version_info[:2] != {sys.version_info[:2]!r})"
    try:
        return subprocess.run([PYTHON, "-c", same], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def build(pins: str, cmake: str) -> None:
    """Build llama.cpp for this machine; its Python dependencies are among the packages already."""
    require_compiler()
    os.environ["CMAKE_ARGS"] = cmake
    os.environ.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count() or 1))
    pip_pins(pins, "", "--no-deps", "--no-binary", pins.partition("==")[0])


def pip_pins(pins: str, index: str, *options: str) -> None:
    """Install these pins; markers choose among them. ``index`` is one more package index, or ""."""
    if not pins:
        return
    listed = VENV / "pins.txt"
    listed.write_text(pins, "utf-8")
    extra = ("--extra-index-url", index) if index else ()
    pip(*options, *extra, "-r", str(listed))


def pip(*arguments: str) -> None:
    """Run pip's install in the environment; raise SetupError if it fails, below pip's own words."""
    import subprocess  # noqa: PLC0415  # not on the path of a start that has nothing to set up

    strays = ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_REQUIRE_HASHES")
    clean = {key: value for key, value in os.environ.items() if key not in strays}
    clean |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PYTHONWARNINGS": "ignore"}
    command = [str(PYTHON), "-m", "pip", "install", "--quiet", *arguments]
    if subprocess.run(command, cwd=ROOT, env=clean, check=False).returncode:
        raise SetupError(
            "pip could not install the above. The set-up needs the network; the same command goes on from here."
        )


def set_up(*, develop: bool, offscreen: bool) -> None:
    """Do what is not done yet. One process at a time; a second one waits and then finds nothing to do."""
    if all(step.done() for step in steps(develop=develop, offscreen=offscreen)):
        return
    with only_one():
        pending = [step for step in steps(develop=develop, offscreen=offscreen) if not step.done()]
        for number, step in enumerate(pending, 1):
            say(f"[{number}/{len(pending)}] {step.words} …")
            began = monotonic()
            step.stamp.unlink(missing_ok=True)
            step.work()
            STAMPS.mkdir(exist_ok=True, parents=True)
            step.stamp.write_text(step.key, "utf-8")
            say(f"[{number}/{len(pending)}] done in {monotonic() - began:.0f} s")


@contextlib.contextmanager
def only_one() -> Iterator[None]:
    """Hold this checkout's set-up for one process; the system frees it if that process dies."""
    with (ROOT / ".venv.lock").open("a+", encoding="utf-8") as handle:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415  # Windows only

            msvcrt.locking(handle.fileno(), msvcrt.LK_LOCK, 1)
        else:
            import fcntl  # noqa: PLC0415  # not on Windows

            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("Another set-up of this checkout is running; waiting for it …")
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield


# --- the verbs ------------------------------------------------------------------------------------------------------


def verb_setup(_: Sequence[str]) -> int:
    """Install everything: what the app, its tests and its linters need."""
    set_up(develop=True, offscreen=True)
    return 0


def verb_run(arguments: Sequence[str]) -> int:
    """Open the window, or do what the arguments say: ``run ask "Hello"``."""
    command_line = bool(arguments) and not arguments[0].startswith("-")
    set_up(develop=False, offscreen=command_line)
    command = ["-m", "app", *arguments]
    if not WINDOWS:  # exec there returns to the shell before the window closes
        os.chdir(ROOT)
        os.execv(PYTHON, [str(PYTHON), *command])  # noqa: S606  # our own interpreter, no shell
    return run_python(command)


def verb_lint(_: Sequence[str]) -> int:
    """Run the linters, the type checker and the layer check."""
    set_up(develop=True, offscreen=True)
    return report(lint())


def verb_test(arguments: Sequence[str]) -> int:
    """Run the linters and then the tests, without a screen; arguments go to pytest."""
    set_up(develop=True, offscreen=True)
    failed = lint()
    say("== pytest")
    if run_python(["-m", "pytest", *arguments], OFFLINE):
        failed.append("pytest")
    return report(failed)


def verb_bench(arguments: Sequence[str]) -> int:
    """Run the benchmarks named, or all of them."""
    set_up(develop=True, offscreen=True)
    known = sorted(path.stem for path in (ROOT / "benchmarks").glob("[a-z]*.py"))
    names = arguments or known
    if unknown := [name for name in names if name not in known]:
        say(f"No benchmark is called {', '.join(unknown)}. There are: {', '.join(known)}")
        return 2
    return report([name for name in names if run_python(["-m", f"benchmarks.{name}"], OFFLINE)])


def verb_lock(_: Sequence[str]) -> int:
    """Write requirements.lock anew: the newest versions that pyproject.toml allows."""
    set_up(develop=True, offscreen=True)
    return run_python(["scripts/lock.py"])


def verb_missing(_: Sequence[str]) -> int:
    """Print the Debian packages that an offscreen window still needs here, one a line."""
    sys.stdout.writelines(f"{package}\n" for package in missing_libraries(offscreen=True))
    return 0


def verb_clean(_: Sequence[str]) -> int:
    """Remove the environment and every cache of this checkout; conversations and models are elsewhere and stay."""
    caches = (".mypy_cache", ".ruff_cache", ".pytest_cache", ".import_linter_cache", ".hypothesis", "build")
    for path in (VENV, *(ROOT / name for name in caches), *ROOT.glob("*.egg-info")):
        shutil.rmtree(path, ignore_errors=True)
    return 0


VERBS = {
    "run": verb_run,
    "test": verb_test,
    "lint": verb_lint,
    "bench": verb_bench,
    "setup": verb_setup,
    "lock": verb_lock,
    "missing": verb_missing,
    "clean": verb_clean,
}


def lint() -> list[str]:
    """Run every linter, so that one run shows all there is to mend; return the names of those that complained."""
    failed = []
    for name, arguments in LINTERS:
        say(f"== {name}")
        if run_python(arguments, OFFLINE):
            failed.append(name)
    return failed


def report(failed: Sequence[str]) -> int:
    """Name what failed, if anything, and return the exit code."""
    if failed:
        say(f"Failed: {', '.join(failed)}")
    return 1 if failed else 0


def run_python(arguments: Sequence[str], extra: Mapping[str, str] = MappingProxyType({})) -> int:
    """Run the environment's Python here with this extra environment; return its exit code."""
    import subprocess  # noqa: PLC0415  # not on the path of a start that has nothing to set up

    return subprocess.run([str(PYTHON), *arguments], cwd=ROOT, env={**os.environ, **extra}, check=False).returncode


def say(words: str) -> None:
    """Print one line at once: the programs started next write to the same place."""
    print(words, flush=True)


def main(arguments: Sequence[str]) -> int:
    """Run one verb."""
    verb = VERBS.get(arguments[0]) if arguments else None
    if verb is None:
        say("usage: python3 bootstrap.py VERB [ARGUMENTS]")
        for name, known in VERBS.items():
            say(f"  {name:8} {known.__doc__}")
        return 2
    try:
        require_python()
        return verb(arguments[1:])
    except SetupError as error:
        say(str(error))
        return ENVIRONMENT_EXIT
    except KeyboardInterrupt:
        say("Stopped. The same command goes on from here.")
        return INTERRUPTED_EXIT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
