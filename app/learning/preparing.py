"""Gets the slow parts of learning ready while a card is being read, so that the click pays none of it."""

from __future__ import annotations

import logging
from pathlib import Path

from app.approvals.ledger import Ledger
from app.errors import AppError
from app.learning.ledger_view import lessons_at
from app.learning.lesson import Lesson, lesson_of
from app.learning.planning import Planner, recipe_for
from app.learning.versions import Versions
from app.model.api import BaseFiles, Engine, Recipe, Trainer
from app.model.gate.asking import Asker, Memory
from app.model.gate.evaluator import Gate
from app.model.lineage.lineage import Lineage

_log = logging.getLogger(__name__)


class Preparation:
    """Implements ``app.learning.parts.Prepared``.

    Args:
        base: The base in use.
        recipe: How lessons are trained.
        trainer: To be warmed.
        gate: To be warmed.
        examiner: The gate's engine, which the planner asks too.
        cache: Folder of what versions said to the planner.
        versions: To find the version in use.
        lineage: To find what it holds.
        ledger: To read the lessons that it holds.
    """

    def __init__(
        self,
        base: BaseFiles,
        recipe: Recipe,
        *,
        trainer: Trainer,
        gate: Gate,
        examiner: Engine,
        cache: Path,
        versions: Versions,
        lineage: Lineage,
        ledger: Ledger,
    ) -> None:
        self._base = base
        self._recipe = recipe
        self._trainer = trainer
        self._gate = gate
        self._examiner = examiner
        self._cache = cache
        self._versions = versions
        self._lineage = lineage
        self._ledger = ledger
        self._planner: Planner | None = None

    async def planner(self) -> Planner:
        """Return the planner once the gate's engine is loaded."""
        info = await self._gate.warm(self._base)
        if self._planner is None:
            memory = Memory(f"planning/{info.backend}/{info.base}", self._cache)
            self._planner = Planner(Asker(self._examiner, memory))
        return self._planner

    async def warm(self, upcoming: Lesson | None = None) -> None:
        """Load the trainer and ask base and parent beforehand; a failure shows when the result is needed.

        Args:
            upcoming: The lesson on the card: what it will be trained and examined on is asked for, too.
        """
        try:
            planner = await self.planner()
            await self._trainer.warm(self._base, self._recipe, await planner.generic())
            await self._ask_beforehand(planner, upcoming)
        except AppError as error:
            _log.warning("not warmed: %s", type(error).__name__)

    async def _ask_beforehand(self, planner: Planner, upcoming: Lesson | None) -> None:
        head = self._lineage.head()
        parent = self._versions.ref(head)
        earlier = [lesson_of(row) for row in lessons_at(self._lineage, self._ledger, head)]
        if upcoming is None:
            await self._gate.prepare(self._base, parent, lessons=len(earlier))
            return
        recipe = recipe_for(upcoming, self._recipe)
        material = await planner.plan(upcoming, earlier, parent=parent, recipe=recipe)
        await self._gate.prepare(
            self._base, parent, lessons=len(earlier), exam=upcoming.exam(), neighbours=material.examined
        )
