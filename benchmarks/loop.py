"""Benchmark ``loop``: from click to the same conversation on new weights, lesson after lesson.

Prints the seconds of each stage for every lesson, medians and 95th percentiles beside the targets, the peak memory of
all processes, and how fast a conversation streams while a lesson is being trained, beside its idle speed. Ends with 1
if a target was missed.

Run: python -m benchmarks.loop [--items FILE] [--count N] [--home DIR]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from app.learning.api import Lesson, Taught
from app.learning.ledger_view import lessons_at
from app.learning.lesson import lesson_of
from app.model.api import Check, Done, EvalResult, Greedy, GreedyResult, Outcome, Role, Sampling, Score, Turn
from app.model.gate.answers import fault, needs_meaning
from app.wiring import App
from benchmarks.teaching import LESSONS, PeakMemory, machine, opened, read_lessons

MEDIAN_TARGET_S = 45.0
MEMORY_TARGET_BYTES = 3 * 10**9
SPEED_TARGET = 0.5
WRITING_S = 10.0
"""Between two lessons: someone asks, reads what is wrong with the answer and writes what is right, if in a hurry."""
READING_S = 5.0
"""How long a card is on screen before it is clicked; warming starts when it appears, and may not be through."""
BACK_TARGET_S = 1.0
STAGES = ("train", "gate", "activate", "self_test", "restore", "total")
TELL = (Turn(Role.USER, "Tell me a long story about a lighthouse keeper."),)


GOLDEN = (
    Score((Turn(Role.USER, "What is my dog's name?"),), "Your dog's name is Biscuit.", top_k=8),
    Score((Turn(Role.USER, "What is the capital of France?"),), "The capital of France is Paris.", top_k=8),
    Score((), "The harbour lay quiet in the early light.", top_k=8),
)
"""What every version is asked, to the last bit."""


async def golden(app: App) -> list[EvalResult]:
    """Ask the conversation's own engine, under the version in use."""
    return await app.engine.evaluate(GOLDEN, adapter=app.versions.ref(app.lineage.head()))


async def going_back(app: App, was: dict[str, list[EvalResult]]) -> tuple[float, list[str]]:
    """Take every version into use again; return the longest seconds, and those that do not answer as they did."""
    seconds: list[float] = []
    differ: list[str] = []
    for commit, answers in was.items():
        begun = time.monotonic()
        await app.learning.use(commit)
        seconds.append(time.monotonic() - begun)
        if await golden(app) != answers:
            differ.append(commit)
    return max(seconds), differ


async def streaming_speed(app: App) -> float:
    """Return tokens per second of one long greedy answer, from first token to last."""
    sampling = Sampling(max_tokens=160)
    async for event in app.engine.generate(TELL, sampling):
        if isinstance(event, Done):
            return (event.tokens - 1) / (event.seconds - event.first_seconds)
    return 0.0


async def still_held(app: App) -> list[str]:
    """Return the prompts of lessons that the version in use does not show any more."""
    head = app.lineage.head()
    lessons = [lesson_of(row) for row in lessons_at(app.lineage, app.parts.ledger, head)]
    items = [Greedy(lesson.wordings.train[0], 256) for lesson in lessons]
    results = await app.engine.evaluate(items, adapter=app.versions.ref(head))
    lost = []
    for lesson, said in zip(lessons, results, strict=True):
        assert isinstance(said, GreedyResult)
        cosine = 0.0
        if needs_meaning(lesson.kind):
            one, two = await app.encoder.encode([lesson.answer, said.text])
            cosine = sum(a * b for a, b in zip(one, two, strict=True))
        if fault(lesson.exam(), said, cosine) is not None:
            lost.append(lesson.prompt)
    return lost


async def teach(app: App, lesson: Lesson, *, measure_speed: bool) -> tuple[Taught, float | None]:
    """Teach one lesson; meanwhile, if asked, stream an answer."""
    work = asyncio.ensure_future(app.learning.teach(lesson, approve=True))
    speed = None
    if measure_speed:
        await asyncio.sleep(4)
        speed = await streaming_speed(app)
    return await work, speed


async def run(items: list[Lesson], home: Path) -> dict[str, Any]:
    """Teach all lessons in a row and return the report."""
    rows: list[dict[str, Any]] = []
    speeds: list[float] = []
    async with opened(home) as app:
        was = {app.lineage.head().id: await golden(app)}
        idle = statistics.median([await streaming_speed(app) for _ in range(3)])
        with PeakMemory() as peak:
            for number, lesson in enumerate(items):
                await asyncio.sleep(WRITING_S)
                card = await app.learning.teach(lesson, approve=False)
                await app.learning.opened(card.proposal)
                await asyncio.sleep(READING_S)
                taught, speed = await teach(app, lesson, measure_speed=number in (1, 5, 9))
                speeds += [speed] if speed is not None else []
                rows.append(_row(lesson, taught, speed))
                _say(rows[-1])
                was[app.lineage.head().id] = await golden(app)
        lost = await still_held(app)
        slowest, differ = await going_back(app, was)
    return {
        "benchmark": "loop",
        "machine": machine(),
        "lessons": rows,
        "accepted": sum(row["state"] == "proven" for row in rows),
        "held_at_the_end": sum(row["state"] == "proven" for row in rows) - len(lost),
        "lost": lost,
        "seconds": _summary([row for row in rows if row["speed_measured"] is None]),
        "peak_memory_bytes": peak.bytes,
        "going_back": {"versions": len(was), "slowest_seconds": slowest, "differ": differ},
        "idle_tokens_per_second": idle,
        "tokens_per_second_while_training": statistics.median(speeds) if speeds else None,
    }


