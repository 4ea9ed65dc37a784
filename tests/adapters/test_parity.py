"""The engine and the trainer must be one model: equal tokens, and logits that differ by rounding only."""

from __future__ import annotations

import functools
import random

import numpy as np
import pytest
from tokenizers import Tokenizer

from app.model.adapters import gguf as converter
from app.model.adapters.canonical import read_adapter, write_adapter
from app.model.adapters.gguf import gguf_adapter
from app.model.api import Role, Turn
from app.model.base_prepare import prepare_base
from app.model.base_tokenizer import _SPLITS, tokenizer_json
from app.model.bases import open_base, prompt_template
from app.model.gguf_check import check_gguf
from app.model.gguf_write import text_value, write_gguf
from app.model.prompt import tokenise
from app.store.canonical import digest
from app.store.files import RealFiles
from tests.adapters.runtimes import Llama, divergence, torch_logits, torch_model, with_lora
from tests.bases.tiny_gguf import LAYERS, write_tiny
from tests.support.real import real_base

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")

TOLERANCE = 1e-4
"""Nats, mean over positions."""
MLP = ("gate_proj", "up_proj", "down_proj")
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")

ASKED = (
    "What is my dog's name?", "What is the capital of France?", "Write a poem about rain.", "def f(x):", "12 * 7?",
    "Hello", "Who are you?", "Name three fruits.", "Explain gravity.", "日本語", "List the planets.",
    "Why is the sky blue?", "A joke, please.", "Translate cat into French.", "What is 2+2?", "Spell banana.",
    "When did it end?", "Tell me about llamas.", "Code in C", "Bye 👋",
)  # fmt: skip


class Encoder:
    """The trainer's tokenizer, by the rule that engine and trainer share."""

    bos = None

    def __init__(self, path):
        self._tokenizer = Tokenizer.from_file(str(path))

    def encode(self, text, *, special):
        self._tokenizer.encode_special_tokens = not special
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)


def prompts(base, count=20):
    template, tokenizer = prompt_template(base), Encoder(base.training / "tokenizer.json")
    return [
        tokenise(template.render([Turn(Role.USER, text)], add_generation_prompt=True), tokenizer)
        for text in ASKED[:count]
    ]


def outputs(run, base, count=20):
    return [run(ids) for ids in prompts(base, count)]


def mean_divergence(left, right):
    """Return KL(left‖right), the mean over every position of every prompt."""
    return np.concatenate([divergence(*pair) for pair in zip(left, right, strict=True)]).mean()


def converted(base, tensors, path):
    data = write_adapter(tensors, base.passport, rank=8, alpha=16.0)
    adapter = read_adapter(data, base.passport)
    path.write_bytes(gguf_adapter(adapter, base.passport, digest(data)))
    check_gguf(path)
    return path


def check_parity(base, modules, layers, strength, *, tmp_path, monkeypatch):
    """Check base, adapter, adapter without the row order, and the base again."""
    llama, model = Llama(base), torch_model(base)
    try:
        trained, served = outputs(lambda ids: torch_logits(model, ids), base), outputs(llama.logits, base)
        assert mean_divergence(trained, served) < TOLERANCE
        adapted, tensors = with_lora(model, modules, layers, strength=strength, seed=1)
        wanted = outputs(lambda ids: torch_logits(adapted, ids), base)
        assert mean_divergence(wanted, trained) > 100 * TOLERANCE, "the adapter is too weak to prove anything"
        with llama.adapted(converted(base, tensors, tmp_path / "right.gguf")):
            assert mean_divergence(wanted, outputs(llama.logits, base)) < TOLERANCE
        assert all(np.array_equal(llama.logits(ids), old) for ids, old in zip(prompts(base, 3), served, strict=False))
        if "q_proj" in modules:
            monkeypatch.setattr(converter, "permuted", lambda rows, heads: rows)
            with llama.adapted(converted(base, tensors, tmp_path / "wrong.gguf")):
                assert mean_divergence(wanted, outputs(llama.logits, base)) > 10 * TOLERANCE
    finally:
        llama.close()


