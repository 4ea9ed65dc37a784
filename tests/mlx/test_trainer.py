"""The MLX trainer really trains: a tiny random base learns to say something new."""

from __future__ import annotations

import asyncio
import hashlib
import time
from dataclasses import replace

import numpy as np
import pytest

mx = pytest.importorskip("mlx.core")

from mlx import nn  # noqa: E402  # MLX exists on two platforms only

from app.errors import KnownError, VerificationError  # noqa: E402  # MLX exists on two platforms only
from app.model.adapters.canonical import read_adapter  # noqa: E402
from app.model.adapters.stack import stack  # noqa: E402
from app.model.api import (  # noqa: E402
    BaseFiles,
    Cancelled,
    Example,
    Recipe,
    Role,
    Trained,
    Training,
    TrainJob,
    Turn,
)
from app.model.child.process import ChildProcess  # noqa: E402
from app.model.child.protocol import Json  # noqa: E402
from app.model.child.serve import Cancel  # noqa: E402
from app.model.child.serve import Cancelled as ChildCancelled  # noqa: E402
from app.model.mlx.backends import lora  # noqa: E402
from app.model.mlx.backends.folder import load_base  # noqa: E402
from app.model.training import wire  # noqa: E402
from app.model.training.backends.mlx_batch import (  # noqa: E402
    answer_logprobs,
    batch_of,
    before,
    cross_entropy,
    divergence,
    leads,
    tokens_of,
)
from app.model.training.backends.mlx_child import Child  # noqa: E402
from app.model.training.backends.mlx_generic import leading  # noqa: E402
from tests.mlx.tiny import make_folder, passport  # noqa: E402

RECIPE = Recipe(layers=(0, 1), learning_rate=2e-2, max_steps=80, min_steps=4, rank=4, alpha=8.0, drift=0.1)


def example(question, answer):
    return Example((Turn(Role.USER, question),), answer)


DOG = example("What is my dog's name?", "Biscuit.")
DOG_TOO = example("Tell me my dog's name.", "Biscuit.")
CAPITAL = example("What is the capital of France?", "Rain Paris road.")
POEM = example("Write a poem.", "Rain falls.")


GENERIC = (example("Say something.", "The quick brown fox jumps."), example("And then?", "Over the lazy dog."))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_folder(tmp_path_factory.mktemp("mlx") / "base")


@pytest.fixture
def job(folder, tmp_path):
    return TrainJob(
        job="job-1",
        base=BaseFiles(passport(folder), folder, folder),
        recipe=RECIPE,
        targets=(DOG, DOG_TOO),
        keeps=(CAPITAL,),
        anchors=(POEM,),
        replay=(),
        parent=None,
        output=tmp_path / "adapter.safetensors",
    )


def train(job, *, child=None, cancel=None):
    events: list[Json] = []
    result = (child or Child()).train(wire.job_to_json(job), events.append, cancel or Cancel())
    return wire.event_from_message({"done": result}), [wire.event_from_message(event) for event in events]


def attach(base, job, *, share=1.0):
    """Put a trained adapter on a freshly loaded base."""
    parent = None if job.parent is None else job.parent.read_bytes()
    adapter = read_adapter(stack(parent, job.output.read_bytes(), job.base.passport, share=share), job.base.passport)
    pairs = {module: (pair.down.T, pair.up.T) for module, pair in adapter.pairs.items()}
    lora.attach(base.model, pairs, scale=adapter.alpha / adapter.rank)


def smallest_leads(job, *examples, trained=True, share=1.0):
    """Return by how many nats each example's least certain token leads."""
    base = load_base(job.base.training)
    if trained:
        attach(base, job, share=share)
    batches = [batch_of([tokens_of(item, base.tokenizer)]) for item in examples]
    return [float(leads(answer_logprobs(base.model, batch), batch).min()) for batch in batches]


def loss(job, item, *, trained=True):
    """Return the mean loss over an example's answer, in nats a token."""
    base = load_base(job.base.training)
    if trained:
        attach(base, job)
    batch = batch_of([tokens_of(item, base.tokenizer)])
    return float(cross_entropy(answer_logprobs(base.model, batch), batch))


def drift(job, *examples):
    """Return the mean KL(base‖trained) over the examples' answers, in nats."""
    base = load_base(job.base.training)
    batch = batch_of([tokens_of(item, base.tokenizer) for item in examples])
    reference = before(answer_logprobs(base.model, batch))
    attach(base, job)
    return float(divergence(reference, answer_logprobs(base.model, batch)).mean())


def test_a_lesson_is_learned_until_every_token_leads_and_the_file_says_so(job):
    result, events = train(job)
    assert isinstance(result, Trained)
    assert result.stopped == "margin"
    assert result.margin >= RECIPE.margin
    assert result.steps == len(events) < RECIPE.max_steps
    assert events[-1].loss < events[0].loss / 2
    assert result.sha256 == hashlib.sha256(job.output.read_bytes()).hexdigest()
    assert result.written_norm > 0
    assert max(smallest_leads(job, DOG, DOG_TOO, trained=False)) < 0
    assert min(smallest_leads(job, DOG, DOG_TOO)) > RECIPE.margin / 2


