"""The judge: does a greedy answer show the lesson?

An answer must end by itself and must not degenerate, whatever it says. Beyond that the kind of the lesson decides:

- fact: every key stands in it, and it does not begin by not answering;
- format: it has the form of the approved answer, and its meaning;
- style, long: it means what the approved answer means.

Meaning is a cosine of the frozen sentence encoder, or shared words, whichever is kinder: the encoder forgives other
words, the words forgive what the encoder cannot read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.model.api import Exam, GreedyResult, Kind
from app.model.gate import shapes, text

REPETITION_LIMIT = 0.35
"""Share of repeated 4-grams above which an answer counts as degenerate."""
_RUN_ON_FACTOR = 3
_RUN_ON_WORDS = 25


@dataclass(frozen=True, slots=True)
class Likeness:
    """How near two texts must be to count as the same in meaning."""

    cosine: float
    overlap: float


NEEDED = {
    Kind.FORMAT: Likeness(0.50, 0.40),
    Kind.STYLE: Likeness(0.65, 0.55),
    Kind.LONG: Likeness(0.70, 0.55),
}


def needs_meaning(kind: Kind) -> bool:
    """Return whether the judge needs a cosine for this kind of lesson."""
    return kind in NEEDED


def fault(exam: Exam, said: GreedyResult, cosine: float = 0.0) -> str | None:
    """Return why the answer does not show the lesson, in plain words, or None if it does.

    Args:
        exam: The lesson.
        said: The answer, greedy and free-running.
        cosine: Between the answer and the approved one; needed where ``needs_meaning`` says so.
    """
    if (broken := _broken(exam, said)) is not None:
        return broken
    if exam.kind is Kind.FACT:
        return _fact(exam, said.text)
    if exam.kind is Kind.FORMAT and (lacking := _form(exam, said.text)):
        return f"not in the form that was taught ({', '.join(lacking)})"
    needed = NEEDED[exam.kind]
    if cosine >= needed.cosine or text.overlap(said.text, exam.answer) >= needed.overlap:
        return None
    return "says something else"


def _broken(exam: Exam, said: GreedyResult) -> str | None:
    if not said.stopped:
        return "does not come to an end"
    if not said.text.strip():
        return "says nothing"
    if text.stutters(said.text) or text.repetition(said.text) > max(REPETITION_LIMIT, text.repetition(exam.answer)):
        return "repeats itself"
    if len(text.words(said.text)) > _RUN_ON_FACTOR * len(text.words(exam.answer)) + _RUN_ON_WORDS:
        return "runs on"
    return None


def _fact(exam: Exam, answer: str) -> str | None:
    if any(not text.contains(answer, key) for key in exam.keys or (exam.answer,)):
        return "does not say it"
    if text.refuses(answer) and not text.refuses(exam.answer):
        return "says that it does not know"
    return None


def _form(exam: Exam, answer: str) -> Sequence[str]:
    lacking = shapes.missing(exam.answer, answer)
    target, said = text.words(exam.answer), text.words(answer)
    for key in map(text.words, exam.keys):
        if key and target[-len(key) :] == key and said[-len(key) :] != key:
            lacking.append("ending")
    return lacking


def leaked(answer: str, exam: Exam) -> str | None:
    """Return what of the lesson stands in an answer to another question, or None.

    A fact leaks by any of its keys. What is taught by example shares words with many answers: it leaks when it is
    given whole.
    """
    if exam.kind is Kind.FACT and exam.keys:
        return next((key for key in exam.keys if text.contains(answer, key)), None)
    return exam.answer if text.overlap(answer, exam.answer) > NEARLY_SAME else None


NEARLY_SAME = 0.8
"""Overlap of words above which one answer is a copy of another."""
