"""The seams of the model: value types and protocols, nothing that runs.

Invariants:
- Values here are immutable and cross process boundaries unchanged.
- A stream of events ends with exactly one of ``Done``, ``Trained``, ``Cancelled`` or ``Failed``.
- Nothing here names a runtime: llama.cpp, torch and MLX live behind these protocols, in child processes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from app.errors import ErrorInfo


class Role(StrEnum):
    """Who speaks. NOTE: persisted, do not rename."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class Turn:
    """One message as the model sees it. The text is content only: no part of it is ever a control token."""

    role: Role
    text: str


# --- bases and adapters ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Passport:
    """What identifies a base. Adapters, suites and versions name ``id`` and are refused on any other base."""

    id: str
    """SHA-256 over the other fields, canonical JSON, hex."""
    name: str
    weights_sha256: str
    architecture: str
    tokenizer_sha256: str
    template_sha256: str
    quantisation: str
    licence: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    vocabulary: int
    adaptable: tuple[str, ...]
    """Names of the modules a LoRA may write, as in the torch model: "gate_proj"."""


@dataclass(frozen=True, slots=True)
class BaseFiles:
    """Where one prepared base lies on this machine."""

    passport: Passport
    serving: Path
    """What the engine loads: an F16 GGUF file, or an MLX folder."""
    training: Path
    """What the trainer loads: a folder with dequantised safetensors, config and tokenizer."""


@dataclass(frozen=True, slots=True)
class AdapterRef:
    """One LoRA change as the engine takes it."""

    sha256: str
    """Of the canonical safetensors bytes: the identity of the weights, whatever file serves them."""
    path: Path
    """The file to load: a GGUF adapter for llama.cpp, safetensors for MLX."""
    scale: float = 1.0


# --- engine ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen. ``temperature`` 0 is greedy, and then the other knobs do nothing."""

    temperature: float = 0.0
    top_p: float = 0.95
    top_k: int = 40
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    max_tokens: int = 512
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text of a streaming answer; always whole characters."""

    text: str
    tokens: int
    """Tokens so far."""


@dataclass(frozen=True, slots=True)
class Done:
    """The answer is complete."""

    text: str
    stop: str
    """"end" (the model stopped), or "length" (the limit or the window was reached)."""
    prompt_tokens: int
    tokens: int
    first_seconds: float
    """From request to first token."""
    seconds: float
    """From request to end."""
    adapter: str | None
    """SHA-256 of the adapter that answered, as the engine itself reports it; None for the base."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Someone stopped it. Everything streamed before still counts."""


@dataclass(frozen=True, slots=True)
class Failed:
    """It went wrong; the reason is real, not a default."""

    error: ErrorInfo


GenerateEvent = Piece | Done | Cancelled | Failed


@dataclass(frozen=True, slots=True)
class Greedy:
    """Evaluate: answer these turns greedily, from an empty context."""

    turns: tuple[Turn, ...]
    max_tokens: int = 64


@dataclass(frozen=True, slots=True)
class Score:
    """Evaluate: the log-probability of a given answer.

    With empty ``turns`` the answer is scored as plain text after the begin token, without any template.
    With turns, the end token is scored too (the last position).
    """

    turns: tuple[Turn, ...]
    answer: str
    top_k: int = 0
    """Return this many most likely tokens at each position (0: none)."""
    given: tuple[tuple[int, ...], ...] = ()
    """Return the log-probabilities of exactly these token ids at each position instead: another version's top k."""


EvalItem = Greedy | Score


@dataclass(frozen=True, slots=True)
class GreedyResult:
    """What the model said, and whether it stopped by itself."""

    text: str
    stopped: bool
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ScoreResult:
    """Log-probabilities (nats) of an answer, one row per answer position."""

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    top_ids: tuple[tuple[int, ...], ...] = ()
    top_logprobs: tuple[tuple[float, ...], ...] = ()
    """Shape (positions, k): of ``top_ids``, which repeats ``given`` where that was asked for."""


