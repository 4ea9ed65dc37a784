"""One packed row computes what every sequence alone would: same tokens seen, same positions, same numbers."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from app.model.api import BaseFiles
from app.model.training.backends import lora_model
from app.model.training.backends.lora_model import LoraModel, load_base
from app.model.training.backends.packing import Branch, Layout, Tokens, branch, layout, shared_length
from tests.training.tiny import BETWEEN_LIBRARIES, RECIPE, VOCABULARY, make_base

pytestmark = BETWEEN_LIBRARIES

SHARED = (1, 17, 23, 42, 99)
SEQUENCES = (
    Tokens((*SHARED, 7, 8, 9, 10, 11), len(SHARED) + 2),
    Tokens((*SHARED, 60, 61, 300), len(SHARED) + 1),
    Tokens((*SHARED, 5, 6, 5, 6, 5, 6, 5, 6, 5, 6, 5), len(SHARED) + 6),
)
CLOSE: dict[str, Any] = {"rtol": 1e-4, "atol": 2e-4}
"""f32; logits of the tiny base are of the order of 1 to 10."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> BaseFiles:
    return make_base(tmp_path_factory.mktemp("packing") / "base")


@pytest.fixture
def model(base: BaseFiles) -> LoraModel:
    """A base whose LoRA really changes something."""
    made = LoraModel(load_base(base.training, torch.float32), RECIPE)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for half in made.parameters():
            half.copy_(torch.randn(half.shape, generator=generator) * 0.3)
    return made


def branches_of(sequences: Sequence[Tokens]) -> list[Branch]:
    return [branch(sequence, len(SHARED)) for sequence in sequences]


@torch.no_grad()
def packed(model: LoraModel, sequences: Sequence[Tokens]) -> tuple[Tensor, ...]:
    block, frozen = model.freeze(SHARED, branches_of(sequences))
    logits, _, lengths = model.logits(block, frozen)
    return torch.split(logits, list(lengths))


@torch.no_grad()
def alone(model: LoraModel, sequence: Tokens) -> Tensor:
    """The ordinary way: the whole model over one whole sequence."""
    logits: Tensor = model.peft(input_ids=torch.tensor([sequence.ids])).logits
    return logits[0, sequence.answer - 1 : len(sequence.ids) - 1]


def test_packed_logits_equal_those_of_every_sequence_alone(model: LoraModel) -> None:
    for rows, sequence in zip(packed(model, SEQUENCES), SEQUENCES, strict=True):
        torch.testing.assert_close(rows, alone(model, sequence), **CLOSE)


def test_branches_of_every_length_and_plain_text_may_stand_in_one_row(model: LoraModel) -> None:
    long = [Tokens((*SHARED, *(7 + (3 * i + n) % 380 for i in range(n))), len(SHARED) + 1) for n in (31, 32, 33, 90)]
    text = Tokens((1, 50, 60, 70, 80), 1, plain=True)
    mixed = (SEQUENCES[0], *long, text, SEQUENCES[1])
    for rows, sequence in zip(packed(model, mixed), mixed, strict=True):
        torch.testing.assert_close(rows, alone(model, sequence), **CLOSE)


def test_the_comparison_would_notice_a_change_that_is_left_out(model: LoraModel) -> None:
    with model.peft.disable_adapter():
        without = alone(model, SEQUENCES[0])
    assert (packed(model, SEQUENCES)[0] - without).abs().max() > 0.1


def test_packed_targets_are_the_answers_of_the_sequences_in_order(model: LoraModel) -> None:
    block, frozen = model.freeze(SHARED, branches_of(SEQUENCES))
    _, targets, lengths = model.logits(block, frozen)
    wanted = [list(sequence.ids[sequence.answer :]) for sequence in SEQUENCES]
    assert [list(part) for part in torch.split(targets, list(lengths))] == [list(map(torch.tensor, w)) for w in wanted]


def test_a_sequence_is_deaf_to_its_neighbours_in_the_row(model: LoraModel) -> None:
    others = [Tokens((*SHARED, 200, 201, 202), len(SHARED) + 1), SEQUENCES[1], Tokens((*SHARED, 9, 9, 9), 7)]
    torch.testing.assert_close(packed(model, SEQUENCES)[1], packed(model, others)[1], **CLOSE)


