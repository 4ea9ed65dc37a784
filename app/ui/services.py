"""What the window is given: the use cases behind their protocols, and what it keeps for itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from app.chat.api import Chats
from app.devmode.api import DevMode
from app.events import Events
from app.learning.api import Learning, LearningEvent


class Settings(Protocol):
    """Small values that outlive the window, by name. Called on the core only."""

    def get(self, name: str) -> str | None:
        """Return what was set, or None."""
        ...

    def set(self, name: str, value: str) -> None:
        """Store a value; it is on disk when this returns."""
        ...


async def _nothing() -> None:
    """Close nothing."""


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that the window talks to."""

    chats: Chats
    learning: Learning
    learning_events: Events[LearningEvent]
    devmode: DevMode
    model_name: str
    """For people: "SmolLM2"."""
    app_version: str
    home: str
    """Where everything is kept, as shown in About."""
    notices: tuple[str, ...] = ()
    """What the start had to say: "A lesson was not finished; it was taken back."."""
    shutdown: Callable[[], Awaitable[None]] = field(default=_nothing)
    """Ends children and closes the store, on the core."""
