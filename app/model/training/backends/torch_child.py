"""The trainer child on torch and PEFT: ``warm`` loads a base, ``train`` turns one job into one adapter file."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import psutil
import torch
from safetensors import SafetensorError
from transformers import LlamaForCausalLM

from app.errors import KnownError, VerificationError
from app.model.adapters.canonical import Adapter, read_adapter, tensor_names, write_adapter
from app.model.api import BaseFiles, Example, Recipe, Trained, TrainJob
from app.model.child.protocol import Json
from app.model.child.serve import Cancel, Cancelled, Emit, serve
from app.model.folder_tokenizer import FolderTokenizer
from app.model.prompt import tokenise, tokenise_answer
from app.model.training import wire
from app.model.training.backends.generic import Generic, generic_directions
from app.model.training.backends.job_files import read_parent, write_change
from app.model.training.backends.loop import Anchors, Loop, Material
from app.model.training.backends.lora_model import LoraModel, load_base
from app.model.training.backends.packing import Tokens, branch, shared_length
from app.model.training.backends.progress import Outcome


@dataclass(frozen=True, slots=True)
class Base:
    """A loaded base."""

    files: BaseFiles
    model: LlamaForCausalLM
    tokenizer: FolderTokenizer


class Child:
    """The one base that is loaded, between requests."""

    def __init__(self) -> None:
        self._base: Base | None = None
        self._anchors: dict[int, Anchors] = {}
        """By first written layer."""
        self._generic: tuple[object, dict[str, Generic]] | None = None

    def warm(self, params: Json, _: Emit, cancel: Cancel) -> Json:
        """Load the base, if it is not loaded yet, and measure what is generic in it."""
        files, recipe, generic = wire.warm_from_json(params)
        base = self._loaded(files)
        if recipe is not None:
            model = LoraModel(base.model, recipe)
            names = tuple(model.modules())
            model.unload()
            self._generic_of(base, names, recipe, generic, _stop_when(cancel))
        _give_back_memory()
        return {}

    def train(self, params: Json, emit: Emit, cancel: Cancel) -> Json:
        """Run one job; the adapter file is there once this has returned, and not before."""
        try:
            return wire.result_to_json(self._trained(wire.job_from_json(params), emit, _stop_when(cancel)))
        finally:
            _give_back_memory()

    def _trained(self, job: TrainJob, emit: Emit, cancelled: Callable[[], None]) -> Trained:
        base = self._loaded(job.base)
        start = time.monotonic()
        model = LoraModel(base.model, job.recipe, _parent(job))
        try:
            names = tuple(model.modules())
            with model.as_base():
                generic = self._generic_of(base, names, job.recipe, job.generic, cancelled)
            loop = Loop(
                model,
                _material(job, base.tokenizer),
                job.recipe,
                cancelled=cancelled,
                known=self._anchors.setdefault(model.first, Anchors()),
                generic=generic,
            )
            outcome = loop.run(job.seconds, lambda step: emit(wire.step_to_json(step)))
            cancelled()
            return _written(model, job, outcome, generic, start)
        finally:
            model.unload()

    def _generic_of(
        self,
        base: Base,
        names: tuple[str, ...],
        recipe: Recipe,
        generic: tuple[Example, ...],
        cancelled: Callable[[], None],
    ) -> dict[str, Generic]:
        """Return what the change must not read; measured once for the same modules and exchanges."""
        if not generic or recipe.spared <= 0:
            return {}
        key = (names, recipe.spared, generic)
        if self._generic is None or self._generic[0] != key:
            model = base.model
            sequences = [_tokens(example, base.tokenizer) for example in generic]
            found = generic_directions(model, names, sequences, share=recipe.spared, cancelled=cancelled)
            self._generic = (key, found)
        return self._generic[1]

    def _loaded(self, files: BaseFiles) -> Base:
        if self._base is None or self._base.files.passport.id != files.passport.id:
            self._base = None  # frees the old one before the new one comes
            self._anchors.clear()
            self._generic = None
            try:
                model = load_base(files.training, torch.bfloat16 if _has_bf16() else torch.float32)
            except (OSError, ValueError, SafetensorError) as error:
                hint = "The training files are damaged. The base is prepared again at the next start."
                raise VerificationError("load the model for training", files.passport.name, hint) from error
            self._base = Base(files, model, FolderTokenizer(files.training))
        return self._base


def _give_back_memory() -> None:
    """Return to the system what a job leaves behind; PEFT's objects refer to each other, so collect them first.

    glibc keeps what lies between two live blocks, and a dozen jobs of ever other shapes come to gigabytes.
    """
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # other systems give back by themselves
        ctypes.CDLL(None).malloc_trim(0)


def _has_bf16() -> bool:
    """Return whether this processor multiplies bf16 by itself; elsewhere f32 is faster, and exact."""
    probe = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return bool(probe()) if probe is not None else False


def _material(job: TrainJob, tokenizer: FolderTokenizer) -> Material:
    if not job.targets:
        raise KnownError("learn this", "training", "There is nothing to learn from.", retryable=False)
    groups = [
        [_tokens(example, tokenizer) for example in group]
        for group in (job.targets, job.keeps, job.anchors, job.replay)
    ]
    everything = [sequence for group in groups for sequence in group]
    shared = shared_length(everything)
    block = groups[0][0].ids[:shared]
    targets, keeps, anchors, replay = (tuple(branch(sequence, shared) for sequence in group) for group in groups)
    return Material(block, targets, keeps, anchors, replay, job.standing)


def _tokens(example: Example, tokenizer: FolderTokenizer) -> Tokens:
    if not example.turns:  # plain text after the begin token, as the engine scores it
        begin = [] if tokenizer.begin is None else [tokenizer.begin]
        return Tokens((*begin, *tokenizer.encode(example.answer, special=False)), 1, plain=True)
    prompt = tokenise(tokenizer.template.render(example.turns, add_generation_prompt=True), tokenizer)
    answer = tokenise_answer(tokenizer.template, example.answer, tokenizer)
    return Tokens((*prompt, *answer), len(prompt))


def _stop_when(cancel: Cancel) -> Callable[[], None]:
    def cancelled() -> None:
        if cancel.is_set():
            raise Cancelled

    return cancelled


def _parent(job: TrainJob) -> Adapter | None:
    """Return the version that the change stands on."""
    return None if job.parent is None else read_adapter(read_parent(job.parent), job.base.passport, job.parent.name)


def _written(
    model: LoraModel, job: TrainJob, outcome: Outcome, generic: Mapping[str, Generic], start: float
) -> Trained:
    """Check the result and write it, whole or not at all."""
    passport = job.base.passport
    tensors: dict[str, np.ndarray] = {}
    for name, module in model.modules().items():
        down, up = tensor_names(name)
        tensors[down], tensors[up] = module.halves()
    data = write_adapter(tensors, passport, rank=job.recipe.rank, alpha=job.recipe.alpha)
    sizes = [module.size(generic[name].inputs if generic else None) for name, module in model.modules().items()]
    write_change(job.output, data)
    return Trained(
        path=job.output,
        sha256=hashlib.sha256(data).hexdigest(),
        steps=outcome.steps,
        tokens=outcome.tokens,
        seconds=time.monotonic() - start,
        loss=outcome.loss,
        margin=outcome.margin,
        stopped=outcome.stopped,
        written_norm=max(sizes),
    )


def main() -> None:
    """Serve until the parent closes the pipe."""
    torch.set_num_threads(max(1, psutil.cpu_count(logical=False) or 1))
    child = Child()
    serve({"warm": child.warm, "train": child.train})


if __name__ == "__main__":
    main()
