from __future__ import annotations

import re
from dataclasses import replace

import pytest

from app.approvals.api import ProposalState
from app.model.api import Check, Outcome
from app.ui.card_text import Act, Tone, Weight, check_rows, duration, face, measured, progress_words, shorten
from tests.ui_parts.cards import CONFLICT, FAILED_CHECKS, PASSED, STATES, card

JARGON = re.compile(
    r"\b(loss|nats|adapter|LoRA|KL|gate|gating|commit|weights|logits|epoch|delta|proposal)\b", re.IGNORECASE
)


def acts(name: str, **how: bool) -> list[Act]:
    return [action.act for action in face(STATES[name], **how).actions]


@pytest.mark.parametrize("state", list(ProposalState))
def test_every_state_says_something(state: ProposalState) -> None:
    assert face(card(state)).title


@pytest.mark.parametrize("name", STATES)
def test_no_jargon_and_no_exclamation_before_the_details_are_opened(name: str) -> None:
    shown = face(STATES[name])
    words = " ".join((shown.title, shown.body, shown.note, shown.aside, *(row.words for row in shown.rows)))
    labels = " ".join(action.label for action in shown.actions)
    assert not JARGON.search(f"{words} {labels}")
    assert "!" not in words + labels


def test_a_question_says_what_was_noticed_what_would_change_and_how_to_take_it_back() -> None:
    body = face(STATES["surfaced"]).body
    assert body.startswith("You corrected my last answer.")
    assert "every chat from now on" in body
    assert "take it back" in body


def test_what_would_change_is_said_once_if_the_reason_says_it_already() -> None:
    why = "You edited my answer. I would answer in your words in every chat from now on."
    body = face(replace(STATES["surfaced"], why=why)).body
    assert body == f"{why} You can take it back at any time."


def test_a_question_offers_learning_wording_later_and_never() -> None:
    assert acts("surfaced") == [Act.LEARN, Act.WORDING, Act.NOT_NOW, Act.NEVER]
    assert face(STATES["surfaced"]).actions[-1].weight is Weight.MENU


def test_a_conflict_cannot_be_learned_without_a_choice() -> None:
    assert Act.LEARN not in acts("conflict")
    assert {Act.REPLACE, Act.KEEP_BOTH, Act.NOT_NOW} <= set(acts("conflict"))


def test_a_locked_card_keeps_its_buttons_and_says_that_learning_is_locked() -> None:
    assert acts("surfaced", locked=True) == acts("surfaced")
    assert "locked" in face(STATES["surfaced"], locked=True).note


@pytest.mark.parametrize(
    ("name", "stops"), [("queued", True), ("training", True), ("gating", True), ("committed", False), ("active", False)]
)
def test_a_lesson_can_be_stopped_until_it_is_in_the_lineage(name: str, stops: bool) -> None:
    assert (Act.STOP in acts(name)) is stops


def test_progress_says_the_stage_and_the_time_left() -> None:
    assert progress_words(STATES["gating"]) == "checking · about 4 seconds left"
    assert progress_words(STATES["active"]) == "checking once more in use"


def test_numbers_appear_only_among_the_details() -> None:
    plain, detailed = face(STATES["proven"]), face(STATES["proven"], detailed=True)
    assert not any("limit" in row.result for row in plain.rows)
    assert all("limit" in row.result for row in detailed.rows)
    assert len(plain.rows) < len(detailed.rows) == len(PASSED)


def test_a_check_that_did_not_pass_is_shown_even_if_it_is_a_technical_one() -> None:
    bad = Check("norm", Outcome.REJECT, "Size of the change", 0.2, 0.05, "")
    assert [row.words for row in check_rows((bad,), detailed=False)] == ["Size of the change"]


def test_a_passed_check_in_technical_units_waits_among_the_details() -> None:
    near = Check("locality", Outcome.ACCEPT, "Similar questions, change in answers", 0.01, 0.05, "nats")
    assert check_rows((near,), detailed=False) == ()
    assert len(check_rows((near,), detailed=True)) == 1


def test_a_value_beyond_all_bounds_is_said_in_words() -> None:
    assert measured(Check("norm", Outcome.REJECT, "", float("inf"), 0.05, "")) == "too large to say (limit 0.050)"


def test_a_lesson_that_cannot_be_undone_offers_no_undo() -> None:
    shown = face(replace(STATES["proven"], can_undo=False))
    assert [action.act for action in shown.actions] == [Act.DETAILS]


def test_a_rejection_names_its_reason_and_that_nothing_changed() -> None:
    shown = face(STATES["rejected"])
    assert shown.tone is Tone.BAD
    assert shown.body == "It would have changed three other capitals. Nothing was changed."
    assert shown.actions[0].act is Act.WORDING


def test_not_knowing_is_told_apart_from_no() -> None:
    shown = face(STATES["inconclusive"])
    assert shown.tone is Tone.WARN
    assert "not sure" in {row.result for row in shown.rows}


def test_a_suggestion_that_the_app_cannot_do_is_not_offered() -> None:
    shown = face(replace(STATES["rejected"], suggestions=("retrieval",)))
    assert [action.act for action in shown.actions] == [Act.WORDING, Act.DETAILS]
    assert shown.note == ""


def test_a_failure_offers_another_try_only_where_it_can_help() -> None:
    assert acts("failed") == [Act.TRY_AGAIN]
    assert acts("failed for good") == [Act.WORDING]
    assert "Close other programs" in face(STATES["failed"]).body


def test_a_declined_card_is_one_line_and_can_be_taken_up_again() -> None:
    shown = face(STATES["declined"])
    assert shown.line
    assert [action.label for action in shown.actions] == ["Learn it after all"]


def test_a_declined_conflict_asks_for_the_choice_again() -> None:
    declined = card(ProposalState.DECLINED, conflict=CONFLICT)
    assert [a.act for a in face(declined).actions] == [Act.REOPEN]
    assert Act.REPLACE in [a.act for a in face(declined, reopened=True).actions]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 second"), (4.4, "4 seconds"), (89, "89 seconds"), (90, "2 minutes"), (600, "10 minutes")],
)
def test_durations_are_said_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_measured_values_keep_their_digits_and_their_unit() -> None:
    assert measured(PASSED[4]) == "0.002 nats (limit 0.010)"
    assert measured(PASSED[3]) == "0 of 13 (limit 0)"
    assert measured(FAILED_CHECKS[2]) == "3 of 12 (limit 1)"


@pytest.mark.parametrize("text", ["word " * 50, "x" * 500, "a\nb\nc", ""])
def test_titles_quote_at_most_one_short_line(text: str) -> None:
    assert len(shorten(text)) <= 64
    assert "\n" not in shorten(text)