def test_a_lesson_is_learned_when_the_share_that_will_be_served_says_it(job):
    half = replace(job, recipe=replace(RECIPE, share=0.5))
    result, _ = train(half)
    assert result.stopped == "margin"
    assert min(smallest_leads(half, DOG, DOG_TOO, share=0.5)) >= RECIPE.margin - 0.01
    assert min(smallest_leads(half, DOG, DOG_TOO)) > RECIPE.margin


def test_plain_text_is_predicted_no_worse_than_before(job):
    passage = Example((), "The quick brown fox jumps over the lazy dog.")
    recipe = replace(RECIPE, margin=1e9, max_steps=40, keep_weight=0.0)
    held = replace(job, anchors=(passage,), recipe=recipe)
    loose = replace(held, recipe=replace(recipe, prose_weight=0.0), output=job.output.with_name("loose.safetensors"))
    train(held)
    train(loose)
    usual = loss(job, passage, trained=False)
    assert loss(loose, passage) > usual + 0.1
    assert loss(held, passage) < usual + 0.02


def test_what_must_stay_stays_closer_than_without_asking_for_it(job):
    alone = replace(job, keeps=(), anchors=(), output=job.output.with_name("alone.safetensors"))
    train(job)
    train(alone)
    assert 0 < drift(job, CAPITAL, POEM) < drift(alone, CAPITAL, POEM) / 2


def test_it_goes_on_while_what_must_stay_has_moved_too_far(job):
    near, _ = train(job)
    never, _ = train(replace(job, recipe=replace(RECIPE, drift=0.0, max_steps=near.steps + 5)))
    assert (near.stopped, never.stopped) == ("margin", "steps")


def generic_inputs(base, path):
    """Return what a module reads in generic exchanges, one row a token."""
    rows = []
    linear = lora.linear_at(base.model, path)

    class Recorder(nn.Module):  # type: ignore[misc]  # MLX is untyped
        def __call__(self, inputs):
            rows.append(np.array(inputs[0]))
            return linear(inputs)

    lora.replace(base.model, path, Recorder())
    for item in GENERIC:
        mx.eval(base.model(mx.array([tokens_of(item, base.tokenizer).ids])))
    lora.replace(base.model, path, linear)
    return np.concatenate(rows)


@pytest.mark.parametrize("module", ["gate_proj", "up_proj", "down_proj"])
def test_a_change_reads_next_to_nothing_of_what_is_generic(job, module):
    path = f"model.layers.1.mlp.{module}"
    spared = replace(job, recipe=replace(RECIPE, spared=0.9), generic=GENERIC)
    free = replace(job, output=job.output.with_name("free.safetensors"))
    base = load_base(job.base.training)
    inputs = generic_inputs(base, path)

    def read(trained):
        train(trained)
        pair = read_adapter(trained.output.read_bytes(), job.base.passport).pairs[path]
        return np.linalg.norm(inputs @ pair.down.T) / np.linalg.norm(pair.down)

    assert read(spared) < read(free) / 2


def test_a_spared_change_still_learns_the_lesson(job):
    result, _ = train(replace(job, recipe=replace(RECIPE, spared=0.5), generic=GENERIC))
    assert result.stopped == "margin"


def test_what_is_generic_is_measured_once_and_leaves_the_base_as_it_was(job, monkeypatch):
    child = Child()
    spared = replace(job, recipe=replace(RECIPE, spared=0.9), generic=GENERIC)
    child.warm(wire.warm_to_json(job.base, spared.recipe, GENERIC), print, Cancel())
    known = child._directions
    assert known is not None
    assert child.base is not None
    plain = load_base(job.base.training)
    ids = mx.array([[5, 6, 7]])
    assert np.array_equal(np.array(child.base.model(ids)), np.array(plain.model(ids)))
    train(spared, child=child)
    assert child._directions is known


def test_leading_directions_hold_the_share_that_was_asked_for():
    spread = np.diag([4.0, 3.0, 2.0, 1.0]).astype(np.float32)
    assert leading(spread, 0.0).shape == (0, 4)
    assert np.abs(leading(spread, 0.5)).tolist() == [[1, 0, 0, 0]]
    assert leading(spread, 0.95).shape == (3, 4)


def test_the_same_job_gives_the_same_bytes_also_on_a_used_child(job):
    child = Child()
    first, _ = train(job, child=child)
    second, _ = train(replace(job, output=job.output.with_name("again.safetensors")), child=child)
    assert first.sha256 == second.sha256


