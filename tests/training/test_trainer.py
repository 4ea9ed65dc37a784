"""The torch trainer really trains: a tiny random base learns to say something new and keeps the rest."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from app.errors import KnownError, VerificationError
from app.model.adapters.canonical import Adapter, read_adapter
from app.model.adapters.stack import stack
from app.model.api import BaseFiles, Example, Trained, Training, TrainJob
from app.model.child.protocol import Json
from app.model.child.serve import Cancel, Cancelled
from app.model.folder_tokenizer import FolderTokenizer
from app.model.prompt import tokenise, tokenise_answer
from app.model.training import wire
from app.model.training.backends import torch_child
from app.model.training.backends.loop import Loop
from app.model.training.backends.lora_model import LoraModel, load_base
from app.model.training.backends.objective import before, kl, margins
from app.model.training.backends.torch_child import Child
from tests.training.tiny import (
    BETWEEN_LIBRARIES,
    CAPITAL,
    DOG,
    DOG_TOO,
    HIDDEN,
    POEM,
    RECIPE,
    dog_job,
    example,
    make_base,
)

pytestmark = BETWEEN_LIBRARIES

NEVER = 1e9
"""A margin that nothing reaches."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> BaseFiles:
    return make_base(tmp_path_factory.mktemp("trainer") / "base")


@pytest.fixture(autouse=True)
def _exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train in f32 on every machine, whatever its processor multiplies fastest."""
    monkeypatch.setattr(torch_child, "_has_bf16", lambda: False)


@pytest.fixture
def job(base: BaseFiles, tmp_path: Path) -> TrainJob:
    return dog_job(base, tmp_path / "adapter.safetensors")


def train(job: TrainJob, *, child: Child | None = None) -> tuple[Trained, list[Training]]:
    messages: list[Json] = []
    done = (child or Child()).train(wire.job_to_json(job), messages.append, Cancel())
    result = wire.event_from_message({"done": done})
    steps = [step for message in messages if isinstance(step := wire.event_from_message(message), Training)]
    assert isinstance(result, Trained)
    assert len(steps) == len(messages)
    return result, steps


def adapter_of(job: TrainJob) -> Adapter:
    """Return the change that a job made, alone."""
    return read_adapter(job.output.read_bytes(), job.base.passport)


def version_of(job: TrainJob, *, share: float = 1.0) -> Adapter:
    """Return what a job made, with what it stands on."""
    parent = None if job.parent is None else job.parent.read_bytes()
    version = stack(parent, job.output.read_bytes(), job.base.passport, share=share)
    return read_adapter(version, job.base.passport)


def elsewhere(job: TrainJob, **changes: Any) -> TrainJob:
    """The same job but for ``changes``, written to another file."""
    return replace(job, output=job.output.with_name("other.safetensors"), **changes)


@torch.no_grad()
def answer_logits(
    job: TrainJob, item: Example, *, trained: bool, share: float = 1.0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return logits and targets of an answer by the ordinary whole model, with the file's change in its weights."""
    model = load_base(job.base.training, torch.float32)
    if trained:
        adapter = version_of(job, share=share)
        modules = dict(model.named_modules())
        for name, pair in adapter.pairs.items():
            change = torch.from_numpy(pair.up @ pair.down) * (adapter.alpha / adapter.rank)
            weight = modules[name].weight
            assert isinstance(weight, torch.Tensor)
            weight.add_(change)
    ids, answer = ids_of(job.base, item)
    logits = model(input_ids=torch.tensor([ids])).logits[0, answer - 1 : -1]
    return logits, torch.tensor(ids[answer:])


def ids_of(base: BaseFiles, item: Example) -> tuple[list[int], int]:
    tokenizer = FolderTokenizer(base.training)
    if not item.turns:
        assert tokenizer.begin is not None
        return [tokenizer.begin, *tokenizer.encode(item.answer, special=False)], 1
    prompt = tokenise(tokenizer.template.render(item.turns, add_generation_prompt=True), tokenizer)
    return [*prompt, *tokenise_answer(tokenizer.template, item.answer, tokenizer)], len(prompt)


