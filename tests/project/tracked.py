"""The files of this project, as its tests about itself see them."""

from __future__ import annotations

import subprocess
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
NOT_OURS = {".git", ".venv", "build", "dist", "__pycache__"}


@cache
def _all():
    if (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        return tuple(name for name in listed.split("\0") if name and (ROOT / name).is_file())
    return tuple(
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*")
        if path.is_file() and not NOT_OURS.intersection(path.relative_to(ROOT).parts)
    )


def tracked(*patterns):
    """Return the paths of our files, with forward slashes, that match any of the patterns."""
    return [name for name in _all() if any(fnmatch(name, pattern) for pattern in patterns)]
