"""From a signal to a card: what the person did, what it suggests, and whether the model needs it.

Approvals finds the candidate and stores the card; this module asks what only a model can tell: whether the version in
use says it already, and whether an earlier lesson answers the same question in other words with something else.
"""

from __future__ import annotations

import logging
import math

from app.approvals.api import Draft, Signal, SignalKind
from app.approvals.drafts import draft
from app.errors import AppError
from app.learning.api import CardChanged
from app.learning.kinds import keys_of, kind_of
from app.learning.ledger_view import lessons_at
from app.learning.loop import Loop
from app.learning.parts import Parts
from app.learning.wordings import Prompt
from app.model.api import Exam, Greedy, GreedyResult, Kind, Role, Score, ScoreResult, Turn
from app.model.gate.answers import fault
from app.store.tables import ProposalRow
from app.tasks import TaskSet

SAME_QUESTION = 0.90
"""Cosine of two prompts above which they ask the same."""
SURE = 0.5
"""Probability of exactly this answer above which there is nothing to learn."""

_log = logging.getLogger(__name__)


class Noticing:
    """Takes signals; implements ``app.chat.signals.SignalSink``."""

    def __init__(self, parts: Parts, loop: Loop) -> None:
        self._parts = parts
        self._loop = loop
        self._tasks = TaskSet()

    def on_signal(self, signal: Signal) -> None:
        """Look into a signal in the background; whatever comes of it is published as a card."""
        self._tasks.start(self._notice(signal), "notice a signal")

    async def close(self) -> None:
        """Drop what is being looked into."""
        await self._tasks.close()

    async def _notice(self, signal: Signal) -> None:
        try:
            row = await self.propose(signal)
        except AppError as error:
            _log.warning("signal not looked into: %s", type(error).__name__)
            return
        if row is not None:
            self._parts.events.publish(CardChanged(self._loop.view(row)))

    async def propose(self, signal: Signal) -> ProposalRow | None:
        """Return a new card for a signal, or None if there is nothing to ask."""
        found = draft(signal)
        if found is None or await self._is_known(found, signal.kind):
            return None
        return self._parts.proposals.surface(found, signal, conflict=await self.conflict(found.prompt, found.answer))

    async def _is_known(self, found: Draft, kind: SignalKind) -> bool:
        """Whether the version in use, asked afresh, says it already.

        An edit or a correction was made because it did not say it; a fact counts as known only if it is said by
        itself. Praise is for what the model said by chance: known is what it would say almost always.
        """
        turns: Prompt = (Turn(Role.USER, found.prompt),)
        lineage, engine = self._parts.lineage, self._parts.engine
        adapter = self._parts.versions.ref(lineage.head())
        if kind in (SignalKind.THUMBS_UP, SignalKind.REGENERATE_KEPT):
            (scored,) = await engine.evaluate([Score(turns, found.answer)], adapter=adapter)
            return isinstance(scored, ScoreResult) and math.exp(sum(scored.logprobs)) > SURE
        if kind_of(found.prompt, found.answer) is not Kind.FACT:
            (said,) = await engine.evaluate([Greedy(turns, 2 * len(found.answer) // 3 + 16)], adapter=adapter)
            return isinstance(said, GreedyResult) and said.text.strip() == found.answer.strip()
        exam = Exam("", Kind.FACT, turns, found.answer, keys_of(found.prompt, found.answer), ())
        (said,) = await engine.evaluate([Greedy(turns, 48)], adapter=adapter)
        return isinstance(said, GreedyResult) and fault(exam, said) is None

    async def conflict(self, prompt: str, answer: str) -> str | None:
        """Return the lesson of the version in use that says something else about the same question, if any."""
        parts = self._parts
        held = lessons_at(parts.lineage, parts.ledger, parts.lineage.head())
        if not held:
            return None
        known = parts.ledger.contradicting(prompt, answer, [row.id for row in held])
        if known is not None:
            return known.id
        vectors = await parts.encoder.encode([prompt, *(row.prompt for row in held)])
        nearness = [sum(a * b for a, b in zip(vectors[0], other, strict=True)) for other in vectors[1:]]
        near = [row for row, cosine in zip(held, nearness, strict=True) if cosine >= SAME_QUESTION]
        other = [row for row in near if row.answer.strip().lower() != answer.strip().lower()]
        return other[-1].id if other else None
