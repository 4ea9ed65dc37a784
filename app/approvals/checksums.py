"""Checksums of numbers that identify a card, an account or a person.

Each function takes the number as written, separators included, and says whether its checksum holds.
"""

from __future__ import annotations

import re

_CARD_LENGTHS = range(13, 20)
_CARD_STARTS = tuple("23456")
"""First digits of the card networks; other numbers pass Luhn by chance one time in ten."""


def _digits(text: str) -> list[int]:
    return [int(char) for char in text if char.isdigit()]


def luhn_holds(text: str) -> bool:
    """Whether this is a payment card number (ISO/IEC 7812)."""
    digits = _digits(text)
    if len(digits) not in _CARD_LENGTHS or len(set(digits)) == 1 or not str(digits[0]).startswith(_CARD_STARTS):
        return False
    doubled = sum(sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return (doubled + sum(digits[-1::-2])) % 10 == 0


def iban_holds(text: str) -> bool:
    """Whether this is an international bank account number (ISO 13616): 97 leaves 1."""
    code = re.sub(r"\s", "", text).upper()
    if not 15 <= len(code) <= 34:  # noqa: PLR2004 - the standard's lengths
        return False
    return int("".join(str(int(char, 36)) for char in code[4:] + code[:4])) % 97 == 1


def ssn_holds(text: str) -> bool:
    """Whether a United States social security number could have been issued."""
    area, group, serial = text.split("-")
    return area not in {"000", "666"} and area < "900" and group != "00" and serial != "0000"


_ODD = dict(zip("0123456789", (1, 0, 5, 7, 9, 13, 15, 17, 19, 21), strict=True)) | dict(
    zip(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23),
        strict=True,
    )
)


def fiscal_code_holds(text: str) -> bool:
    """Whether the last letter of an Italian fiscal code is right."""
    code = text.upper()
    odd = sum(_ODD[char] for char in code[0:15:2])
    even = sum(int(char) if char.isdigit() else ord(char) - ord("A") for char in code[1:15:2])
    return chr(ord("A") + (odd + even) % 26) == code[15]


def dni_holds(text: str) -> bool:
    """Whether the letter of a Spanish DNI or NIE is right: 23 leaves its index."""
    code = text.upper().replace("-", "")
    number = code[:-1].translate(str.maketrans("XYZ", "012"))
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == code[-1]


def cpf_holds(text: str) -> bool:
    """Whether both check digits of a Brazilian CPF are right."""
    digits = _digits(text)
    for length in (9, 10):
        total = sum(digit * weight for digit, weight in zip(digits, range(length + 1, 1, -1), strict=False))
        if total * 10 % 11 % 10 != digits[length]:
            return False
    return len(set(digits)) > 1


def nir_holds(text: str) -> bool:
    """Whether the key of a French social security number is right: 97 minus the number's remainder."""
    code = re.sub(r"\s", "", text)
    return 97 - int(code[:13]) % 97 == int(code[13:])
