"""A tiny random model of the llama family, made on the spot: two layers, its own byte-pair vocabulary."""

from __future__ import annotations

import hashlib
import json

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from app.model.api import Passport

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEXT = [
    "What is the name of my dog? Your dog's name is Biscuit.",
    "What is the capital of France? The capital of France is Paris.",
    "Write a poem about rain. Rain falls on the roof and on the road.",
    "Write a long poem about the rain, the sea and the mountains. Name a colour. Blue.",
    "user assistant system The quick brown fox jumps over the lazy dog.",
]
HIDDEN, LAYERS, HEADS, KV_HEADS, MLP = 64, 2, 4, 2, 128


def make_folder(folder, *, seed=0, dtype=np.float32):
    """Write config, tokenizer and random weights; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = _tokenizer(folder)
    _config(folder, vocabulary)
    _weights(folder, vocabulary, seed, dtype)
    return folder


def _tokenizer(folder):
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
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return tokenizer.get_vocab_size()


def _config(folder, vocabulary):
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "intermediate_size": MLP,
        "vocab_size": vocabulary,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    (folder / "config.json").write_text(json.dumps(config))


def _weights(folder, vocabulary, seed, dtype):
    random = np.random.default_rng(seed)
    head = HIDDEN // HEADS

    def matrix(rows, columns):
        return (random.standard_normal((rows, columns)) / np.sqrt(columns)).astype(dtype)

    weights = {
        "model.embed_tokens.weight": matrix(vocabulary, HIDDEN),
        "model.norm.weight": np.ones(HIDDEN, dtype),
    }
    for layer in range(LAYERS):
        name = f"model.layers.{layer}"
        weights |= {
            f"{name}.self_attn.q_proj.weight": matrix(HIDDEN, HIDDEN),
            f"{name}.self_attn.k_proj.weight": matrix(KV_HEADS * head, HIDDEN),
            f"{name}.self_attn.v_proj.weight": matrix(KV_HEADS * head, HIDDEN),
            f"{name}.self_attn.o_proj.weight": matrix(HIDDEN, HIDDEN),
            f"{name}.mlp.gate_proj.weight": matrix(MLP, HIDDEN),
            f"{name}.mlp.up_proj.weight": matrix(MLP, HIDDEN),
            f"{name}.mlp.down_proj.weight": matrix(HIDDEN, MLP),
            f"{name}.input_layernorm.weight": np.ones(HIDDEN, dtype),
            f"{name}.post_attention_layernorm.weight": np.ones(HIDDEN, dtype),
        }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def passport(folder):
    """Return a passport for a folder made here."""
    return Passport(
        id=hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest(),
        name="tiny",
        weights_sha256="w",
        architecture="llama",
        tokenizer_sha256="t",
        template_sha256="c",
        quantisation="F32",
        licence="Apache-2.0",
        layers=LAYERS,
        hidden=HIDDEN,
        heads=HEADS,
        kv_heads=KV_HEADS,
        vocabulary=320,
        adaptable=("gate_proj", "up_proj", "down_proj"),
    )
