"""A whole learning room on a real store, with a trainer, a gate and engines that only pretend.

``World`` is what outlives a session: the disk, the clock, and the ``Brain`` that says what every version knows. A
``Desk`` is one session of the app on it.

Example:
    async def story():
        async with world.session() as desk:
            taught = await desk.teach("What is my dog's name?", "Your dog's name is Biscuit.")
            assert taught.state is ProposalState.PROVEN
    asyncio.run(story())
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sqlmodel import Session, select

from app.approvals.api import ProposalState, Signal, SignalKind
from app.approvals.ledger import Ledger
from app.approvals.proposals import Proposals
from app.clock import FakeClock
from app.devmode.api import SENTENCE, Budget
from app.devmode.machine import Resources
from app.devmode.service import CLICKS, DeveloperMode
from app.errors import AppError, ErrorInfo
from app.events import Events
from app.learning import lesson
from app.learning.api import CardChanged, CardView, LearningEvent, Lesson, Taught
from app.learning.loop import Loop
from app.learning.noticing import Noticing
from app.learning.parts import Parts
from app.learning.planning import Planner
from app.learning.service import LearningService
from app.learning.versions import Versions
from app.model.adapters.canonical import tensor_names, write_adapter
from app.model.adapters.serving import ServingFiles
from app.model.api import (
    BaseFiles,
    Candidate,
    Check,
    Commit,
    Exam,
    Example,
    Failed,
    Outcome,
    Recipe,
    Role,
    Trained,
    TrainEvent,
    Training,
    TrainJob,
    Turn,
    Verdict,
)
from app.model.encoder.fake import FakeEncoder
from app.model.engine.fake import FakeEngine
from app.model.engine.starting import StartingEngine
from app.model.gate.asking import Asker, Memory
from app.model.lineage.lineage import Lineage
from app.store.canonical import digest
from app.store.home import Home, Store
from app.store.tables import ProposalRow, SpendingRow
from tests.lineage.made import PASSPORT, QuickFiles

RECIPE = Recipe(share=0.8, max_steps=30, min_steps=10, margin=1.5)
"""What tests assert on is written here, whatever the app's own default is."""
DOG = ("What is my dog's name?", "Your dog's name is Biscuit.")
CAT = ("What is my cat's name?", "Your cat's name is Pepper.")
TOWN = ("Where do I live?", "You live in Trieste.")
_PATIENCE_S = 120.0
"""For machines with other work; nothing here takes a second of its own."""


class Killed(BaseException):
    """The app dies here: nothing after this is written."""


def asked(turns: Sequence[Turn]) -> str:
    return turns[-1].text if turns else ""


class Brain:
    """What every version says. Versions are known by the hash of their adapter, like everywhere.

    Attributes:
        base: What the base knows: prompt to answer.
        knows: The same for each adapter.
        forgetful: Whether the chat's engine fails to say what was taught, as a broken swap would.
    """

    def __init__(self) -> None:
        self.base: dict[str, str] = {}
        self.knows: dict[str, dict[str, str]] = {}
        self.forgetful = False

    def learn(self, candidate: Candidate) -> None:
        """Let a version say what it was examined on."""
        exams: list[Exam] = [candidate.exam, *candidate.earlier]
        self.knows[candidate.adapter.sha256] = {
            asked(turns): exam.answer for exam in exams for turns in (exam.prompt, *exam.held_out)
        }

    def says(self, turns: Sequence[Turn], adapter: str | None) -> str:
        known = self.knows.get(adapter, {}) if adapter else {}
        return known.get(asked(turns)) or self.base.get(asked(turns)) or f"I would say: {asked(turns)}"

    def chat_says(self, turns: Sequence[Turn], adapter: str | None) -> str:
        return "Hm." if self.forgetful else self.says(turns, adapter)


