"""What is remembered of versions, and that nothing wrong can be remembered."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from app.model.api import AdapterRef, EvalItem, EvalResult, Greedy, GreedyResult, Score, ScoreResult
from app.model.gate import asking
from app.model.gate.asking import Asker, Memory, version_key
from tests.gate.scripted import ScriptedEngine, World, ask

NEW = AdapterRef("new", Path("/nowhere/new.gguf"), 0.6)
ITEMS: list[EvalItem] = [Greedy(ask("One?")), Score((), "Some text."), Score(ask("Two?"), "Yes.", top_k=3)]


def asked(engine: ScriptedEngine, memory: Memory, items: list[EvalItem]) -> asking.Answers:
    return asyncio.run(Asker(engine, memory).ask(NEW, items))


def test_an_answer_is_asked_once_and_read_back_bit_for_bit(tmp_path: Path) -> None:
    first, second = ScriptedEngine({"new": World(text_loss=1 / 3)}), ScriptedEngine({"new": World()})
    told = asked(first, Memory("space", tmp_path), ITEMS)
    again = asked(second, Memory("space", tmp_path), ITEMS)
    assert told == again
    assert second.calls == []


def test_another_space_knows_nothing(tmp_path: Path) -> None:
    asked(ScriptedEngine({"new": World()}), Memory("space", tmp_path), ITEMS)
    engine = ScriptedEngine({"new": World()})
    asked(engine, Memory("other", tmp_path), ITEMS)
    assert len(engine.asked_of("new")) == len(ITEMS)


def test_a_damaged_line_is_asked_again_and_the_others_are_not(tmp_path: Path) -> None:
    asked(ScriptedEngine({"new": World()}), Memory("space", tmp_path), ITEMS)
    (file,) = tmp_path.glob("*/*.jsonl")
    lines = file.read_text().splitlines(keepends=True)
    file.write_text(lines[0].replace("fine", "poor", 1) + "\0\n" + "".join(lines[1:]) + lines[0][:20])
    engine = ScriptedEngine({"new": World()})
    asked(engine, Memory("space", tmp_path), ITEMS)
    assert engine.asked_of("new") == [ITEMS[0]]


def test_what_names_the_tokens_of_another_version_is_not_remembered(tmp_path: Path) -> None:
    memory = Memory("space", tmp_path)
    item = Score(ask("Two?"), "Yes.", given=((1, 2), (3, 4)))
    engine = ScriptedEngine({"new": World()})
    asked(engine, memory, [item])
    asked(engine, memory, [item])
    assert engine.asked_of("new") == [item, item]


def test_a_unit_goes_to_the_engine_whole_or_not_at_all(tmp_path: Path) -> None:
    memory, engine = Memory("space", tmp_path), ScriptedEngine({"new": World()})
    asker = Asker(engine, memory)
    asyncio.run(asker.ask(NEW, ITEMS[:1]))
    asyncio.run(asker.ask_units(NEW, [ITEMS]))
    asyncio.run(asker.ask_units(NEW, [ITEMS]))
    assert [items for _, items in engine.calls] == [tuple(ITEMS[:1]), tuple(ITEMS)]


def test_repeated_items_are_asked_once() -> None:
    engine = ScriptedEngine({"new": World()})
    asked(engine, Memory("space", None), [ITEMS[0], ITEMS[0]])
    assert engine.asked_of("new") == [ITEMS[0]]


def test_old_versions_are_forgotten_and_the_base_never(tmp_path: Path) -> None:
    memory = Memory("space", tmp_path)
    result: dict[EvalItem, EvalResult] = {ITEMS[0]: GreedyResult("x", stopped=True, tokens=(1,))}
    memory.add("base", result)
    for number in range(40):
        memory.add(f"v{number}", result)
    kept = {path.stem for path in tmp_path.glob("*/*.jsonl")}
    assert len(kept) == 25
    assert {"base", "v39", "v16"} <= kept
    assert memory.of("base") == result


def test_strength_is_part_of_a_version() -> None:
    assert version_key(None) == "base"
    assert version_key(NEW) != version_key(AdapterRef("new", NEW.path, 0.8))


FLOATS = st.floats(min_value=-1e6, max_value=0, allow_nan=False)
IDS = st.lists(st.integers(0, 50_000), max_size=4).map(tuple)
RESULTS = st.one_of(
    st.builds(GreedyResult, st.text(max_size=40), st.booleans(), IDS),
    st.builds(
        ScoreResult,
        IDS,
        st.lists(FLOATS, max_size=4).map(tuple),
        st.lists(IDS, max_size=3).map(tuple),
        st.lists(st.lists(FLOATS, max_size=3).map(tuple), max_size=3).map(tuple),
    ),
)
ITEM = st.one_of(
    st.builds(Greedy, st.text(max_size=30).map(ask), st.integers(1, 400)),
    st.builds(Score, st.text(max_size=30).map(ask), st.text(max_size=30), st.integers(0, 64)),
)


@given(ITEM, RESULTS)
def test_any_result_survives_being_written(item: EvalItem, result: EvalResult) -> None:
    line = asking._line(item, result)
    assert line.count("\n") == 1
    assert asking._parsed(line.rstrip("\n")) == (item, result)


def test_the_loss_of_nothing_is_zero_and_not_an_error() -> None:
    item = Score((), "")
    assert asking.loss({item: ScoreResult((), ())}, item) == 0.0
    assert math.isclose(asking.loss({item: ScoreResult((1, 2), (-1.0, -2.0))}, item), 1.5)