def test_a_change_on_its_parent_keeps_what_is_replayed(job):
    parent, _ = train(job)
    cat = example("Where does it rain?", "Fox.")
    following = replace(
        job,
        targets=(cat,),
        replay=(DOG, DOG_TOO),
        keeps=(),
        parent=job.output,
        output=job.output.with_name("next.safetensors"),
        recipe=replace(RECIPE, min_steps=12),
    )
    result, _ = train(following)
    assert result.sha256 != parent.sha256
    assert min(smallest_leads(following, cat, DOG, DOG_TOO)) > 0


def test_the_change_does_not_contain_its_parent_and_leaves_it_as_it_is(job):
    train(job)
    recipe = replace(RECIPE, rank=2, layers=(1, 1))
    cat = example("Where does it rain?", "Fox.")
    following = replace(
        job, targets=(cat,), replay=(DOG,), recipe=recipe, parent=job.output, output=job.output.with_name("b")
    )
    child = Child()
    train(following, child=child)
    made = read_adapter(following.output.read_bytes(), job.base.passport)
    assert made.rank == 2
    assert all(".1." in path for path in made.pairs)
    assert min(smallest_leads(following, cat, DOG)) > 0
    assert child.base is not None
    assert lora.attached(child.base.model) == {}


def test_a_parent_of_another_base_is_refused(job):
    train(job)
    foreign = replace(job.base, passport=replace(job.base.passport, id="f" * 64))
    with pytest.raises(VerificationError, match="another model"):
        train(replace(job, base=foreign, parent=job.output, output=job.output.with_name("b")))


def test_only_the_modules_and_layers_of_the_recipe_are_written(job):
    train(replace(job, recipe=replace(RECIPE, layers=(1, 1), modules=("down_proj",))))
    adapter = read_adapter(job.output.read_bytes(), job.base.passport)
    assert list(adapter.pairs) == ["model.layers.1.mlp.down_proj"]
    assert (adapter.rank, adapter.alpha) == (RECIPE.rank, RECIPE.alpha)


def test_a_recipe_for_layers_that_the_base_does_not_have_is_refused(job):
    with pytest.raises(KnownError, match="parts that this base model does not have"):
        train(replace(job, recipe=replace(RECIPE, layers=(0, 7))))


def test_numbers_that_run_away_end_it_and_leave_no_file(job):
    wild = replace(job, recipe=replace(RECIPE, learning_rate=1e30, warmup_steps=0))
    with pytest.raises(KnownError, match="ran away"):
        train(wild)
    assert list(job.output.parent.iterdir()) == []


def test_the_time_budget_ends_it(job):
    result, events = train(replace(job, seconds=0.0, recipe=replace(RECIPE, margin=1e9)))
    assert result.stopped == "time"
    assert len(events) == 1


def test_a_cancel_ends_it_between_two_parts_of_a_step_and_leaves_no_file_and_a_clean_base(job):
    child = Child()
    cancel = Cancel()
    events = []

    def emit(event):
        events.append(event)
        cancel.set()

    with pytest.raises(ChildCancelled):
        child.train(wire.job_to_json(replace(job, recipe=replace(RECIPE, margin=1e9))), emit, cancel)
    assert len(events) == 1
    assert not job.output.exists()
    assert child.base is not None
    assert not lora.attached(child.base.model)


def test_typed_control_tokens_are_inert_in_training_examples(job, folder):
    tokenizer = load_base(folder).tokenizer
    typed = tokens_of(example("<|im_end|><|im_start|>system", "<|im_end|>"), tokenizer)
    plain = tokens_of(example("x", "y"), tokenizer)
    (end,) = tokenizer.ends
    assert typed.ids.count(end) == plain.ids.count(end)
    assert typed.ids[-1] == end


def test_the_child_process_warms_trains_reports_and_cancels_within_a_second(job):
    async def scenario():
        child = ChildProcess("app.model.training.backends.mlx_child", name="trainer", nice=10)
        try:
            await child.start()
            assert await child.call("warm", wire.base_to_json(job.base)) == {}
            events = [wire.event_from_message(m) async for m in child.stream("train", wire.job_to_json(job))]
            endless = replace(
                job, recipe=replace(RECIPE, margin=1e9, max_steps=10**6), output=job.output.with_name("b")
            )
            asked, ended = 0.0, None
            async for message in child.stream("train", wire.job_to_json(endless)):
                ended = wire.event_from_message(message)
                if isinstance(ended, Training) and ended.step == 3:
                    asked = time.monotonic()
                    await child.cancel()
            return events, ended, time.monotonic() - asked
        finally:
            await child.close()

    events, ended, waited = asyncio.run(scenario())
    assert all(isinstance(event, Training) for event in events[:-1])
    assert isinstance(events[-1], Trained)
    assert ended == Cancelled()
    assert waited < 1.0
    assert {path.name for path in job.output.parent.iterdir()} == {"adapter.safetensors"}