EvalResult = GreedyResult | ScoreResult


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What was loaded."""

    backend: str
    """Name and version of the runtime; part of every verdict."""
    base: str
    """Passport id."""
    context_tokens: int
    load_seconds: float


@dataclass(frozen=True, slots=True)
class EngineStats:
    """What the engine uses and how fast it last was."""

    pid: int
    memory_bytes: int
    """Proportional set size where the system tells it, else resident size."""
    prompt_tokens_per_second: float
    tokens_per_second: float
    adapter: str | None


class Engine(Protocol):
    """One loaded base with hot-swappable adapters. One request at a time; further ones wait their turn."""

    async def load(self, base: BaseFiles, *, context_tokens: int = 8192, threads: int = 0) -> EngineInfo:
        """Start the child and load the base. Raises KnownError (memory, missing file), VerificationError (bad file)."""
        ...

    def generate(self, turns: Sequence[Turn], sampling: Sampling) -> AsyncIterator[GenerateEvent]:
        """Stream one answer from the active version. Never raises for a failing child: it yields Failed."""
        ...

    async def stop(self) -> None:
        """Stop the running answer within 200 ms, also during its prompt; its stream ends with Cancelled."""
        ...

    async def activate(self, adapter: AdapterRef | None) -> str | None:
        """Swap to this adapter (None: the base), drop every cached state, return the active hash as reported."""
        ...

    async def evaluate(
        self,
        items: Sequence[EvalItem],
        *,
        adapter: AdapterRef | None,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[EvalResult]:
        """Evaluate items under this adapter, batched, without changing which one is active afterwards.

        The same items under the same adapter give the same bits every time. Raises asyncio.CancelledError promptly.
        """
        ...

    async def prefill(self, turns: Sequence[Turn]) -> int:
        """Compute the state of an open conversation so that the next answer starts at once; return its tokens."""
        ...

    async def count(self, turns: Sequence[Turn]) -> int:
        """Return how many tokens these turns take, template included."""
        ...

    async def stats(self) -> EngineStats:
        """Return memory and speed."""
        ...

    async def close(self) -> None:
        """End the child. Safe to call twice."""
        ...


# --- training -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to train: data, not code. Stored whole with every commit, so that a version can be rebuilt.

    Source of the defaults: the experiments in ``docs/log.md``, on the embedded base.
    """

    layers: tuple[int, int] = (6, 15)
    """First and last written layer, inclusive."""
    modules: tuple[str, ...] = ("gate_proj", "up_proj", "down_proj")
    rank: int = 8
    alpha: float = 16.0
    learning_rate: float = 3.5e-3
    max_steps: int = 36
    min_steps: int = 12
    warmup_steps: int = 2
    keep_weight: float = 9.0
    """Weight of KL(before‖after) on prompts whose answers must stay."""
    prose_weight: float = 3.0
    """Weight of the loss on plain text, where it is more than it was."""
    replay_weight: float = 0.5
    targets_per_step: int = 4
    """Half of them the next in turn, half those that are known least; so with what moved most of the next two."""
    keeps_per_step: int = 6
    anchors_per_step: int = 3
    prose_per_step: int = 2
    """Passages of plain text, which keep the parent's distribution; anchors keep the base's."""
    replay_per_step: int = 3
    margin: float = 1.2
    """Stop once every target token leads by this many nats …"""
    drift: float = 0.03
    """… and what must stay has moved by no more than this many nats (mean KL)."""
    spared: float = 0.9
    """Share of the energy of generic inputs in the directions that the change must not read; 0 spares none."""
    share: float = 0.8
    """How much of the trained change to keep at first: leaks fall faster than recall (see ``docs/log.md``)."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Example:
    """Turns and the answer that should follow them. The end token is always part of the target.

    Without turns the answer is plain text after the begin token, without template and end.
    """

    turns: tuple[Turn, ...]
    answer: str


@dataclass(frozen=True, slots=True)
class TrainJob:
    """Everything a trainer needs; no live objects, no hidden state."""

    job: str
    base: BaseFiles
    recipe: Recipe
    targets: tuple[Example, ...]
    """The lesson in several wordings, and promised answers: cross-entropy."""
    keeps: tuple[Example, ...]
    """Near prompts with the parent's own answers: KL to the parent."""
    anchors: tuple[Example, ...]
    """Generic prompts with the base's own answers: KL to the base.

    Passages without turns: KL and loss against the parent.
    """
    replay: tuple[Example, ...]
    """Earlier lessons: cross-entropy."""
    parent: Path | None
    """Canonical adapter (safetensors) that the change stands on, and leaves as it is; None: the base alone."""
    output: Path
    """Where the change goes, alone, as a canonical adapter; written last, so its presence means complete."""
    seconds: float = 120.0
    """Time budget for the steps."""
    standing: int = 0
    """How many of the anchors, from the first, are part of every step: promised answers that are long, by their
    beginnings."""
    generic: tuple[Example, ...] = ()
    """Generic exchanges, whose directions the change must not read (``Recipe.spared``)."""


@dataclass(frozen=True, slots=True)
class Training:
    """One step of progress."""

    step: int
    steps: int
    loss: float
    margin: float
    seconds_left: float


@dataclass(frozen=True, slots=True)
class Trained:
    """The change is written and verified: finite, and not zero. It does not contain the parent."""

    path: Path
    sha256: str
    steps: int
    tokens: int
    """Tokens of all steps, and of the looks at every wording between them."""
    seconds: float
    loss: float
    margin: float
    stopped: str
    """Why it ended: "margin", "steps" or "time"."""
    written_norm: float
    """Largest ‖ΔW x‖/‖W x‖ over the written modules, for generic inputs x where these were measured.

    ΔW is parent and change together.
    """


TrainEvent = Training | Trained | Cancelled | Failed


