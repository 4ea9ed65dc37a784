"""One value, one sequence of bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import BugError, VerificationError
from app.store.canonical import canonical, parse

TEXT = st.text(alphabet=st.characters(exclude_categories=()))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=12,
)


@given(VALUES)
def test_a_value_comes_back_and_has_one_spelling(value: Any):
    data = canonical(value)
    assert parse(data, "x") == value
    assert canonical(json.loads(data)) == data
    assert b"\n" not in data
    assert b"\0" not in data
    assert data.isascii()


def test_the_order_of_keys_does_not_matter():
    assert canonical({"b": 1, "a": 2}) == canonical({"a": 2, "b": 1}) == b'{"a":2,"b":1}'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 2**53 + 1, {1: 2}, {None: 1}, b"", {1}])
def test_what_has_no_one_spelling_is_refused(value: Any):
    for wrapped in (value, [value], {"a": [value]}):
        with pytest.raises(BugError):
            canonical(wrapped)


def test_floats_may_be_refused():
    assert canonical([0.1, True, 1]) == b"[0.1,true,1]"
    with pytest.raises(BugError):
        canonical([0.1], floats=False)


OTHERS = [b"", b"{", b'{"b":1,"a":2}', b"[1, 2]", b'"\xc3\xa9"', b"NaN", b"[1]\n", b"\xff", b"[" * 99_999]


@pytest.mark.parametrize("data", OTHERS)
def test_other_spellings_are_not_canonical(data: bytes):
    with pytest.raises(VerificationError):
        parse(data, "x")
