"""The llama.cpp engine: the main module of its child process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psutil

from app.errors import BugError, KnownError
from app.model.api import AdapterRef, EvalItem, Greedy, Role, Sampling, Score, Turn
from app.model.child.serve import Cancel, serve
from app.model.engine.backends.llama_adapters import Adapters, LoadedAdapter
from app.model.engine.backends.llama_chat import Chat
from app.model.engine.backends.llama_evaluate import Evaluation, ToAnswer, ToScore
from app.model.engine.backends.llama_native import Context, Model, physical_cores, prepare_library
from app.model.engine.host import Answer, Answered, Loaded, LoadRequest, Say, engine_handlers
from app.model.engine.logprobs import Scored
from app.model.engine.memory import check_fits
from app.model.gguf_check import check_gguf
from app.model.prompt import PromptTemplate, tokenise, tokenise_answer

EVALUATION_TOKENS = 2048
"""Largest context for evaluation: its memory is on top of the conversation's."""


@dataclass(slots=True)
class _Base:
    """A loaded base with its parts."""

    model: Model
    template: PromptTemplate
    adapters: Adapters
    chat: Chat
    threads: int
    evaluation: Evaluation | None = None


class LlamaBackend:
    """One base on llama.cpp: a context that talks, and one that evaluates, made when first needed."""

    def __init__(self) -> None:
        self._loaded: _Base | None = None
        self._active: LoadedAdapter | None = None
        self._evaluating: LoadedAdapter | None = None

    @property
    def _base(self) -> _Base:
        if self._loaded is None:
            raise BugError("use the engine", "no base is loaded")
        return self._loaded

    @property
    def active(self) -> str | None:
        """Hash of the adapter that acts in the conversation, as its file tells it."""
        return self._active.sha256 if self._active else None

    def load(self, request: LoadRequest, tick: Callable[[], None]) -> Loaded:
        """Check the file, load it memory-mapped, make room for the conversation."""
        if self._loaded is not None:
            raise BugError("load a base", "one is loaded already")
        backend = prepare_library()
        if not request.path.is_file():
            hint = "Prepare the model again."
            raise KnownError("load the model", request.path.name, hint, retryable=False)
        memory = psutil.virtual_memory()
        size = request.path.stat().st_size
        check_fits(request.path.name, needed=size, available=memory.available, total=memory.total)
        info = check_gguf(request.path)
        model = Model(request.path, tick)
        threads = request.threads or physical_cores()
        template = PromptTemplate(model.template, bos=model.begin_text, eos=model.end_text)
        architecture = str(info.metadata.get("general.architecture", ""))
        adapters = Adapters(model, base=request.passport_id, architecture=architecture)
        tokens = min(request.context_tokens, model.trained_context)
        chat = Chat(model, tokens=tokens, threads=threads)
        self._loaded = _Base(model, template, adapters, chat, threads)
        return Loaded(backend, chat.context.tokens)

    def generate(self, turns: Sequence[Turn], sampling: Sampling, say: Say, cancel: Cancel) -> Answered:
        """Answer in the conversation's context."""
        start = time.monotonic()
        prompt = self._prompt(turns, answer=True)
        return self._base.chat.answer(prompt, sampling, say, cancel, start=start)

    def activate(self, adapter: AdapterRef | None) -> None:
        """Swap in the conversation's context. The new adapter is loaded and checked before the old one goes."""
        loaded = None if adapter is None else self._get(adapter)
        self._active = None
        _set(self._base.chat.context, loaded, adapter)
        self._base.chat.forget()
        self._active = loaded

    def _get(self, adapter: AdapterRef) -> LoadedAdapter:
        in_use = {loaded for loaded in (self._active, self._evaluating) if loaded is not None}
        return self._base.adapters.get(adapter, in_use)

    def evaluate(self, items: Sequence[EvalItem], adapter: AdapterRef | None, answer: Answer, cancel: Cancel) -> None:
        """Evaluate in a second context: first scores after turns, then scores of plain text, then greedy answers."""
        loaded = None if adapter is None else self._get(adapter)
        evaluation = self._evaluation()
        self._evaluating = loaded
        _set(evaluation.context, loaded, adapter)
        scores = [self._to_score(index, item) for index, item in enumerate(items) if isinstance(item, Score)]
        evaluation.scores([score for score in scores if score.scored.item.turns], answer, cancel)
        evaluation.scores([score for score in scores if not score.scored.item.turns], answer, cancel)
        answers = [
            ToAnswer(index, self._prompt(item.turns, answer=True), item)
            for index, item in enumerate(items)
            if isinstance(item, Greedy)
        ]
        evaluation.greedy(answers, answer, cancel)

    def _evaluation(self) -> Evaluation:
        base = self._base
        if base.evaluation is None:
            tokens = min(base.chat.context.tokens, EVALUATION_TOKENS)
            base.evaluation = Evaluation(base.model, tokens=tokens, threads=base.threads)
        return base.evaluation

    def _to_score(self, index: int, item: Score) -> ToScore:
        base = self._base
        if item.turns:
            answer = tokenise_answer(base.template, item.answer, base.model)
            return ToScore(index, self._prompt(item.turns, answer=True), Scored(item, tuple(answer)))
        begin = base.model.begin
        prompt = [] if begin is None else [begin]
        return ToScore(index, prompt, Scored(item, tuple(base.model.encode(item.answer, special=False))))

    def prefill(self, turns: Sequence[Turn], cancel: Cancel) -> int:
        """Compute the state of the conversation."""
        prompt = self._prompt(turns, answer=_awaits_answer(turns))
        self._base.chat.know(prompt, cancel)
        return len(prompt)

    def count(self, turns: Sequence[Turn]) -> int:
        """Count the prompt's tokens."""
        return len(self._prompt(turns, answer=_awaits_answer(turns)))

    def _prompt(self, turns: Sequence[Turn], *, answer: bool) -> list[int]:
        base = self._base
        return tokenise(base.template.render(turns, add_generation_prompt=answer), base.model)


def _awaits_answer(turns: Sequence[Turn]) -> bool:
    return bool(turns) and turns[-1].role is not Role.ASSISTANT


def _set(context: Context, loaded: LoadedAdapter | None, ref: AdapterRef | None) -> None:
    context.set_adapter(loaded.pointer if loaded else None, ref.scale if ref else 0.0)


if __name__ == "__main__":
    serve(engine_handlers(LlamaBackend()))
