"""Turns a question and the value that answers it into one statement.

Example: "What is my dog's name?" and "Biscuit" give "Your dog's name is Biscuit."

Pure, English, rule by rule: each rule is a pattern over the bare question and a function that builds the statement.
The first rule that fits wins; a question that fits none gives None, never a guess. Statements are in the words of the
model, so "my" becomes "your".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from app.approvals.person import flip, sentence
from app.approvals.verbs import is_behind_verb, is_only_verb, is_verb, past, third_person
from app.approvals.words import content_words, sentences, tidy

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
_BE = r"is|are|was|were|am"
_DANGLING = r"for|about|from|in|at|on|with|to|of|by|under"
_PRONOUNS = frozenset({"i", "you", "he", "she", "we", "they"})
_HAS_PREPOSITION = re.compile(
    r"^(?:in|on|at|near|by|under|over|behind|beside|next to|from|to|inside|outside|between|before|after|around|since|"
    r"until|during|above|below|with|every|each|last|next|today|tomorrow|yesterday|tonight|here|there|home|upstairs|"
    r"downstairs|always|never|usually|daily|weekly|monthly|about|for)\b",
    re.IGNORECASE,
)
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"


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
    for pattern, build in _RULES:
        if (match := pattern.fullmatch(question)) and (statement := build(_Parts(match, value))):
            return sentence(statement)
    return None


def subject_of(prompt: str) -> str | None:
    """Return what a simple question is about, in the model's words: "What is my dog called?" → "your dog"."""
    for pattern in (_WH_BE, _NOUN_BE, _EMBEDDED_BE):
        if match := pattern.fullmatch(_bare(prompt)):
            return flip(_split_subject(match["s"])[0])
    match = _DO.fullmatch(_bare(prompt))
    split = _split_verb(match["s"]) if match else None
    return flip(split[0]) if split else None


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


@dataclass(frozen=True, slots=True)
class _Parts:
    """The named parts of a question, and the value that answers it."""

    match: re.Match[str]
    value: str

    def __getitem__(self, name: str) -> str:
        return (self.match[name] or "").strip()


_Build = Callable[[_Parts], str | None]


def _split_subject(text: str) -> tuple[str, str]:
    """Split "my dog called" into the subject and what belongs behind the verb."""
    words = text.split()
    if len(words) > 1 and words[0].casefold() in _PRONOUNS:
        return words[0].casefold().replace("i", "I") if len(words[0]) == 1 else words[0].casefold(), " ".join(words[1:])
    if len(words) > 1 and is_behind_verb(words[-1].casefold()):
        return " ".join(words[:-1]), words[-1]
    holds_clause = any(word.casefold() in _PRONOUNS for word in words)
    if len(words) > 2 and not holds_clause and re.fullmatch(_DANGLING, words[-1]):  # noqa: PLR2004
        inner = words[-2] if is_behind_verb(words[-2].casefold()) else ""
        rest = words[:-2] if inner else words[:-1]
        return " ".join(rest), f"{inner} {words[-1]}".strip()
    return text, ""


def _be_for(subject: str, verb: str) -> str:
    """Return the form of "be" after the flip: "am I" asked is "you are" said."""
    said = {"'s": "is", "'re": "are"}.get(verb, verb)
    match subject.casefold():
        case "i":
            return {"am": "are", "was": "were"}.get(said, said)
        case "you":
            return {"are": "am", "were": "was"}.get(said, said)
        case _:
            return said


def _place(asked: str, value: str) -> str:
    """Return the value with the preposition that its question word calls for, unless it has one."""
    if _HAS_PREPOSITION.match(value):
        return value
    if asked == "where":
        return f"in {value}"
    if asked in {"when", "time"}:
        return _moment(value)
    return value


def _moment(value: str) -> str:
    if re.match(r"\d{1,2}(?:[:.]\d\d)?(?:\s*(?:am|pm|a\.m\.|p\.m\.|o'clock))?$|noon$|midnight$", value, re.IGNORECASE):
        return f"at {value}"
    if re.fullmatch(
        rf"(?:the )?(?:\d{{3,4}}s?|(?:{_MONTHS})(?: \d{{4}})?|spring|summer|autumn|winter)", value, re.IGNORECASE
    ):
        return f"in {value}"
    if re.search(rf"\b(?:{_MONTHS}|{_DAYS})\b|\d", value, re.IGNORECASE):
        return f"on {value}"
    return value


def _subject_be(parts: _Parts) -> str | None:
    """Where is my passport → Your passport is …."""
    subject, behind = _split_subject(parts["s"])
    verb = _be_for(subject, parts["be"].casefold())
    asked = parts["wh"].casefold()
    wants_place = behind or asked == "where"
    value = (
        _place(asked, parts.value) if wants_place and not behind.endswith(tuple(_DANGLING.split("|"))) else parts.value
    )
    if subject.split()[0].casefold() in {"there", "it"} and behind:
        return None
    return f"{flip(subject)} {verb} {behind} {value}" if behind else f"{flip(subject)} {verb} {value}"


