"""The conversation: prompt in, tokens out, with the state of what was computed before reused.

Invariants:
- What is remembered is exactly ``_known``, computed under the adapter that acts now; a swap drops all of it.
- The same prompt gives the same bits, whatever was asked before. A state's bits depend on how its tokens were batched,
  so prompts are always cut at the same places, and only what was computed in whole such chunks is used again.
- After a stop, only tokens whose decode finished count as known.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from app.errors import UserError
from app.model.api import Sampling
from app.model.child.serve import Cancel, Cancelled
from app.model.engine.backends.llama_native import Context, Model
from app.model.engine.backends.llama_sampling import Sampler
from app.model.engine.characters import Characters
from app.model.engine.host import Answered, Say
from app.model.engine.pace import Pace

CHUNK_TOKENS = 64
"""Prompts are computed in chunks that begin at multiples of this. Smaller ones repeat less, larger ones are faster."""

_SLOW_TOKEN_S = 0.05
"""From here on a single token is worth interrupting."""


class Chat:
    """One context that answers."""

    def __init__(self, model: Model, *, tokens: int, threads: int) -> None:
        self._model = model
        self.context = Context(model, tokens=tokens, batch=CHUNK_TOKENS, sequences=1, threads=threads)
        self._known: list[int] = []
        self._whole = 0
        """How many of the known tokens were computed in whole chunks of a prompt."""
        self._threads = threads
        self._pace = Pace(threads)
        self._slow = False

    def forget(self) -> None:
        """Drop all that is known."""
        self._known.clear()
        self._whole = 0
        self.context.forget()

    def know(self, prompt: Sequence[int], cancel: Cancel) -> int:
        """Make exactly this prompt known, its last token just decoded; return how many tokens were computed."""
        self._check_room(prompt)
        again = min(_common(self._known, prompt), self._whole, len(prompt) - 1)
        self._keep(again // CHUNK_TOKENS * CHUNK_TOKENS)
        start = len(self._known)
        while len(self._known) < len(prompt):
            self._decode(prompt[len(self._known) : len(self._known) + CHUNK_TOKENS], cancel, abortable=True)
            self._whole = len(self._known) // CHUNK_TOKENS * CHUNK_TOKENS
        return len(prompt) - start

    def _check_room(self, prompt: Sequence[int]) -> None:
        if not prompt:
            raise UserError("answer", "an empty conversation", "Write something first.")
        if len(prompt) >= self.context.tokens:
            subject = f"{len(prompt)} tokens, where the model holds {self.context.tokens}"
            raise UserError("answer", subject, "Start a new chat, or shorten the message.")

    def _keep(self, count: int) -> None:
        del self._known[count:]
        self._whole = min(self._whole, count)
        if not self.context.forget_from(count):
            self.forget()

    def _decode(self, tokens: Sequence[int], cancel: Cancel, *, abortable: bool) -> None:
        batch = self.context.batch
        batch.clear()
        batch.add(tokens, position=len(self._known), sequence=0, wanted_from=len(tokens) - 1)
        if cancel.is_set():
            raise Cancelled
        try:
            self.context.decode(cancel.is_set, abortable=abortable)
        except Cancelled:
            self._keep(len(self._known))
            raise
        self._known.extend(tokens)

    def answer(self, prompt: Sequence[int], sampling: Sampling, say: Say, cancel: Cancel, *, start: float) -> Answered:
        """Answer the prompt, saying text as it comes; ``start`` is when the request came."""
        computed = self.know(prompt, cancel)
        sampler = Sampler(self._model, self.context, sampling)
        try:
            token = sampler.choose()
            first_seconds = time.monotonic() - start
            tokens, stop = self._continue(token, sampler, sampling.max_tokens, say, cancel)
        finally:
            sampler.close()
        return Answered(stop, len(prompt), computed, tokens, first_seconds)

    def _continue(self, token: int, sampler: Sampler, limit: int, say: Say, cancel: Cancel) -> tuple[int, str]:
        """Say ``token`` and what follows it; return the tokens said, and why it stopped."""
        characters = Characters()
        tokens = 0
        while not self._model.ends(token):
            tokens += 1
            text = characters.add(self._model.piece(token))
            if text:
                say(text, tokens)
            if tokens >= limit or len(self._known) + 1 >= self.context.tokens:
                return tokens, "length"
            self._step(token, cancel)
            token = sampler.choose()
        return tokens, "end"

    def _step(self, token: int, cancel: Cancel) -> None:
        start = time.monotonic()
        self.context.set_threads(self._pace.threads(), self._threads)
        self._decode((token,), cancel, abortable=self._slow)
        seconds = time.monotonic() - start
        self._pace.took(seconds)
        self._slow = seconds > _SLOW_TOKEN_S


def _common(known: Sequence[int], wanted: Sequence[int]) -> int:
    """Return how many leading tokens two sequences share."""
    for index, (one, other) in enumerate(zip(known, wanted, strict=False)):
        if one != other:
            return index
    return min(len(known), len(wanted))
