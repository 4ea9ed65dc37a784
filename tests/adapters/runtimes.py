"""Both runtimes side by side, reduced to logits: torch in 32 bits with PEFT, and llama.cpp on the prepared file."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import llama_cpp.llama_cpp as native
import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from transformers import AutoModelForCausalLM

from app.model.api import BaseFiles

torch.set_num_threads(1)  # on a busy machine, threads that wait for each other cost more than they bring


@native.llama_log_callback
def _silent(*_):
    pass


class Llama:
    """One loaded model; use ``adapted`` to serve with an adapter."""

    def __init__(self, base: BaseFiles) -> None:
        self._model = _loaded(base.serving, vocabulary_only=False)
        params = native.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = 128
        params.n_threads = params.n_threads_batch = 1
        self._context = native.llama_init_from_model(self._model, params)
        assert self._context
        self._vocabulary = base.passport.vocabulary

    @classmethod
    def vocabulary_only(cls, path: Path) -> Llama:
        self = cls.__new__(cls)
        self._model = _loaded(path, vocabulary_only=True)
        self._context = None
        return self

    @contextmanager
    def adapted(self, path: Path) -> Iterator[None]:
        adapter = native.llama_adapter_lora_init(self._model, str(path).encode())
        assert adapter, "llama.cpp refused the adapter"
        adapters = (native.llama_adapter_lora_p_ctypes * 1)(adapter)
        assert native.llama_set_adapters_lora(self._context, adapters, 1, (ctypes.c_float * 1)(1.0)) == 0
        yield
        native.llama_set_adapters_lora(self._context, None, 0, None)

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        """Shape (tokens, vocabulary)."""
        native.llama_memory_clear(native.llama_get_memory(self._context), True)
        batch = native.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for place, token in enumerate(ids):
            batch.token[place], batch.pos[place], batch.n_seq_id[place] = token, place, 1
            batch.seq_id[place][0], batch.logits[place] = 0, 1
        assert native.llama_decode(self._context, batch) == 0
        rows = [native.llama_get_logits_ith(self._context, place) for place in range(len(ids))]
        found = np.stack([np.ctypeslib.as_array(row, shape=(self._vocabulary,)).copy() for row in rows])
        native.llama_batch_free(batch)
        return found

    def tokenise(self, text: str, *, special: bool) -> list[int]:
        data = text.encode("utf-8", "surrogatepass")
        room = (native.llama_token * (len(data) + 16))()
        vocabulary = native.llama_model_get_vocab(self._model)
        count = native.llama_tokenize(vocabulary, data, len(data), room, len(room), False, special)
        assert count >= 0
        return list(room[:count])

    def close(self) -> None:
        if self._context:
            native.llama_free(self._context)
        native.llama_model_free(self._model)


def _loaded(path: Path, *, vocabulary_only: bool):
    native.llama_log_set(_silent, ctypes.c_void_p(0))
    native.llama_backend_init()
    params = native.llama_model_default_params()
    params.vocab_only = vocabulary_only
    model = native.llama_model_load_from_file(str(path).encode(), params)
    assert model
    return model


def torch_model(base: BaseFiles) -> nn.Module:
    model: nn.Module = AutoModelForCausalLM.from_pretrained(base.training, dtype=torch.float32)
    return model.eval()


def with_lora(model: nn.Module, modules: Sequence[str], layers: Sequence[int], *, strength: float, seed: int):
    """Return the model with a random LoRA, and the LoRA's tensors by PEFT's names."""
    torch.manual_seed(seed)
    config = LoraConfig(r=8, lora_alpha=16, target_modules=list(modules), layers_to_transform=list(layers))
    adapted = get_peft_model(model, config).eval()
    tensors = {}
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:
            nn.init.normal_(parameter, std=strength)
        if "lora_" in name:
            tensors[name.replace(".default.", ".")] = parameter.detach().numpy().copy()
    return adapted, tensors


def torch_logits(model: nn.Module, ids: Sequence[int]) -> np.ndarray:
    with torch.no_grad():
        return np.asarray(model(torch.tensor([list(ids)])).logits[0])


def divergence(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return KL(left‖right) in nats, one per position."""
    first, second = (_log_softmax(side.astype(np.float64)) for side in (left, right))
    return np.asarray((np.exp(first) * (first - second)).sum(-1))


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)))
