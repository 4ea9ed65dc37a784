"""What the window remembers about itself. Unreadable values count as not set."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from app.ui.services import Settings
from app.ui.settings_dialog import AnswerStyle
from app.ui.theme import Scheme

ANSWER_STYLE, INSTRUCTIONS = "answer.style", "answer.instructions"
"""Names under which the conversation's use cases find these two."""


@dataclass(slots=True)
class Preferences:
    """Values with their defaults."""

    scheme: Scheme = Scheme.SYSTEM
    zoom: float = 1.0
    sidebar: bool = True
    panel: bool = True
    enter_sends: bool = True
    geometry: str = ""
    """Base64 of the window's own record of its place."""
    chat: str = ""
    """The conversation that was open last."""
    style: AnswerStyle = AnswerStyle.BALANCED
    instructions: str = ""


def name_of(field: str) -> str:
    """Return the name that a field is stored under."""
    return {"style": ANSWER_STYLE, "instructions": INSTRUCTIONS}.get(field, f"ui.{field}")


def load(settings: Settings) -> Preferences:
    """Read everything. Runs on the core."""
    result = Preferences()
    for field in fields(Preferences):
        text = settings.get(name_of(field.name))
        if text is not None:
            setattr(result, field.name, _parsed(text, getattr(result, field.name)))
    return result


def as_text(value: object) -> str:
    """Return a value as it is stored."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _parsed(text: str, default: Any) -> Any:
    if isinstance(default, bool):
        return {"yes": True, "no": False}.get(text, default)
    try:
        return type(default)(text)
    except ValueError:
        return default
