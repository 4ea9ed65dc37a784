"""A hub through which use cases say that something changed, and views listen.

Publishing never fails and never waits: listeners are called in order on the publisher's loop and must only hand the
event on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

E = TypeVar("E")


class Events(Generic[E]):
    """One stream of events of one kind."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[E], None]] = []

    def listen(self, listener: Callable[[E], None]) -> Callable[[], None]:
        """Call ``listener`` for every event from now on; return what ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def publish(self, event: E) -> None:
        """Tell every listener."""
        for listener in list(self._listeners):
            listener(event)
