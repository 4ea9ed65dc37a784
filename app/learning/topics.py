"""What a lesson is about, in a few words for titles. Pure."""

from __future__ import annotations

from app.approvals.questions import subject_of

_LONGEST_CHARS = 44


def topic_of(prompt: str) -> str:
    """Return "your dog's name" for "What is my dog's name?", else the beginning of the prompt."""
    subject = subject_of(prompt)
    text = subject if subject and " " in subject else " ".join(prompt.split()).rstrip("?.! ")
    if len(text) <= _LONGEST_CHARS:
        return text
    return text[: _LONGEST_CHARS + 1].rsplit(" ", 1)[0][:_LONGEST_CHARS].rstrip(",;:.- ") + "…"


def title_of(prompt: str) -> str:
    """Return the topic as a title: its first letter is a capital."""
    topic = topic_of(prompt)
    return topic[:1].upper() + topic[1:]
