"""What an adapter must be before it may become a version."""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass

import numpy as np
import pytest
from safetensors.numpy import save

from app.errors import AppError, KnownError, VerificationError
from app.model.lineage.delta import check_delta
from tests.lineage.made import BASE, adapter, metadata, tensors

A = "base_model.model.model.layers.0.mlp.gate_proj.lora_A.weight"
B = "base_model.model.model.layers.0.mlp.gate_proj.lora_B.weight"


def test_a_sound_adapter_says_what_it_is():
    info = check_delta(adapter(), BASE)
    assert (info.base, info.rank, info.alpha, info.modules) == (BASE, 2, 4.0, ("model.layers.0.mlp.gate_proj",))


@dataclass(frozen=True)
class Case:
    data: bytes
    error: type[AppError] = VerificationError
    says: str = ""


def changed(name: str, value) -> bytes:
    return save(tensors() | {name: value}, metadata=metadata())


def without(name: str) -> bytes:
    return save({key: value for key, value in tensors().items() if key != name}, metadata=metadata())


GOOD = adapter()
CASES = {
    "an empty file": Case(b""),
    "a file cut in half": Case(GOOD[: len(GOOD) // 2]),
    "a header that claims to be huge": Case(struct.pack("<Q", 1 << 60) + GOOD[8:]),
    "zero bytes of the same length": Case(bytes(len(GOOD))),
    "a pickle under another name": Case(pickle.dumps({"a": 1})),
    "no metadata at all": Case(save(tensors()), says="adapter format"),
    "another format": Case(save(tensors(), metadata=metadata(format="peft")), says="adapter format"),
    "another base": Case(save(tensors(), metadata=metadata(base="f" * 64)), says="another base"),
    "no rank stated": Case(save(tensors(), metadata={"format": "ownmind-adapter-1", "base": BASE, "alpha": "4"})),
    "a rank that is not a number": Case(save(tensors(), metadata=metadata(rank="two"))),
    "half a rank": Case(save(tensors(), metadata=metadata(rank="1.5"))),
    "an infinite alpha": Case(save(tensors(), metadata=metadata(alpha="inf"))),
    "a rank other than that of its tensors": Case(save(tensors(), metadata=metadata(rank="3")), says="rank 3"),
    "a missing half": Case(without(B), says="missing"),
    "no tensors": Case(save({}, metadata=metadata())),
    "a tensor that no adapter has": Case(changed("lm_head.weight", np.ones((2, 2), np.float32)), says="no adapter"),
    "64-bit floats": Case(changed(A, np.ones((2, 4), np.float64)), says="32-bit"),
    "a vector for a matrix": Case(changed(A, np.ones(4, np.float32))),
    "a NaN": Case(changed(A, np.full((2, 4), np.nan, np.float32)), KnownError, "not finite"),
    "an infinity": Case(changed(B, np.full((3, 2), np.inf, np.float32)), KnownError, "not finite"),
    "zeros in every second half": Case(changed(B, np.zeros((3, 2), np.float32)), KnownError, "change nothing"),
}


@pytest.mark.parametrize("name", CASES)
def test_anything_else_is_refused(name: str):
    case = CASES[name]
    with pytest.raises(case.error, match=case.says or None) as caught:
        check_delta(case.data, BASE)
    assert caught.value.retryable is False


def test_one_changed_module_among_zeros_is_enough():
    two = tensors(layers=2)
    two[B] = np.zeros((3, 2), np.float32)
    assert len(check_delta(save(two, metadata=metadata()), BASE).modules) == 2
