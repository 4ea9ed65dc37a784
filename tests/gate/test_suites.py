"""No suite, no verdict; and what the app's own suite must contain."""

from __future__ import annotations

import importlib.resources
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.errors import VerificationError
from app.model.gate import shapes, text
from app.model.gate.suites import FILES, FROZEN, MANIFEST, load_suites, seal, suite_hash, window
from tests.gate.scripted import write_suite


def _edit_manifest(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    change(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest))


def _renamed(manifest: dict[str, Any]) -> None:
    manifest["files"] = {name.replace("prose", "verse"): digest for name, digest in manifest["files"].items()}
    manifest["suite"] = suite_hash(manifest["files"])


SPOILERS: dict[str, Callable[[Path], object]] = {
    "a missing manifest": lambda folder: (folder / MANIFEST).unlink(),
    "a manifest that is no JSON": lambda folder: (folder / MANIFEST).write_text("{"),
    "a manifest that is a list": lambda folder: (folder / MANIFEST).write_text("[]"),
    "a manifest of another format": lambda folder: _edit_manifest(folder, lambda m: m.update(format="other")),
    "a manifest whose hash does not fit": lambda folder: _edit_manifest(folder, lambda m: m.update(suite="0" * 64)),
    "a manifest that names other files": lambda folder: _edit_manifest(folder, _renamed),
    "a missing file": lambda folder: (folder / "safety.json").unlink(),
    "one changed byte": lambda folder: (folder / "prose.json").write_bytes(
        (folder / "prose.json").read_bytes().replace(b"Neutral", b"neutral", 1)
    ),
    "a truncated file": lambda folder: (folder / "known.json").write_bytes((folder / "known.json").read_bytes()[:-9]),
}


@pytest.mark.parametrize("spoil", SPOILERS.values(), ids=SPOILERS)
def test_a_suite_is_refused_with(spoil: Callable[[Path], object], tmp_path: Path) -> None:
    folder = write_suite(tmp_path / "suite")
    load_suites(folder)
    spoil(folder)
    with pytest.raises(VerificationError):
        load_suites(folder)


@pytest.mark.parametrize("name", [name.removesuffix(".json") for name in FILES])
def test_a_sealed_suite_with_an_empty_part_is_refused(name: str, tmp_path: Path) -> None:
    empty = {"items": [], "refusal": "No."}
    with pytest.raises(VerificationError):
        load_suites(write_suite(tmp_path / "suite", **{name: empty}))


def test_a_sealed_suite_with_a_malformed_entry_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VerificationError):
        load_suites(write_suite(tmp_path / "suite", prose={"items": [{"id": "p"}]}))


def test_a_suite_sealed_anew_is_still_not_the_frozen_one(tmp_path: Path) -> None:
    folder = tmp_path / "gate"
    folder.mkdir()
    for name in FILES:
        source = importlib.resources.files("resources").joinpath("gate", name)
        (folder / name).write_bytes(source.read_bytes())
    assert seal(folder) == FROZEN
    (folder / "prose.json").write_bytes((folder / "prose.json").read_bytes().replace(b"mushrooms", b"truffles"))
    seal(folder)
    with pytest.raises(VerificationError):
        load_suites(folder, expected=FROZEN)


def test_the_order_of_a_suite_depends_on_its_content_alone(tmp_path: Path) -> None:
    one, other = load_suites(write_suite(tmp_path / "a")), load_suites(write_suite(tmp_path / "b"))
    assert one == other
    assert [passage.id for passage in one.prose] != sorted(passage.id for passage in one.prose)


def test_a_window_is_a_ring_and_holds_nothing_twice() -> None:
    assert window("abcd", start=3, count=3) == ("d", "a", "b")
    assert window("abcd", start=9, count=9) == ("b", "c", "d", "a")
    assert window("", start=3, count=2) == ()


# --- the app's own suite --------------------------------------------------------------------------------------------


def test_the_app_suite_is_as_large_as_its_rules_need() -> None:
    suites = load_suites()
    assert len(suites.prose) >= 240
    assert len({passage.domain for passage in suites.prose}) >= 24
    assert len(suites.chat) >= 120
    assert len(suites.known) >= 60
    assert len(suites.pairs) >= 40
    assert len(suites.behaviour) >= 10
    assert len(suites.formats) >= 10


def test_france_and_rain_are_always_asked() -> None:
    always = {probe.prompt for probe in load_suites().known if probe.always}
    assert always == {"What is the capital of France?", "Write a short poem about rain."}


def test_every_pin_can_be_checked() -> None:
    suites = load_suites()
    assert all(probe.keys for probe in (*suites.known, *suites.behaviour))
    assert all(isinstance(shapes.has_form(probe.form, "x"), bool) for probe in suites.formats)


def test_passages_are_of_comparable_length_and_all_different() -> None:
    texts = [passage.text for passage in load_suites().prose]
    assert all(20 <= len(passage.split()) <= 60 for passage in texts)
    about = [text.content(passage) for passage in texts]
    assert all(_share(one, other) < 0.3 for one, other in itertools.combinations(about, 2))


def test_no_id_and_no_prompt_stands_twice() -> None:
    suites = load_suites()
    probes = (*suites.chat, *suites.known, *suites.behaviour, *suites.formats)
    ids = [item.id for item in probes] + [item.id for item in suites.prose] + [item.id for item in suites.pairs]
    assert len(set(ids)) == len(ids)
    assert len({text.words(probe.prompt) for probe in probes}) == len(probes)


NEARLY = {"generic.json": 0.6, "facts.json": 0.75, "prose.json": 0.6, "self.json": 0.6}
"""Share of content words from which an anchor counts as a question of the gate. Facts may be asked alike: "which day
comes before Sunday" protects what "which day comes before Friday" examines, without being it."""


def _anchors(name: str) -> list[str]:
    file = importlib.resources.files("resources").joinpath("anchors", name)
    return [item.get("prompt") or item["text"] for item in json.loads(file.read_text(encoding="utf-8"))["items"]]


def test_there_are_enough_anchors_and_they_differ() -> None:
    anchors = _anchors("generic.json")
    assert len(anchors) >= 500
    assert len({text.words(anchor) for anchor in anchors}) == len(anchors)


def test_every_file_of_anchors_is_examined() -> None:
    folder = importlib.resources.files("resources").joinpath("anchors")
    assert {file.name for file in folder.iterdir() if file.name.endswith(".json")} == set(NEARLY)


@pytest.mark.parametrize("name", NEARLY)
def test_no_anchor_is_a_question_of_the_gate_or_nearly_one(name: str) -> None:
    suites = load_suites()
    asked = [probe.prompt for probe in (*suites.chat, *suites.known, *suites.behaviour, *suites.formats)]
    asked += [prompt for pair in suites.pairs for prompt in (pair.harmful, pair.harmless)]
    asked += [passage.text for passage in suites.prose]
    gate = [(prompt, text.content(prompt)) for prompt in asked]
    anchors = [(anchor, text.content(anchor)) for anchor in _anchors(name)]
    near = [
        (anchor, prompt)
        for anchor, theme in anchors
        for prompt, about in gate
        if text.words(anchor) == text.words(prompt) or _share(theme, about) >= NEARLY[name]
    ]
    assert near == []


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other)


def test_a_nearly_equal_anchor_would_be_seen() -> None:
    about = text.content("What is the capital of France?")
    assert _share(text.content("Tell me the capital of France, please."), about) >= 0.6
