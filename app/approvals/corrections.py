"""Finds in the person's next message what the model should have said, and builds the answer to learn from it.

Pure, no model. Four steps: peel off what says "wrong"; refuse what holds no fact (thanks, questions, requests, moods);
find the fact (a value, or a whole statement); build one full sentence in the model's words. Whatever does not fit is
not a correction: a card that is missing costs less than a card that is nonsense.

Example: prompt "What is my dog's name?", message "No, it's Biscuit." → "Your dog's name is Biscuit."
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.approvals import phrases
from app.approvals.person import flip, sentence
from app.approvals.questions import is_question, restate, subject_of
from app.approvals.verbs import is_known_form
from app.approvals.weaving import complement, replace_in, weave
from app.approvals.words import content_words, occurs, sentences, tidy

_LONGEST_MESSAGE = 1000
_LONGEST_VALUE = 200
_BARE_WORDS = 6


@dataclass(frozen=True, slots=True)
class Correction:
    """A fact that the person stated against the model's answer."""

    answer: str
    """What the model should have said: one full sentence in its own words."""
    fact: str
    """The person's words that carry it: "Biscuit"."""
    told: bool
    """Whether the model had not known, rather than said something wrong."""


@dataclass(frozen=True, slots=True)
class _Exchange:
    prompt: str
    answer: str


@dataclass(frozen=True, slots=True)
class _Said:
    """A message without its leads: the clause that should hold the fact."""

    clause: str
    wrong: str
    """What was named as wrong: "not Rex"."""
    marked: bool
    """Whether the message began by saying that something is wrong."""
    meant: bool
    """Whether it began with "I meant"."""


def find_correction(prompt: str, answer: str, message: str) -> Correction | None:
    """Return what the message corrects in the answer, or None if it corrects nothing that can be learned."""
    if not message.strip() or len(message) > _LONGEST_MESSAGE:
        return None
    exchange = _Exchange(tidy(prompt), tidy(answer))
    found = _in_english(exchange, tidy(message)) or _in_other_language(exchange, tidy(message))
    if found is None or occurs(found.answer.rstrip("."), exchange.answer):
        return None
    return found


def _in_english(exchange: _Exchange, message: str) -> Correction | None:
    said = _listen(message, exchange)
    if said is None or not (said.marked or said.wrong or _corrects_unmarked(said, exchange)):
        return None
    found = _from_pronoun(said, exchange) or _from_statement(said, exchange) or _from_bare(said, exchange)
    unasked = not (said.marked or said.wrong)
    return Correction(found.answer, found.fact, told=unasked and _is_unsure(exchange)) if found else None


def _is_unsure(exchange: _Exchange) -> bool:
    return bool(phrases.UNSURE.search(exchange.answer))


def disagrees(message: str) -> bool:
    """Whether a message says that the answer is wrong, with or without saying what is right."""
    rest, marked, _ = _peel(tidy(message))
    return marked and not _fine(rest)


def thanks(message: str) -> bool:
    """Whether a message begins by being content with the answer."""
    return bool(phrases.AGREES.match(tidy(message))) and not disagrees(message)


# --- listening ------------------------------------------------------------------------------------------------------


def _peel(text: str) -> tuple[str, bool, bool]:
    """Take the leads off: return the rest, whether one said "wrong", and whether one said "I meant"."""
    marked = meant = False
    while True:
        if match := phrases.LEAD.match(text):
            after = text[match.end() :]
            if not _ends_lead(match[0], after):
                return text, marked, meant
            marked = True
        elif match := phrases.MEANT.match(text):
            marked = meant = True
        elif not (match := phrases.FILLER.match(text)):
            return text, marked, meant
        text = re.sub(r"^[\s,;:.!…—-]+", "", text[match.end() :])


def _ends_lead(lead: str, after: str) -> bool:
    if not after.strip() or re.match(r"\s*[,;:.!…—]|\s+-", after):
        return True
    return not phrases.NEEDS_MARK.fullmatch(lead) or bool(phrases.GOES_ON.match(after.lstrip()))


def _fine(rest: str) -> bool:
    return any(pattern.match(rest) for pattern in (phrases.AGREES, phrases.DECLINES))


def _holds_no_fact(clause: str, exchange: _Exchange) -> bool:
    if not clause or clause.endswith("?") or _fine(clause) or phrases.REQUEST.match(clause):
        return True
    feeling = phrases.FEELS.match(clause)
    return feeling is not None and not content_words(feeling[0]) & content_words(exchange.prompt)