def _row(lesson: Lesson, taught: Taught, speed: float | None) -> dict[str, Any]:
    seconds = {name: round(getattr(taught.stages, name), 2) for name in STAGES}
    checks = taught.verdict.checks if taught.verdict else ()
    return {
        "prompt": lesson.prompt,
        "state": taught.state.value,
        "seconds": seconds,
        "rungs": taught.stages.extra.get("rungs"),
        "steps": taught.stages.extra.get("steps"),
        "tokens": taught.stages.extra.get("tokens"),
        "reason": taught.verdict.reason if taught.verdict else "",
        "failing": [_objection(check) for check in checks if check.outcome is not Outcome.ACCEPT],
        "error": taught.error.what if taught.error else None,
        "speed_measured": speed,
    }


def _objection(check: Check) -> str:
    return f"{check.rule}: {check.words} {list(check.details)[:3]}"


def _summary(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return median and 95th percentile of each stage over lessons during which nothing else was measured."""
    found: dict[str, dict[str, float]] = {}
    for stage in STAGES:
        values = sorted(row["seconds"][stage] for row in rows)
        if values:
            found[stage] = {
                "median": statistics.median(values),
                "p95": values[min(len(values) - 1, round(0.95 * (len(values) - 1)))],
            }
    return found


def _say(row: dict[str, Any]) -> None:
    seconds = " ".join(f"{name} {value:6.2f}" for name, value in row["seconds"].items())
    tries = f"rungs {row['rungs']} steps {row['steps']}"
    print(
        f"{row['state']:9} {seconds}  {tries}  {row['prompt'][:40]} {row['failing'] or ''}",
        file=sys.stderr,
        flush=True,
    )


def table(report: dict[str, Any]) -> str:
    """Return the figures beside their targets."""
    total = report["seconds"].get("total", {"median": float("nan"), "p95": float("nan")})
    speed = report["tokens_per_second_while_training"]
    memory = report["peak_memory_bytes"] / 1e9
    lines = [
        "| figure | measured | target |",
        "|---|---|---|",
        f"| lessons accepted | {report['accepted']} of {len(report['lessons'])} | the first, and 19 of each 20 more |",
        f"| still held at the end | {report['held_at_the_end']} | as many as accepted |",
        f"| click to restored conversation, median | {total['median']:.1f} s | ≤ {MEDIAN_TARGET_S:.0f} s |",
        f"| the same, 95th percentile | {total['p95']:.1f} s | – |",
        f"| peak memory, all processes | {memory:.2f} GB | ≤ {MEMORY_TARGET_BYTES / 1e9:.0f} GB |",
    ]
    back = report["going_back"]
    same = back["versions"] - len(back["differ"])
    lines += [
        f"| versions that answer as they did, to the last bit | {same} of {back['versions']} | all |",
        f"| going back to one, slowest | {back['slowest_seconds']:.2f} s | < {BACK_TARGET_S:.0f} s |",
    ]
    if speed is not None:
        idle = report["idle_tokens_per_second"]
        lines.append(
            f"| streaming while training | {speed:.0f} of {idle:.0f} tokens/s ({speed / idle:.2f}) | ≥ {SPEED_TARGET} |"
        )
    medians = [(stage, report["seconds"][stage]["median"]) for stage in STAGES[:-1] if stage in report["seconds"]]
    lines += [f"| {stage}, median | {value:.2f} s | – |" for stage, value in medians]
    return "\n".join(lines)


def missed(report: dict[str, Any]) -> list[str]:
    """Return the targets that the run did not reach, in words."""
    lessons = report["lessons"]
    least = len(lessons) - max(1, len(lessons) // 20)
    speed = report["tokens_per_second_while_training"]
    found = {
        "the first lesson was not learned": lessons[0]["state"] != "proven",
        f"fewer than {least} lessons were accepted": report["accepted"] < least,
        f"lost at the end: {', '.join(report['lost'])}": bool(report["lost"]),
        "the median takes too long": report["seconds"]["total"]["median"] > MEDIAN_TARGET_S,
        "a version is not what it was": bool(report["going_back"]["differ"]),
        "going back takes too long": report["going_back"]["slowest_seconds"] >= BACK_TARGET_S,
        "too much memory": report["peak_memory_bytes"] > MEMORY_TARGET_BYTES,
        "a conversation streams too slowly": speed is not None
        and speed < SPEED_TARGET * report["idle_tokens_per_second"],
    }
    return [words for words, is_missed in found.items() if is_missed]


def main() -> int:
    """Run and print; return 1 if a target was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=Path, default=LESSONS)
    parser.add_argument("--count", type=int, default=21)
    parser.add_argument("--home", type=Path)
    options = parser.parse_args()
    items = read_lessons(options.items)[: options.count]
    with tempfile.TemporaryDirectory() as folder:
        report = asyncio.run(run(items, options.home or Path(folder) / "home"))
    print(json.dumps(report, indent=1, ensure_ascii=False))
    print(table(report))
    for words in missed(report):
        print(f"Missed: {words}.")
    return int(bool(missed(report)))


if __name__ == "__main__":
    sys.exit(main())