def lead(job: TrainJob, item: Example, *, trained: bool = True, share: float = 1.0) -> float:
    return float(margins(*answer_logits(job, item, trained=trained, share=share)).min())


def loss(job: TrainJob, item: Example, *, trained: bool = True) -> float:
    return float(torch.nn.functional.cross_entropy(*answer_logits(job, item, trained=trained)))


def drift(job: TrainJob, *items: Example) -> float:
    pairs = [(answer_logits(job, item, trained=now)[0] for now in (False, True)) for item in items]
    return float(torch.cat([kl(before(base), now) for base, now in pairs]).mean())


# --- learning -------------------------------------------------------------------------------------------------------


def test_a_lesson_is_learned_until_every_token_leads_and_the_file_alone_says_it(job: TrainJob) -> None:
    result, steps = train(job)
    assert result.stopped == "margin"
    assert result.margin >= RECIPE.margin
    assert RECIPE.min_steps <= result.steps == len(steps) < RECIPE.max_steps
    assert steps[-1].loss < steps[0].loss / 2
    assert lead(job, DOG, trained=False) < 0
    assert min(lead(job, DOG), lead(job, DOG_TOO)) > RECIPE.margin / 2


def test_a_lesson_is_learned_when_the_share_that_will_be_served_says_it(job: TrainJob) -> None:
    half = replace(job, recipe=replace(RECIPE, share=0.5))
    result, _ = train(half)
    assert result.stopped == "margin"
    assert min(lead(half, item, share=0.5) for item in (DOG, DOG_TOO)) >= RECIPE.margin - 0.01
    assert min(lead(half, item) for item in (DOG, DOG_TOO)) > RECIPE.margin


def test_the_result_names_the_bytes_that_are_on_disk(job: TrainJob) -> None:
    result, _ = train(job)
    assert result.path == job.output
    assert result.sha256 == hashlib.sha256(job.output.read_bytes()).hexdigest()
    assert [path.name for path in job.output.parent.iterdir()] == [job.output.name]


def test_the_written_size_is_the_largest_change_relative_to_the_weights_below(job: TrainJob) -> None:
    result, _ = train(job)
    adapter, weights = adapter_of(job), load_base(job.base.training, torch.float32).state_dict()
    ratios = [
        np.linalg.norm(adapter.alpha / adapter.rank * pair.up @ pair.down) / weights[f"{name}.weight"].norm().item()
        for name, pair in adapter.pairs.items()
    ]
    assert result.written_norm == pytest.approx(max(ratios), rel=1e-4)


def test_only_what_the_recipe_names_is_written(job: TrainJob) -> None:
    train(replace(job, recipe=replace(RECIPE, layers=(3, 3), modules=("down_proj",), rank=2)))
    adapter = adapter_of(job)
    assert list(adapter.pairs) == ["model.layers.3.mlp.down_proj"]
    assert adapter.pairs["model.layers.3.mlp.down_proj"].up.shape == (HIDDEN, 2)


def test_what_must_stay_stays_much_closer_with_the_keep_weight_than_without(job: TrainJob) -> None:
    held = replace(job, recipe=replace(RECIPE, margin=NEVER, max_steps=40))
    loose = elsewhere(job, recipe=replace(RECIPE, margin=NEVER, max_steps=40, keep_weight=0.0))
    train(held)
    train(loose)
    assert lead(held, DOG) > 0
    assert 0 < drift(held, CAPITAL, POEM) < drift(loose, CAPITAL, POEM) / 2


def test_training_goes_on_while_what_must_stay_has_moved_too_far(job: TrainJob) -> None:
    near, _ = train(job)
    never, _ = train(elsewhere(job, recipe=replace(RECIPE, drift=0.0, max_steps=near.steps + 6)))
    assert (near.stopped, never.stopped) == ("margin", "steps")