def _listen(message: str, exchange: _Exchange) -> _Said | None:
    rest, marked, meant = _peel(message)
    parts = sentences(rest)
    if not parts:
        return None
    text = parts[0]
    if len(parts) > 1 and _NOT_FIRST.match(text) and _SUBJECT_BE.match(parts[1]):
        text = f"{text.rstrip('.!')}, {parts[1]}"
    if _holds_no_fact(text, exchange):
        return None
    clause, wrong = _without_wrong(text.rstrip(".! "), exchange, marked=marked)
    clause = phrases.CUT.sub("", clause).strip(" ,;:.!")
    marked = marked or bool(re.match(r"(?:it|that|this|he|she|they) should (?:be|have been)\b", clause, re.IGNORECASE))
    return _Said(clause, wrong, marked, meant) if clause and not _holds_no_fact(clause, exchange) else None


_SUBJECTS = (
    r"it|that|this|he|she|they|i|we|mine|(?:his|her|its|their|the|my|our|your) (?:(?:correct|right|real|actual|"
    r"true|full|first) )?"
    r"(?:name|answer|result|number|value|word|date|year|solution|spelling|title)"
)
_BES = r"is|are|am|was|were|should be|should have been|must be|has to be|would be|will be|goes by"
_SUBJECT_BE = re.compile(
    rf"(?P<s>(?:{_SUBJECTS})(?:'s|'re|'m|\s+(?:{_BES}))|(?:its|hes|shes|thats)(?= )|(?:should be|should have been|"
    rf"is|called|named))"
    r"(?:\s+(?:actually|really|in fact|supposed to be|definitely|just|still|of course|now|indeed))*"
    r"(?:\s+(?P<p>called|named|spelled|spelt|pronounced|written))?\s+",
    re.IGNORECASE,
)
_SHORT_SUBJECT = re.compile(
    r"(?P<s>(?:the|my|our|your|his|her|its|their)\s+\S+(?:\s+\S+)?)\s+(?:is|are|was|were)\s+(?P<x>.+)", re.IGNORECASE
)
_NO_VALUE = re.compile(
    r"(?:it|that|this|these|those|he|she|they|you|i|we|there|wait)\b|.*\b(?:is|are|was|were|isn't|aren't)\b",
    re.IGNORECASE,
)
_NOT_FIRST = re.compile(
    rf"(?:(?:{_SUBJECTS})(?:'s|\s+(?:is|was|are))\s+not|(?:it|that|he|she) isn't|not)\s+", re.IGNORECASE
)
_WRONG_FIRST = re.compile(
    _NOT_FIRST.pattern
    + r"(?P<wrong>[^,;]+?)(?:\s*[,;]\s*(?:but\s+)?(?:rather\s+)?|\s+but\s+(?:rather\s+)?)(?P<right>.+)",
    re.IGNORECASE,
)
_WRONG_LAST = re.compile(
    r"(?P<right>.+?)(?:\s*,\s*(?:and\s+)?not|\s+and\s+not|\s+not|,?\s+instead of|,?\s+rather than)\s+(?P<wrong>.+)",
    re.IGNORECASE,
)


def _without_wrong(text: str, exchange: _Exchange, *, marked: bool) -> tuple[str, str]:
    """Split "it's X, not Y" or "not Y but X" into the clause with X, and Y; Y must have been said."""
    for pattern in (_WRONG_FIRST, _WRONG_LAST):
        if match := pattern.fullmatch(text):
            wrong = match["wrong"].strip(" \"'.!")
            if occurs(wrong, exchange.answer) or (marked and pattern is _WRONG_FIRST):
                return match["right"], wrong if occurs(wrong, exchange.answer) else ""
    return text, ""


def _corrects_unmarked(said: _Said, exchange: _Exchange) -> bool:
    """Whether a message that does not say "wrong" still states what the answer should have been."""
    subject = subject_of(exchange.prompt)
    if subject and re.match(rf"{re.escape(subject)}(?:'s|\s+(?:is|are|was|were))\b", flip(said.clause), re.IGNORECASE):
        return True
    if re.match(r"(?:his|her|its|their) name (?:is|was)\b", said.clause, re.IGNORECASE):
        return bool(re.search(r"\bname\b|\bcalled\b", exchange.prompt, re.IGNORECASE))
    return _is_unsure(exchange) and is_question(exchange.prompt) and bool(_SUBJECT_BE.match(said.clause))


