"""From turns to prompt segments to token ids: the one way a conversation becomes a prompt.

Invariants:
- Text of a message is always a segment of its own, tokenised without control tokens. No text that a person, a vault or
  a lesson supplies can become template text, whatever the template does with it.
- Engine and trainer build ids from the same segments with the same rule, so they give identical ids.
- A model without a template is never guessed at silently.

Knows no tokenizer and no runtime: a tokenizer is anything with ``encode`` and ``bos``.

Example:
    template = PromptTemplate(source, bos="<s>", eos="</s>")
    ids = tokenise(template.render(turns, add_generation_prompt=True), tokenizer)
    target = tokenise_answer(template, answer, tokenizer)
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Protocol

from jinja2 import Template
from jinja2.exceptions import TemplateError, TemplateSyntaxError

from app.errors import UserError, VerificationError
from app.model.api import Role, Turn
from app.model.prompt_meter import Meter, Refused
from app.model.prompt_sandbox import TemplateEnvironment
from app.model.prompt_text import Content, Marker

MAX_SOURCE = 65_536
"""Characters of a template; the longest in use are about half of this."""
PINNED_DAY = date(2025, 1, 1)
"""What a template takes for today: a date that moved would change every prompt, and what was learned, each midnight."""

_FILENAME = "<chat template>"
_BETWEEN = "\n\n"


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a prompt. ``special``: template text, whose control tokens count; else message text, inert."""

    text: str
    special: bool


class Tokenizer(Protocol):
    """What tokenising needs of a tokenizer."""

    @property
    def bos(self) -> int | None:
        """Id of the token that must begin every prompt, or None if this model wants none."""
        ...

    def encode(self, text: str, *, special: bool) -> list[int]:
        """Return the ids of ``text``, adding nothing; with ``special``, control tokens written out in it count."""
        ...


class PromptTemplate:
    """A chat template, compiled and probed once. Not for use by two threads at the same time.

    Args:
        source: Jinja source, from the model file.
        bos: Text of the begin token, for templates that print it.
        eos: Text of the end token, likewise.
        today: The day a template may print.

    Raises: UserError if there is no template; VerificationError if it is hostile or broken, with its line.
    """

    def __init__(self, source: str, *, bos: str, eos: str, today: date = PINNED_DAY) -> None:
        if not source.strip():
            raise UserError("build the prompt", hint="This model brings no chat template; choose one.")
        if len(source) > MAX_SOURCE:
            raise _refused("it is longer than any chat template")
        self.source = source
        self.sha256 = template_sha256(source)
        self._environment = TemplateEnvironment()
        self._given = {"bos_token": bos, "eos_token": eos, "strftime_now": _day(today), "tools": None}
        self._template = self._compile()
        self._systems = self._accepted_systems()
        self._alternates = not self._keeps((Turn(Role.USER, "one"), Turn(Role.USER, "two")), "one")
        self.end_of_turn = self._found_end(eos)
        """Text of the token that ends an answer."""

    def render(self, turns: Sequence[Turn], *, add_generation_prompt: bool) -> tuple[Segment, ...]:
        """Return the prompt in segments.

        What the template cannot express is fitted to it first: a system message it does not take goes in front of the
        next user message, and neighbours of one role become one message if roles must alternate.

        Raises: UserError if the template still refuses, VerificationError if it breaks its bounds.
        """
        try:
            return self._render(self._fitted(turns), add_generation_prompt=add_generation_prompt)
        except Refused as refusal:
            raise UserError("build the prompt", "chat template", f"The model's template says: {refusal}") from refusal

    def _render(self, turns: Sequence[Turn], *, add_generation_prompt: bool) -> tuple[Segment, ...]:
        marker = Marker()
        self._environment.begin(marker, Meter(sum(len(turn.text) for turn in turns)))
        messages = [{"role": turn.role.value, "content": Content(marker.mark(turn.text), marker)} for turn in turns]
        values = {**self._given, "messages": messages, "add_generation_prompt": add_generation_prompt}
        text = "".join(self._pieces(values))
        return tuple(Segment(run, special=not own) for run, own in marker.runs(text))

    def _pieces(self, values: dict[str, Any]) -> list[str]:
        try:
            return list(self._template.generate(values))
        except Refused as refusal:
            if refusal.by_template:
                raise
            raise _refused(str(refusal), _line(refusal)) from refusal
        except (
            TemplateError,
            ArithmeticError,
            AttributeError,
            LookupError,
            RecursionError,
            TypeError,
            ValueError,
        ) as error:
            raise _refused(
                str(error) if isinstance(error, TemplateError) else type(error).__name__, _line(error)
            ) from error

    def _compile(self) -> Template:
        try:
            code = self._environment.compile_metered(self.source, _FILENAME)
        except TemplateSyntaxError as error:
            raise _refused(error.message or "it is not valid", error.lineno) from error
        except Refused as refusal:
            raise _refused(str(refusal)) from refusal
        except (RecursionError, MemoryError, SyntaxError, ValueError) as error:
            raise _refused("it is nested too deeply") from error
        return Template.from_code(self._environment, code, self._environment.make_globals(None))

    def _keeps(self, turns: Sequence[Turn], text: str) -> bool:
        """Tell whether the template takes these turns and prints ``text`` as message text."""
        try:
            segments = self._render(turns, add_generation_prompt=False)
        except Refused:
            return False
        return any(text in segment.text for segment in segments if not segment.special)

    def _accepted_systems(self) -> int:
        """Return how many leading turns may be system messages: 0 or 1, or a large number for anywhere."""
        system, user, answer = Turn(Role.SYSTEM, "rule"), Turn(Role.USER, "ask"), Turn(Role.ASSISTANT, "say")
        if not self._keeps((system, user), "rule"):
            return 0
        return 1_000_000 if self._keeps((user, answer, system, user), "rule") else 1

    def _fitted(self, turns: Sequence[Turn]) -> list[Turn]:
        fitted: list[Turn] = []
        waiting: list[str] = []
        for number, turn in enumerate(turns):
            if turn.role is Role.SYSTEM and number >= self._systems:
                waiting.append(turn.text)
            elif turn.role is Role.USER and waiting:
                fitted.append(Turn(Role.USER, _BETWEEN.join([*waiting, turn.text])))
                waiting = []
            else:
                fitted.append(turn)
        if waiting:
            fitted.append(Turn(Role.USER, _BETWEEN.join(waiting)))
        return _merged(fitted) if self._alternates else fitted

    def _found_end(self, eos: str) -> str:
        """Return the first word that the template prints after an answer; the end token if there is none."""
        try:
            segments = self._render((Turn(Role.USER, "ask"), Turn(Role.ASSISTANT, "say")), add_generation_prompt=False)
        except Refused:
            return eos
        tail = segments[-1].text.strip() if segments and segments[-1].special else ""
        return eos if eos and tail.startswith(eos) else (tail.split() or [eos])[0]