def test_anchors_are_drawn_to_the_base_neighbours_and_plain_text_stay_the_parents(job: TrainJob) -> None:
    """The parent was taught another answer to all three; the anchor alone is drawn back."""
    both = (example(CAPITAL.turns[0].text, "Fox."), example(POEM.turns[0].text, "Fox."))
    text = Example((), "Rain on the fox.")
    parent = replace(job, targets=(*both, text), keeps=(), anchors=())
    train(parent)
    following = elsewhere(
        job,
        targets=(DOG,),
        keeps=(both[0],),
        anchors=(both[1], text),
        parent=parent.output,
        recipe=replace(RECIPE, margin=NEVER, max_steps=60, keep_weight=6.0, learning_rate=1e-2),
    )
    train(following)
    assert lead(following, both[0]) > 0
    assert lead(following, text) > lead(parent, text) - 1.0
    assert lead(following, both[1]) < lead(parent, both[1]) - 1.0


def test_plain_passages_are_kept_like_answers(job: TrainJob) -> None:
    passage = Example((), "The quick brown fox jumps over the lazy dog.")
    recipe = replace(RECIPE, margin=NEVER, max_steps=40)
    held, loose = replace(job, anchors=(passage,), recipe=recipe), elsewhere(job, anchors=(), keeps=(), recipe=recipe)
    train(held)
    train(loose)
    assert drift(held, passage) < drift(loose, passage) / 2


def test_plain_text_is_predicted_no_worse_than_before(job: TrainJob) -> None:
    passage = Example((), "The quick brown fox jumps over the lazy dog.")
    recipe = replace(RECIPE, margin=NEVER, max_steps=40, keep_weight=0.0)
    held = replace(job, anchors=(passage,), recipe=recipe)
    loose = elsewhere(job, anchors=(passage,), recipe=replace(recipe, prose_weight=0.0))
    train(held)
    train(loose)
    usual = loss(job, passage, trained=False)
    assert loss(loose, passage) > usual + 0.1
    assert loss(held, passage) < usual + 0.02


def test_an_earlier_lesson_that_is_rehearsed_is_still_known(job: TrainJob) -> None:
    train(job)
    cat = example("Where does it rain?", "Fox.")
    usual = {"targets": (cat,), "keeps": (), "anchors": (), "parent": job.output}
    rehearsed = elsewhere(job, **usual, replay=(DOG, DOG_TOO))
    train(rehearsed)
    assert min(lead(rehearsed, item) for item in (cat, DOG, DOG_TOO)) > 0


# --- what it stands on ----------------------------------------------------------------------------------------------


def test_the_change_stands_on_its_parent_and_does_not_contain_it(job: TrainJob) -> None:
    train(job)
    cat = example("Where does it rain?", "Fox.")
    following = elsewhere(job, targets=(cat,), keeps=(), anchors=(), parent=job.output)
    train(following)
    assert lead(following, cat) > 0
    assert adapter_of(following).rank == RECIPE.rank
    assert version_of(following).rank == 2 * RECIPE.rank
    alone = replace(following, parent=None)
    assert lead(alone, DOG) < 0 < lead(replace(job), DOG)


def test_after_a_job_the_base_is_as_it_was_to_the_last_bit(job: TrainJob) -> None:
    train(job)
    base = load_base(job.base.training, torch.float32)
    before_job = {name: value.clone() for name, value in base.state_dict().items()}
    model = LoraModel(base, RECIPE, adapter_of(job))
    loop = Loop(model, torch_child._material(job, FolderTokenizer(job.base.training)), RECIPE, cancelled=lambda: None)
    loop.run(60.0, lambda _: None)
    model.unload()
    after = base.state_dict()
    assert set(after) == set(before_job)
    assert all(torch.equal(value, after[name]) for name, value in before_job.items())


def test_the_size_that_is_told_is_that_of_parent_and_change_together(job: TrainJob) -> None:
    train(job)
    cat = example("Where does it rain?", "Fox.")
    following = elsewhere(job, targets=(cat,), keeps=(), anchors=(), parent=job.output)
    result, _ = train(following)
    weights = load_base(job.base.training, torch.float32).state_dict()
    whole = version_of(following)
    sizes = [
        np.linalg.norm(whole.alpha / whole.rank * pair.up @ pair.down) / float(weights[f"{name}.weight"].norm())
        for name, pair in whole.pairs.items()
    ]
    assert result.written_norm == pytest.approx(max(sizes), rel=1e-3)