# --- finding the fact and building the answer -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Found:
    answer: str
    fact: str


def _from_pronoun(said: _Said, exchange: _Exchange) -> _Found | None:
    """A value after a pronoun: "it's X", "he is called X", "the answer is X"."""
    match = _SUBJECT_BE.match(said.clause)
    if match is None:
        return None
    value = _value(said.clause[match.end() :])
    if value is None:
        return None
    return _Found(_build(value, said.wrong, exchange) or _as_clause(said.clause, exchange), value)


def _from_statement(said: _Said, exchange: _Exchange) -> _Found | None:
    """A whole statement about what was asked: "X is the capital of Y", "he lives in X"."""
    words = said.clause.split()
    if len(words) < 3 or _SUBJECT_BE.match(said.clause):  # noqa: PLR2004 - subject, verb and something said
        return None
    if not any(is_known_form(word.casefold().strip(",.!")) for word in words):
        return None
    about = content_words(exchange.prompt)
    own = re.match(r"(?:i|we|he|she|they|it)\b", said.clause, re.IGNORECASE) and is_question(exchange.prompt)
    fresh = content_words(said.clause) - about
    if not fresh or not (own or content_words(said.clause) & about):
        return None
    if fresh <= content_words(exchange.answer) and not said.wrong:
        return None
    return _restated(said, exchange) or _Found(_as_clause(said.clause, exchange), said.clause)


def _restated(said: _Said, exchange: _Exchange) -> _Found | None:
    """Say in full, as the question does, what the person said in short: "the capital is X"."""
    match = _SHORT_SUBJECT.fullmatch(said.clause)
    if match is None or not content_words(match["s"]) <= content_words(exchange.prompt):
        return None
    value = _value(match["x"])
    built = restate(exchange.prompt, value) if value else None
    return _Found(built, value) if built and value else None


def _from_bare(said: _Said, exchange: _Exchange) -> _Found | None:
    """A value alone after an explicit lead: "no, X"."""
    named = bool(re.match(r"[\"']?[A-Z0-9]", said.clause))
    if not (said.marked or said.wrong) or len(said.clause.split()) > _BARE_WORDS or _NO_VALUE.match(said.clause):
        return None
    if not named and (said.meant or not is_question(exchange.prompt)) and not said.wrong:
        return None
    value = _value(said.clause)
    if value is None:
        return None
    built = _build(value, said.wrong, exchange)
    if built is None and is_question(exchange.prompt):
        built = sentence(f"it is {value}")
    return _Found(built, value) if built else None


def _value(text: str) -> str | None:
    """Return the value in the model's words, or None if it says nothing: "too long", "what I asked"."""
    value = text.strip(" ,;:.!\"'")
    judged = phrases.OPINION.match(value) and not re.search(r"\d|(?<!^)\b[A-Z]\w", value)
    if not value or judged or len(value) > _LONGEST_VALUE or "?" in value:
        return None
    return flip(value)


def _build(value: str, wrong: str, exchange: _Exchange) -> str | None:
    return (
        restate(exchange.prompt, value)
        or (replace_in(exchange.answer, wrong, value) if wrong else None)
        or weave(exchange.prompt, exchange.answer, value)
        or (complement(exchange.prompt, exchange.answer, value) if is_question(exchange.prompt) else None)
    )


def _as_clause(clause: str, exchange: _Exchange) -> str:
    """Return the person's own clause in the model's words, a leading pronoun replaced by what it stands for."""
    subject = subject_of(exchange.prompt)
    pronoun = re.match(r"(?:he|she|it|they)(?='|\s)", clause, re.IGNORECASE)
    if pronoun and subject and not subject.endswith(("name", "age")):
        return sentence(subject + flip(clause[pronoun.end() :]))
    return sentence(flip(clause))


def _in_other_language(exchange: _Exchange, message: str) -> Correction | None:
    """The same in a few other languages: the clause is kept as it was said."""
    lead = phrases.OTHER_LEADS.match(message)
    rest = re.sub(r"^[\s,;:.!]+", "", message[lead.end() :]) if lead else ""
    clause = (sentences(rest) or [""])[0].rstrip(".! ")
    match = phrases.OTHER_FACTS.fullmatch(clause)
    if match is None or message.endswith("?"):
        return None
    fact = match["x"].strip(" \"'")
    return Correction(weave(exchange.prompt, exchange.answer, fact) or sentence(clause), fact, told=False)
