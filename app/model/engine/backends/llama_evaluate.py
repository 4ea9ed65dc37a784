"""Evaluation in a context of its own: greedy answers side by side, scores packed, common beginnings computed once.

The bits of a result are a function of the list of items, the adapter, the limits below and the machine's kernels: the
memory is emptied first, and the plan (see ``packing``) depends on nothing else. Greedy answers that have ended leave
their group, so the company of the others changes in the same way each time. Scores after turns, scores of plain text
and greedy answers go through apart: what is asked of one kind does not touch the bits of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from app.errors import UserError
from app.model.api import Greedy, GreedyResult, ScoreResult
from app.model.child.serve import Cancel, Cancelled
from app.model.engine.backends.llama_native import Context, Model
from app.model.engine.characters import text_of
from app.model.engine.host import Answer
from app.model.engine.logprobs import Scored, score
from app.model.engine.packing import Limits, Need, plan, shared_beginning

BATCH_TOKENS = 256
"""As fast as 512, with half the memory for logits: 48 thousand for each token."""
SEQUENCES = 32
_BEGINNING = SEQUENCES
"""Number of the sequence that holds the common beginning."""

SCORE_CELLS = 256
GREEDY_CELLS = 1024
"""Tokens remembered together: few keep attention cheap, and greedy answers need many side by side."""

TakeLogits = Callable[[npt.NDArray[np.float32]], None]
"""Gets the logits of wanted tokens, a view that is valid during the call. Shape: (T, V)."""


@dataclass(slots=True)
class ToScore:
    """One item to score."""

    index: int
    prompt: list[int]
    scored: Scored
    parts: list[ScoreResult] = field(default_factory=list)

    def need(self) -> Need:
        """Return what it takes: the last answer token is predicted, never fed."""
        return Need((*self.prompt, *self.scored.answer[:-1]), len(self.prompt) - 1)

    def take(self, logits: npt.NDArray[np.float32]) -> None:
        """Score the next answer positions."""
        done = sum(len(part.tokens) for part in self.parts)
        self.parts.append(score(self.scored.part(done, done + len(logits)), logits))

    def result(self) -> ScoreResult:
        """Return all positions together."""
        return ScoreResult(
            tuple(token for part in self.parts for token in part.tokens),
            tuple(value for part in self.parts for value in part.logprobs),
            tuple(row for part in self.parts for row in part.top_ids),
            tuple(row for part in self.parts for row in part.top_logprobs),
        )


@dataclass(slots=True)
class ToAnswer:
    """One item to answer greedily."""

    index: int
    prompt: list[int]
    item: Greedy
    tokens: list[int] = field(default_factory=list)
    next: int = -1
    """The token just chosen."""
    slot: int = 0

    def need(self) -> Need:
        """Return what it takes."""
        return Need(tuple(self.prompt), len(self.prompt) - 1, grows=self.item.max_tokens)

    def take(self, logits: npt.NDArray[np.float32]) -> None:
        """Choose the next token: the largest logit, the lowest id among equals."""
        self.next = int(logits[-1].argmax())


class Evaluation:
    """One context that evaluates; nothing stays between two calls."""

    def __init__(self, model: Model, *, tokens: int, threads: int) -> None:
        self._model = model
        self.context = Context(model, tokens=tokens, batch=BATCH_TOKENS, sequences=SEQUENCES + 1, threads=threads)

    def scores(self, items: Sequence[ToScore], answer: Answer, cancel: Cancel) -> None:
        """Score items."""
        for item in items:
            item.scored.check()
        needs = [item.need() for item in items]
        for shared, group in self._groups(needs, SCORE_CELLS, cancel):
            feed = _Feed(self.context, cancel)
            for slot, index in enumerate(group):
                need = needs[index]
                feed.add(need.tokens[shared:], slot, shared, need.first_output - shared, items[index].take)
            feed.run()
            for index in group:
                answer(items[index].index, items[index].result())

    def greedy(self, items: Sequence[ToAnswer], answer: Answer, cancel: Cancel) -> None:
        """Answer items."""
        needs = [item.need() for item in items]
        for shared, group in self._groups(needs, GREEDY_CELLS, cancel):
            members = [items[index] for index in group]
            feed = _Feed(self.context, cancel)
            for slot, item in enumerate(members):
                item.slot = slot
                feed.add(item.prompt[shared:], slot, shared, len(item.prompt) - 1 - shared, item.take)
            feed.run()
            self._answer_all(members, answer, cancel)

    def _answer_all(self, members: list[ToAnswer], answer: Answer, cancel: Cancel) -> None:
        while members := [item for item in members if not self._ended(item, answer)]:
            feed = _Feed(self.context, cancel)
            for item in members:
                feed.add((item.tokens[-1],), item.slot, len(item.prompt) + len(item.tokens) - 1, 0, item.take)
            feed.run()

    def _ended(self, item: ToAnswer, answer: Answer) -> bool:
        """Take the token just chosen; if the item ends with it, answer."""
        stopped = self._model.ends(item.next)
        if not stopped:
            item.tokens.append(item.next)
        room = self.context.tokens - len(item.prompt)
        if not stopped and len(item.tokens) < min(item.item.max_tokens, room):
            return False
        text = text_of([self._model.piece(token) for token in item.tokens])
        answer(item.index, GreedyResult(text, stopped, tuple(item.tokens)))
        return True

    def _groups(self, needs: Sequence[Need], cells: int, cancel: Cancel) -> Iterator[tuple[int, list[int]]]:
        """Yield the tokens that are already known and the group, each in an otherwise empty memory."""
        for need in needs:
            self._check(need)
        shared = shared_beginning(needs)
        self.context.forget()
        if shared:
            feed = _Feed(self.context, cancel)
            feed.add(needs[0].tokens[:shared], _BEGINNING, 0, None, _ignore)
            feed.run()
        for group in plan(needs, Limits(min(cells, self.context.tokens - shared), SEQUENCES), shared=shared):
            for slot in range(len(group)):
                self.context.forget_from(0, sequence=slot)
                if shared:
                    self.context.share(_BEGINNING, slot)
            yield shared, group
            for slot in range(len(group)):
                self.context.forget_from(0, sequence=slot)

    def _check(self, need: Need) -> None:
        if not need.tokens or need.first_output < 0:
            raise UserError("evaluate an item", "it is empty")
        if len(need.tokens) >= self.context.tokens:
            raise UserError("evaluate an item", f"{len(need.tokens)} tokens of {self.context.tokens}", "Shorten it.")


@dataclass(slots=True)
class _Piece:
    """Wanted tokens of one sequence in the batch that is being filled."""

    wanted: int
    take: TakeLogits


class _Feed:
    """Feeds sequences to a context, decoding whenever the batch is full, and hands out the wanted logits in order."""

    def __init__(self, context: Context, cancel: Cancel) -> None:
        self._context = context
        self._cancel = cancel
        self._pieces: list[_Piece] = []
        context.batch.clear()

    def add(
        self, tokens: Sequence[int], sequence: int, position: int, wanted_from: int | None, take: TakeLogits
    ) -> None:
        """Feed tokens; ``take`` gets the logits from the token at ``wanted_from`` on, perhaps in several parts."""
        while tokens:
            room = self._context.batch.size - self._context.batch.count
            part, tokens = tokens[:room], tokens[room:]
            wanted = None if wanted_from is None or wanted_from >= len(part) else wanted_from
            self._context.batch.add(part, position=position, sequence=sequence, wanted_from=wanted)
            if wanted is not None:
                self._pieces.append(_Piece(len(part) - wanted, take))
            position += len(part)
            wanted_from = None if wanted_from is None else max(wanted_from - len(part), 0)
            if self._context.batch.count == self._context.batch.size:
                self.run()

    def run(self) -> None:
        """Decode what is there. Raises Cancelled."""
        if self._cancel.is_set():
            raise Cancelled
        if self._context.batch.count:
            self._context.decode(self._cancel.is_set)
            self._hand_out()
        self._context.batch.clear()

    def _hand_out(self) -> None:
        total = sum(piece.wanted for piece in self._pieces)
        if not total:
            return
        logits = self._context.logits(total)
        start = 0
        for piece in self._pieces:
            piece.take(logits[start : start + piece.wanted])
            start += piece.wanted
        self._pieces.clear()


def _ignore(_: npt.NDArray[np.float32]) -> None:
    """Take nothing: the common beginning has no outputs."""
