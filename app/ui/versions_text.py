"""What the timeline says about a version: words only, no Qt."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from app.learning.api import VersionView


class Dot(StrEnum):
    """How a version is marked on the timeline, always together with words that say the same."""

    ACTIVE = "active"
    """Filled: the one in use."""
    PAST = "past"
    """Hollow."""
    REJECTED = "rejected"
    """Red ring: not learned."""
    BASE = "base"
    """Grey ring: where it started."""
    MISSING = "missing"
    """Grey dashed ring: something it needs is gone."""


@dataclass(frozen=True, slots=True)
class VersionFace:
    """One row in words."""

    title: str
    when: str
    note: str
    dot: Dot
    can_use: bool
    can_ask: bool


def version_face(version: VersionView, *, now: datetime) -> VersionFace:
    """Return what a row shows at ``now``."""
    kept = not version.rejected and version.available
    return VersionFace(
        title=_title(version),
        when=_when(version, now=now),
        note=_note(version),
        dot=_dot(version),
        can_use=kept and not version.active,
        can_ask=kept,
    )


def _title(version: VersionView) -> str:
    name = version.title.strip()
    if version.rejected:
        return name if name.startswith("Not learned") else f"Not learned: {name}"
    if version.base:
        return name if name.startswith("Base") else f"Base · {name}"
    return f"{version.number} · {name}"


def _when(version: VersionView, *, now: datetime) -> str:
    if version.base:
        return version.source
    return " · ".join(filter(None, (relative_time(version.time, now=now), version.source)))


def _note(version: VersionView) -> str:
    words = [version.note]
    if version.active and "in use" not in version.note:
        words.insert(0, "in use")
    if not version.available and not version.rejected:
        words.insert(0, "not available: a part of it is missing or damaged")
    return " · ".join(filter(None, words))


def _dot(version: VersionView) -> Dot:
    if version.active:
        return Dot.ACTIVE
    if version.rejected:
        return Dot.REJECTED
    if not version.available:
        return Dot.MISSING
    return Dot.BASE if version.base else Dot.PAST


def relative_time(time: datetime, *, now: datetime) -> str:
    """Return when something was, as one says it: "just now", "09:12", "yesterday", "Saturday", "3 May".

    Both times are aware; days are counted in the zone of ``now``. A time in the future (a clock went back) is written
    out in full rather than guessed at.
    """
    local = time.astimezone(now.tzinfo)
    age = now - local
    if timedelta(seconds=-5) <= age < timedelta(minutes=1):
        return "just now"
    days = (now.date() - local.date()).days
    if age >= timedelta(0):
        if days == 0:
            return f"{local:%H:%M}"
        if days == 1:
            return "yesterday"
        if days < 7:
            return f"{local:%A}"
    year = "" if local.year == now.year else f" {local.year}"
    clock = "" if age >= timedelta(0) else f", {local:%H:%M}"
    return f"{local.day} {local:%B}{year}{clock}"