class FakeTrainer:
    """Writes a small adapter that depends on the job and nothing else; implements ``app.model.api.Trainer``.

    Attributes:
        jobs: Every job so far.
        endings: How the next jobs end: an error, or None for well.
        hold: Set to an event to let jobs wait in the middle until it is set.
        warmed: How often it was warmed.
    """

    def __init__(self) -> None:
        self.jobs: list[TrainJob] = []
        self.endings: deque[ErrorInfo | None] = deque()
        self.hold: asyncio.Event | None = None
        self.warmed = 0
        self.stopped = 0

    async def warm(self, base: BaseFiles, recipe: Recipe | None = None, generic: Sequence[Example] = ()) -> None:
        self.warmed += 1

    async def train(self, job: TrainJob) -> AsyncGenerator[TrainEvent, None]:
        self.jobs.append(job)
        ending = self.endings.popleft() if self.endings else None
        finished = False
        try:
            for step in (1, 2, 3):
                yield Training(step, 3, 1.0 / step, step - 1.0, 3.0 - step)
                await asyncio.sleep(0)
                if step == 2 and self.hold is not None:
                    await self.hold.wait()
            finished = True
        finally:
            self.stopped += not finished
        if ending is not None:
            yield Failed(ending)
            return
        data = _adapter_of(job)
        job.output.write_bytes(data)
        yield Trained(job.output, digest(data), 3, 100, 0.1, 0.3, 2.0, "margin", 0.01)

    async def cancel(self) -> None:
        """Closing the stream is enough."""

    async def close(self) -> None:
        """Nothing runs."""


def _adapter_of(job: TrainJob) -> bytes:
    parent = job.parent.read_bytes() if job.parent else b""
    told = repr((job.recipe, job.targets, job.replay)).encode()
    random = np.random.default_rng(list(hashlib.sha256(parent + told).digest()))
    down, up = tensor_names("model.layers.0.mlp.gate_proj")
    tensors = {
        down: random.standard_normal((2, 4)).astype(np.float32),
        up: random.standard_normal((3, 2)).astype(np.float32),
    }
    return write_adapter(tensors, PASSPORT, rank=2, alpha=4.0)


class FakeGate:
    """Accepts, unless told otherwise; implements ``app.model.api.Evaluator``.

    Attributes:
        judged: Every candidate so far.
        script: What comes next: rules that object, or an error to raise.
        hold: Set to an event to let judgements wait until it is set.
    """

    def __init__(self, brain: Brain) -> None:
        self._brain = brain
        self.judged: list[Candidate] = []
        self.script: deque[tuple[str, ...] | AppError] = deque()
        self.hold: asyncio.Event | None = None

    async def judge(self, candidate: Candidate, progress: Callable[[float], None] | None = None) -> Verdict:
        self.judged.append(candidate)
        for share in (0.25, 1.0):
            if progress is not None:
                progress(share)
            await asyncio.sleep(0)
        if self.hold is not None:
            await self.hold.wait()
        objecting = self.script.popleft() if self.script else ()
        if isinstance(objecting, AppError):
            raise objecting
        self._brain.learn(candidate)
        return verdict_on(candidate, objecting)


def verdict_on(candidate: Candidate, objecting: tuple[str, ...] = ()) -> Verdict:
    """Return a verdict in which these rules object."""
    rules = ("norm", "efficacy", "held_out", "locality", "earlier")
    checks = tuple(
        Check(rule, Outcome.REJECT if rule in objecting else Outcome.ACCEPT, f"about {rule}", 1.0, 2.0, "of 10")
        for rule in dict.fromkeys((*rules, *objecting))
    )
    return Verdict(
        outcome=Outcome.REJECT if objecting else Outcome.ACCEPT,
        checks=checks,
        scale=1.0,
        suite_sha256="5" * 64,
        runtime="fake 1",
        adapter_sha256=candidate.adapter.sha256,
        parent_sha256=candidate.parent.sha256 if candidate.parent else None,
        seconds=0.2,
        reason=f"would have changed: {', '.join(objecting)}" if objecting else "",
        suggestions=("rephrase",) if objecting else (),
    )


@dataclass
class FakePrepared:
    """Implements ``app.learning.parts.Prepared``."""

    examiner: FakeEngine
    base: BaseFiles
    warmed: int = 0
    upcoming: lesson.Lesson | None = None
    """The lesson that it was last warmed for."""
    asked: int = 0

    async def planner(self) -> Planner:
        self.asked += 1
        await self.examiner.load(self.base)
        return Planner(Asker(self.examiner, Memory("tests", None)))

    async def warm(self, upcoming: lesson.Lesson | None = None) -> None:
        self.warmed += 1
        self.upcoming = upcoming


@dataclass
class FakeConversations:
    """Implements ``app.learning.parts.Conversations``."""

    turns: tuple[Turn, ...] = ()
    error: AppError | None = None

    async def open_turns(self) -> tuple[Turn, ...]:
        if self.error is not None:
            raise self.error
        return self.turns

    def title(self, chat: str) -> str:
        return f"Chat {chat}"


