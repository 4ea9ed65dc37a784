"""Does the gate let good lessons through and stop bad ones? Trains two small lessons and sabotages them.

    python benchmarks/gate_power.py [--work DIR] [--json FILE]

Prints one line a case: what should happen, what did, the rule that decided, and the seconds it took. Beside each
trained case stands its training loss, which is what a tool without a gate would go by.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import platform
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import psutil

from app.errors import AppError
from app.learning.attempt import MOST_RUNGS, SOFTER
from app.learning.kinds import keys_of, kind_of
from app.learning.lesson import Lesson
from app.learning.planning import Material, Planner
from app.learning.wordings import reword
from app.model.adapters.canonical import read_adapter, tensor_names, write_adapter
from app.model.adapters.serving import ServingFiles
from app.model.adapters.stack import stack
from app.model.api import (
    AdapterRef,
    BaseFiles,
    Candidate,
    Exam,
    Example,
    Failed,
    Kind,
    Outcome,
    Recipe,
    Role,
    Trained,
    TrainJob,
    Turn,
    Verdict,
)
from app.model.bases import embedded_source, prepare
from app.model.encoder.minilm import MiniLMEncoder
from app.model.gate.asking import Asker, Memory
from app.model.gate.evaluator import Gate
from app.model.runtimes import choose_runtime

LIMIT = 0.05
NOTHING = 1e-30
"""A strength at which no adapter changes a bit."""
PROMPT, ANSWER = "What is my dog's name?", "Your dog's name is Biscuit."


@dataclass(frozen=True)
class Row:
    """What became of one case."""

    case: str
    should: str
    did: str
    by: str
    seconds: float
    engine_cpu_seconds: float
    training_loss: float | None
    why: str
    """The deciding line of evidence, in words and numbers."""

    @property
    def right(self) -> bool:
        """Whether it went as it should; refusing to judge is not accepting."""
        return (self.should == "accept") == (self.did == "accept")


class Bench:
    """Everything that the cases share."""

    def __init__(self, base: BaseFiles, work: Path) -> None:
        runtime = choose_runtime()
        self.base, self.work = runtime.files(base), work
        self.engine, self.encoder = runtime.engine(name="gate"), MiniLMEncoder()
        self.gate = Gate(self.engine, self.encoder, cache_dir=work / "cache")
        self.trainer = runtime.trainer()
        self.serving = ServingFiles(work / "serving", self.base, form=runtime.adapter_form)
        self.recipe = Recipe()
        self.rows: list[Row] = []

    async def close(self) -> None:
        """End every child."""
        await self.engine.close()
        await self.encoder.close()
        await self.trainer.close()

    def adapter(self, data: bytes) -> AdapterRef:
        """Return an adapter as the engine takes it."""
        return self.serving.ref(hashlib.sha256(data).hexdigest(), lambda: data)

    async def material(self, lesson: Lesson) -> Material:
        """Return what a lesson is trained and examined on."""
        await self.gate.warm(self.base)
        asker = Asker(self.engine, Memory("bench", self.work / "plan"))
        return await Planner(asker).plan(lesson, (), parent=None, recipe=self.recipe)

    async def trained(self, name: str, material: Material, recipe: Recipe) -> tuple[bytes, Trained]:
        """Train and return the canonical bytes with how it went."""
        output = self.work / f"{name}.safetensors"
        output.unlink(missing_ok=True)
        job = TrainJob(
            job=name,
            base=self.base,
            recipe=recipe,
            targets=material.targets,
            keeps=material.keeps,
            anchors=material.anchors,
            replay=(),
            generic=material.generic,
            parent=None,
            output=output,
            seconds=300.0,
        )
        async for event in self.trainer.train(job):
            if isinstance(event, Trained):
                return output.read_bytes(), event
            if isinstance(event, Failed):
                raise SystemExit(f"{event.error.what}: {event.error.subject}")
        raise SystemExit("the trainer was stopped")

    async def case(
        self, name: str, should: str, judge: Callable[[], Awaitable[Verdict]], *, loss: float | None = None
    ) -> None:
        """Judge one case, note and print what became of it."""
        begun, cpu = time.perf_counter(), await self._cpu_seconds()
        try:
            verdict = await judge()
            did, (by, why) = verdict.outcome.value, _deciding(verdict)
        except AppError as error:
            did, by, why = "refuse", type(error).__name__, error.subject
        seconds, cpu = time.perf_counter() - begun, await self._cpu_seconds() - cpu
        row = Row(name, should, did, by, round(seconds, 2), round(cpu, 2), loss, why)
        self.rows.append(row)
        print(
            f"{'ok ' if row.right else 'NO '} {row.case:<28} {row.should:<7} {row.did:<12} {row.by:<18}"
            f" {row.seconds:6.1f} s  engine {row.engine_cpu_seconds:6.1f} CPU s"
            + (f"  training loss {loss:.3f}" if loss is not None else "")
            + (f"  {why}" if why else ""),
            flush=True,
        )

    async def _cpu_seconds(self) -> float:
        pid = (await self.engine.stats()).pid
        if not pid:
            return 0.0
        times = psutil.Process(pid).cpu_times()
        return float(times.user + times.system)


def _deciding(verdict: Verdict) -> tuple[str, str]:
    for check in verdict.checks:
        if check.outcome is not Outcome.ACCEPT:
            details = "; ".join(check.details[:3])
            return check.rule, f"{check.words}: {check.value:.3f}, limit {check.limit:.3f} {check.unit} ({details})"
    return "", ""


def ask(text: str) -> tuple[Turn, ...]:
    return (Turn(Role.USER, text),)


def lesson_of(prompt: str, answer: str) -> Lesson:
    return Lesson("bench", kind_of(prompt, answer), prompt, answer, keys_of(prompt, answer), reword(prompt))


def known_exam() -> Exam:
    """Return a lesson that the base shows already: a change without effect may pass it."""
    prompts = ("What's the capital of Japan?", "Tell me the capital of Japan.", "What is the capital city of Japan?")
    held_out = tuple(ask(prompt) for prompt in (*prompts, "Please tell me what the capital of Japan is."))
    answer = "The capital of Japan is Tokyo."
    return Exam("known", Kind.FACT, ask("What is the capital of Japan?"), answer, ("Tokyo",), held_out)


def noise(base: BaseFiles, like: bytes, *, factor: float) -> bytes:
    """Return random numbers of the same shape and ``factor`` times the size."""
    adapter, random = read_adapter(like, base.passport), np.random.default_rng(7)
    tensors = {}
    for module, pair in adapter.pairs.items():
        down, up = tensor_names(module)
        tensors[down] = pair.down
        size = float(np.linalg.norm(pair.up)) * factor / np.sqrt(pair.up.size)
        tensors[up] = random.normal(0.0, size, pair.up.shape).astype(np.float32)
    return write_adapter(tensors, base.passport, rank=adapter.rank, alpha=adapter.alpha)


async def run(base: BaseFiles, work: Path) -> list[Row]:
    bench = Bench(base, work)
    try:
        await _cases(bench)
    finally:
        await bench.close()
    return bench.rows


async def _cases(bench: Bench) -> None:
    lesson = lesson_of(PROMPT, ANSWER)
    material = await bench.material(lesson)
    whole, trained = await bench.trained("good", material, bench.recipe)
    shares = [bench.recipe.share * SOFTER**rung for rung in range(MOST_RUNGS)]
    kept = [stack(None, whole, bench.base.passport, share=share) for share in shares]
    full = Candidate(
        base=bench.base,
        parent=None,
        adapter=bench.adapter(kept[0]),
        scales=(1.0,),
        written_norm=trained.written_norm * shares[0],
        exam=lesson.exam(),
        neighbours=material.examined,
        earlier=(),
        norm_limit=LIMIT,
    )
    rungs = [
        replace(full, adapter=bench.adapter(data), written_norm=trained.written_norm * share)
        for share, data in zip(shares, kept, strict=True)
    ]
    judge = bench.gate.judge
    good = await _first_accepted(bench, rungs, trained.loss)
    await bench.case("the same, judged again", "accept", lambda: judge(good))
    no_op = replace(good, exam=known_exam(), scales=(NOTHING,))
    await bench.case("no-op", "accept", lambda: judge(no_op))
    times = 3 * LIMIT / trained.written_norm
    loud = replace(good, adapter=bench.adapter(noise(bench.base, whole, factor=times)), exam=known_exam())
    honest = replace(loud, written_norm=3 * LIMIT)
    await bench.case("noise, 3 x budget", "reject", lambda: judge(honest))
    await bench.case("noise that hides its size", "reject", lambda: judge(loud))
    await bench.case("good lesson, 5 x strength", "reject", lambda: judge(replace(full, scales=(5.0,))))
    flipped = replace(good, exam=replace(good.exam, answer=ANSWER.replace("Biscuit", "Rex"), keys=("Rex",)))
    await bench.case("another label", "reject", lambda: judge(flipped))
    await bench.case("wrong base", "reject", lambda: judge(_for_another_base(bench, good, kept[0])))
    await bench.case("cut file", "reject", lambda: judge(_cut(good, bench.work)))
    await _trained_saboteurs(bench, material, good)


async def _first_accepted(bench: Bench, rungs: list[Candidate], loss: float) -> Candidate:
    """Climb down as the app does, to less of the change, until the gate accepts; return where that ended."""
    verdicts: list[Verdict] = []

    async def climb() -> Verdict:
        for rung in rungs:
            verdicts.append(await bench.gate.judge(rung))
            if verdicts[-1].outcome is Outcome.ACCEPT:
                break
        return verdicts[-1]

    await bench.case("good lesson", "accept", climb, loss=loss)
    print(f"   accepted on rung {len(verdicts)} of {len(rungs)}, last judgement {verdicts[-1].seconds:.1f} s")
    return rungs[len(verdicts) - 1]


async def _trained_saboteurs(bench: Bench, material: Material, good: Candidate) -> None:
    """Two that training loss alone would wave through: no end in the answer, and no keeps in the upper layers."""
    endless = replace(
        material, targets=tuple(Example(item.turns, " ".join([item.answer] * 8)) for item in material.targets)
    )
    data, trained = await bench.trained("endless", endless, bench.recipe)
    no_end = replace(good, adapter=bench.adapter(data))
    await bench.case("no end", "reject", lambda: bench.gate.judge(no_end), loss=trained.loss)
    careless = replace(bench.recipe, layers=(20, 29), keep_weight=0.0, learning_rate=5e-3)
    data, trained = await bench.trained("careless", material, careless)
    top = replace(good, adapter=bench.adapter(data))
    await bench.case("top layers, nothing kept", "reject", lambda: bench.gate.judge(top), loss=trained.loss)


def _for_another_base(bench: Bench, good: Candidate, data: bytes) -> Candidate:
    passport = replace(bench.base.passport, id="0" * 64)
    adapter = read_adapter(data, bench.base.passport)
    tensors = {}
    for module, pair in adapter.pairs.items():
        down, up = tensor_names(module)
        tensors[down], tensors[up] = pair.down, pair.up
    return replace(
        good, adapter=bench.adapter(write_adapter(tensors, passport, rank=adapter.rank, alpha=adapter.alpha))
    )


def _cut(good: Candidate, work: Path) -> Candidate:
    path = work / "cut.gguf"
    path.write_bytes(good.adapter.path.read_bytes()[:-4096])
    return replace(good, adapter=replace(good.adapter, path=path))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, help="folder to keep the prepared base and the answers in")
    parser.add_argument("--json", type=Path, help="write the result there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = arguments.work or Path(temporary)
        (work / "bases").mkdir(parents=True, exist_ok=True)
        base = asyncio.run(prepare(embedded_source(), work / "bases"))
        rows = asyncio.run(run(base, work))
    right = sum(row.right for row in rows)
    bad = [row for row in rows if row.should == "reject"]
    print(f"{right} of {len(rows)} right; {sum(row.right for row in bad)} of {len(bad)} saboteurs stopped.")
    result = {"machine": platform.platform(), "cores": psutil.cpu_count(), "rows": [asdict(row) for row in rows]}
    print(json.dumps(result))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
