"""Thin, typed hold on llama.cpp: a model, its vocabulary, a context. Runs in the engine child only.

Invariants:
- Every native pointer is tested for truth: a failed call gives a NULL pointer object, never None.
- Callbacks that native code keeps are kept alive here too.
- No high-level code of the bindings is used: it renders prompts, reuses prefixes and swallows errors in its own way.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import llama_cpp as bindings
import numpy as np
import numpy.typing as npt
import psutil
from llama_cpp import llama_cpp

from app.errors import BugError, KnownError, VerificationError
from app.model.child.serve import Cancelled

lib: Any = llama_cpp
"""The C functions, by their C names and types."""

VERSION = "0.3.36"
"""The bindings this was proven with; a fork under the same name takes adapters and ignores them."""

MEMORY_HINT = "Close other programs, or use a shorter context or a smaller model."

_WARNING = 3
"""Level of llama.cpp's log from which lines are kept."""

_ABORTED = 2

Logits = npt.NDArray[np.float32]


def _log_line(level: int, text: bytes, _: object) -> None:
    if level in (_WARNING, _WARNING + 1):
        sys.stderr.write(text.decode("utf-8", "replace"))


_log = lib.llama_log_callback(_log_line)


def prepare_library() -> str:
    """Initialise llama.cpp and return its name and version. Raises KnownError for another version than the proven."""
    found = getattr(bindings, "__version__", "unknown")
    if found != VERSION:
        hint = f"Install the app again; it needs llama-cpp-python {VERSION}."
        raise KnownError("start the engine", f"llama-cpp-python {found}", hint, retryable=False)
    lib.llama_log_set(_log, None)
    lib.llama_backend_init()
    return f"llama.cpp, llama-cpp-python {VERSION}"


def physical_cores() -> int:
    """Return how many threads help: one per physical core that this process may use."""
    cores = psutil.cpu_count(logical=False) or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
    return max(1, min(cores, allowed))


class Model:
    """Loaded weights, memory-mapped, with their vocabulary. The file was checked before."""

    def __init__(self, path: Path, tick: Callable[[], None]) -> None:
        self._progress = lib.llama_progress_callback(_ticking(tick))
        params = lib.llama_model_default_params()
        params.n_gpu_layers = 0  # what the gate measures is what is served: the same kernels everywhere
        params.load_mode = lib.LLAMA_LOAD_MODE_MMAP
        params.progress_callback = self._progress
        self.pointer = lib.llama_model_load_from_file(os.fsencode(path), params)
        if not self.pointer:
            hint = "The file may be damaged, or of a kind this version cannot load. Get it again."
            raise VerificationError("load the model", path.name, hint)
        self._vocab = lib.llama_model_get_vocab(self.pointer)
        self.vocabulary = int(lib.llama_vocab_n_tokens(self._vocab))
        self.trained_context = int(lib.llama_model_n_ctx_train(self.pointer))
        self._pieces: dict[int, bytes] = {}

    @property
    def template(self) -> str:
        """The chat template of the file, or nothing."""
        source = lib.llama_model_chat_template(self.pointer, None)
        return source.decode("utf-8", "replace") if source else ""

    @property
    def bos(self) -> int | None:
        """The token that must begin every prompt, or None if this model wants none."""
        return self.begin if lib.llama_vocab_get_add_bos(self._vocab) else None

    @property
    def begin(self) -> int | None:
        """The begin token, whether or not prompts must have it; the end token where there is none."""
        for token in (lib.llama_vocab_bos(self._vocab), lib.llama_vocab_eos(self._vocab)):
            if token >= 0:
                return int(token)
        return None

    def token_text(self, token: int) -> str:
        """Return how a token is written, or nothing for no token."""
        text = lib.llama_vocab_get_text(self._vocab, token) if token >= 0 else None
        return text.decode("utf-8", "replace") if text else ""

    @property
    def begin_text(self) -> str:
        """How the begin token is written."""
        return self.token_text(lib.llama_vocab_bos(self._vocab))

    @property
    def end_text(self) -> str:
        """How the end token is written."""
        return self.token_text(lib.llama_vocab_eos(self._vocab))

    def encode(self, text: str, *, special: bool) -> list[int]:
        """Return the ids of a text; without ``special``, no text becomes a control token."""
        data = text.encode("utf-8", "replace")
        room = len(data) + 8
        for _ in range(2):
            buffer = (lib.llama_token * room)()
            count = lib.llama_tokenize(self._vocab, data, len(data), buffer, room, False, special)
            if count >= 0:
                return list(buffer[:count])
            room = -count
        raise BugError("tokenise a text", f"{len(data)} bytes")

    def piece(self, token: int) -> bytes:
        """Return the bytes of a token; control tokens have none."""
        known = self._pieces.get(token)
        if known is None:
            buffer = ctypes.create_string_buffer(512)
            count = lib.llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, False)
            known = self._pieces[token] = buffer.raw[: max(count, 0)]
        return known

    def ends(self, token: int) -> bool:
        """Return whether this token ends an answer."""
        return bool(lib.llama_vocab_is_eog(self._vocab, token))


def _ticking(tick: Callable[[], None]) -> Callable[[float, object], bool]:
    def progressed(_: float, __: object) -> bool:
        tick()
        return True

    return progressed


