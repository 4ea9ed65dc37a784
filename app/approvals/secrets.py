"""Finds what must never be learned: passwords, keys, tokens, card and account numbers, national ids.

Weights cannot keep a secret, so text that holds one never becomes a card. Three kinds of evidence: shapes of known
token formats, numbers whose checksum holds, and long strings too random to be words. It prefers to see a secret too
many: the price is a card that does not appear. It does not find a secret that looks like an ordinary sentence.

Findings name the kind only, never the secret itself.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from app.approvals.checksums import (
    cpf_holds,
    dni_holds,
    fiscal_code_holds,
    iban_holds,
    luhn_holds,
    nir_holds,
    ssn_holds,
)
from app.approvals.words import word_set


@dataclass(frozen=True, slots=True)
class _Shape:
    kind: str
    pattern: re.Pattern[str]
    holds: Callable[[str], bool] | None = None
    """A further check of the first group, or of the whole match if there is none."""


def _shape(kind: str, pattern: str, holds: Callable[[str], bool] | None = None, flags: int = 0) -> _Shape:
    return _Shape(kind, re.compile(pattern, flags), holds)


_NO_PASSWORD = word_set(
    "a an the not no too very always never only also still just yet here there that this what which when where why how "
    "important wrong incorrect correct right weak strong long short good bad secure insecure safe unsafe strange "
    "required needed missing empty stored hashed encrypted salted expired used set sent asked case something anything "
    "protected known unknown hidden visible invalid valid reset changed shared stolen lost gone blank optional "
    "usually really about for in on by to from and or best better enough at your my his her our their it"
)


def _could_be_password(value: str) -> bool:
    """Whether what follows "password is" is a password, and not the rest of a sentence about passwords."""
    word = value.strip("\"'`“”.,;:!?()")
    return len(word) > 2 and word.casefold() not in _NO_PASSWORD  # noqa: PLR2004


def _not_a_placeholder(value: str) -> bool:
    return not re.fullmatch(r"(?:x+|\*+|\.+|<.*>|\$?\{.*\}|your[-_ ].*)", value, re.IGNORECASE)


_NAMES_OF_IT = r"pass[ -]?(?:word|phrase|code)s?|passwd|pwd|passwort|kennwort|mot de passe|contraseña|clave|senha"

_SHAPES = (
    _shape("private key", r"-----BEGIN [A-Z ]*PRIVATE KEY( BLOCK)?-----"),
    _shape("private key", r"\bAGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    _shape("signed token", r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{10,}"),
    _shape("cloud key", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    _shape("cloud key", r"\bAIza[\w-]{35}"),
    _shape("code host token", r"\bgh[pousr]_[A-Za-z0-9]{36,}|\bgithub_pat_\w{22,}|\bglpat-[\w-]{20,}"),
    _shape("chat token", r"\bxox[abeoprs]-[\w-]{10,}|\bxapp-\d-[\w-]{10,}|hooks\.slack\.com/services/T\w+/B\w+/\w+"),
    _shape("model provider key", r"\bsk-(?:ant-|proj-|svcacct-|or-v1-)?[\w-]{20,}"),
    _shape("model provider key", r"\bhf_[A-Za-z0-9]{30,}|\bgsk_[A-Za-z0-9]{40,}"),
    _shape("payment key", r"\b[rsp]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    _shape("package registry token", r"\bnpm_[A-Za-z0-9]{36}|\bpypi-[\w-]{40,}"),
    _shape(
        "password in an address",
        r"\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@]{1,99}:([^\s/@]{1,99})@",
        _not_a_placeholder,
        re.IGNORECASE,
    ),
    _shape(
        "password",
        r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}\s*[:|;]\s*(\S{6,})",
        lambda v: any(map(str.isdigit, v)),
    ),
    _shape(
        "password",
        rf"\b(?:{_NAMES_OF_IT})\b[^.!?\n]{{0,40}}?(?:\b(?:is|was|are|to|ist|est|es|è|é)\b|[:=])\s*(\S+)",
        _could_be_password,
        re.IGNORECASE,
    ),
    _shape(
        "key",
        r"\b(?:api|access|secret|auth|private|encryption|recovery|seed)[ _-]?(?:key|token|phrase|secret)\b"
        r"[\"']?\s*(?:is|=|:)[\s:]*[\"']?(\S{4,})",
        _could_be_password,
        re.IGNORECASE,
    ),
    _shape("key", r"\bbearer\s+([\w.~+/-]{16,}=*)", _not_a_placeholder, re.IGNORECASE),
    _shape("PIN", r"\b(?:PIN|pin (?:code|number))\b[^.!?\n\d]{0,30}?\b(\d{4,8})\b"),
    _shape("PIN", r"\b(?:my|his|her|our|the|card) pin (?:is|was)\s+(\d{4,8})\b", None, re.IGNORECASE),
    _shape("card code", r"\b(?:cvv2?|cvc2?|security code)\b[^.!?\n\d]{0,20}?\b(\d{3,4})\b", None, re.IGNORECASE),
    _shape("card number", r"(?<![\d.,])((?:\d[ -]?){12,18}\d)(?![\d.,]?\d)", luhn_holds),
    _shape(
        "account number", r"\b([A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?)\b", iban_holds, re.IGNORECASE
    ),
    _shape("national id", r"(?<![\d-])(\d{3}-\d{2}-\d{4})(?![\d-])", ssn_holds),
    _shape("national id", r"\b([A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z])\b", fiscal_code_holds, re.IGNORECASE),
    _shape("national id", r"\b([XYZ\d]\d{7}-?[A-Z])\b", dni_holds, re.IGNORECASE),
    _shape("national id", r"(?<!\d)(\d{3}\.\d{3}\.\d{3}-\d{2})(?!\d)", cpf_holds),
    _shape("national id", r"(?<!\d)([12] ?\d{2} ?\d{2} ?\d{2} ?\d{3} ?\d{3} ?\d{2})(?!\d)", nir_holds),
    _shape("national id", r"\b((?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z](?: ?\d{2}){3} ?[A-D])\b"),
)

_LONG_STRING = re.compile(r"[A-Za-z0-9+/_=-]{20,}")
_HEX = re.compile(r"[0-9a-fA-F-]+")
_HEX_LENGTH = 32
_HEX_ENTROPY = 3.0
_ENTROPY = 4.0
"""Bits per character. English words joined by hyphens stay below 3.9, random base64 of 20 characters lies near 4.1."""


def find_secrets(text: str) -> tuple[str, ...]:
    """Return the kinds of secrets in a text, each once, in a stable order; empty if there is none."""
    return tuple(dict.fromkeys(_kinds(text)))


def contains_secret(text: str) -> bool:
    """Whether a text holds anything that must never be learned."""
    return next(_kinds(text), None) is not None


def _kinds(text: str) -> Iterator[str]:
    for shape in _SHAPES:
        if any(_holds(shape, match) for match in shape.pattern.finditer(text)):
            yield shape.kind
    if any(_is_random(match[0]) for match in _LONG_STRING.finditer(text)):
        yield "random string"


def _holds(shape: _Shape, match: re.Match[str]) -> bool:
    value = match[1] if match.lastindex else match[0]
    return shape.holds is None or shape.holds(value)


def _is_random(value: str) -> bool:
    """Whether a long string is too random to be words, a path or a plain number."""
    if _HEX.fullmatch(value):
        letters = value.replace("-", "")
        mixed = any(map(str.isdigit, letters)) and any(map(str.isalpha, letters))
        return mixed and len(letters) >= _HEX_LENGTH and entropy(letters.lower()) > _HEX_ENTROPY
    kinds = (any(map(test, value)) for test in (str.isdigit, str.islower, str.isupper))
    return all(kinds) and entropy(value) >= _ENTROPY


def entropy(text: str) -> float:
    """Return the Shannon entropy of the characters, in bits per character."""
    counts = Counter(text)
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values())
