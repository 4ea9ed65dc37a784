"""Whether a model fits into memory, before anything is loaded. Pure arithmetic."""

from __future__ import annotations

from app.errors import KnownError

MIB = 1024 * 1024
_MOST_KEPT_FREE = 2048 * MIB
_SHARE_KEPT_FREE = 8


def check_fits(name: str, *, needed: int, available: int, total: int) -> None:
    """Return if ``needed`` bytes leave enough for everything else: an eighth of the memory, at most 2 GiB.

    A model that only just fits makes the whole machine stand still, which looks like our crash.

    Raises: KnownError with the numbers.
    """
    kept = min(_MOST_KEPT_FREE, total // _SHARE_KEPT_FREE)
    if needed > available - kept:
        numbers = f"It needs {needed // MIB} MB; {available // MIB} MB are free, and {kept // MIB} MB must stay so."
        raise KnownError("load the model", name, f"{numbers} Close other programs, or choose a smaller model.")