class Batch:
    """Room for the tokens of one decode, filled anew each time."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.tokens = np.zeros(size, np.int32)
        self.positions = np.zeros(size, np.int32)
        self.sequences = np.zeros(size, np.int32)
        self.wanted = np.zeros(size, np.int8)
        self._counts = np.ones(size, np.int32)
        width = self.sequences.itemsize
        address = self.sequences.ctypes.data
        pointer = ctypes.POINTER(lib.llama_seq_id)
        cells = [ctypes.cast(address + width * row, pointer) for row in range(size)]
        self._sequence_pointers = (pointer * size)(*cells)
        self.native = lib.llama_batch()
        self.native.token = _pointer(self.tokens, lib.llama_token)
        self.native.pos = _pointer(self.positions, lib.llama_pos)
        self.native.n_seq_id = _pointer(self._counts, ctypes.c_int32)
        self.native.seq_id = self._sequence_pointers
        self.native.logits = _pointer(self.wanted, ctypes.c_int8)

    @property
    def count(self) -> int:
        """Tokens in it."""
        return int(self.native.n_tokens)

    def clear(self) -> None:
        """Empty it."""
        self.native.n_tokens = 0

    def add(self, tokens: Sequence[int], *, position: int, sequence: int, wanted_from: int | None = None) -> None:
        """Append tokens of a sequence from ``position`` on; logits are wanted from the token at ``wanted_from`` on."""
        start = self.native.n_tokens
        end = self.native.n_tokens = start + len(tokens)
        self.tokens[start:end] = tokens
        self.positions[start:end] = np.arange(position, position + len(tokens))
        self.sequences[start:end] = sequence
        self.wanted[start:end] = 0
        if wanted_from is not None:
            self.wanted[start + wanted_from : end] = 1


def _pointer(values: npt.NDArray[Any], kind: Any) -> Any:
    return values.ctypes.data_as(ctypes.POINTER(kind))


class Context:
    """One memory of tokens over a model, with adapters of its own."""

    def __init__(self, model: Model, *, tokens: int, batch: int, sequences: int, threads: int) -> None:
        params = lib.llama_context_default_params()
        params.n_ctx = tokens
        params.n_batch = params.n_ubatch = batch
        params.n_seq_max = sequences
        params.kv_unified = True
        params.n_threads = params.n_threads_batch = threads
        params.offload_kqv = params.op_offload = False
        params.no_perf = True
        self.pointer = lib.llama_init_from_model(model.pointer, params)
        if not self.pointer:
            raise KnownError("make room for a conversation", f"{tokens} tokens", MEMORY_HINT)
        self._memory = lib.llama_get_memory(self.pointer)
        self._vocabulary = model.vocabulary
        self.tokens = int(lib.llama_n_ctx(self.pointer))
        self.batch = Batch(batch)
        self._asked: Callable[[], bool] = lambda: False
        self._abort = lib.ggml_abort_callback(lambda _: self._asked())
        self._no_abort = lib.ggml_abort_callback()
        self._abortable: bool | None = None

    def decode(self, asked: Callable[[], bool], *, abortable: bool = True) -> None:
        """Run the batch.

        Args:
            asked: Whether to stop; asked often, from native code.
            abortable: False spares that for a decode that is shorter than anyone can wait.

        Raises: Cancelled, and then part of the batch may be remembered; KnownError if it cannot be computed.
        """
        if abortable != self._abortable:
            lib.llama_set_abort_callback(self.pointer, self._abort if abortable else self._no_abort, None)
            self._abortable = abortable
        self._asked = asked
        code = lib.llama_decode(self.pointer, self.batch.native)
        if code == _ABORTED:
            raise Cancelled
        if code > 0:
            raise BugError("fit tokens into the context", f"{self.batch.native.n_tokens} tokens")
        if code < 0:
            raise KnownError("compute", f"llama.cpp code {code}", MEMORY_HINT)

    def set_threads(self, single: int, batch: int) -> None:
        """Set how many threads compute a single token, and how many a batch."""
        lib.llama_set_n_threads(self.pointer, single, batch)

    def last_logits(self) -> Logits:
        """Return a view of the logits of the last wanted token, valid until the next decode. Shape: (V,)."""
        row: Logits = self.logits(1)[0]
        return row

    def logits(self, count: int) -> Logits:
        """Return a view of the logits of the ``count`` wanted tokens, in their order. Shape: (count, V)."""
        address = lib.llama_get_logits(self.pointer)
        if not address:
            raise BugError("read logits")
        view = np.ctypeslib.as_array(address, shape=(count, self._vocabulary))
        return cast("Logits", view)

    def forget(self) -> None:
        """Drop all that is remembered."""
        lib.llama_memory_clear(self._memory, False)

    def forget_from(self, position: int, *, sequence: int = 0) -> bool:
        """Drop a sequence from a position on; False if this model's memory cannot do that."""
        return bool(lib.llama_memory_seq_rm(self._memory, sequence, position, -1))

    def share(self, source: int, target: int) -> None:
        """Let a sequence begin with all that another remembers."""
        lib.llama_memory_seq_cp(self._memory, source, target, -1, -1)

    def set_adapter(self, adapter: Any, scale: float) -> None:
        """Let one adapter act, or None, and drop all that is remembered: it answers for other weights."""
        if adapter is None:
            code = lib.llama_set_adapters_lora(self.pointer, None, 0, None)
        else:
            pointers = (lib.llama_adapter_lora_p_ctypes * 1)(adapter)
            code = lib.llama_set_adapters_lora(self.pointer, pointers, 1, (ctypes.c_float * 1)(scale))
        self.forget()
        if code:
            raise BugError("set an adapter", f"llama.cpp code {code}")
