from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from app.errors import BugError, ErrorInfo
from app.model.api import (
    BaseFiles,
    Cancelled,
    Example,
    Failed,
    Passport,
    Recipe,
    Role,
    Trained,
    Training,
    TrainJob,
    Turn,
)
from app.model.child.protocol import decode, encode
from app.model.training import wire

PASSPORT = Passport(
    "id", "tiny", "w", "llama", "t", "c", "F16", "Apache-2.0", 2, 64, 4, 2, 300, ("gate_proj", "up_proj")
)
BASE = BaseFiles(PASSPORT, Path("bases/serving.gguf"), Path("bases/training"))
EXAMPLE = Example((Turn(Role.SYSTEM, "Be brief."), Turn(Role.USER, "Wie heißt mein Hund? 🐕\u2028")), "Biscuit.")
JOB = TrainJob(
    job="job-1",
    base=BASE,
    recipe=Recipe(layers=(0, 1), learning_rate=1e-3),
    targets=(EXAMPLE, replace(EXAMPLE, answer="")),
    keeps=(EXAMPLE,),
    anchors=(),
    replay=(EXAMPLE,),
    parent=Path("parent.safetensors"),
    output=Path("out.safetensors"),
)


def over_the_pipe(message):
    return decode(encode(message))


@pytest.mark.parametrize("job", [JOB, replace(JOB, parent=None, replay=())], ids=["with a parent", "from the base"])
def test_a_job_arrives_as_it_was_sent(job):
    assert wire.job_from_json(over_the_pipe(wire.job_to_json(job))) == job


def test_a_base_arrives_as_it_was_sent():
    assert wire.base_from_json(over_the_pipe(wire.base_to_json(BASE))) == BASE


@pytest.mark.parametrize("margin", [-0.5, float("-inf")])
def test_a_step_arrives_as_it_was_sent(margin):
    step = Training(3, 32, 1.25, margin, 12.5)
    assert wire.event_from_message(over_the_pipe(wire.step_to_json(step))) == step


def test_a_result_arrives_as_it_was_sent():
    result = Trained(Path("out.safetensors"), "ab" * 32, 8, 1000, 2.5, 0.1, 1.5, "margin", 0.012)
    assert wire.event_from_message(over_the_pipe({"done": wire.result_to_json(result)})) == result


def test_every_way_to_end_is_told_apart():
    error = ErrorInfo("KnownError", "could not train", "NaN", "Try again.", retryable=True)
    assert wire.event_from_message({"cancelled": True}) == Cancelled()
    assert wire.event_from_message({"failed": error.as_dict()}) == Failed(error)


@pytest.mark.parametrize(
    "damage",
    [
        {"recipe": None},
        {"targets": [{"turns": [{"role": "robot", "text": "hello"}], "answer": "x"}]},
        {"seconds": "soon"},
    ],
    ids=["a missing recipe", "an unknown role", "a time that is no number"],
)
def test_a_job_of_the_wrong_shape_is_refused_without_quoting_it(damage):
    with pytest.raises(BugError) as caught:
        wire.job_from_json(wire.job_to_json(JOB) | damage)
    assert next(iter(damage)) in str(caught.value)
    assert "hello" not in str(caught.value)


def test_a_job_is_plain_json():
    assert json.loads(json.dumps(wire.job_to_json(JOB), allow_nan=False))["output"] == "out.safetensors"
