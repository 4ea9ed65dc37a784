"""Builds everything once: the only place that names concrete classes.

``open_app`` opens a home and puts the use cases together; nothing slow happens before ``start``, which loads the
engine, finishes what the last session left and starts the learning loop. ``close`` ends it all in reverse order.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.approvals.ledger import Ledger
from app.approvals.proposals import Proposals
from app.chat.api import Chats
from app.chat.service import ChatService
from app.chat.styles import chat_settings
from app.clock import Clock, SystemClock
from app.devmode.api import DevMode
from app.devmode.machine import ThisMachine
from app.devmode.service import DeveloperMode
from app.errors import AppError, KnownError
from app.events import Events
from app.learning.api import LearningEvent
from app.learning.loop import Loop
from app.learning.noticing import Noticing
from app.learning.parts import Parts
from app.learning.preparing import Preparation
from app.learning.service import LearningService
from app.learning.versions import Versions
from app.model import bases
from app.model.adapters.canonical import read_adapter
from app.model.adapters.gguf import gguf_adapter
from app.model.adapters.serving import ServingFiles
from app.model.api import BaseFiles, Commit, Encoder, Engine, Evaluator, Example, Recipe, Role, Trainer, TrainJob, Turn
from app.model.encoder.minilm import MiniLMEncoder
from app.model.engine.crash_note import CrashNote
from app.model.engine.starting import StartingEngine
from app.model.gate.evaluator import Gate
from app.model.lineage.doctor import Problem, check
from app.model.lineage.lineage import Lineage
from app.model.runtimes import choose_runtime
from app.paths import settings_file
from app.settings import SettingsFile
from app.store.home import Home, Store

CONTEXT_TOKENS = 8192
EXAMINER_CONTEXT_TOKENS = 2048
EXAMINER_NICE = 10
"""The gate gives way to a conversation, and training to the gate."""

_log = logging.getLogger(__name__)


class MachineProbes:
    """What the wizard measures in other rooms."""

    def __init__(self, check_store: Callable[[], list[Problem]], trainer: Trainer, base: BaseFiles, work: Path) -> None:
        self._check_store = check_store
        self._trainer = trainer
        self._base = base
        self._work = work

    async def store_problems(self) -> list[str]:
        """Return what is wrong with the store, in plain sentences."""
        return [problem.words for problem in self._check_store()]

    async def trial_step_s(self) -> float:
        """Train two steps on a throw-away lesson and return the seconds of the second."""
        await self._trainer.warm(self._base)
        example = Example((Turn(Role.USER, "What is two and two?"),), "Two and two is four.")
        recipe = Recipe(max_steps=2, min_steps=2)
        output = self._work / "trial.safetensors"
        job = TrainJob("trial", self._base, recipe, (example,) * 4, (), (), (), None, output)
        times = [time.monotonic()]
        async with contextlib.aclosing(self._trainer.train(job)) as events:
            times += [time.monotonic() async for _ in events]
        output.unlink(missing_ok=True)
        if len(times) < 3:  # noqa: PLR2004 - the start and two steps
            raise KnownError("try a training step", "the trainer", "It gave no answer. See the log.")
        return times[2] - times[1]


class OpenChat:
    """What learning asks of the conversations; they exist only after learning does, which they feed."""

    def __init__(self) -> None:
        self.service: ChatService | None = None

    async def open_turns(self) -> tuple[Turn, ...]:
        """Return what the model sees of the open conversation."""
        return await self.service.open_turns() if self.service else ()

    def title(self, chat: str) -> str:
        """Return a conversation's title, or ""."""
        return self.service.title(chat) if self.service else ""