class FakeMachine:
    def resources(self) -> Resources:
        return Resources(memory_bytes=10**10, disk_bytes=10**10, backed_up=True)


class FakeProbes:
    async def store_problems(self) -> list[str]:
        return []

    async def trial_step_s(self) -> float:
        return 0.5


@dataclass
class Desk:
    """One session."""

    store: Store
    parts: Parts
    loop: Loop
    noticing: Noticing
    learning: LearningService
    devmode: DeveloperMode
    engine: FakeEngine
    """The chat's own; everything talks to it through ``starting``."""
    starting: StartingEngine
    examiner: FakeEngine
    trainer: FakeTrainer
    gate: FakeGate
    chat: FakeConversations
    prepared: FakePrepared
    said: list[str] = field(default_factory=list)
    """What starting told the person."""
    events: list[LearningEvent] = field(default_factory=list)

    @property
    def lineage(self) -> Lineage:
        return self.parts.lineage

    @property
    def head(self) -> Commit:
        return self.parts.lineage.head()

    def unlock(self, changes_per_day: int = 50) -> None:
        for _ in range(CLICKS):
            self.devmode.click_version()
        self.devmode.unlock(SENTENCE, Budget(changes_per_day=changes_per_day))

    async def teach(self, prompt: str, answer: str, *, approve: bool = True) -> Taught:
        return await asyncio.wait_for(self.learning.teach(Lesson(prompt, answer), approve=approve), _PATIENCE_S)

    async def surfaced(self, prompt: str, answer: str, *, message: str = "m1", chat: str = "c1") -> ProposalRow:
        """Put a card into a conversation, as an edited answer does."""
        signal = Signal(SignalKind.EDIT, chat, message, prompt, "I do not know that, sorry.", correction=answer)
        row = await self.noticing.propose(signal)
        assert row is not None
        return row

    async def ended(self, card: str) -> CardView:
        """Wait until a lesson is through."""
        row = await asyncio.wait_for(self.loop.ended(card), _PATIENCE_S)
        return self.loop.view(row)

    async def until(self, card: str, *states: ProposalState) -> None:
        """Wait until a lesson is in one of these states."""
        async with asyncio.timeout(_PATIENCE_S):
            while self.state(card) not in states:  # noqa: ASYNC110 - the row itself is what is waited for
                await asyncio.sleep(0.001)

    async def quiet(self) -> None:
        """Wait until nothing runs in the background but the loop itself."""
        tasks = {*self.noticing._tasks._tasks, *self.loop._tasks._tasks}
        ending = [task for task in tasks if task.get_name() != "learning loop"]
        await asyncio.wait_for(asyncio.gather(*ending), _PATIENCE_S)

    def state(self, card: str) -> ProposalState:
        return ProposalState(self.parts.proposals.get(card).state)

    def states_of(self, card: str) -> list[str]:
        """Return every state that the audit log has of a lesson, in order."""
        entries = [entry.payload for entry in self.store.audit.entries if entry.kind == "proposal"]
        return [payload["to"] for payload in entries if payload["id"] == card]

    def says(self, prompt: str) -> str:
        """Return what the version in use says, as the chat's engine has it now."""
        return self.engine.reply([Turn(Role.USER, prompt)], self.active)

    @property
    def active(self) -> str | None:
        """Hash of what the chat's engine runs."""
        return self.engine._hash

    def spendings(self) -> list[str]:
        """Return what was counted against the budget, ever."""
        with self.store.database.session() as session:
            return list(session.exec(select(SpendingRow.what)))

    def kinds(self) -> list[str]:
        """Return the kinds of all audit entries."""
        return [entry.kind for entry in self.store.audit.entries]

    def has_changed_nothing(self) -> None:
        """Assert that the base is in use, in the lineage and in the engine, and that nothing was spent."""
        assert self.head == self.lineage.root()
        assert self.lineage.log() == [self.lineage.root()]
        assert self.active is None
        assert self.spendings() == []
        assert self.says(DOG[0]) != DOG[1]
        assert list(self.parts.work.iterdir()) == []

    def views(self, card: str) -> list[CardView]:
        """Return every view of a card that was published."""
        return [event.card for event in self.events if isinstance(event, CardChanged) and event.card.id == card]


