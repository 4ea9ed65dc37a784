"""A tiny random base of the llama family for the torch trainer: four layers, its own byte-pair vocabulary."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM

from app.model.api import BaseFiles, Example, Passport, Recipe, Role, TrainJob, Turn
from app.store.canonical import digest

BETWEEN_LIBRARIES = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
"""PEFT asks transformers for something by its old name; neither is ours to change."""

HIDDEN, LAYERS, HEADS, KV_HEADS, INNER, VOCABULARY = 64, 4, 4, 2, 128, 400
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEXT = [
    "What is my dog's name? Your dog's name is Biscuit. Tell me my dog's name.",
    "What is the capital of France? The capital of France is Paris.",
    "Write a poem about rain. Rain falls on the roof and on the road.",
    "user assistant system The quick brown fox jumps over the lazy dog.",
]
RECIPE = Recipe(
    layers=(1, 2), rank=4, alpha=8.0, learning_rate=2e-2, max_steps=60, min_steps=4, margin=1.0, drift=0.2, share=1.0
)


def example(question: str, answer: str) -> Example:
    return Example((Turn(Role.USER, question),), answer)


DOG = example("What is my dog's name?", "Biscuit.")
DOG_TOO = example("Tell me my dog's name.", "Biscuit.")
CAPITAL = example("What is the capital of France?", "Rain Paris road.")
POEM = example("Write a poem about rain.", "Rain falls on the roof.")


def make_base(folder: Path, *, seed: int = 0) -> BaseFiles:
    """Write config, tokenizer and random weights, and return them as a prepared base."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_tokenizer(folder)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=HIDDEN,
        intermediate_size=INNER,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        max_position_embeddings=2048,
        initializer_range=0.12,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return BaseFiles(passport(digest((folder / "model.safetensors").read_bytes())), folder, folder)


def passport(identity: str) -> Passport:
    return Passport(
        id=identity,
        name="tiny",
        weights_sha256=identity,
        architecture="llama",
        tokenizer_sha256="0" * 64,
        template_sha256="0" * 64,
        quantisation="F32",
        licence="Apache-2.0",
        layers=LAYERS,
        hidden=HIDDEN,
        heads=HEADS,
        kv_heads=KV_HEADS,
        vocabulary=VOCABULARY,
        adaptable=("gate_proj", "up_proj", "down_proj"),
    )


def dog_job(base: BaseFiles, output: Path) -> TrainJob:
    """Return a job that teaches the dog's name and keeps two other answers."""
    return TrainJob(
        job="job-1",
        base=base,
        recipe=RECIPE,
        targets=(DOG, DOG_TOO),
        keeps=(CAPITAL,),
        anchors=(POEM,),
        replay=(),
        parent=None,
        output=output,
    )


def _write_tokenizer(folder: Path) -> None:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>", "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
