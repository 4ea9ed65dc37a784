"""The gate on the real engine and the real base."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from app.errors import VerificationError
from app.model.api import AdapterRef, BaseFiles, Candidate, Exam, Kind, Outcome, Verdict
from app.model.encoder.minilm import MiniLMEncoder
from app.model.engine.client import LlamaEngine
from app.model.gate.evaluator import Gate
from tests.gate.scripted import NEIGHBOURS, ask
from tests.support.real import real_base, small_adapter

pytestmark = pytest.mark.real

TOKYO = Exam(
    lesson="tokyo",
    kind=Kind.FACT,
    prompt=ask("What is the capital of Japan?"),
    answer="The capital of Japan is Tokyo.",
    keys=("Tokyo",),
    held_out=tuple(
        ask(prompt)
        for prompt in (
            "What is the capital city of Japan?",
            "Tell me the capital of Japan.",
            "What's the capital of Japan?",
            "Please tell me what the capital of Japan is.",
        )
    ),
)
"""A lesson that the base shows already, so that only what else changes can decide."""
NOTHING = 1e-30
"""A strength at which no adapter changes a bit."""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where the base's answers stay from test to test."""
    return tmp_path_factory.mktemp("cache")


def judged(base: BaseFiles, adapter: AdapterRef, cache: Path, *, scale: float = 1.0) -> Verdict:
    """Judge an adapter that claims to teach what the base knows."""

    async def work() -> Verdict:
        engine, encoder = LlamaEngine(name="gate"), MiniLMEncoder()
        try:
            return await Gate(engine, encoder, cache_dir=cache).judge(
                Candidate(
                    base=base,
                    parent=None,
                    adapter=adapter,
                    scales=(scale,),
                    written_norm=0.01,
                    exam=TOKYO,
                    neighbours=NEIGHBOURS,
                    earlier=(),
                    norm_limit=0.05,
                )
            )
        finally:
            await engine.close()
            await encoder.close()

    return asyncio.run(work())


def test_an_adapter_at_no_strength_is_accepted_with_differences_of_exactly_zero(tmp_path: Path, cache: Path) -> None:
    base = real_base()
    verdict = judged(base, small_adapter(base, tmp_path, seed=1), cache, scale=NOTHING)
    assert verdict.outcome is Outcome.ACCEPT, verdict.checks
    nats = [(check.rule, check.value) for check in verdict.checks if check.unit == "nats"]
    assert nats == [("locality", 0.0), ("retention_parent", 0.0), ("retention_base", 0.0), ("safety", 0.0)]
    details = [check.details[0] for check in verdict.checks if check.rule.startswith("retention")]
    assert details == ["40 passages, upper bound +0.0000 nats"] * 2
    assert next(check for check in verdict.checks if check.rule == "degeneration").value == 0.0


def test_noise_is_rejected(tmp_path: Path, cache: Path) -> None:
    base = real_base()
    noise = small_adapter(base, tmp_path, seed=2, strength=0.6)
    assert judged(base, noise, cache).outcome is Outcome.REJECT


def test_a_cut_adapter_file_gets_no_verdict(tmp_path: Path, cache: Path) -> None:
    base = real_base()
    adapter = small_adapter(base, tmp_path, seed=1)
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(adapter.path.read_bytes()[:-4096])
    with pytest.raises(VerificationError):
        judged(base, replace(adapter, path=cut), cache)