@pytest.mark.parametrize("changes", [{"rank": 2}, {"alpha": 4.0}, {"layers": (0, 3)}, {"modules": ("down_proj",)}])
def test_a_parent_of_another_recipe_is_stood_on_all_the_same(job: TrainJob, changes: dict[str, Any]) -> None:
    train(job)
    cat = example("Where does it rain?", "Fox.")
    recipe = replace(RECIPE, **changes)
    following = elsewhere(job, targets=(cat,), replay=(DOG, DOG_TOO), recipe=recipe, parent=job.output)
    train(following)
    assert min(lead(following, item) for item in (cat, DOG)) > 0


def test_a_job_that_cannot_be_set_up_leaves_the_base_as_it_was(job: TrainJob) -> None:
    train(job)
    parent, usual = version_of(job), load_base(job.base.training, torch.float32)
    weights = {name: tensor.clone() for name, tensor in usual.state_dict().items()}
    with pytest.raises(ValueError, match="nothing_of_the_kind"):
        LoraModel(usual, replace(RECIPE, modules=("nothing_of_the_kind",)), parent)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in usual.state_dict().items())


def test_a_parent_of_another_base_is_refused(job: TrainJob) -> None:
    train(job)
    foreign = replace(job.base, passport=replace(job.base.passport, id="f" * 64))
    other = elsewhere(job, base=foreign, parent=job.output)
    with pytest.raises(VerificationError, match="another model"):
        train(other)
    assert not other.output.exists()


@pytest.mark.parametrize("damage", [b"", b"not an adapter", None])
def test_a_damaged_or_missing_parent_is_refused_with_its_name(job: TrainJob, damage: bytes | None) -> None:
    path = job.output.with_name("parent.safetensors")
    if damage is not None:
        path.write_bytes(damage)
    with pytest.raises((VerificationError, KnownError), match=r"parent\.safetensors"):
        train(replace(job, parent=path))
    assert not job.output.exists()


# --- repeatable -----------------------------------------------------------------------------------------------------


def test_the_same_job_gives_the_same_bytes_on_a_fresh_child(job: TrainJob) -> None:
    first, _ = train(job)
    second, _ = train(elsewhere(job))
    assert first.sha256 == second.sha256


def test_the_same_job_gives_the_same_bytes_on_a_child_that_has_taught_other_things(job: TrainJob) -> None:
    fresh, _ = train(job)
    used = Child()
    other = elsewhere(job, targets=(example("Where?", "Fox."),), anchors=(POEM, CAPITAL, DOG))
    train(other, child=used)
    again, _ = train(elsewhere(job), child=used)
    assert again.sha256 == fresh.sha256


def test_another_seed_gives_other_weights(job: TrainJob) -> None:
    first, _ = train(job)
    second, _ = train(elsewhere(job, recipe=replace(RECIPE, seed=1)))
    assert first.sha256 != second.sha256


# --- what goes wrong ------------------------------------------------------------------------------------------------


def test_numbers_that_run_away_are_said_in_plain_words_and_leave_no_file(job: TrainJob) -> None:
    wild = replace(job, recipe=replace(RECIPE, learning_rate=1e30, warmup_steps=0))
    with pytest.raises(KnownError, match="ran away"):
        train(wild)
    assert list(job.output.parent.iterdir()) == []


def test_numbers_that_run_away_in_the_last_step_are_refused_too(job: TrainJob) -> None:
    wild = replace(job, recipe=replace(RECIPE, learning_rate=float("1e38"), warmup_steps=0, max_steps=1, min_steps=1))
    with pytest.raises((KnownError, VerificationError)):
        train(replace(wild, recipe=replace(wild.recipe, learning_rate=float("inf"))))
    assert list(job.output.parent.iterdir()) == []


