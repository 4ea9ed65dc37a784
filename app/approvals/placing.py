"""Where a value goes in a statement, and with which preposition. Pure, English."""

from __future__ import annotations

import re

_HAS_PREPOSITION = re.compile(
    r"^(?:in|on|at|near|by|under|over|behind|beside|next to|from|to|inside|outside|between|before|after|around|since|"
    r"until|during|above|below|with|every|each|last|next|today|tomorrow|yesterday|tonight|here|there|home|upstairs|"
    r"downstairs|always|never|usually|daily|weekly|monthly|about|for)\b",
    re.IGNORECASE,
)
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_CLOCK = re.compile(r"\d{1,2}(?:[:.]\d\d)?(?:\s*(?:am|pm|a\.m\.|p\.m\.|o'clock))?$|noon$|midnight$", re.IGNORECASE)
_PERIOD = re.compile(rf"(?:the )?(?:\d{{3,4}}s?|(?:{_MONTHS})(?: \d{{4}})?|spring|summer|autumn|winter)", re.IGNORECASE)
_DAY = re.compile(rf"\b(?:{_MONTHS}|{_DAYS})\b|\d", re.IGNORECASE)
_TIMES = frozenset({"time", "day", "year", "date", "month"})
_PLACES = frozenset(
    {"city", "town", "village", "state", "country", "county", "province", "region", "continent", "place", "planet"}
    | {"constellation", "area", "district", "street", "room", "building"}
)


def asks_time(noun: str) -> bool:
    """Whether "what <noun>" asks when."""
    return noun.casefold() in _TIMES


def asks_place(noun: str) -> bool:
    """Whether "what <noun>" asks where."""
    return noun.casefold() in _PLACES


def place(asked: str, value: str) -> str:
    """Return the value with the preposition that its question calls for, unless it has one.

    Args:
        asked: "where", "when", or anything else for no preposition.
        value: What answers.
    """
    if _HAS_PREPOSITION.match(value):
        return value
    if asked == "where":
        return f"in {value}"
    return _moment(value) if asked == "when" else value


def _moment(value: str) -> str:
    if _CLOCK.match(value):
        return f"at {value}"
    if _PERIOD.fullmatch(value):
        return f"in {value}"
    return f"on {value}" if _DAY.search(value) else value
