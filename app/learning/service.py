"""The learning use cases: what views and the command line call."""

from __future__ import annotations

import json
import uuid

from app.approvals.api import ProposalState, Signal, SignalKind
from app.approvals.proposals import ENDED_BADLY, OPEN, UNDER_WAY, require_lesson_text
from app.errors import ErrorInfo, UserError
from app.learning.api import CardChanged, CardView, Lesson, LessonView, Resolution, Taught, VersionView
from app.learning.cards import stages_of, verdict_of
from app.learning.forgetting import Forgetting
from app.learning.ledger_view import lessons_at
from app.learning.lesson import lesson_on
from app.learning.loop import Loop
from app.learning.noticing import Noticing
from app.learning.parts import Parts
from app.learning.timeline import timeline
from app.model.api import Greedy, GreedyResult, Kind, Role, Turn
from app.store.tables import ProposalRow

ASK_TOKENS = 256

_S = ProposalState


class LearningService:
    """Implements ``app.learning.api.Learning``."""

    def __init__(self, parts: Parts, loop: Loop, noticing: Noticing) -> None:
        self._parts = parts
        self._loop = loop
        self._noticing = noticing
        self._forgetting = Forgetting(parts, loop)

    # --- cards

    async def cards(self, chat: str) -> list[CardView]:
        """Return every card of a conversation, oldest first."""
        return [self._loop.view(row) for row in self._parts.proposals.of_chat(chat)]

    async def opened(self, card: str) -> None:
        """A card is on screen: get ready to learn it, unless learning is locked."""
        row = self._parts.proposals.get(card)
        if row.state in OPEN:
            self._loop.get_ready(lesson_on(row))

    async def wanted(self, card: str) -> None:
        """The person is on the way to unlocking, to learn this: get ready meanwhile."""
        row = self._parts.proposals.get(card)
        if row.state in OPEN:
            self._loop.get_ready(lesson_on(row), wanted=True)

    async def approve(self, card: str, resolution: Resolution | None = None) -> CardView:
        """Queue the lesson; on a card that was taken back, use its version again."""
        row = self._parts.proposals.get(card)
        if row.state == _S.UNDONE:
            return await self._use_again(row)
        if row.state in UNDER_WAY:
            return self._view(card)
        self._parts.devmode.require()
        if row.conflict is not None and resolution is None:
            hint = "An earlier lesson says something else. Choose whether to replace it or to keep both."
            raise UserError("learn this", "the lesson", hint)
        require_lesson_text(row.prompt, row.answer)
        if row.state in ENDED_BADLY:
            row = self._parts.proposals.reword(card, row.prompt, row.answer, conflict=row.conflict)
            self._publish(row)
        self._parts.proposals.move(row.id, _S.APPROVED, resolution=resolution.value if resolution else None)
        self._loop.enqueue(row.id)
        return self._view(row.id)

    async def reword(self, card: str, prompt: str, answer: str) -> CardView:
        """Change what would be learned; a card that ended badly is revived as a new one."""
        conflict = await self._noticing.conflict(prompt, answer)
        row = self._parts.proposals.reword(card, prompt, answer, conflict=conflict)
        return self._publish(row)

    async def decline(self, card: str, *, never: bool = False) -> CardView:
        """Not now, or never for this."""
        return self._publish(self._parts.proposals.decline(card, never=never))

    async def cancel(self, card: str) -> CardView:
        """Stop a lesson that is being learned; nothing of it stays."""
        await self._loop.cancel(card)
        return self._view(card)

    async def undo(self, card: str) -> CardView:
        """Go back to the version before this lesson, exactly."""
        row = self._parts.proposals.get(card)
        async with self._loop.busy:
            head = self._parts.lineage.head()
            if row.commit is None or row.commit != head.id or row.state != _S.PROVEN:
                hint = "A later version is in use. Choose an earlier one in Versions, or forget the lesson."
                raise UserError("take this back", "the lesson", hint)
            await self._parts.versions.use(self._parts.lineage.get(head.parents[0]), "undo")
            row = self._parts.proposals.move(card, _S.UNDONE)
        self._loop.tell_versions()
        return self._view(row.id)

    async def _use_again(self, row: ProposalRow) -> CardView:
        async with self._loop.busy:
            commit = self._parts.lineage.get(row.commit or "")
            if self._parts.lineage.head().id != commit.parents[0]:
                hint = "Other lessons were learned since. Teach it again to have it on top of them."
                raise UserError("use this again", f"version {commit.number}", hint)
            await self._parts.versions.use(commit, "use again")
            self._parts.proposals.move(row.id, _S.PROVEN)
        self._loop.tell_versions()
        return self._view(row.id)

    # --- versions

    async def versions(self) -> list[VersionView]:
        """Return the timeline, newest first, the base last."""
        return timeline(self._parts)

    async def use(self, commit: str) -> None:
        """Make this version the one in use; instant, logged, and itself reversible."""
        async with self._loop.busy:
            await self._parts.versions.use(self._parts.lineage.get(commit), "chosen")
            self._note_undone()
        self._loop.tell_versions()

    def _note_undone(self) -> None:
        """Let cards tell the truth: a lesson is taken back while its version's parent is the one in use.

        It is not any more once a version is in use that holds it.
        """
        lineage, proposals = self._parts.lineage, self._parts.proposals
        head = lineage.head()
        held = set(lineage.holds(head))
        for row in proposals.in_states({_S.PROVEN, _S.UNDONE}):
            commit = lineage.get(row.commit) if row.commit else None
            if commit is None:
                continue
            if row.state == _S.UNDONE and set(commit.lessons) <= held:
                proposals.move(row.id, _S.PROVEN)
            elif row.state == _S.PROVEN and head.id in commit.parents:
                proposals.move(row.id, _S.UNDONE)

    async def ask_version(self, commit: str, prompt: str) -> str:
        """Ask a past version one question, greedily, without changing the version in use."""
        version = self._parts.lineage.get(commit)
        await self._parts.prepared.planner()
        item = Greedy((Turn(Role.USER, prompt),), ASK_TOKENS)
        (said,) = await self._parts.examiner.evaluate([item], adapter=self._parts.versions.ref(version))
        return said.text if isinstance(said, GreedyResult) else ""

    # --- the ledger

    async def lessons(self) -> list[LessonView]:
        """Return the ledger, oldest first."""
        parts = self._parts
        held = {row.id for row in lessons_at(parts.lineage, parts.ledger, parts.lineage.head())}
        rows = [row for row in parts.ledger.all() if row.commit is not None]
        return [
            LessonView(row.id, Kind(row.kind), row.prompt, row.answer, row.learned, row.commit or "", row.id in held)
            for row in rows
        ]

    async def forget(self, lesson: str) -> Taught:
        """Take a lesson out of the ledger and rebuild the weights without it."""
        return await self._forgetting.forget(lesson)

    async def teach(self, lesson: Lesson, *, approve: bool) -> Taught:
        """Propose a lesson from outside a conversation and, if asked, see it through to its end.

        One that is on a card, or was cut off while it was learned, is taken up and not proposed again.
        """
        if approve:
            self._parts.devmode.require()
        require_lesson_text(lesson.prompt, lesson.answer)
        signal = Signal(
            SignalKind.TAUGHT, "", uuid.uuid4().hex, lesson.prompt, lesson.rejected or "", correction=lesson.answer
        )
        row = self._parts.proposals.standing(lesson.prompt, lesson.answer) or await self._noticing.propose(signal)
        if row is None:
            hint = "The model says this already, or it was declined for ever."
            raise UserError("learn this", "the lesson", hint)
        self._publish(row)
        if approve:
            await self.approve(row.id, Resolution.REPLACE if row.conflict else None)
            row = await self._loop.ended(row.id)
        return _taught(row)

    # --- parts

    def _view(self, card: str) -> CardView:
        return self._loop.view(self._parts.proposals.get(card))

    def _publish(self, row: ProposalRow) -> CardView:
        view = self._loop.view(row)
        self._parts.events.publish(CardChanged(view))
        return view


def _taught(row: ProposalRow) -> Taught:
    error = ErrorInfo(**json.loads(row.error)) if row.error else None
    return Taught(row.id, ProposalState(row.state), row.commit, verdict_of(row), stages_of(row), error)
