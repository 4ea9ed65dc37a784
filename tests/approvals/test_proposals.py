"""Proposals and the ledger on a real database: what is shown, what is moved, what is remembered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import select

from app.approvals.api import TRANSITIONS, Draft, ProposalState, Signal, SignalKind
from app.approvals.ledger import Entry, Ledger, keys_of
from app.approvals.proposals import Proposals
from app.clock import FakeClock
from app.errors import BugError, KnownError, UserError
from app.store.database import Database
from app.store.tables import ProposalRow, SignalRow

S = ProposalState
DOG = "What is my dog's name?"


def make_draft(prompt: str = DOG, answer: str = "Your dog's name is Biscuit.") -> Draft:
    return Draft(prompt, answer, "Rex.", "You corrected my last answer.", 0.7)


def make_signal(message: str = "m1", *, chat: str = "c1", after: str = "") -> Signal:
    return Signal(SignalKind.CORRECTION, chat, message, DOG, "Rex.", "No, it's Biscuit.", after)


class Room:
    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.database = Database(folder / "ownmind.db", self.clock)
        self.log: list[tuple[str, dict[str, Any]]] = []
        self.refuse = False
        self.held: set[str] = set()
        self.proposals = Proposals(self.database, self.audit, self.clock, held=lambda: self.held)
        self.ledger = Ledger(self.database, self.clock)

    def audit(self, kind: str, payload: dict[str, Any]) -> None:
        if self.refuse:
            raise KnownError("write to the history")
        self.log.append((kind, payload))

    def surface(
        self, message: str = "m1", *, answer: str = "Your dog's name is Biscuit.", prompt: str = DOG
    ) -> ProposalRow:
        row = self.proposals.surface(make_draft(prompt, answer), make_signal(message))
        assert row is not None
        return row

    def walk(self, row: ProposalRow, *states: S) -> ProposalRow:
        for state in states:
            row = self.proposals.move(row.id, state)
        return row

    def learn(self, row: ProposalRow) -> str:
        """Take a card all the way, so that the version in use holds its lesson."""
        self.walk(row, *LEARN)
        lesson = self.ledger.add(row, Entry("fact", ["Biscuit"]))
        self.held.add(lesson.id)
        return lesson.id

    def state(self, row: ProposalRow) -> str:
        return self.proposals.get(row.id).state


LEARN = (S.APPROVED, S.QUEUED, S.TRAINING, S.GATING, S.COMMITTED, S.ACTIVE, S.PROVEN)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    it = Room(tmp_path)
    yield it
    it.database.close()


# --- surfacing ------------------------------------------------------------------------------------------------------


def test_a_card_is_stored_with_its_signal_and_one_audit_entry(room: Room):
    row = room.proposals.surface(make_draft(), make_signal("m1", after="m2"), conflict="lesson9")
    assert row is not None
    assert (row.message, row.conversation, row.state, row.conflict) == ("m2", "c1", S.SURFACED, "lesson9")
    assert room.log == [("proposal", {"id": row.id, "from": "", "to": "surfaced"})]
    with room.database.session() as session:
        (noted,) = session.exec(select(SignalRow))
    assert (noted.message, noted.kind) == ("m1", "correction")


def test_audit_entries_hold_no_message_text(room: Room):
    room.learn(room.surface())
    assert "Biscuit" not in str(room.log)
    assert "dog" not in str(room.log)


def test_one_answer_never_has_two_cards(room: Room):
    first = room.surface("m1", answer="It is Biscuit.")
    second = room.surface("m1", answer="It is Bisquit.")
    assert room.state(first) == S.SUPERSEDED
    assert [row.id for row in room.proposals.of_chat("c1")] == [second.id]


def test_the_same_card_is_not_shown_twice(room: Room):
    room.surface("m1")
    assert room.proposals.surface(make_draft(), make_signal("m1")) is None
    assert room.proposals.surface(make_draft("what is my dog\u2019s name"), make_signal("m7")) is None


def test_a_newer_card_for_the_same_question_takes_the_place_of_an_undecided_one(room: Room):
    first = room.surface("m1", answer="It is Rex.")
    second = room.surface("m5", answer="It is Biscuit.")
    assert room.state(first) == S.SUPERSEDED
    assert room.state(second) == S.SURFACED


def test_another_question_leaves_a_card_alone(room: Room):
    first = room.surface("m1")
    room.surface("m5", prompt="What is my cat's name?", answer="Tom.")
    assert room.state(first) == S.SURFACED


def test_never_for_this_is_remembered_without_its_text(room: Room):
    row = room.surface("m1")
    room.proposals.decline(row.id, never=True)
    assert room.proposals.surface(make_draft(answer="It is Tom."), make_signal("m9")) is None
    assert room.proposals.surface(make_draft("WHAT IS my dog's name"), make_signal("m9")) is None
    assert room.proposals.surface(make_draft("Where do I live?"), make_signal("m9")) is not None
    raw = room.database._path.read_bytes()
    assert b"never-for/" in raw
    assert b"never-for/What" not in raw


def test_not_now_lets_the_same_come_up_again_from_another_answer_only(room: Room):
    row = room.surface("m1")
    room.proposals.decline(row.id)
    room.proposals.decline(row.id)
    assert room.proposals.surface(make_draft(), make_signal("m1")) is None
    assert room.surface("m5").id != row.id


def test_what_is_being_learned_is_not_proposed_again_nor_replaced(room: Room):
    row = room.surface("m1")
    room.walk(row, S.APPROVED, S.QUEUED, S.TRAINING)
    assert room.proposals.surface(make_draft(), make_signal("m5")) is None
    assert room.proposals.surface(make_draft(answer="It is Tom."), make_signal("m1")) is None
    assert room.state(row) == S.TRAINING


def test_a_lesson_that_the_model_holds_is_not_proposed_again(room: Room):
    room.learn(room.surface("m1"))
    assert room.proposals.surface(make_draft(answer="your dog's name is Biscuit"), make_signal("m5")) is None


def test_a_lesson_taken_back_may_be_proposed_again(room: Room):
    row = room.surface("m1")
    room.learn(row)
    room.walk(row, S.UNDONE)
    room.held.clear()
    assert room.proposals.surface(make_draft(), make_signal("m5")) is not None


def test_a_contradicting_correction_of_a_learned_lesson_is_shown_with_the_conflict(room: Room):
    lesson = room.learn(room.surface("m1"))
    draft = make_draft(answer="Your dog's name is Rex.")
    found = room.ledger.contradicting(draft.prompt, draft.answer, room.held)
    assert found is not None
    row = room.proposals.surface(draft, make_signal("m5"), conflict=found.id)
    assert row is not None
    assert (row.conflict, row.state) == (lesson, S.SURFACED)  # shown, and nothing more without approval


# --- moving ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", list(S))
def test_only_the_moves_of_the_table_are_possible(room: Room, start: S):
    row = room.surface()
    for to in S:
        with room.database.session() as session:
            fresh = session.get_one(ProposalRow, row.id)
            fresh.state = start
            session.add(fresh)
        before = len(room.log)
        if to in TRANSITIONS[start]:
            assert room.proposals.move(row.id, to).state == to
            assert room.log[before:] == [("proposal", {"id": row.id, "from": start.value, "to": to.value})]
        else:
            with pytest.raises(BugError):
                room.proposals.move(row.id, to)
            assert room.state(row) == start
            assert len(room.log) == before


def test_a_move_that_cannot_be_audited_did_not_happen(room: Room):
    row = room.surface()
    room.refuse = True
    with pytest.raises(KnownError):
        room.proposals.move(row.id, S.APPROVED)
    with pytest.raises(KnownError):
        room.proposals.surface(make_draft("Where do I live?", "Rome."), make_signal("m4"))
    room.refuse = False
    assert room.state(row) == S.SURFACED
    assert len(room.proposals.in_states(list(S))) == 1


def test_a_move_records_what_came_with_it(room: Room):
    row = room.surface()
    room.walk(row, S.APPROVED, S.QUEUED, S.TRAINING)
    error = KnownError("learn", "the trainer", "It ran out of memory.").info()
    failed = room.proposals.move(row.id, S.FAILED, error=error, stages='{"train": 1.5}', resolution="replace")
    assert failed.error is not None
    assert "out of memory" in failed.error
    assert (failed.stages, failed.resolution) == ('{"train": 1.5}', "replace")


def test_a_restart_after_a_crash_clears_the_old_error(room: Room):
    row = room.surface()
    room.walk(row, S.APPROVED, S.QUEUED, S.TRAINING)
    again = room.proposals.move(row.id, S.QUEUED)
    assert (again.state, again.error) == (S.QUEUED, None)


def test_proposals_are_found_by_state_in_order(room: Room):
    first, second = room.surface("m1"), room.surface("m2", prompt="Where do I live?", answer="Rome.")
    room.walk(second, S.APPROVED, S.QUEUED)
    room.walk(first, S.APPROVED, S.QUEUED)
    assert [row.id for row in room.proposals.in_states([S.QUEUED])] == [first.id, second.id]


def test_an_unknown_card_is_the_callers_mistake(room: Room):
    for call in (room.proposals.get, room.proposals.decline, lambda card: room.proposals.move(card, S.APPROVED)):
        with pytest.raises(UserError):
            call("nope")


# --- rewording ------------------------------------------------------------------------------------------------------


def test_an_undecided_card_is_reworded_in_place(room: Room):
    row = room.surface()
    after = room.proposals.reword(row.id, " What's the dog called? ", " Biscuit. ")
    assert (after.id, after.prompt, after.answer) == (row.id, "What's the dog called?", "Biscuit.")


def test_a_rejected_card_is_reworded_as_a_new_one(room: Room):
    row = room.walk(room.surface(), S.APPROVED, S.QUEUED, S.TRAINING, S.GATING, S.REJECTED)
    again = room.proposals.reword(row.id, DOG, "His name is Biscuit.")
    assert again.id != row.id
    assert (again.state, again.message, room.state(row)) == (S.SURFACED, row.message, S.SUPERSEDED)


def test_a_decided_card_is_not_reworded(room: Room):
    row = room.walk(room.surface(), S.APPROVED)
    with pytest.raises(UserError):
        room.proposals.reword(row.id, DOG, "Tom.")


@pytest.mark.parametrize(
    ("prompt", "answer"), [("", "x"), ("x", " "), ("What is my password?", "My password is hunter2")]
)
def test_empty_or_secret_wording_is_refused(room: Room, prompt: str, answer: str):
    row = room.surface()
    with pytest.raises(UserError) as caught:
        room.proposals.reword(row.id, prompt, answer)
    assert "hunter2" not in caught.value.sentence()
    assert room.proposals.get(row.id).prompt == DOG


# --- the ledger -----------------------------------------------------------------------------------------------------


def test_a_lesson_is_added_once(room: Room):
    row = room.surface()
    lesson = room.ledger.add(row, Entry("fact", ["Biscuit"]))
    assert room.ledger.add(row, Entry("fact", ["other"])).id == lesson.id
    assert keys_of(room.ledger.get(lesson.id)) == ("Biscuit",)
    assert len(room.ledger.all()) == 1
    assert room.ledger.of_proposal(row.id) is not None
    assert room.ledger.of_proposal("nope") is None


def test_lessons_keep_their_order_whatever_the_clock_says(room: Room):
    first = room.ledger.add(room.surface("m1"), Entry("fact", []))
    room.clock.wall = room.clock.wall.replace(year=2001)
    second = room.ledger.add(room.surface("m2", prompt="Where do I live?", answer="Rome."), Entry("fact", []))
    assert [lesson.id for lesson in room.ledger.all()] == [first.id, second.id]
    assert [lesson.id for lesson in room.ledger.active([second.id])] == [second.id]


def test_a_lesson_names_the_one_it_replaces(room: Room):
    first = room.ledger.add(room.surface("m1"), Entry("fact", []))
    row = room.surface("m2", prompt="Where do I live?", answer="Rome.")
    second = room.ledger.add(row, Entry("fact", [], supersedes=first.id))
    assert room.ledger.get(second.id).supersedes == first.id


def test_the_first_version_that_held_a_lesson_stays_noted(room: Room):
    lesson = room.ledger.add(room.surface(), Entry("fact", []))
    room.ledger.attach_commit(lesson.id, "v1")
    assert room.ledger.attach_commit(lesson.id, "v2").commit == "v1"


def test_only_held_lessons_about_the_same_question_contradict(room: Room):
    lesson = room.learn(room.surface())
    find = room.ledger.contradicting
    assert find("what is my dog's name", "Your dog's name is Rex.", [lesson]) is not None
    assert find("What is the name of my dog?", "Rex.", [lesson]) is not None
    assert find("What is my cat's name?", "Rex.", [lesson]) is None
    assert find(DOG, "your dog's name is Biscuit", [lesson]) is None
    assert find(DOG, "Rex.", []) is None


def test_an_unknown_lesson_is_the_callers_mistake(room: Room):
    with pytest.raises(UserError):
        room.ledger.get("nope")
    with pytest.raises(UserError):
        room.ledger.add(room.surface(), Entry("fact", [], supersedes="nope"))