def _merged(turns: Sequence[Turn]) -> list[Turn]:
    merged: list[Turn] = []
    for turn in turns:
        if merged and merged[-1].role is turn.role:
            merged[-1] = Turn(turn.role, merged[-1].text + _BETWEEN + turn.text)
        else:
            merged.append(turn)
    return merged


def _day(today: date) -> Callable[[str], str]:
    def strftime_now(layout: str) -> str:
        # The platform's strftime takes widths, and so makes text of any size.
        if not re.fullmatch(r"(?:%[A-Za-z%]|[^%]){0,64}", layout):
            raise Refused("it asks for the date in a form that is not allowed")
        return today.strftime(layout)

    return strftime_now


def template_sha256(source: str) -> str:
    """Return the hash by which a passport pins a template."""
    return hashlib.sha256(source.encode()).hexdigest()


def answer_segments(template: PromptTemplate, answer: str) -> tuple[Segment, ...]:
    """Return what follows a prompt when the model answers: the answer, inert, and the token that ends it."""
    end = Segment(template.end_of_turn, special=True)
    return (Segment(answer, special=False), end) if answer else (end,)


def tokenise(segments: Sequence[Segment], tokenizer: Tokenizer) -> list[int]:
    """Return the ids of a whole prompt, begun by the begin token exactly once if the model wants one."""
    ids = _encoded(segments, tokenizer)
    if tokenizer.bos is not None and ids[:1] != [tokenizer.bos]:
        ids.insert(0, tokenizer.bos)
    return ids


def tokenise_answer(template: PromptTemplate, answer: str, tokenizer: Tokenizer) -> list[int]:
    """Return the ids of an answer with its end token: exactly what the model must generate after the prompt."""
    return _encoded(answer_segments(template, answer), tokenizer)


def _encoded(segments: Sequence[Segment], tokenizer: Tokenizer) -> list[int]:
    return [token for segment in segments for token in tokenizer.encode(segment.text, special=segment.special)]


def _refused(reason: str, line: int | None = None) -> VerificationError:
    subject = "chat template" if line is None else f"chat template, line {line}"
    return VerificationError(
        "use the model's chat template", subject, f"It was not used: {reason}. Choose another template."
    )


def _line(error: BaseException) -> int | None:
    """Return the template line where ``error`` came up: jinja rewrites tracebacks to the template's lines."""
    found = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == _FILENAME:
            found = trace.tb_lineno
        trace = trace.tb_next
    return found
