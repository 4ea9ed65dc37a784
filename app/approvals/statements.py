"""The rules that turn a bare question and a value into a statement. Pure, English, one rule a kind of question.

Each rule is a pattern and a function that builds the statement from its parts; the first that fits wins. "Bare" means
without lead ("tell me …"), question mark or surroundings.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from app.approvals.person import flip
from app.approvals.placing import asks_place, asks_time, place
from app.approvals.verbs import is_behind_verb, is_known_form, is_only_verb, is_verb, past, third_person
from app.approvals.words import content_words

_BE = r"is|are|was|were|am"
_DANGLING = r"for|about|from|in|at|on|with|to|of|by|under|as|after"
_PRONOUNS = frozenset({"i", "you", "he", "she", "we", "they"})
_CLAUSE = frozenset({*_PRONOUNS, "that", "who", "which", "is", "are", "was", "were", "when", "where"})


def state(question: str, value: str) -> str | None:
    """Return the statement, without capital and full stop, or None if no rule fits."""
    for pattern, build in _RULES:
        if (match := pattern.fullmatch(question)) and (statement := build(_Parts(match, value))):
            return statement
    return None


def subject(question: str) -> str | None:
    """Return what a question is about, in the model's words, or None if that is not plain."""
    for pattern in (_WH_BE, _NOUN_BE, _EMBEDDED_BE):
        if match := pattern.fullmatch(question):
            return flip(_split_subject(match["s"])[0])
    match = _DO.fullmatch(question)
    split = _split_verb(match["s"]) if match else None
    return flip(split[0]) if split else None


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
    folded = [word.casefold() for word in words]
    if len(words) > 1 and folded[0] in _PRONOUNS:
        return "I" if folded[0] == "i" else folded[0], " ".join(words[1:])
    if len(words) == 1 or _CLAUSE & set(folded[1:]):
        return text, ""
    if is_behind_verb(folded[-1]):
        return " ".join(words[:-1]), words[-1]
    if len(words) > 2 and re.fullmatch(_DANGLING, folded[-1]):  # noqa: PLR2004 - a subject, and what dangles
        return _split_dangling(text, words)
    return text, ""


def _split_dangling(text: str, words: list[str]) -> tuple[str, str]:
    """Split "my house built in" and "the otter a kind of"."""
    if kind := re.fullmatch(r"(.+?)\s+((?:an?|the|part|known|responsible)\s.+|part of|known for)", text, re.IGNORECASE):
        return kind[1], kind[2]
    at = -2 if is_behind_verb(words[-2].casefold()) or words[-2].endswith("ed") else -1
    return " ".join(words[:at]), " ".join(words[at:])


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


def _dangles(behind: str) -> bool:
    """Whether what stands behind the verb ends in its own preposition."""
    return bool(re.search(rf"\b(?:{_DANGLING})$", behind))


def _subject_be(parts: _Parts) -> str | None:
    """Where is my passport → Your passport is …."""
    subject_, behind = _split_subject(parts["s"])
    if subject_.split()[0].casefold() in {"there", "it"} and behind:
        return None
    asked = parts["wh"].casefold()
    placed = not _dangles(behind) and (behind or asked == "where")
    value = place(asked, parts.value) if placed else parts.value
    return " ".join(filter(None, [flip(subject_), _be_for(subject_, parts["be"].casefold()), behind, value]))


def _noun_be(parts: _Parts) -> str | None:
    """What colour is my car → Your car is …; Which language is spoken here → The language spoken here is …."""
    said, noun = parts["s"], parts["n"]
    verb = _be_for(said, parts["be"].casefold())
    first = said.split()[0].casefold()
    if is_behind_verb(first) or first in {"responsible", "known"}:
        return f"the {noun} {flip(said)} {verb} {parts.value}"
    if first in {"it", "there"}:
        return None
    inner, behind = _split_subject(said)
    value = parts.value
    if asks_time(noun) and (behind or noun.casefold() == "time") and not _dangles(behind):
        value = place("when", value)
    elif asks_place(noun) and behind and not _dangles(behind):
        value = place("where", value)
    return " ".join(filter(None, [flip(inner), _be_for(inner, parts["be"].casefold()), behind, value]))


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
    value = parts.value if re.fullmatch(_DANGLING, rest) else _value_for(parts)
    said = {"did": past(verb), "does": third_person(verb), "do": verb}.get(aux) or f"{aux} {verb}"
    other = "me" if rest.casefold() == "you" else flip(rest)
    order = [value, other] if _object_first(parts, verb, rest) else [other, value]
    return " ".join(filter(None, [flip(subject), said, *order]))


