"""The checks after activation, on the engine that answers the person, from an empty context.

(1) the engine reports the adapter of this version; (2) the lesson's own question is answered with the lesson, and
stops; (3) so are three other wordings, of which one may fail; (4) three earlier lessons still hold; (5) the engine
gives the lesson the same log-probability twice, to the last bit: nothing is left of the version before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.model.api import AdapterRef, Encoder, Engine, Exam, Greedy, GreedyResult, Score
from app.model.gate.answers import fault, needs_meaning

WORDINGS = 3
EARLIER = 3
_LONGEST = 160


@dataclass(frozen=True, slots=True)
class SelfTest:
    """What was found; ``reason`` is empty when all is well."""

    reason: str

    @property
    def passed(self) -> bool:
        """Return whether the version may stay in use."""
        return not self.reason


async def self_test(
    engine: Engine, encoder: Encoder, adapter: AdapterRef | None, exam: Exam | None, earlier: Sequence[Exam]
) -> SelfTest:
    """Run the steps above; ``exam`` is None when a lesson was taken back."""
    stats = await engine.stats()
    if stats.adapter != (adapter.sha256 if adapter else None):  # (1)
        return SelfTest("the engine does not run this version")
    asked = [] if exam is None else [(exam, turns) for turns in (exam.prompt, *exam.held_out[:WORDINGS])]
    asked += [(old, old.prompt) for old in earlier[-EARLIER:]]
    greedy = [Greedy(turns, _room(of.answer)) for of, turns in asked]
    golden = [] if exam is None else [Score(exam.prompt, exam.answer)]
    results = await engine.evaluate([*greedy, *golden], adapter=adapter)
    said = [result for result in results if isinstance(result, GreedyResult)]
    wrong = await _wrong(encoder, [of for of, _ in asked], said)
    own = 0 if exam is None else 1 + len(exam.held_out[:WORDINGS])
    if own and wrong[0]:  # (2)
        return SelfTest("it does not say it when asked in the same words")
    if sum(wrong[1:own]) > 1:  # (3)
        return SelfTest("it does not say it in other wordings")
    if any(wrong[own:]):  # (4)
        return SelfTest("an earlier lesson does not hold any more")
    if golden and await engine.evaluate(golden, adapter=adapter) != results[len(greedy) :]:  # (5)
        return SelfTest("the engine does not answer the same way twice")
    return SelfTest("")


async def _wrong(encoder: Encoder, exams: Sequence[Exam], said: Sequence[GreedyResult]) -> list[bool]:
    """Return for each answer whether it fails to show its lesson."""
    pairs = list(zip(exams, said, strict=True))
    texts = [text for exam, answer in pairs if needs_meaning(exam.kind) for text in (exam.answer, answer.text)]
    vectors = dict(zip(texts, await encoder.encode(texts), strict=True)) if texts else {}

    def cosine(exam: Exam, answer: GreedyResult) -> float:
        if not needs_meaning(exam.kind):
            return 0.0
        return sum(a * b for a, b in zip(vectors[exam.answer], vectors[answer.text], strict=True))

    return [fault(exam, answer, cosine(exam, answer)) is not None for exam, answer in pairs]


def _room(answer: str) -> int:
    """Return how many tokens an answer may take: its own length and half as much again."""
    return min(_LONGEST, 16 + 2 * len(answer.split()) + len(answer) // 4)