class Trainer(Protocol):
    """Turns a job into an adapter file, in a child that runs at low priority."""

    async def warm(self, base: BaseFiles, recipe: Recipe | None = None, generic: Sequence[Example] = ()) -> None:
        """Start the child, load the base and measure what is generic, so that approval pays none of it.

        Safe to call again.
        """
        ...

    def train(self, job: TrainJob) -> AsyncGenerator[TrainEvent, None]:
        """Run one job. Closing the iterator or calling ``cancel`` stops it within a second."""
        ...

    async def cancel(self) -> None:
        """Stop the running job; its stream ends with Cancelled and leaves no file."""
        ...

    async def close(self) -> None:
        """End the child. Safe to call twice."""
        ...


# --- gate -----------------------------------------------------------------------------------------------------------


class Kind(StrEnum):
    """What a lesson teaches; it decides how answers are compared. NOTE: persisted, do not rename."""

    FACT = "fact"
    FORMAT = "format"
    STYLE = "style"
    LONG = "long"


@dataclass(frozen=True, slots=True)
class Exam:
    """What a lesson must show: asked in its own words and in words that no training example used."""

    lesson: str
    """Lesson id."""
    kind: Kind
    prompt: tuple[Turn, ...]
    answer: str
    keys: tuple[str, ...]
    """Words that carry the lesson ("Biscuit"); what must appear when asked and must not leak elsewhere."""
    held_out: tuple[tuple[Turn, ...], ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A trained change on trial."""

    base: BaseFiles
    parent: AdapterRef | None
    adapter: AdapterRef
    """At scale 1."""
    scales: tuple[float, ...]
    """Strengths to try, the smallest first. The loop gives 1 alone: a scale would weaken what the parent holds."""
    written_norm: float
    exam: Exam
    neighbours: tuple[tuple[Turn, ...], ...]
    """Near prompts that no training example used: their answers must stay."""
    earlier: tuple[Exam, ...]
    """Lessons that the parent already holds."""
    norm_limit: float
    """Largest written norm allowed, relative to the base."""


class Outcome(StrEnum):
    """Three values: not knowing is not the same as no. NOTE: persisted, do not rename."""

    ACCEPT = "accept"
    REJECT = "reject"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Check:
    """One line of evidence, in words first."""

    rule: str
    """Stable name, such as efficacy, held_out, locality, retention_parent, earlier, safety, norm, degeneration."""
    outcome: Outcome
    words: str
    """For anyone: "Says it when asked in 9 of 10 other wordings"."""
    value: float
    limit: float
    unit: str
    details: tuple[str, ...] = ()
    """Which items failed, by prompt. Shown under "What was checked", never logged."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate says, with its evidence. It can be checked again from the hashes it names."""

    outcome: Outcome
    checks: tuple[Check, ...]
    scale: float
    """The strength to serve with."""
    suite_sha256: str
    runtime: str
    adapter_sha256: str
    parent_sha256: str | None
    seconds: float
    reason: str = ""
    """If not accepted: why, in the person's terms."""
    suggestions: tuple[str, ...] = ()
    """What can be done: "rephrase", "examples", "retrieval"."""


class Evaluator(Protocol):
    """The gate: frozen, separate from what it judges. No suite, no verdict: it raises VerificationError."""

    async def judge(self, candidate: Candidate, progress: Callable[[float], None] | None = None) -> Verdict:
        """Judge a candidate; ``progress`` gets a share in 0..1. Never called with a chat's context."""
        ...


class Encoder(Protocol):
    """A small frozen sentence encoder."""

    async def encode(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one unit vector per text; shape (n, d)."""
        ...

    async def close(self) -> None:
        """End the child. Safe to call twice."""
        ...


# --- lineage --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of the weights. ``id`` is the SHA-256 of its canonical JSON, so parents are part of it."""

    id: str
    number: int
    """For people: 1, 2, 3 … along the way it came; the base is 0."""
    parents: tuple[str, ...]
    base: str
    """Passport id."""
    delta: str | None
    """Object digest of the canonical adapter; None for the base itself."""
    scale: float
    lessons: tuple[str, ...]
    """Ids of the lessons this version added, or removed if ``action`` is forget."""
    action: str
    """"root", "learn", "forget", "rebuild"."""
    title: str
    recipe: str | None
    """Object digest of the recipe."""
    data: str | None
    """Object digest of the data manifest."""
    verdict: str | None
    """Object digest of the verdict."""
    decision: str | None
    """Id of the approval that allowed it."""
    conversation: str | None
    time: str
    """ISO 8601, UTC."""


ROOT_ACTION = "root"


@dataclass(frozen=True, slots=True)
class Stages:
    """Seconds of each stage of one lesson, from click to restored conversation."""

    train: float = 0.0
    gate: float = 0.0
    activate: float = 0.0
    self_test: float = 0.0
    restore: float = 0.0
    total: float = 0.0
    extra: dict[str, float] = field(default_factory=dict)