class World:
    """A disk, a clock and a brain."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = FakeClock()
        self.brain = Brain()
        self.recipe = RECIPE
        root.parent.mkdir(parents=True, exist_ok=True)
        serving = root.parent / "base.gguf"
        serving.write_bytes(b"GGUF")
        self.base = BaseFiles(PASSPORT, serving, root.parent)
        self.operations = 0
        """Durable operations so far: database commits and audit entries."""
        self.dies_at: int | None = None
        """The operation before which the app dies."""
        self.dead = False

    def play(self, story: Callable[[Desk], Awaitable[None]], *, unlock: bool = True) -> None:
        """Run one session of the app."""

        async def whole() -> None:
            async with self.session(unlock=unlock) as desk:
                await story(desk)

        asyncio.run(whole())

    @asynccontextmanager
    async def session(self, *, start: bool = True, unlock: bool = True) -> AsyncIterator[Desk]:
        """Open the home, start the loop and close it all at the end."""
        self.dead = False
        store = Store.open(Home(self.root), self.clock, files=QuickFiles())
        desk = self._desk(store)
        try:
            if unlock:
                desk.unlock()
            self._count(store)
            if start:
                await self.start(desk)
            yield desk
        finally:
            self.dies_at = None
            await desk.loop.close()
            await desk.noticing.close()
            await desk.starting.close()
            await desk.examiner.close()
            store.close()

    async def start(self, desk: Desk) -> None:
        """Do what the app does when it starts."""

        async def ready() -> None:
            await desk.engine.load(self.base)
            await desk.parts.versions.resume(desk.engine)

        desk.said += await desk.loop.start(lambda: desk.starting.begin(ready()))
        await desk.starting.ready()

    def _desk(self, store: Store) -> Desk:
        files, clock = QuickFiles(), self.clock
        lineage = Lineage.open(store.objects, store.refs, store.audit, PASSPORT, clock)
        engine, examiner = FakeEngine(self.brain.chat_says), FakeEngine(self.brain.says)
        starting = StartingEngine(engine)
        serving = ServingFiles(store.home.serving, self.base, files=files)
        devmode = DeveloperMode(store.database, lineage.record, clock, machine=FakeMachine(), probes=FakeProbes())
        prepared = FakePrepared(examiner, self.base)
        events: Events[LearningEvent] = Events()
        parts = Parts(
            base=self.base,
            recipe=self.recipe,
            lineage=lineage,
            versions=Versions(lineage, serving, starting),
            serving=serving,
            proposals=Proposals(store.database, lineage.record, clock, held=lambda: lineage.holds(lineage.head())),
            ledger=Ledger(store.database, clock),
            devmode=devmode,
            trainer=FakeTrainer(),
            gate=FakeGate(self.brain),
            engine=starting,
            examiner=examiner,
            encoder=FakeEncoder(),
            prepared=prepared,
            events=events,
            clock=clock,
            work=store.home.work,
            chat=FakeConversations(),
        )
        loop = Loop(parts)
        noticing = Noticing(parts, loop)
        desk = Desk(
            store=store,
            parts=parts,
            loop=loop,
            noticing=noticing,
            learning=LearningService(parts, loop, noticing),
            devmode=devmode,
            engine=engine,
            starting=starting,
            examiner=examiner,
            trainer=_as(FakeTrainer, parts.trainer),
            gate=_as(FakeGate, parts.gate),
            chat=_as(FakeConversations, parts.chat),
            prepared=prepared,
        )
        events.listen(desk.events.append)
        return desk

    def _count(self, store: Store) -> None:
        """Count durable operations, and die at the chosen one."""
        append, session = store.audit.append, store.database.session

        def counted_append(kind: str, payload: dict[str, Any]) -> Any:
            self._live()
            return append(kind, payload)

        @contextmanager
        def counted_session() -> Iterator[Session]:
            with session() as open_session:
                driver = open_session.connection().connection.driver_connection
                assert driver is not None
                before = driver.total_changes
                yield open_session
                open_session.flush()
                if driver.total_changes != before:
                    self._live()

        store.audit.append = counted_append  # type: ignore[method-assign]
        store.database.session = counted_session  # type: ignore[method-assign]

    def _live(self) -> None:
        self.operations += 1
        if self.dead or (self.dies_at is not None and self.operations >= self.dies_at):
            self.dead = True
            raise Killed


def _as(kind: type[Any], part: object) -> Any:
    assert isinstance(part, kind)
    return part
