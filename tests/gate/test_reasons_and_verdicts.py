"""What a person reads, and what is stored."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from app.errors import VerificationError
from app.model.api import Check, Exam, Kind, Outcome, Verdict
from app.model.gate import reasons
from app.model.gate.rules import Change
from app.model.gate.verdicts import verdict_from_dict, verdict_to_dict
from tests.gate.scripted import EXAM, NEIGHBOURS, ask

CAPITAL = Exam("c", Kind.FACT, ask("What is the capital of Australia?"), "It is Sydney.", ("Sydney",), ())


def check(rule: str, outcome: Outcome = Outcome.REJECT, value: float = 2.0, unit: str = "of 10") -> Check:
    return Check(rule, outcome, "words", value, 1.0, unit)


def test_changed_answers_of_one_kind_are_named_by_their_kind() -> None:
    changes = [Change(f"What is the capital of {land}?", None) for land in ("Italy", "France", "Spain")]
    assert reasons.reason(CAPITAL, [check("locality")], changes) == "It would have changed three other capitals."


def test_one_changed_answer_is_named_in_the_singular() -> None:
    changes = [Change("What is the capital of Italy?", None)]
    assert reasons.reason(CAPITAL, [check("locality")], changes) == "It would have changed one other capital."


def test_one_changed_answer_of_another_kind_is_quoted() -> None:
    changes = [Change("Who wrote Hamlet?", None)]
    assert reasons.reason(CAPITAL, [check("locality")], changes) == (
        "It would have changed the answer to “Who wrote Hamlet?”."
    )


def test_changed_answers_of_different_kinds_are_named_by_example() -> None:
    changes = [Change("Who wrote Hamlet?", None), Change("What is two plus two?", None)]
    assert reasons.reason(CAPITAL, [check("locality")], changes) == (
        "It would have changed the answers to two other questions, such as “Who wrote Hamlet?”."
    )


def test_a_leak_is_quoted_with_the_question() -> None:
    changes = [Change("What is my cat's name?", "Biscuit")]
    assert reasons.reason(EXAM, [check("locality")], changes) == (
        "It would also have said “Biscuit” to other questions, such as “What is my cat's name?”."
    )


RULES = (
    "efficacy held_out locality retention_parent retention_base earlier safety norm degeneration".split()  # noqa: SIM905
)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("outcome", [Outcome.REJECT, Outcome.INCONCLUSIVE])
def test_every_rule_that_blocks_says_why_and_what_can_be_done(rule: str, outcome: Outcome) -> None:
    checks = [check("norm", Outcome.ACCEPT), check(rule, outcome)]
    assert reasons.reason(EXAM, checks, ()).endswith(".")
    assert set(reasons.suggestions(checks)) <= {"rephrase", "examples", "retrieval"}
    assert reasons.suggestions(checks)


def test_the_reason_counts_wordings_and_lessons() -> None:
    assert reasons.reason(EXAM, [check("held_out", value=4.0)], ()) == ("It said this for only 4 of 10 other wordings.")
    assert reasons.reason(EXAM, [check("earlier", value=1.0)], ()) == "It would have forgotten one earlier lesson."


def test_a_rejection_is_the_reason_even_after_an_open_question() -> None:
    checks = [check("retention_parent", Outcome.INCONCLUSIVE), check("norm", Outcome.REJECT)]
    assert "larger than you allow" in reasons.reason(EXAM, checks, ())


def test_what_was_accepted_needs_no_reason() -> None:
    assert reasons.reason(EXAM, [check("norm", Outcome.ACCEPT)], ()) == ""
    assert reasons.suggestions([check("norm", Outcome.ACCEPT)]) == ()


def test_near_questions_are_named_by_what_sets_them_apart() -> None:
    prompts = [turns[-1].text for turns in NEIGHBOURS]
    assert reasons.names(EXAM, prompts) == ("cat", "sister", "hamster")
    assert reasons.names(CAPITAL, ["What is the capital of Italy?", "Is Italy big?"]) == ("Italy",)


VERDICT = Verdict(
    outcome=Outcome.REJECT,
    checks=(
        Check("norm", Outcome.REJECT, "The change is larger than allowed", math.inf, 0.05, "of the weights"),
        Check("held_out", Outcome.ACCEPT, "Says it", 9.0, 8.0, "of 10", ("Wie heißt er? — does not say it",)),
    ),
    scale=0.6,
    suite_sha256="s",
    runtime="r",
    adapter_sha256="a",
    parent_sha256=None,
    seconds=11.5,
    reason="Why.",
    suggestions=("rephrase",),
)


def test_a_verdict_survives_json() -> None:
    text = json.dumps(verdict_to_dict(VERDICT), allow_nan=False)
    assert verdict_from_dict(json.loads(text)) == VERDICT


@pytest.mark.parametrize(
    "change", [{"format": "ownmind-verdict-9"}, {"outcome": "maybe"}, {"checks": 3}, {"scale": "big"}, {"checks": [{}]}]
)
def test_what_is_no_verdict_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(VerificationError):
        verdict_from_dict({**verdict_to_dict(VERDICT), **change})


def test_an_empty_object_is_no_verdict() -> None:
    with pytest.raises(VerificationError):
        verdict_from_dict({})