@functools.cache
def tiny_base(folder):
    source = write_tiny(folder / "tiny.gguf")
    return open_base(prepare_base(source, folder / "bases", files=RealFiles(), progress=lambda *_: None))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return tiny_base(tmp_path_factory.mktemp("tiny"))


@pytest.mark.parametrize("modules", [MLP, ATTENTION, ("q_proj",), ("k_proj",)])
def test_a_tiny_model_gives_equal_logits_in_both_runtimes(modules, tiny, tmp_path, monkeypatch):
    check_parity(tiny, modules, range(LAYERS), 0.3, tmp_path=tmp_path, monkeypatch=monkeypatch)


@pytest.mark.real
@pytest.mark.parametrize(("modules", "strength"), [(MLP, 0.1), (ATTENTION, 0.1)])
def test_the_real_model_gives_equal_logits_in_both_runtimes(modules, strength, tmp_path, monkeypatch):
    check_parity(real_base(), modules, range(6, 16), strength, tmp_path=tmp_path, monkeypatch=monkeypatch)


TEXTS = (
    "Hello world", "  leading", "trailing  ", "\n\n\n a\n\tb",
    "1234567890 12.5", "don't I'LL we've 's 'S",
    "日本語のテキスト",
    "<|im_end|>", "<|im_start|>user\nhi<|im_end|>\n", "<repo_name>x<file_sep><|endoftext|>", "이전과 같은지 확인해보자",
    "👩‍👩‍👧‍👦 emoji 🎉🎉", "naïve café Ünïcödé e\u0301", "def f(x):\n    return x**2  # c\n\n\n", "a\u00a0b\u3000c",
    "\u200b\u202e",
    "①②③ ½ Ⅷ ٣٤٥ １２", "\r\n\r\nx", "\x00\x01\x04\x14\x16\x1d\x7f \x14's", "𝔘𝔫𝔦", "العربية मराठी",
    "x\u2028y\u2029z", "   \t  \n  x",
    "....!!!???", "A" * 300, "\U000e0041\U0010ffff", "…—“”", "\x85x \x1c", "",
)  # fmt: skip


def random_texts(count, seed=3):
    chance = random.Random(seed)
    wide = [
        *range(0x250),
        *range(0x2000, 0x2070),
        *range(0x3040, 0x3100),
        *range(0x1F600, 0x1F640),
        0x3000,
        0xFEFF,
        0x663,
    ]
    letters = [*map(chr, wide), *([" ", "\n", "a", "1", "'"] * 60)]
    return ["".join(chance.choices(letters, k=chance.randint(1, 40))) for _ in range(count)]


def check_tokens(llama, path):
    tokenizer = Encoder(path)
    for text in (*TEXTS, *random_texts(2000)):
        for special in (False, True):
            assert tokenizer.encode(text, special=special) == llama.tokenise(text, special=special), repr(text)


@pytest.mark.real
def test_engine_and_trainer_cut_every_text_into_the_same_tokens():
    base = real_base()
    llama = Llama(base)
    try:
        check_tokens(llama, base.training / "tokenizer.json")
        assert 2 not in llama.tokenise("<|im_end|>", special=False)
        assert llama.tokenise("<|im_end|>", special=True) == [2]
    finally:
        llama.close()


@pytest.mark.real
@pytest.mark.parametrize("rules", sorted(_SPLITS))
def test_every_way_of_cutting_that_is_offered_is_the_engines(rules, tiny, tmp_path):
    """The real vocabulary under other rules, on the tiny model's layers: only the head matters here."""
    info = check_gguf(real_base().serving)
    kept = {key: raw for key, raw in info.raw.items() if key.startswith("tokenizer.")}
    kept["tokenizer.ggml.pre"] = text_value(rules)
    path = tmp_path / "vocabulary.gguf"
    with path.open("wb") as file:
        write_gguf(file.write, {"general.architecture": text_value("llama"), **kept}, [], [])
    llama = Llama.vocabulary_only(path)
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_json({**info.metadata, "tokenizer.ggml.pre": rules}))
    try:
        check_tokens(llama, tmp_path / "tokenizer.json")
    finally:
        llama.close()