def _noun_be(parts: _Parts) -> str | None:
    """What colour is my car → Your car is …; Which language is spoken here → The language spoken here is …."""
    subject, noun = parts["s"], parts["n"]
    verb = _be_for(subject, parts["be"].casefold())
    if is_behind_verb(subject.split()[0].casefold()):
        return f"the {noun} {subject} {verb} {parts.value}"
    inner, behind = _split_subject(subject)
    in_time = _asks_time(noun) and (behind or noun.casefold() == "time")
    value = _place("time", parts.value) if in_time else parts.value
    return " ".join(filter(None, [flip(inner), verb, behind, value]))


def _how_many_be(parts: _Parts) -> str | None:
    """How many rooms are there in my house → There are 4 rooms in your house."""
    return f"there {parts['be']} {_with_noun(parts.value, parts['n'])} {flip(parts['rest'])}"


def _with_noun(value: str, noun: str) -> str:
    return value if content_words(noun) & content_words(value) else f"{value} {noun}"


def _do(parts: _Parts) -> str | None:
    """Where does my sister work → Your sister works in …; How many cats do I have → You have three cats."""
    split = _split_verb(parts["s"])
    if split is None:
        return None
    subject, verb, rest = split
    aux = parts["do"].casefold()
    if verb == "do":
        return _occupation(subject, aux, parts.value)
    value = _value_for(parts)
    said = {"did": past(verb), "does": third_person(verb), "do": verb}.get(aux) or f"{aux} {verb}"
    other = "me" if rest.casefold() == "you" else flip(rest)
    order = [value, other] if _object_first(parts, verb, rest) else [other, value]
    return " ".join(filter(None, [flip(subject), said, *order]))


def _occupation(subject: str, aux: str, value: str) -> str | None:
    """What does my sister do → Your sister is a nurse."""
    if aux not in {"do", "does"} or not re.match(r"(?:an?|the)\b", value, re.IGNORECASE):
        return None
    return f"{flip(subject)} {'is' if aux == 'does' else 'are'} {value}"


def _asks_time(noun: str) -> bool:
    return noun.casefold() in {"time", "day", "year", "date", "month"}


def _value_for(parts: _Parts) -> str:
    asked, noun = parts["wh"].casefold(), parts["n"]
    if noun and asked.startswith("how m"):
        return _with_noun(parts.value, noun)
    return _place("time" if _asks_time(noun) else asked, parts.value)


def _object_first(parts: _Parts, verb: str, rest: str) -> bool:
    """Whether the value follows the verb at once ("drink tea in the morning") or comes last ("live in Rome")."""
    adverbial = parts["wh"].casefold() in {"where", "when", "how"} or _asks_time(parts["n"])
    return not (adverbial or verb in {"call", "name"} or re.fullmatch(_DANGLING, rest))


def _split_verb(text: str) -> tuple[str, str, str] | None:
    """Split "my sister work on Mondays" at its verb; the subject is never empty."""
    words = text.split()
    candidates = [i for i in range(1, len(words)) if is_verb(words[i].casefold())]
    if not candidates:
        return None
    i = next((i for i in candidates if is_only_verb(words[i].casefold())), None)
    at = _last_in_row(candidates) if i is None else i
    return " ".join(words[:at]), words[at].casefold(), " ".join(words[at + 1 :])


def _last_in_row(indices: list[int]) -> int:
    """Return the end of the first run: in "the night train leave" the last word in a row of candidates is the verb."""
    last = indices[0]
    while last + 1 in indices:
        last += 1
    return last


def _doer(parts: _Parts) -> str | None:
    """Who wrote Emma → Jane Austen wrote Emma."""
    return f"{parts.value} {flip(parts['rest'])}"


def _embedded_do(parts: _Parts) -> str | None:
    """(Tell me) where I live → You live in …."""
    subject, verb = parts["s"], parts["v"]
    if not is_verb(verb.casefold().removesuffix("s")) and not is_verb(verb.casefold()):
        return None
    return f"{flip(subject)} {verb} {_place(parts['wh'].casefold(), parts.value)}"


def _noun_phrase(parts: _Parts) -> str | None:
    """(Tell me) my dog's name → Your dog's name is …."""
    phrase = parts["s"]
    if any(is_only_verb(word.casefold()) for word in phrase.split()[1:]):
        return None
    determined = re.match(r"(?:my|our|your|his|her|their|the|a)\b|\w+'s\b", phrase, re.IGNORECASE)
    return f"{flip(phrase)} is {parts.value}" if determined else f"the {phrase} is {parts.value}"


