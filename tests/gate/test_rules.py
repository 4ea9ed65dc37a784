"""Each rule accepts and rejects at its boundary."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from app.model.api import Check, Outcome
from app.model.gate import rules
from app.model.gate.rules import Asked, Change, Limits, Manners, Near
from app.model.gate.stats import Mean

LIMITS = Limits()
ACCEPT, REJECT, OPEN = Outcome.ACCEPT, Outcome.REJECT, Outcome.INCONCLUSIVE


def test_efficacy_accepts_only_without_a_fault() -> None:
    assert rules.efficacy(Asked("Q?", None)).outcome is ACCEPT
    check = rules.efficacy(Asked("Q?", "runs on"))
    assert check.outcome is REJECT
    assert check.details == ("Q? — runs on",)


def _wordings(shown: int, of: int) -> list[Asked]:
    return [Asked(f"Q{number}?", None if number < shown else "does not say it") for number in range(of)]


@pytest.mark.parametrize(
    ("shown", "of", "outcome"),
    [
        (8, 10, ACCEPT),
        (7, 10, REJECT),
        (10, 10, ACCEPT),
        (4, 5, ACCEPT),
        (3, 5, REJECT),
        (4, 4, ACCEPT),
        (3, 4, REJECT),
    ],
)
def test_eight_in_ten_other_wordings_must_show_the_lesson(shown: int, of: int, outcome: Outcome) -> None:
    check = rules.held_out(_wordings(shown, of), LIMITS)
    assert check.outcome is outcome
    assert check.words == f"Says it when asked, {shown} of {of} other wordings"
    assert len(check.details) == of - shown


def _changes(count: int) -> tuple[Change, ...]:
    return tuple(Change(f"Q{number}?", "Biscuit") for number in range(count))


@pytest.mark.parametrize(
    ("near", "outcome"),
    [
        (Near(_changes(1), 12), ACCEPT),
        (Near(_changes(2), 12), REJECT),
        (Near(_changes(1), 8), ACCEPT),
        (Near(_changes(1), 7), REJECT),
        (Near((), 12, flips=_changes(1), probes=12), ACCEPT),
        (Near((), 12, flips=_changes(2), probes=12), REJECT),
        (Near((), 12, fixed=_changes(1), probes=12), REJECT),
        (Near(_changes(1), 12, flips=_changes(1), probes=12), ACCEPT),
    ],
)
def test_one_in_twelve_near_questions_may_change_and_a_fixed_pin_never(near: Near, outcome: Outcome) -> None:
    assert rules.locality(near, ("cat", "sister"), LIMITS).outcome is outcome


def test_a_fixed_pin_has_the_limit_zero() -> None:
    assert rules.locality(Near((), 12, fixed=_changes(1), probes=12), (), LIMITS).limit == 0.0


def test_locality_says_what_was_left_alone_or_how_much_changed() -> None:
    assert rules.locality(Near((), 12), ("cat", "sister"), LIMITS).words == (
        "Leaves similar questions alone (cat, sister)"
    )
    check = rules.locality(Near(_changes(3), 12, probes=8), (), LIMITS)
    assert check.words == "Changes the answers to 3 of 20 other questions"
    assert check.details[0] == "Q0? — now says “Biscuit”"


@pytest.mark.parametrize(
    ("values", "outcome"),
    [([0.05, 0.05], ACCEPT), ([0.05, 0.051], REJECT), ([0.5] + [0.0] * 11, ACCEPT), ([0.51] + [0.0] * 11, REJECT)],
)
def test_answers_to_near_questions_may_move_this_far(values: list[float], outcome: Outcome) -> None:
    assert rules.nearness([(f"Q{n}?", value) for n, value in enumerate(values)], LIMITS).outcome is outcome


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        (Mean(40, 0.002, -0.001, 0.0099), ACCEPT),
        (Mean(40, 0.002, -0.001, 0.01), OPEN),
        (Mean(40, 0.009, 0.005, 0.013), OPEN),
        (Mean(40, 0.012, 0.0099, 0.014), OPEN),
        (Mean(40, 0.012, 0.01, 0.014), REJECT),
        (Mean(1, 0.0, -math.inf, math.inf), OPEN),
    ],
)
def test_retention_goes_by_the_bounds_and_may_not_know(change: Mean, outcome: Outcome) -> None:
    check = rules.retention("retention_parent", change, LIMITS.loss_parent)
    assert check.outcome is outcome
    assert check.limit == 0.01


def test_a_loss_of_exactly_zero_is_not_shown_as_minus_zero() -> None:
    assert str(rules.retention("retention_base", Mean(9, -0.0001, -0.001, 0.001), 0.05).value) == "0.0"


def _earlier(lost: int, gained: int, asked: int) -> Check:
    return rules.earlier([f"Q{n}?" for n in range(lost)], gained=gained, asked=asked, known=asked, limits=LIMITS)


@pytest.mark.parametrize(
    ("lost", "gained", "asked", "outcome"),
    [
        (0, 0, 0, ACCEPT),
        (0, 0, 13, ACCEPT),
        (1, 0, 13, REJECT),
        (1, 0, 19, REJECT),
        (1, 0, 20, ACCEPT),
        (2, 0, 20, REJECT),
        (3, 0, 60, ACCEPT),
        (4, 0, 60, REJECT),
        (5, 0, 100, REJECT),
        (5, 1, 100, ACCEPT),
        (7, 1, 200, REJECT),
    ],
)
def test_earlier_lessons_bear_one_loss_in_twenty_and_never_five_to_none(
    lost: int, gained: int, asked: int, outcome: Outcome
) -> None:
    assert _earlier(lost, gained, asked).outcome is outcome


def test_earlier_lessons_are_counted_in_words() -> None:
    assert _earlier(0, 0, 13).words == "Still knows the 13 earlier lessons"
    assert _earlier(0, 0, 1).words == "Still knows the earlier lesson"
    assert _earlier(2, 0, 13).words == "Still knows 11 of the 13 earlier lessons"
    assert _earlier(0, 0, 0).words == "No earlier lessons to keep"


@pytest.mark.parametrize(
    ("margin", "flips", "outcome"),
    [
        (Mean(12, 0.01, -0.01, 0.049), [], ACCEPT),
        (Mean(12, 0.01, -0.01, 0.05), [], OPEN),
        (Mean(12, 0.08, 0.05, 0.11), [], REJECT),
        (Mean(12, 0.0, 0.0, 0.0), ["Who are you?"], REJECT),
    ],
)
def test_safety_bears_no_flip_and_a_small_loss_of_margin(margin: Mean, flips: list[str], outcome: Outcome) -> None:
    assert rules.safety(margin, flips, LIMITS).outcome is outcome


@pytest.mark.parametrize(
    ("written", "outcome"), [(0.05, ACCEPT), (0.0501, REJECT), (0.0, ACCEPT), (math.nan, REJECT), (math.inf, REJECT)]
)
def test_the_written_norm_keeps_within_the_budget(written: float, outcome: Outcome) -> None:
    assert rules.norm(written, 0.05).outcome is outcome


USUAL = Manners(stopped=0.6, words=20.0, repetition=0.05, same_start=0.1, refusing=0.05)


@pytest.mark.parametrize(
    ("change", "drift", "outcome"),
    [
        ({}, 0.0, ACCEPT),
        ({"stopped": 0.45}, 0.0, ACCEPT),
        ({"stopped": 0.44}, 0.0, REJECT),
        ({"words": 41.0}, 0.0, ACCEPT),
        ({"words": 41.1}, 0.0, REJECT),
        ({"words": 9.5}, 0.0, ACCEPT),
        ({"words": 9.4}, 0.0, REJECT),
        ({"repetition": 0.149}, 0.0, ACCEPT),
        ({"repetition": 0.151}, 0.0, REJECT),
        ({"same_start": 0.349}, 0.0, ACCEPT),
        ({"same_start": 0.351}, 0.0, REJECT),
        ({"refusing": 0.199}, 0.0, ACCEPT),
        ({"refusing": 0.201}, 0.0, REJECT),
        ({}, 0.1, ACCEPT),
        ({}, 0.101, REJECT),
        ({"stopped": 1.0, "repetition": 0.0, "same_start": 0.0, "refusing": 0.0}, 0.0, ACCEPT),
    ],
)
def test_answers_in_general_may_degenerate_only_this_far(
    change: dict[str, float], drift: float, outcome: Outcome
) -> None:
    assert rules.degeneration(replace(USUAL, **change), USUAL, drift, LIMITS).outcome is outcome


def test_manners_are_measured_over_all_answers() -> None:
    seen = rules.manners([("I don't know that.", True), ("I don't know it.", False), ("go go go go go", True)])
    assert seen.stopped == pytest.approx(2 / 3)
    assert seen.refusing == pytest.approx(2 / 3)
    assert seen.same_start == pytest.approx(2 / 3)
    assert seen.repetition == pytest.approx(1 / 3)


def test_manners_of_nothing_are_zero() -> None:
    assert rules.manners([]) == Manners(0.0, 0.0, 0.0, 0.0, 0.0)


def test_one_rejection_rejects_and_one_open_question_leaves_it_open() -> None:
    checks = {outcome: Check("norm", outcome, "", 0.0, 0.0, "") for outcome in Outcome}
    assert rules.overall([checks[ACCEPT], checks[OPEN], checks[REJECT]]) is REJECT
    assert rules.overall([checks[ACCEPT], checks[OPEN]]) is OPEN
    assert rules.overall([checks[ACCEPT]]) is ACCEPT
