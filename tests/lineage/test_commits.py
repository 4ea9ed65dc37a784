"""Versions: what makes one, what refuses one, what is in effect at one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.clock import FakeClock
from app.errors import BugError, DeniedError, KnownError, UserError, VerificationError
from app.model.lineage import Lineage
from app.model.lineage.records import derive_id, from_document, to_document
from app.store.canonical import digest
from tests.lineage.made import PASSPORT, QuickFiles, adapter, new_commit, open_lineage, verdict


@pytest.fixture(name="lineage")
def _lineage(tmp_path: Path) -> Lineage:
    return open_lineage(tmp_path, QuickFiles())


def test_the_base_itself_is_version_0(lineage: Lineage):
    root = lineage.root()
    assert lineage.head() == root
    assert (root.number, root.parents, root.delta, root.action, root.base) == (0, (), None, "root", PASSPORT.id)
    assert lineage.log() == [root]
    assert lineage.holds(root) == ()
    assert lineage.unproven() is None


def test_opening_again_makes_no_second_root(lineage: Lineage, tmp_path: Path):
    assert open_lineage(tmp_path, QuickFiles()).log() == lineage.log()


def test_a_commit_is_head_and_everything_it_names_can_be_read(lineage: Lineage):
    root = lineage.root()
    new = new_commit(lineage, 1)
    made = lineage.commit(new)
    assert lineage.head() == made
    assert lineage.log() == [made, root]
    assert made.parents == (root.id,)
    assert (made.number, made.scale, made.lessons, made.decision) == (1, 0.8, ("lesson-1",), "proposal-1")
    assert lineage.delta(made) == new.delta
    assert made.delta == digest(new.delta or b"")
    assert lineage.document(made.recipe or "") == new.recipe
    assert lineage.document(made.data or "") == new.data
    assert lineage.document(made.verdict or "") == new.verdict
    assert lineage.written_norm(made) == 0.0125
    assert lineage.available(made)


def test_a_version_survives_closing(lineage: Lineage, tmp_path: Path):
    made = lineage.commit(new_commit(lineage))
    again = open_lineage(tmp_path, QuickFiles())
    assert again.recover() == ["Version 1 is in use but its checks did not finish; they run again."]
    assert again.head() == made
    assert again.log() == lineage.log()


def test_an_id_is_derived_from_every_other_field(lineage: Lineage):
    made = lineage.commit(new_commit(lineage))
    assert derive_id(made) == made.id
    for change in ({"scale": 0.9}, {"parents": ()}, {"delta": "0" * 64}, {"decision": None}, {"title": "x"}):
        assert derive_id(replace(made, **change)) != made.id


def test_a_document_reads_back_as_the_same_commit(lineage: Lineage):
    made = lineage.commit(new_commit(lineage, scale=0.1 + 0.2))
    assert from_document(to_document(made)) == made


@pytest.mark.parametrize("change", [{"title": "x"}, {"scale": "a"}, {"number": None}, {"more": 1}, {"lessons": None}])
def test_a_changed_document_is_no_commit(lineage: Lineage, change: dict[str, object]):
    document = to_document(lineage.commit(new_commit(lineage)))
    with pytest.raises(VerificationError):
        from_document(document | change)


def test_one_entry_names_parent_delta_decision_and_verdict(lineage: Lineage):
    before = len(lineage._audit.entries)
    made = lineage.commit(new_commit(lineage))
    (entry,) = lineage._audit.entries[before:]
    assert entry.kind == "commit"
    named = entry.payload["commit"]
    assert (named["parents"], named["delta"]) == ([lineage.root().id], made.delta)
    assert (named["decision"], named["verdict"]) == ("proposal-1", made.verdict)


# --- refusals


def refused(lineage: Lineage, error: type[Exception], says: str, **changes: object) -> None:
    before = (lineage.head(), lineage.log(), len(lineage._audit.entries))
    with pytest.raises(error, match=says):
        lineage.commit(new_commit(lineage, 1, **changes))
    assert (lineage.head(), lineage.log(), len(lineage._audit.entries)) == before
    assert lineage._objects.names() == []


def test_a_commit_must_continue_the_version_in_use(lineage: Lineage):
    stale = new_commit(lineage, 2)
    made = lineage.commit(new_commit(lineage, 1))
    with pytest.raises(KnownError, match="has changed"):
        lineage.commit(stale)
    assert lineage.head() == made


def test_nothing_is_learned_that_nobody_approved(lineage: Lineage):
    refused(lineage, DeniedError, "approved", decision=None)
    refused(lineage, DeniedError, "approved", decision="")


def test_a_delta_swapped_in_after_the_verdict_is_refused(lineage: Lineage):
    """Row 44: the verdict, and with it the commit, is bound to the hash of the judged delta."""
    refused(lineage, VerificationError, "another change", delta=adapter(2), verdict=verdict(adapter(1), None))


def test_no_verdict_no_version(lineage: Lineage):
    refused(lineage, VerificationError, "no verdict", verdict=None)
    refused(lineage, VerificationError, "another change", verdict={})


@pytest.mark.parametrize("outcome", ["reject", "inconclusive", "", None])
def test_only_an_accepting_verdict_makes_a_version(lineage: Lineage, outcome: str | None):
    refused(lineage, VerificationError, "accept", verdict=verdict(adapter(), None, outcome=outcome))


def test_a_verdict_against_another_parent_is_refused(lineage: Lineage):
    refused(lineage, VerificationError, "another version", verdict=verdict(adapter(), "0" * 64))


def test_learning_without_a_change_is_a_bug(lineage: Lineage):
    refused(lineage, BugError, "no change", delta=None)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_must_be_a_positive_number(lineage: Lineage, scale: float):
    refused(lineage, BugError, "scale", scale=scale)


def test_an_unknown_action_is_a_bug(lineage: Lineage):
    refused(lineage, BugError, "action", action="root")


def test_an_adapter_of_another_base_is_refused(lineage: Lineage, tmp_path: Path):
    other = open_lineage(tmp_path, QuickFiles(), passport=replace(PASSPORT, id="07e4" * 16))
    refused(other, VerificationError, "made for another model")


def test_a_delta_with_numbers_that_are_not_finite_is_refused(lineage: Lineage):
    for wrong in (b"\x00\x00\xc0\x7f", b"\x00\x00\x80\xff"):  # NaN, -infinity
        refused(lineage, VerificationError, "not finite", delta=adapter()[:-4] + wrong)


def test_a_delta_that_changes_nothing_is_refused(lineage: Lineage):
    ups = 3 * 2 * 4
    refused(lineage, VerificationError, "changes nothing", delta=adapter()[:-ups] + bytes(ups))


def test_a_delta_whose_rank_is_not_the_one_it_states_is_refused(lineage: Lineage):
    refused(lineage, VerificationError, "rank", delta=adapter().replace(b'"rank":"2"', b'"rank":"1"'))


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", adapter()[:-8], adapter() + b"x"])
def test_a_delta_that_is_no_whole_adapter_is_refused(lineage: Lineage, data: bytes):
    refused(lineage, VerificationError, "trained change", delta=data)


# --- lessons in effect


def test_learning_adds_forgetting_removes_and_undo_goes_back(lineage: Lineage):
    first = lineage.commit(new_commit(lineage, 1))
    second = lineage.commit(new_commit(lineage, 2))
    forgot = lineage.commit(new_commit(lineage, 3, action="forget", lessons=("lesson-1",)))
    assert lineage.holds(first) == ("lesson-1",)
    assert lineage.holds(second) == ("lesson-1", "lesson-2")
    assert lineage.holds(forgot) == ("lesson-2",)
    lineage.move_head(first, "undo")
    branch = lineage.commit(new_commit(lineage, 4))
    assert lineage.holds(branch) == ("lesson-1", "lesson-4")
    assert lineage.holds(second) == ("lesson-1", "lesson-2")


def test_forgetting_the_only_lesson_may_end_at_the_base_s_own_weights(lineage: Lineage):
    lineage.commit(new_commit(lineage, 1))
    changes = {"action": "forget", "lessons": ("lesson-1",), "verdict": None, "decision": None}
    made = lineage.commit(new_commit(lineage, 2, delta=None, **changes))
    assert made.delta is None
    assert lineage.holds(made) == ()
    assert lineage.available(made)


def test_a_rebuild_keeps_every_lesson(lineage: Lineage):
    lineage.commit(new_commit(lineage, 1))
    lineage.commit(new_commit(lineage, 2))
    made = lineage.commit(new_commit(lineage, 3, action="rebuild", lessons=(), decision=None))
    assert lineage.holds(made) == ("lesson-1", "lesson-2")


# --- numbers, names, order


def test_numbers_are_never_given_twice(lineage: Lineage):
    lineage.commit(new_commit(lineage, 1))
    lineage.move_head(lineage.root(), "undo")
    assert lineage.commit(new_commit(lineage, 2)).number == 2


def test_order_is_that_of_the_log_when_the_clock_goes_backwards(tmp_path: Path):
    clock = FakeClock(datetime(2026, 6, 1, tzinfo=UTC))
    lineage = open_lineage(tmp_path, QuickFiles(), clock)
    for number in (1, 2, 3):
        clock.wall = datetime(2026 - number, 6, 1, tzinfo=UTC)
        lineage.commit(new_commit(lineage, number))
    assert [commit.number for commit in lineage.log()] == [3, 2, 1, 0]
    again = open_lineage(tmp_path, QuickFiles(), clock)
    assert [commit.number for commit in again.log()] == [3, 2, 1, 0]
    assert again.head().number == 3
    assert again.locked is None


def test_a_version_is_found_by_id_number_or_the_start_of_its_id(lineage: Lineage):
    made = lineage.commit(new_commit(lineage))
    for name in (made.id, made.id[:8], made.id[:8].upper(), "1", "#1", 1):
        assert lineage.get(name) == made
    assert lineage.get("0") == lineage.root()


@pytest.mark.parametrize("name", ["", "7", "-1", "zzzz", "abc", "²", "x" * 100])
def test_a_name_that_fits_nothing_is_the_person_s_to_mend(lineage: Lineage, name: str):
    with pytest.raises(UserError):
        lineage.get(name)


def test_a_start_that_fits_several_is_refused(lineage: Lineage):
    history = lineage._history
    for end in "ab":
        twin = replace(lineage.root(), id="feed" + end * 60, number=90 + ord(end))
        history._commits[twin.id] = twin
    with pytest.raises(UserError, match="Several"):
        lineage.get("feed")


# --- moves of head


def test_undo_is_exact_and_logged(lineage: Lineage):
    first = lineage.commit(new_commit(lineage, 1))
    before = lineage.delta(first)
    second = lineage.commit(new_commit(lineage, 2))
    assert lineage.move_head(first, "undo") == first
    assert lineage.head() == first
    assert lineage.delta(lineage.head()) == before
    entry = lineage._audit.entries[-1]
    assert (entry.kind, entry.payload) == ("head", {"from": second.id, "to": first.id, "reason": "undo"})
    moves = lineage._refs.reflog(lineage.ref)
    assert [move.new for move in moves] == [lineage.root().id, first.id, second.id, first.id]
    assert moves[-1].reason == "undo"


def test_moving_to_where_head_is_does_nothing(lineage: Lineage):
    made = lineage.commit(new_commit(lineage))
    entries = len(lineage._audit.entries)
    lineage.move_head(made, "use")
    assert len(lineage._audit.entries) == entries


def test_the_engine_s_report_must_name_the_version_s_weights(lineage: Lineage):
    made = lineage.commit(new_commit(lineage))
    with pytest.raises(VerificationError, match="other weights"):
        lineage.note_active(made, None)
    with pytest.raises(VerificationError, match="other weights"):
        lineage.note_active(lineage.root(), made.delta)
    lineage.note_active(made, made.delta)
    assert lineage.unproven() == made
    lineage.note_proven(made)
    assert lineage.unproven() is None


def test_other_rooms_may_record_but_not_in_the_lineage_s_name(lineage: Lineage, tmp_path: Path):
    lineage.record("proposal", {"id": "p", "from": "queued", "to": "training"})
    entry = open_lineage(tmp_path, QuickFiles())._audit.entries[-1]
    assert (entry.kind, entry.payload["to"]) == ("proposal", "training")
    for kind in ("commit", "head", "active", "proven"):
        with pytest.raises(BugError):
            lineage.record(kind, {})
    with pytest.raises(BugError):
        lineage.record("proposal", {"share": 0.5})


def test_two_bases_have_their_own_versions_in_one_home(lineage: Lineage, tmp_path: Path):
    made = lineage.commit(new_commit(lineage))
    passport = replace(PASSPORT, id="07e4" * 16, name="Other")
    other = open_lineage(tmp_path, QuickFiles(), passport=passport)
    assert other.log() == [other.root()]
    assert open_lineage(tmp_path, QuickFiles()).head() == made
    assert made.delta in other.reachable()


def test_a_title_may_hold_any_text(lineage: Lineage, tmp_path: Path):
    title = 'line\nbreak \0 NUL \ud800 half a pair <|im_end|> "quote" 🐕'
    made = lineage.commit(new_commit(lineage, title=title))
    again = open_lineage(tmp_path, QuickFiles())
    assert again.get(made.id).title == title
    assert again.locked is None


def test_too_little_space_is_said_before_anything_is_written(lineage: Lineage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(QuickFiles, "free_bytes", lambda _self, _folder: 1000)
    refused(lineage, KnownError, r"0\.0 MB are needed and 0\.0 MB are free")