def test_the_frozen_part_is_the_same_computed_in_many_passes(model: LoraModel, monkeypatch: pytest.MonkeyPatch) -> None:
    once = model.freeze(SHARED, branches_of(SEQUENCES))
    monkeypatch.setattr(lora_model, "PREFIX_CHUNK_TOKENS", 1)
    apart = model.freeze(SHARED, branches_of(SEQUENCES))
    torch.testing.assert_close(once[0], apart[0], **CLOSE)
    for one, other in zip(once[1], apart[1], strict=True):
        torch.testing.assert_close(one.hidden, other.hidden, **CLOSE)


def test_the_frozen_part_reused_after_training_steps_gives_what_computing_it_again_gives(model: LoraModel) -> None:
    block, frozen = model.freeze(SHARED, branches_of(SEQUENCES))
    before = copy.deepcopy({name: tensor for name, tensor in model.peft.state_dict().items() if "lora" not in name})
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        logits, targets, _ = model.logits(block, frozen)
        torch.autograd.backward(torch.nn.functional.cross_entropy(logits, targets))
        optimiser.step()
    with torch.no_grad():
        reused = model.logits(block, frozen)[0]
        again = model.logits(*model.freeze(SHARED, branches_of(SEQUENCES)))[0]
    assert torch.equal(reused, again)
    assert not torch.equal(reused, logits.detach())
    assert all(torch.equal(tensor, model.peft.state_dict()[name]) for name, tensor in before.items())


def test_taking_the_change_off_gives_back_the_base_exactly(base: BaseFiles) -> None:
    native = load_base(base.training, torch.float32)
    names = set(native.state_dict())
    made = LoraModel(native, RECIPE)
    made.unload()
    fresh = load_base(base.training, torch.float32).state_dict()
    assert set(native.state_dict()) == names
    assert all(torch.equal(tensor, fresh[name]) for name, tensor in native.state_dict().items())


def test_only_the_layers_and_modules_of_the_recipe_are_written(model: LoraModel) -> None:
    wanted = {f"model.layers.{layer}.mlp.{kind}" for layer in (1, 2) for kind in RECIPE.modules}
    assert set(model.modules()) == wanted
    assert len(model.parameters()) == 2 * len(wanted)


def seen_by(plan: Layout, token: int) -> list[int]:
    """Return which tokens of the row a token sees."""
    place, begin = int(plan.places[token]), 0
    for group in plan.groups:
        if place < begin + group.count * group.width:
            member, row = divmod(place - begin, group.width)
            own = group.index.view(group.count, group.width)[member].tolist()
            columns = [*range(group.shared), *own]
            open_to = (group.bias[member, 0, 0, row] == 0).tolist()
            return [column for column, is_open in zip(columns, open_to, strict=True) if is_open]
        begin += group.count * group.width
    raise AssertionError("the token is in no group")


def test_a_token_sees_the_shared_block_and_what_came_before_it_in_its_own_sequence_only() -> None:
    plan = layout(2, [Branch((10, 11), 1), Branch((20, 21, 22), 1)])
    seen = [seen_by(plan, row) for row in range(7)]
    assert seen == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 4], [0, 1, 4, 5], [0, 1, 4, 5, 6]]
    assert plan.positions.tolist() == [[0, 1, 2, 3, 2, 3, 4]]
    assert plan.rows.tolist() == [2, 4, 5]
    assert plan.targets.tolist() == [11, 21, 22]
    assert plan.lengths == (1, 2)


@pytest.mark.parametrize(
    ("sequences", "shared"),
    [
        ([Tokens((1, 2, 3, 4), 3)], 2),  # one token stays before the answer
        ([Tokens((1, 2, 3, 4), 3), Tokens((1, 2, 9, 4), 3)], 2),
        ([Tokens((1, 2, 3, 4), 3), Tokens((1, 9, 3, 4), 3)], 1),
        ([Tokens((1, 2, 3, 4, 5), 4), Tokens((1, 2, 3), 2)], 1),  # the shortest prompt bounds it
        ([Tokens((7, 2, 3), 2), Tokens((8, 2, 3), 2)], 0),
    ],
)
def test_the_shared_block_is_the_longest_common_beginning_that_leaves_a_predecessor(
    sequences: list[Tokens], shared: int
) -> None:
    assert shared_length(sequences) == shared
    assert all(branch(sequence, shared).answer >= 1 for sequence in sequences)


def test_the_tokens_of_these_tests_are_in_the_vocabulary() -> None:
    assert max(token for sequence in SEQUENCES for token in sequence.ids) < VOCABULARY
