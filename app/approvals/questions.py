"""Reads a person's question and turns it, with the value that answers it, into one statement.

Example: "What is my dog's name?" and "Biscuit" give "Your dog's name is Biscuit."

Pure, English. A question that no rule fits gives None, never a guess. Statements are in the words of the model, so
"my" becomes "your".
"""

from __future__ import annotations

import re

from app.approvals import statements
from app.approvals.person import sentence
from app.approvals.words import sentences, tidy

_LONGEST_CHARS = 300

_LEAD = re.compile(
    r"^(?:hi|hey|hello|okay|ok|so|and|but|well|please|now|also|quick question|question|just curious|by the way|"
    r"i was wondering(?: if you know)?|i wonder|(?:please )?remind me(?: again)?(?: of)?|"
    r"(?:please )?tell me|"
    r"(?:can|could|would|will) you (?:please )?(?:tell|remind) me(?: of)?|do you (?:still )?(?:know|remember|recall)|"
    r"i(?:'d| would) like to know|i (?:want|need) to know|let me know|answer this|what i want to know is|"
    r"(?:please )?(?:name|give me|state|say))\b[\s,:;—-]*",
    re.IGNORECASE,
)
_TRAIL = re.compile(r"[\s,]+(?:again|please|then|by the way|do you know|if i may ask|exactly)$", re.IGNORECASE)


def question_of(prompt: str) -> str:
    """Return the question that a message asks, without its surroundings; the whole message if it asks one thing only.

    "Remind me, what's my dog called? I want to print a name tag." → "What's my dog called?"
    """
    asked = [part for part in sentences(prompt) if part.endswith("?")]
    if len(sentences(prompt)) == 1 or len(asked) != 1:
        return prompt.strip()
    bare = _without_leads(asked[0].rstrip("? "))
    return bare[0].upper() + bare[1:] + "?" if bare else asked[0]


def restate(prompt: str, value: str) -> str | None:
    """Return the statement that answers the question with this value, or None if no rule fits."""
    question = _bare(prompt)
    if len(question) > _LONGEST_CHARS:
        return None
    statement = statements.state(question, value)
    return sentence(statement) if statement else None


def subject_of(prompt: str) -> str | None:
    """Return what a simple question is about, in the model's words: "What is my dog called?" → "your dog"."""
    question = _bare(prompt)
    return statements.subject(question) if len(question) <= _LONGEST_CHARS else None


def is_question(prompt: str) -> bool:
    """Whether a message asks for something that a single value can answer."""
    return bool(re.match(r"(?:what|who|whom|whose|which|where|when|how)\b", _bare(prompt), re.IGNORECASE))


def _bare(prompt: str) -> str:
    question = question_of(prompt) if tidy(prompt).endswith("?") or "?" in prompt else prompt
    return _without_leads(tidy(question).rstrip("?.!… _"))


def _without_leads(text: str) -> str:
    before = None
    while before != text:
        before, text = text, _TRAIL.sub("", _LEAD.sub("", text, count=1))
    return text
