"""The command line on the real wiring, with engines, trainer and gate that only pretend."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import app.cli
import app.wiring
from app.__main__ import main
from app.devmode.api import SENTENCE
from app.model.api import AdapterRef, BaseFiles, EngineInfo
from app.model.encoder.fake import FakeEncoder
from app.model.engine.crash_note import CrashNote
from app.model.engine.fake import FakeEngine
from tests.lineage.made import PASSPORT
from tests.support.learning import Brain, FakeGate, FakeTrainer

Json = dict[str, Any]


class WiredGate(FakeGate):
    """A gate that loads its engine, as the wiring expects of one."""

    def __init__(self, examiner: FakeEngine, *, script: FakeGate) -> None:
        super().__init__(script._brain)
        self._examiner = examiner
        self.script = script.script

    async def warm(self, base: BaseFiles) -> EngineInfo:
        return await self._examiner.load(base)

    async def prepare(self, base: BaseFiles, parent: AdapterRef | None, **_: object) -> None:
        """There is nothing to ask beforehand."""


@dataclass
class FakeRuntime:
    """Stands where ``app.model.runtimes.Runtime`` does."""

    brain: Brain
    fake_trainer: FakeTrainer
    engines: list[str] = field(default_factory=list)
    broken: Exception | None = None
    adapter_form: str = "gguf"

    def engine(self, *, name: str, nice: int = 0, note: CrashNote | None = None) -> FakeEngine:
        self.engines.append(name)
        engine = FakeEngine(self.brain.says)
        engine.fail_next = self.broken  # type: ignore[assignment]
        return engine

    def trainer(self) -> FakeTrainer:
        return self.fake_trainer

    def files(self, base: BaseFiles) -> BaseFiles:
        return base


@dataclass
class Ran:
    """One command that was run."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Json:
        """Return the one object on standard output; anything else there fails."""
        assert self.out.endswith("\n")
        assert self.out.count("\n") == 1, self.out
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value

    @property
    def error(self) -> Json:
        found: Json = self.json["error"]
        assert set(found) == {"what", "subject", "hint", "retryable"}
        assert found["what"].startswith("could not ")
        assert isinstance(found["retryable"], bool)
        return found


class Rig:
    """A home, and commands on it; each is a start of the app of its own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = folder / "home"
        self.brain = Brain()
        self.trainer = FakeTrainer()
        self.gate = FakeGate(self.brain)
        self.runtime = FakeRuntime(self.brain, self.trainer)
        self._capsys = capsys
        serving = folder / "base.gguf"
        serving.write_bytes(b"GGUF")
        self.base = BaseFiles(PASSPORT, serving, folder)

        async def prepared(_: Path, __: object) -> BaseFiles:
            return self.base

        monkeypatch.setattr(app.cli, "prepare_embedded", prepared)
        monkeypatch.setattr(app.wiring, "choose_runtime", lambda: self.runtime)
        monkeypatch.setattr(app.wiring, "MiniLMEncoder", FakeEncoder)
        monkeypatch.setattr(app.wiring, "Gate", lambda examiner, _, **__: WiredGate(examiner, script=self.gate))
        monkeypatch.setenv("OWNMIND_HOME", str(self.home))

    def run(self, *arguments: str) -> Ran:
        self._capsys.readouterr()
        code = main(list(arguments))
        said = self._capsys.readouterr()
        return Ran(code, said.out, said.err)

    def unlock(self) -> None:
        assert self.run("unlock", "--accept", SENTENCE, "--json").code == 0

    def teach(self, prompt: str, answer: str) -> Ran:
        return self.run("teach", "--prompt", prompt, "--answer", answer, "--approve", "--json")
