"""Secrets are found; ordinary text is left alone. All keys and numbers here are made up; checksums are real."""

from __future__ import annotations

import time

import pytest

from app.approvals.secrets import contains_secret, find_secrets

JWT = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"

SECRETS = {
    "password is": ("password", "My password is hunter2"),
    "password colon": ("password", "user: ana, password: Trieste!"),
    "wifi password": ("password", "The wifi password is correct-horse"),
    "passphrase": ("password", "the passphrase for my disk is blue elephant"),
    "password in German": ("password", "Mein Passwort ist geheim42"),
    "password in Spanish": ("password", "la contraseña es perro99"),
    "e-mail with password": ("password", "ana@example.org:secret99"),
    "password in an address": ("password in an address", "postgres://ana:s3cr3t@db.example.org/home"),
    "private key": ("private key", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blb"),
    "plain private key": ("private key", "-----BEGIN PRIVATE KEY-----"),
    "signed token": ("signed token", f"Use {JWT}"),
    "AWS": ("cloud key", "AKIA" + "IOSFODNN7EXAMPLE"),
    "Google": ("cloud key", "AIza" + "SyA-1234567890abcdefghijklmnopqrstu"),
    "GitHub": ("code host token", "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"),
    "GitLab": ("code host token", "glpat-" + "abcDEF1234567890wxyz"),
    "Slack": ("chat token", "xoxb-" + "123456789012-abcdefABCDEF"),
    "OpenAI": ("model provider key", "sk-proj-" + "abcDEFghiJKLmnoPQRstu123"),
    "Anthropic": ("model provider key", "sk-ant-" + "api03-abcDEFghiJKLmnoPQRstu"),
    "Hugging Face": ("model provider key", "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"),
    "Stripe": ("payment key", "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"),
    "npm": ("package registry token", "npm_" + "a" * 18 + "B" * 18),
    "api key": ("key", "my api key is q8w7e6r5"),
    "bearer": ("key", "Authorization: Bearer abcdef0123456789abcdef"),
    "seed phrase": ("key", "my seed phrase is: witch collapse practice"),
    "PIN": ("PIN", "the PIN of my card is 4821"),
    "my pin": ("PIN", "my pin is 4821"),
    "card code": ("card code", "CVV 123"),
    "card": ("card number", "4111 1111 1111 1111"),
    "card without spaces": ("card number", "pay with 5500005555555559 please"),
    "American card": ("card number", "3782-822463-10005"),
    "IBAN": ("account number", "DE89 3704 0044 0532 0130 00"),
    "British IBAN": ("account number", "send it to GB82WEST12345698765432."),
    "SSN": ("national id", "SSN 536-22-8726"),
    "fiscal code": ("national id", "RSSMRA85T10A562S"),
    "DNI": ("national id", "12345678Z"),
    "NIE": ("national id", "X1234567L"),
    "CPF": ("national id", "529.982.247-25"),
    "NIR": ("national id", "2 69 05 49 588 157 80"),
    "NINO": ("national id", "AB 12 34 56 C"),
    "random": ("random string", "q7Gz0PvKx2RmW9sLtB4nYc81"),
    "hexadecimal": ("random string", "9f86d081884c7d659a2feaa0c55ad015"),
}


@pytest.mark.parametrize(("kind", "text"), SECRETS.values(), ids=SECRETS.keys())
def test_a_secret_is_found(kind: str, text: str):
    assert kind in find_secrets(text)
    assert kind in find_secrets(f"Please remember this for me. {text}\nThanks.")


HARMLESS = """
What is my dog's name?
Your dog's name is Biscuit.
What makes a good password?
Never tell anyone your password.
The password is wrong.
My password is not working
A password is important for your account
The password was reset yesterday
A passport is a document
The pin is on the map
I was born on 4 May 1985 and moved in 2010.
Call me at 040 123 4567
The tower is 330 metres high and cost 7,800,000 francs.
1234 5678 9012 3456
4111 1111 1111 1112
DE89 3704 0044 0532 0130 01
000-12-3456
12345678A
The ISBN is 978-3-16-148410-0
See https://example.org/a/very/long/path/to/some/document.html
internationalization-and-localization
Donaudampfschifffahrtsgesellschaft
aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
3.14159265358979323846264338327950288
Write an email to ana@example.org: thank her for the cake
The key to success is patience.
The access key is on the left of the keyboard
10000000000000000000000
""".strip().splitlines()


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_text_holds_no_secret(text: str):
    assert find_secrets(text) == ()


def test_findings_name_the_kind_only():
    assert not any("hunter2" in kind for kind in find_secrets("My password is hunter2"))


@pytest.mark.parametrize(
    "text", ["a" * 200_000, "a." * 100_000, "1 " * 100_000, "eyJ" * 60_000, "A1" * 100_000, "@" * 200_000]
)
def test_long_odd_text_is_judged_quickly(text: str):
    before = time.process_time()
    contains_secret(text)
    assert time.process_time() - before < 2
