"""The parts of an engine that need no model: wire, plan, numbers, characters, turns."""

from __future__ import annotations

import asyncio
import math
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import KnownError, UserError
from app.model.api import AdapterRef, Greedy, GreedyResult, Role, Sampling, Score, ScoreResult, Turn
from app.model.child.protocol import decode, encode
from app.model.engine import wire
from app.model.engine.characters import Characters, text_of
from app.model.engine.crash_note import CrashNote
from app.model.engine.logprobs import Scored, normalisers, score
from app.model.engine.memory import check_fits
from app.model.engine.pace import Pace
from app.model.engine.packing import MIN_SHARED_TOKENS, Limits, Need, plan, shared_beginning
from app.model.engine.turnstile import Turnstile

TURNS = (Turn(Role.SYSTEM, "Be kind."), Turn(Role.USER, "Hi \ud800 😀"))

floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
tokens = st.integers(0, 2**31 - 1)
rows_of_ids = st.lists(st.lists(tokens, max_size=4).map(tuple), max_size=5).map(tuple)


def across(value):
    """Send a JSON value through the pipe's framing."""
    return decode(encode({"value": value}))["value"]


@given(st.builds(Score, st.just(TURNS), st.text(), st.integers(0, 9), rows_of_ids) | st.just(Greedy(TURNS, 7)))
def test_items_cross_unchanged(item):
    assert wire.item_from(across(wire.item_json(item))) == item


@given(
    st.builds(
        ScoreResult,
        st.lists(tokens).map(tuple),
        st.lists(floats).map(tuple),
        rows_of_ids,
        st.lists(st.lists(floats, max_size=4).map(tuple), max_size=5).map(tuple),
    )
    | st.builds(GreedyResult, st.text(), st.booleans(), st.lists(tokens).map(tuple))
)
def test_results_cross_bit_for_bit(result):
    back = wire.result_from(across(wire.result_json(result)))
    assert back == result
    if isinstance(result, ScoreResult):
        assert isinstance(back, ScoreResult)
        assert struct.pack(f"{len(result.logprobs)}f", *back.logprobs) == struct.pack(
            f"{len(result.logprobs)}f", *result.logprobs
        )


def test_references_and_settings_cross_unchanged():
    adapter = AdapterRef("a" * 64, Path("/x/ü.gguf"), 0.6)
    assert wire.adapter_from(across(wire.adapter_json(adapter))) == adapter
    assert wire.adapter_from(across(wire.adapter_json(None))) is None
    sampling = Sampling(0.7, 0.9, 5, 0.1, 1.1, 3, 2**40)
    assert wire.sampling_from(across(wire.sampling_json(sampling))) == sampling
    assert wire.turns_from(across(wire.turns_json(TURNS))) == TURNS


needs = st.builds(
    lambda tokens, grows: Need(tuple(tokens), len(tokens) - 1, grows),
    st.lists(st.integers(0, 3), min_size=1, max_size=40),
    st.integers(0, 20),
)


@given(st.lists(needs, max_size=30), st.integers(1, 120), st.integers(1, 8))
def test_a_plan_holds_every_item_once_in_order_and_keeps_its_limits(items, cells, sequences):
    shared = shared_beginning(items)
    groups = plan(items, Limits(cells, sequences), shared=shared)
    assert [index for group in groups for index in group] == list(range(len(items)))
    for group in groups:
        assert 0 < len(group) <= sequences
        taken = sum(len(items[index].tokens) - shared + items[index].grows for index in group)
        assert taken <= cells or len(group) == 1


@given(st.lists(needs, max_size=30), st.integers(1, 120))
def test_a_plan_is_a_function_of_its_items(items, cells):
    limits = Limits(cells, 8)
    assert plan(items, limits, shared=0) == plan(list(items), limits, shared=0)


@given(st.lists(needs, max_size=12))
def test_a_shared_beginning_is_common_to_all_and_reaches_no_output(items):
    length = shared_beginning(items)
    assert length == 0 or length >= MIN_SHARED_TOKENS
    assert len({item.tokens[:length] for item in items}) <= 1 or length == 0
    assert all(length <= item.first_output for item in items if length)


def test_groups_are_of_even_size_so_that_none_is_left_with_one():
    items = [Need((1, 2, 3), 2)] * 33
    assert sorted(len(group) for group in plan(items, Limits(10_000, 32), shared=0)) == [16, 17]


def test_log_probabilities_agree_with_double_precision():
    logits = np.random.default_rng(0).normal(0, 8, (7, 5000)).astype(np.float32)
    exact = logits.astype(np.float64)
    expected = np.log(np.exp(exact - exact.max(axis=1, keepdims=True)).sum(axis=1)) + exact.max(axis=1)
    assert np.allclose(normalisers(logits), expected, atol=1e-5)


def test_a_score_reads_the_rows_of_its_answer():
    logits = np.log(np.array([[0.1, 0.2, 0.7], [0.6, 0.2, 0.2]], np.float32))
    result = score(Scored(Score(TURNS, "x", top_k=2), (2, 1)), logits)
    assert result.tokens == (2, 1)
    assert result.logprobs == pytest.approx((math.log(0.7), math.log(0.2)), abs=1e-6)
    assert result.top_ids == ((2, 1), (0, 1))
    assert result.top_logprobs[1] == pytest.approx((math.log(0.6), math.log(0.2)), abs=1e-6)