def _occupation(subject: str, aux: str, value: str) -> str | None:
    """What does my sister do → Your sister is a nurse."""
    if aux not in {"do", "does"} or not re.match(r"(?:an?|the)\b", value, re.IGNORECASE):
        return None
    return f"{flip(subject)} {'is' if aux == 'does' else 'are'} {value}"


def _value_for(parts: _Parts) -> str:
    asked, noun = parts["wh"].casefold(), parts["n"]
    if noun and asked.startswith("how m"):
        return _with_noun(parts.value, noun)
    return place("when" if asks_time(noun) else asked, parts.value)


def _object_first(parts: _Parts, verb: str, rest: str) -> bool:
    """Whether the value follows the verb at once ("drink tea in the morning") or comes last ("live in Rome")."""
    adverbial = parts["wh"].casefold() in {"where", "when", "how"} or asks_time(parts["n"])
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


def _prepositional(parts: _Parts) -> str | None:
    """In what year did my parents marry → Your parents married in …; in which city was I born → You were born in …."""
    said = f"{parts['prep'].casefold()} {parts.value}"
    inside = re.sub(rf"\s+{parts['prep']}$", "", parts["s"], flags=re.IGNORECASE)
    if (aux := parts["aux"].casefold()) in {"do", "does", "did"}:
        split = _split_verb(inside)
        if split is None:
            return None
        verb = {"did": past(split[1]), "does": third_person(split[1])}.get(aux, split[1])
        return " ".join(filter(None, [flip(split[0]), verb, flip(split[2]), said]))
    subject_, behind = _split_subject(inside)
    return f"{flip(subject_)} {_be_for(subject_, aux)} {behind} {said}" if behind else None


def _question_last(parts: _Parts) -> str | None:
    """The mother of Ada is who → The mother of Ada is …."""
    return f"{flip(parts['s'])} {parts['be'].casefold()} {parts.value}"


def _noun_doer(parts: _Parts) -> str | None:
    """What company built the tower → … built the tower."""
    verb = parts["rest"].split()[0].casefold()
    acts = verb.endswith("ed") or (is_known_form(verb) and not is_verb(verb))
    return f"{parts.value} {flip(parts['rest'])}" if acts else None


def _doer(parts: _Parts) -> str | None:
    """Who wrote Emma → Jane Austen wrote Emma."""
    return f"{parts.value} {flip(parts['rest'])}"


def _embedded_do(parts: _Parts) -> str | None:
    """(Tell me) where I live → You live in …."""
    subject, verb = parts["s"], parts["v"]
    if not is_verb(verb.casefold().removesuffix("s")) and not is_verb(verb.casefold()):
        return None
    return f"{flip(subject)} {verb} {place(parts['wh'].casefold(), parts.value)}"


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
    (_rule(rf"what\s+\w+\s+(?P<rest>(?!{_BE}|do\b|does\b|did\b)\w+\s.+)"), _noun_doer),
    (
        _rule(
            rf"(?P<prep>in|on|at|for|with|to|from)\s+(?:what|which)\s+\w+(?:\s\w+)?\s+"
            rf"(?P<aux>do|does|did|{_BE})\s+(?P<s>.+)"
        ),
        _prepositional,
    ),
    (_rule(rf"(?P<s>.+)\s+(?P<be>{_BE})\s+(?:what|who|whom|which|where|when)"), _question_last),
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
        _rule(
            r"(?P<s>(?:(?:my|our|your|his|her|their|the)\s+)\S+(?:\s+\S+){0,6}|"
            r"(?!what|who|which|when|where|how)\w+(?:\s\w+)? of\s+.{1,60})"
        ),
        _noun_phrase,
    ),
)
