"""How many threads to answer with, found by trying: it depends on what else the machine does, and that changes.

Measured on two cores with a small model: alone, two threads are a fifth faster than one; beside a training job of lower
priority, one is up to twice as fast as two that wait for each other; beside other programs, two are better again. The
number of threads changes no bit of a result, so it may change from token to token.

Example:
    pace = Pace(threads=2)
    threads = pace.threads()
    ...  # compute one token
    pace.took(seconds)
"""

from __future__ import annotations

_TRY_TOKENS = 2
"""Length of a try; its first token also pays for the change, so its last one counts."""
_FIRST_WAIT_TOKENS = 12
_LONGEST_WAIT_TOKENS = 192
_WEIGHT_OF_NEW = 0.3
_CLEARLY = 0.95
"""A change has to pay."""


class Pace:
    """Chooses between all threads and half of them by the time that tokens took; tries a loser ever less often."""

    def __init__(self, threads: int) -> None:
        self._best = threads
        self._other = max(1, threads // 2)
        self._usual_s: float | None = None
        self._waited = self._tried = 0
        self._wait = _FIRST_WAIT_TOKENS

    def threads(self) -> int:
        """Return the number to compute the next token with."""
        return self._other if self._waited >= self._wait else self._best

    def took(self, seconds: float) -> None:
        """Note how long a token took with that number."""
        if self._waited < self._wait:
            usual = seconds if self._usual_s is None else self._usual_s
            self._usual_s = usual + _WEIGHT_OF_NEW * (seconds - usual)
            self._waited += 1
            return
        self._tried += 1
        if self._tried >= _TRY_TOKENS:
            self._decide(seconds)

    def _decide(self, seconds: float) -> None:
        if self._usual_s is not None and seconds < _CLEARLY * self._usual_s:
            self._best, self._other = self._other, self._best
            self._wait = _FIRST_WAIT_TOKENS
        else:
            self._wait = min(2 * self._wait, _LONGEST_WAIT_TOKENS)
        self._usual_s = None
        self._waited = self._tried = 0