def test_more_top_tokens_than_the_vocabulary_has_are_all_of_them():
    logits = np.zeros((1, 3), np.float32)
    assert score(Scored(Score(TURNS, "x", top_k=99), (0,)), logits).top_ids == ((0, 1, 2),)


def test_given_rows_must_match_the_answer():
    Scored(Score((), "x", given=((1,), (2,))), (5, 6)).check()
    with pytest.raises(UserError):
        Scored(Score((), "x", given=((1,),)), (5, 6)).check()


@given(st.text(), st.integers(1, 5))
def test_characters_come_whole_however_the_bytes_are_cut(text, width):
    data = text.encode("utf-8", "replace")
    characters = Characters()
    pieces = [characters.add(data[start : start + width]) for start in range(0, len(data), width)]
    assert "".join(pieces) == data.decode()


@given(st.lists(st.binary(max_size=6)))
def test_bytes_that_are_no_characters_never_become_replacements(pieces):
    characters = Characters()
    streamed = "".join(characters.add(piece) for piece in pieces)
    assert "\ufffd" not in streamed or "\ufffd".encode() in b"".join(pieces)
    assert text_of(pieces) == streamed


def paced(pace: Pace, seconds: dict[int, float], tokens: int) -> list[int]:
    """Compute tokens that take so long with so many threads; return the numbers of threads used."""
    used = []
    for _ in range(tokens):
        used.append(pace.threads())
        pace.took(seconds[used[-1]])
    return used


def test_the_pace_stays_with_what_is_faster_and_rarely_tries_the_other():
    used = paced(Pace(2), {2: 0.010, 1: 0.012}, 1000)
    assert used[0] == 2
    assert used.count(1) < 25


def test_the_pace_changes_when_something_else_makes_it_slower_and_changes_back():
    pace = Pace(2)
    paced(pace, {2: 0.010, 1: 0.012}, 300)
    beside_training = paced(pace, {2: 0.021, 1: 0.0125}, 400)
    assert beside_training[-100:].count(1) > 90
    alone = paced(pace, {2: 0.010, 1: 0.012}, 400)
    assert alone[-100:].count(2) > 90


def test_a_single_thread_stays_single():
    assert set(paced(Pace(1), {1: 0.01}, 100)) == {1}


GIB = 1024**3


@pytest.mark.parametrize(
    ("needed", "available", "total", "fits"),
    [
        (270 * 2**20, 1 * GIB, 4 * GIB, True),
        (3 * GIB, 16 * GIB, 32 * GIB, True),
        (15 * GIB, 16 * GIB, 32 * GIB, False),
        (800 * 2**20, 1 * GIB, 4 * GIB, False),
        (100 * GIB, 16 * GIB, 32 * GIB, False),
    ],
)
def test_a_model_is_refused_before_loading_when_it_leaves_too_little_memory(needed, available, total, fits):
    if fits:
        check_fits("m.gguf", needed=needed, available=available, total=total)
        return
    with pytest.raises(KnownError) as caught:
        check_fits("m.gguf", needed=needed, available=available, total=total)
    assert str(needed // 2**20) in caught.value.hint
    assert str(available // 2**20) in caught.value.hint


def test_a_crash_note_outlives_the_app_and_goes_with_a_good_load(tmp_path):
    note = CrashNote(tmp_path / "note")
    assert not note.names("abc")
    note.write("abc")
    assert CrashNote(tmp_path / "note").names("abc")
    assert not note.names("def")
    note.clear()
    note.clear()
    assert not note.names("abc")


def test_a_crash_note_that_cannot_be_written_is_no_failure(tmp_path):
    note = CrashNote(tmp_path / "no" / "folder")
    note.write("abc")
    assert not note.names("abc")


def test_a_turnstile_lets_one_through_at_a_time_in_order():
    async def run():
        turn, order = Turnstile(), []

        async def one(name):
            await turn.enter()
            order.append(name)
            await asyncio.sleep(0)
            turn.leave()

        await asyncio.gather(*(one(name) for name in range(5)))
        return order

    assert asyncio.run(run()) == [0, 1, 2, 3, 4]


def test_whoever_gives_up_at_the_turnstile_does_not_block_the_next():
    async def run():
        turn, stop = Turnstile(), asyncio.Event()
        await turn.enter()
        waiting = asyncio.create_task(turn.enter(stop))
        cancelled = asyncio.create_task(turn.enter(asyncio.Event()))
        await asyncio.sleep(0)
        stop.set()
        entered = await waiting
        cancelled.cancel()
        await asyncio.wait({cancelled})
        turn.leave()
        await asyncio.wait_for(turn.enter(), 1)
        return entered, cancelled.cancelled()

    assert asyncio.run(run()) == (False, True)


def test_a_turn_that_comes_together_with_giving_up_is_handed_on():
    async def run():
        turn, stop = Turnstile(), asyncio.Event()
        await turn.enter()
        waiting = asyncio.create_task(turn.enter(stop))
        await asyncio.sleep(0)
        turn.leave()
        stop.set()
        if await waiting:
            turn.leave()
        await asyncio.wait_for(turn.enter(), 1)

    asyncio.run(run())