@dataclass(frozen=True, slots=True)
class App:
    """Everything that the window and the command line use."""

    store: Store
    settings: SettingsFile
    base: BaseFiles
    lineage: Lineage
    versions: Versions
    chats: Chats
    learning: LearningService
    learning_events: Events[LearningEvent]
    devmode: DevMode
    engine: StartingEngine
    """In front of ``raw_engine``: what everything talks to."""
    raw_engine: Engine
    crash_note: CrashNote
    examiner: Engine
    trainer: Trainer
    encoder: Encoder
    gate: Evaluator
    loop: Loop
    noticing: Noticing
    parts: Parts

    async def start(self, *, learn: bool = True, mend: bool = True) -> list[str]:
        """Load the engine in the background and finish what was cut off; return what to tell the person.

        Args:
            learn: Go on with lessons that were under way.
            mend: Without ``learn``, still see to it that a version is in use that works.
        """
        said = [*self.store.notes, *self.settings.notes]
        chat = self.chats
        if isinstance(chat, ChatService) and self.store.read_only is None:
            await chat.recover()
        if learn and self.store.read_only is None and self.lineage.locked is None:
            said += await self.loop.start(self._begin_engine)
        else:
            if mend and self.lineage.locked is None:
                said += self.lineage.mend()
            self._begin_engine()
        if self.lineage.locked is not None and self.store.read_only is None:
            said.append(self.lineage.locked.sentence())
        return said

    def _begin_engine(self) -> None:
        self.engine.begin(self._load_engine())

    async def _load_engine(self) -> None:
        if self.crash_note.names(self.base.passport.id):
            self.crash_note.clear()
            hint = "It ended while loading last time. Start the app again to try once more."
            raise KnownError("load the model", self.base.passport.name, hint)
        await self.raw_engine.load(self.base, context_tokens=CONTEXT_TOKENS)
        await self.versions.resume(self.raw_engine)
        self._tidy()

    def _tidy(self) -> None:
        """Back up the database and collect unused objects and files, now that the window is up."""
        if self.store.read_only is not None:
            return
        lessons = {row.recipe_data for row in self.parts.ledger.all() if row.recipe_data}
        try:
            self.store.tidy(self.lineage.reachable() | lessons)
            self.parts.serving.prune({commit.delta for commit in self.lineage.log() if commit.delta})
        except AppError as error:
            _log.warning("not tidied: %s", type(error).__name__)

    def doctor(self, *, deep: bool) -> list[Problem]:
        """Check the home; deep reads every byte and derives every serving file again."""
        return check(self.store, self.lineage, deep=deep, rebuild=self._rebuild if deep else None)

    def _rebuild(self, commit: Commit, delta: bytes) -> str | None:
        """Derive a version's serving file again and compare it with the one that is kept."""
        sha256 = commit.delta or ""
        derived = gguf_adapter(read_adapter(delta, self.base.passport, sha256[:12]), self.base.passport, sha256)
        kept = self.store.home.serving / self.base.passport.id[:16] / "gguf" / f"{sha256}.gguf"
        if kept.exists() and kept.read_bytes() != derived:
            return f"The serving file of version {commit.number} differs from its weights; it is made again when used."
        return None

    async def close(self) -> None:
        """End everything; what is under way goes on at the next start."""
        await self.loop.close()
        await self.noticing.close()
        if isinstance(self.chats, ChatService):
            await self.chats.close()
        for part in (self.trainer, self.examiner, self.engine, self.encoder):
            await part.close()
        self.store.close()


def open_app(root: Path, base: BaseFiles, *, clock: Clock | None = None, engine: Engine | None = None) -> App:
    """Open a home on a prepared base. Raises DeniedError (another instance), KnownError, VerificationError."""
    clock = clock or SystemClock()
    store = Store.open(Home(root), clock)
    try:
        return _assemble(store, base, clock, engine)
    except BaseException:
        store.close()
        raise


def _assemble(store: Store, base: BaseFiles, clock: Clock, engine: Engine | None) -> App:
    home = store.home
    runtime = choose_runtime()
    base = runtime.files(base)
    settings = SettingsFile(settings_file(home.root))
    lineage = Lineage.open(store.objects, store.refs, store.audit, base.passport, clock)
    serving = ServingFiles(home.serving, base, form=runtime.adapter_form)
    note = CrashNote(home.cache / "crashed-while-loading")
    raw = engine or runtime.engine(name="engine", note=note)
    starting = StartingEngine(raw)
    versions = Versions(lineage, serving, starting)
    examiner = runtime.engine(name="examiner", nice=EXAMINER_NICE)
    trainer = runtime.trainer()
    encoder = MiniLMEncoder()
    gate = Gate(examiner, encoder, cache_dir=home.cache / "gate", context_tokens=EXAMINER_CONTEXT_TOKENS, clock=clock)
    ledger = Ledger(store.database, clock)
    proposals = Proposals(store.database, lineage.record, clock, held=lambda: lineage.holds(lineage.head()))
    probes = MachineProbes(lambda: check(store, lineage), trainer, base, home.work)
    devmode = DeveloperMode(store.database, lineage.record, clock, machine=ThisMachine(home.root), probes=probes)
    recipe = Recipe()
    prepared = Preparation(
        base,
        recipe,
        trainer=trainer,
        gate=gate,
        examiner=examiner,
        cache=home.cache / "planning",
        versions=versions,
        lineage=lineage,
        ledger=ledger,
    )
    events: Events[LearningEvent] = Events()
    chat = OpenChat()
    parts = Parts(
        base=base,
        recipe=recipe,
        lineage=lineage,
        versions=versions,
        serving=serving,
        proposals=proposals,
        ledger=ledger,
        devmode=devmode,
        trainer=trainer,
        gate=gate,
        engine=starting,
        examiner=examiner,
        encoder=encoder,
        prepared=prepared,
        events=events,
        clock=clock,
        work=home.work,
        chat=chat,
    )
    loop = Loop(parts)
    noticing = Noticing(parts, loop)
    chats = ChatService(
        store.database,
        starting,
        versions,
        clock,
        sink=noticing,
        readiness=starting,
        settings=lambda: chat_settings(settings.get),
        context_tokens=CONTEXT_TOKENS,
    )
    chat.service = chats
    return App(
        store=store,
        settings=settings,
        base=base,
        lineage=lineage,
        versions=versions,
        chats=chats,
        learning=LearningService(parts, loop, noticing),
        learning_events=events,
        devmode=devmode,
        engine=starting,
        raw_engine=raw,
        crash_note=note,
        examiner=examiner,
        trainer=trainer,
        encoder=encoder,
        gate=gate,
        loop=loop,
        noticing=noticing,
        parts=parts,
    )


async def prepare_embedded(root: Path, progress: Callable[[str, float], None] | None = None) -> BaseFiles:
    """Return the embedded base, prepared in this home; the first time takes about ten seconds."""
    return await bases.prepare(bases.embedded_source(), Home(root).bases, progress)
