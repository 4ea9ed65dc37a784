from __future__ import annotations

import numpy as np
import pytest

from app.errors import VerificationError
from app.model.safetensors_file import pack, unpack


@pytest.mark.parametrize("padding", range(0, 512, 8))
def test_a_head_of_any_length_is_read(padding):
    data = pack({"x": np.ones(2, np.float32)}, {"note": "n" * padding})
    tensors, _ = unpack(data, "file")
    assert tensors["x"].tolist() == [1.0, 1.0]


def test_those_lengths_include_the_one_that_begins_like_a_pickle():
    firsts = {pack({"x": np.ones(2, np.float32)}, {"note": "n" * padding})[:1] for padding in range(0, 512, 8)}
    assert b"\x80" in firsts


@pytest.mark.parametrize("data", [b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c", b"PK\x03\x04" + b"\0" * 40])
def test_a_pickle_is_still_told_apart(data):
    with pytest.raises(VerificationError, match="pickle"):
        unpack(data, "file")
