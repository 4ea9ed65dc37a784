"""Everything that the loop works with, built once by the wiring."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from app.approvals.ledger import Ledger
from app.approvals.proposals import Proposals
from app.clock import Clock
from app.devmode.api import DevMode
from app.events import Events
from app.learning.api import LearningEvent
from app.learning.lesson import Lesson
from app.learning.planning import Planner
from app.learning.versions import Versions
from app.model.adapters.serving import ServingFiles
from app.model.api import BaseFiles, Encoder, Engine, Evaluator, Recipe, Trainer, Turn
from app.model.lineage.lineage import Lineage


class Prepared(Protocol):
    """Gets the slow parts ready, off the way of a conversation."""

    async def planner(self) -> Planner:
        """Return the planner once the gate's engine is loaded."""
        ...

    async def warm(self, upcoming: Lesson | None = None) -> None:
        """Load trainer and gate, and ask beforehand what they will need, also for the lesson on a card."""
        ...


class Conversations(Protocol):
    """What learning asks of the conversations."""

    async def open_turns(self) -> tuple[Turn, ...]:
        """Return what the model sees of the open conversation, to restore it after a swap."""
        ...

    def title(self, chat: str) -> str:
        """Return a conversation's title, or ""."""
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """The loop's collaborators."""

    base: BaseFiles
    recipe: Recipe
    lineage: Lineage
    versions: Versions
    serving: ServingFiles
    proposals: Proposals
    ledger: Ledger
    devmode: DevMode
    trainer: Trainer
    gate: Evaluator
    engine: Engine
    """The chat's."""
    examiner: Engine
    """The gate's."""
    encoder: Encoder
    prepared: Prepared
    events: Events[LearningEvent]
    clock: Clock
    work: Path
    """Folder for files of jobs under way."""
    chat: Conversations