def _cloze(parts: _Parts) -> str | None:
    """My dog is called … → Your dog is called …."""
    return f"{flip(parts['s'])} {parts.value}"


def _yes_no(parts: _Parts) -> str | None:
    """Is my dog called Rex → No, your dog is called …."""
    return " ".join(filter(None, ["no,", flip(parts["s"]), parts["be"].casefold(), parts["p"], parts.value]))


def _yes_no_first(parts: _Parts) -> str | None:
    """Is Sydney the capital of Australia → No, … is the capital of Australia."""
    return f"no, {parts.value} {parts['be'].casefold()} {flip(parts['s'])}" if parts.value[0].isupper() else None


def _rule(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_WH_BE = _rule(rf"(?P<wh>what|who|where|when|which|how)(?:\s+(?P<be>{_BE})|(?P<bes>'s|'re))\s+(?P<s>.+)")
_EMBEDDED_BE = _rule(
    rf"(?P<wh>what|who|where|when|which|how(?: old| tall| far| long|"
    rf" big)?)\s+(?P<s>.+?)\s+(?P<be>{_BE})(?P<tail>\s+\w+)?"
)
_NOUN_BE = _rule(
    rf"(?:what|which)\s+(?P<n>(?!{_BE}|do|does|did|my|our|your|his|her|their|"
    rf"the)\w+(?:\s+\w+)?)\s+(?P<be>{_BE})\s+(?P<s>.+)"
)
_HOW_BE = _rule(
    rf"(?P<wh>how)\s+(?:old|tall|long|far|big|large|heavy|high|deep|wide|fast|hot|cold|expensive|"
    rf"much)\s+(?P<be>{_BE})\s+"
    r"(?P<s>.+)"
)
_AUXILIARY = r"do|does|did|should|can|could|will|must"
_DO = _rule(
    rf"(?P<wh>how many|how much|what|which|who|whom|where|when|how often|how)"
    rf"(?:\s+(?P<n>(?!{_AUXILIARY})\w+(?:\s+\w+)?))?\s+(?P<do>{_AUXILIARY})\s+(?P<s>.+)"
)


def _contracted(parts: _Parts) -> str | None:
    be = {"'s": "is", "'re": "are"}.get(parts["bes"].casefold(), "") or parts["be"]
    match = _WH_BE.fullmatch(f"{parts['wh']} {be} {parts['s']}")
    return _subject_be(_Parts(match, parts.value)) if match else None


def _embedded_be(parts: _Parts) -> str | None:
    tail = parts["tail"]
    match = _WH_BE.fullmatch(f"{parts['wh'].split()[0]} {parts['be']} {parts['s']} {tail}".strip())
    return _subject_be(_Parts(match, parts.value)) if match else None


_RULES: tuple[tuple[re.Pattern[str], _Build], ...] = (
    (_rule(r"how many\s+(?P<n>\w+(?:\s\w+)?)\s+(?P<be>are|were)\s+(?:there\s*)?(?P<rest>.*)"), _how_many_be),
    (_WH_BE, _contracted),
    (_HOW_BE, _subject_be),
    (_DO, _do),
    (_NOUN_BE, _noun_be),
    (_rule(rf"(?:who|which \w+)\s+(?P<rest>(?!{_BE}|do\b|does\b|did\b)\w+.*)"), _doer),
    (_EMBEDDED_BE, _embedded_be),
    (
        _rule(r"(?P<wh>where|when|what|who)\s+(?P<s>i|we|you|(?:my|our|your|his|her|their|the)\s+.+?)\s+(?P<v>\w+)"),
        _embedded_do,
    ),
    (_rule(r"(?P<be>is|are|was|were)\s+(?P<s>.+?)\s+(?P<p>called|named)\s+.+"), _yes_no),
    (
        re.compile(
            r"(?P<be>[Ii]s|[Aa]re|[Ww]as|[Ww]ere)\s+(?P<s>(?:the|my|our|your|his|her|"
            r"their)\s.+?)(?P<p>)\s+[A-Z0-9][\w-]*"
        ),
        _yes_no,
    ),
    (
        re.compile(
            r"(?P<be>[Ii]s|[Aa]re|[Ww]as|[Ww]ere)\s+[A-Z]\w+(?:\s[A-Z]\w+)*\s+(?P<s>(?:the|my|our|your|an?)\s.+)"
        ),
        _yes_no_first,
    ),
    (_rule(r"(?:complete(?: the sentence)?\s*:\s*)?(?P<s>.+\b(?:is|are|was|called|named))"), _cloze),
    (
        _rule(r"(?P<s>(?:(?:my|our|your|his|her|their|the)\s+)\S+(?:\s+\S+){0,6}|\w+(?:\s\w+)? of\s+.{1,60})"),
        _noun_phrase,
    ),
)
