"""What is generic in a base's inputs is found, and a lesson's change reads nothing of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from app.model.adapters.canonical import read_adapter
from app.model.api import BaseFiles, TrainJob
from app.model.child.serve import Cancel, Cancelled
from app.model.folder_tokenizer import FolderTokenizer
from app.model.training import wire
from app.model.training.backends import torch_child
from app.model.training.backends.generic import SecondMoments, generic_directions
from app.model.training.backends.lora_model import load_base
from app.model.training.backends.torch_child import Child
from tests.training.tiny import BETWEEN_LIBRARIES, CAPITAL, HIDDEN, POEM, RECIPE, dog_job, example, make_base

pytestmark = BETWEEN_LIBRARIES

GENERIC = (CAPITAL, POEM, example("Where does the fox jump?", "Over the dog."))
NAMES = ("model.layers.1.mlp.gate_proj", "model.layers.1.mlp.up_proj", "model.layers.2.mlp.down_proj")
SPARING = replace(RECIPE, spared=0.8, max_steps=12, margin=1e9)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> BaseFiles:
    return make_base(tmp_path_factory.mktemp("generic") / "base")


@pytest.fixture(autouse=True)
def _exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_child, "_has_bf16", lambda: False)


@pytest.fixture
def job(base: BaseFiles, tmp_path: Path) -> TrainJob:
    return replace(dog_job(base, tmp_path / "adapter.safetensors"), recipe=SPARING, generic=GENERIC)


def directions(base: BaseFiles, share: float) -> dict[str, torch.Tensor]:
    tokenizer = FolderTokenizer(base.training)
    sequences = [torch_child._tokens(item, tokenizer) for item in GENERIC]
    model = load_base(base.training, torch.float32)
    found = generic_directions(model, NAMES, sequences, share=share, cancelled=lambda: None)
    return {name: read.directions for name, read in found.items()}


def test_the_directions_are_orthonormal_and_hold_the_share_of_the_energy_that_was_asked_for(base: BaseFiles) -> None:
    tokenizer = FolderTokenizer(base.training)
    model = load_base(base.training, torch.float32)
    moments = SecondMoments(model, NAMES)
    with torch.no_grad():
        for item in GENERIC:
            model(input_ids=torch.tensor([torch_child._tokens(item, tokenizer).ids]))
    moments.close()
    for name, found in directions(base, 0.8).items():
        torch.testing.assert_close(found @ found.T, torch.eye(len(found)), rtol=0, atol=1e-4)
        total = moments.sums[name]
        held = float(torch.trace(found @ total @ found.T) / torch.trace(total))
        one_more = 1 / len(found)
        assert 0.8 - one_more <= held < 0.95


def test_more_energy_takes_more_directions(base: BaseFiles) -> None:
    few, many = directions(base, 0.5), directions(base, 0.95)
    assert all(len(few[name]) < len(many[name]) < max(HIDDEN, 128) for name in NAMES)


def test_a_trained_change_reads_nothing_of_them(base: BaseFiles, job: TrainJob) -> None:
    Child().train(wire.job_to_json(job), lambda _: None, Cancel())
    adapter = read_adapter(job.output.read_bytes(), base.passport)
    for name, found in directions(base, 0.8).items():
        down = torch.tensor(adapter.pairs[name].down)
        assert (down @ found.T).norm() < 1e-3 * down.norm()


def test_without_a_share_to_spare_nothing_is_spared(base: BaseFiles, job: TrainJob) -> None:
    Child().train(wire.job_to_json(replace(job, recipe=replace(SPARING, spared=0.0))), lambda _: None, Cancel())
    adapter = read_adapter(job.output.read_bytes(), base.passport)
    for name, found in directions(base, 0.8).items():
        down = torch.tensor(adapter.pairs[name].down)
        assert (down @ found.T).norm() > 0.1 * down.norm()


def test_measuring_beforehand_changes_no_bit_of_what_is_learned(base: BaseFiles, job: TrainJob) -> None:
    cold, warm = Child(), Child()
    cold.train(wire.job_to_json(job), lambda _: None, Cancel())
    warm.warm(wire.warm_to_json(base, SPARING, GENERIC), lambda _: None, Cancel())
    again = replace(job, output=job.output.with_name("again.safetensors"))
    warm.train(wire.job_to_json(again), lambda _: None, Cancel())
    assert again.output.read_bytes() == job.output.read_bytes()


def test_other_generic_exchanges_are_measured_anew(base: BaseFiles, job: TrainJob) -> None:
    child = Child()
    child.train(wire.job_to_json(job), lambda _: None, Cancel())
    other = replace(job, generic=GENERIC[:1], output=job.output.with_name("other.safetensors"))
    child.train(wire.job_to_json(other), lambda _: None, Cancel())
    Child().train(wire.job_to_json(replace(other, output=job.output)), lambda _: None, Cancel())
    assert other.output.read_bytes() == job.output.read_bytes()


def test_measuring_can_be_cancelled(base: BaseFiles) -> None:
    cancel = Cancel()
    cancel.set()
    with pytest.raises(Cancelled):
        Child().warm(wire.warm_to_json(base, SPARING, GENERIC), lambda _: None, cancel)


def test_listening_to_a_base_ends_with_the_measurement(base: BaseFiles) -> None:
    model = load_base(base.training, torch.float32)
    moments = SecondMoments(model, NAMES)
    moments.close()
    with torch.no_grad():
        model(input_ids=torch.tensor([[1, 2, 3]]))
    assert moments.sums == {}
