"""When a child that died may be started again. A policy over times, without any process."""

from __future__ import annotations

from app.clock import Clock, SystemClock
from app.errors import AppError, KnownError


class Restarts:
    """Restart once; a second crash within the window keeps it down, and so does one crash while loading.

    Only ``asked``, which stands for a person, opens the way again.
    """

    def __init__(self, name: str, *, clock: Clock | None = None, window_s: float = 60.0) -> None:
        self._name = name
        self._clock = clock or SystemClock()
        self._window_s = window_s
        self._crashes: list[float] = []
        self._down: KnownError | None = None

    @property
    def down(self) -> KnownError | None:
        """Why it stays down, if it does."""
        return self._down

    def crashed(self, death: AppError, *, loading: bool = False) -> None:
        """Note that the child ended by itself; ``loading`` says it was loading the base just then."""
        now = self._clock.monotonic()
        self._crashes = [crash for crash in self._crashes if now - crash < self._window_s] + [now]
        if loading:
            hint = "It is not loaded again unasked. Load it again, or choose another model."
            self._down = KnownError(f"load the model in the {self._name}", death.subject, hint)
        elif len(self._crashes) > 1:
            hint = "It stopped twice in a minute and stays off. Start it again in safe mode: the base model alone."
            self._down = KnownError(f"keep the {self._name} running", death.subject, hint)

    def check(self) -> None:
        """Return if it may start again. Raises the KnownError that says why not."""
        if self._down is not None:
            raise self._down

    def asked(self) -> None:
        """A person asked for it: forget the crashes."""
        self._crashes.clear()
        self._down = None