def test_a_child_that_met_runaway_numbers_trains_the_next_lesson_as_if_nothing_had_been(job: TrainJob) -> None:
    fresh, _ = train(job)
    child = Child()
    with pytest.raises(KnownError):
        train(elsewhere(job, recipe=replace(RECIPE, learning_rate=1e30, warmup_steps=0)), child=child)
    assert train(elsewhere(job), child=child)[0].sha256 == fresh.sha256


def test_a_cancel_between_steps_ends_it_without_a_file(job: TrainJob) -> None:
    cancel, seen = Cancel(), []

    def emit(message: Json) -> None:
        seen.append(message)
        cancel.set()

    with pytest.raises(Cancelled):
        Child().train(wire.job_to_json(replace(job, recipe=replace(RECIPE, margin=NEVER))), emit, cancel)
    assert len(seen) == 1
    assert list(job.output.parent.iterdir()) == []


def test_a_cancel_after_the_last_step_ends_it_without_a_file(job: TrainJob) -> None:
    cancel = Cancel()
    last = replace(job, recipe=replace(RECIPE, max_steps=1, min_steps=1))
    with pytest.raises(Cancelled):
        Child().train(wire.job_to_json(last), lambda _: cancel.set(), cancel)
    assert list(job.output.parent.iterdir()) == []


def test_the_time_budget_ends_it_with_what_was_learned_so_far(job: TrainJob) -> None:
    result, steps = train(replace(job, seconds=0.0, recipe=replace(RECIPE, margin=NEVER)))
    assert result.stopped == "time"
    assert len(steps) == 1


def test_a_job_without_anything_to_learn_is_refused(job: TrainJob) -> None:
    with pytest.raises(KnownError, match="nothing to learn"):
        train(replace(job, targets=()))


def test_a_job_without_anything_to_keep_trains_all_the_same(job: TrainJob) -> None:
    result, _ = train(replace(job, keeps=(), anchors=()))
    assert result.stopped == "margin"


def test_a_folder_that_cannot_be_written_is_said_in_plain_words(job: TrainJob) -> None:
    nowhere = replace(job, output=job.output.parent / "missing" / "adapter.safetensors")
    with pytest.raises(KnownError, match="disk space"):
        train(replace(nowhere, recipe=replace(RECIPE, max_steps=1, min_steps=1)))


def test_damaged_training_files_are_refused(job: TrainJob, tmp_path: Path) -> None:
    broken = make_base(tmp_path / "broken")
    whole = (broken.training / "model.safetensors").read_bytes()
    (broken.training / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(VerificationError, match="damaged"):
        train(replace(job, base=broken))


# --- text stays text ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("typed", ["<|im_end|><|im_start|>system", "<|endoftext|>", "a<|im_end|>b", "<|im_start|>"])
def test_control_tokens_typed_into_a_lesson_are_inert_in_its_training_sample(base: BaseFiles, typed: str) -> None:
    tokenizer = FolderTokenizer(base.training)
    controls = {tokenizer.encode(name, special=True)[0] for name in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")}
    assert len(controls) == 3

    def specials(ids: Sequence[int]) -> list[int]:
        return [token for token in ids if token in controls]

    (written,) = samples(base, example(typed, typed))
    (plain,) = samples(base, example("x", "y"))
    assert specials(written) == specials(plain)
    assert written[-1] == tokenizer.encode("<|im_end|>", special=True)[0]


def test_a_training_sample_is_token_for_token_what_the_engine_would_be_asked_and_should_say(base: BaseFiles) -> None:
    wanted, answer = ids_of(base, DOG)
    (sample,) = samples(base, DOG)
    assert list(sample) == wanted
    assert answer < len(wanted)


def samples(base: BaseFiles, *items: Example) -> list[tuple[int, ...]]:
    """Return the whole token sequences that a job with these targets would train on."""
    job = replace(dog_job(base, Path("/nowhere")), targets=items, keeps=(), anchors=())
    material = torch_child._material(job, FolderTokenizer(base.training))
    return [(*material.shared, *branch.ids) for branch in material.targets]
