"""How freely the model chooses its words, as a choice of three, and what each means to the engine."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from app.chat.context import ChatSettings
from app.model.api import Sampling

STYLE, INSTRUCTIONS = "answer.style", "answer.instructions"
"""Names of the two settings. NOTE: persisted, do not rename."""


class AnswerStyle(StrEnum):
    """NOTE: persisted, do not rename."""

    EXACT = "exact"
    BALANCED = "balanced"
    INVENTIVE = "inventive"


SAMPLING = {
    AnswerStyle.EXACT: Sampling(temperature=0.0),
    AnswerStyle.BALANCED: Sampling(temperature=0.6, top_p=0.95, min_p=0.05, repeat_penalty=1.05),
    AnswerStyle.INVENTIVE: Sampling(temperature=1.0, top_p=0.98, min_p=0.03, repeat_penalty=1.05),
}


def chat_settings(get: Callable[[str], str | None]) -> ChatSettings:
    """Return how to answer, from settings by name; what is not set or not known is balanced, without instructions."""
    chosen = get(STYLE)
    style = AnswerStyle(chosen) if chosen in set(AnswerStyle) else AnswerStyle.BALANCED
    return ChatSettings(system_prompt=get(INSTRUCTIONS) or "", sampling=SAMPLING[style])
