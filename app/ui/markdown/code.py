"""Colours for source code, as HTML. No Qt. An unknown language stays plain; none is guessed."""

from __future__ import annotations

import functools
import html
from dataclasses import dataclass

MAX_CHARS = 60_000
"""Longer code stays plain: colouring it would hold up the window."""


@dataclass(frozen=True, slots=True)
class CodeColors:
    """What code is drawn with."""

    keyword: str
    string: str
    number: str
    comment: str
    name: str


LIGHT_CODE = CodeColors(keyword="#7a3e9d", string="#2f6f3e", number="#9a5a12", comment="#736e64", name="#1f5f8b")
DARK_CODE = CodeColors(keyword="#c9a2e0", string="#9ccf9f", number="#e0b07c", comment="#99938a", name="#8fc1e3")


@functools.lru_cache(maxsize=256)
def colored(source: str, language: str, colors: CodeColors) -> str | None:
    """Return the code as coloured HTML without a surrounding tag, or None where it should stay plain."""
    if not language or len(source) > MAX_CHARS:
        return None
    # Imported here since most first windows show no code.
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415
    from pygments.util import ClassNotFound  # noqa: PLC0415

    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    return "".join(_span(str(kind), text, colors) for kind, text in lexer.get_tokens(source))


def _span(kind: str, text: str, colors: CodeColors) -> str:
    escaped = html.escape(text, quote=False)
    color = _color(kind, colors)
    return f'<span style="color: {color}">{escaped}</span>' if color else escaped


def _color(kind: str, colors: CodeColors) -> str:
    name = kind.removeprefix("Token.")
    table = (
        ("Comment", colors.comment),
        ("Keyword", colors.keyword),
        ("Operator.Word", colors.keyword),
        ("Literal.String", colors.string),
        ("Literal.Number", colors.number),
        ("Name.Function", colors.name),
        ("Name.Class", colors.name),
        ("Name.Decorator", colors.name),
        ("Name.Tag", colors.name),
        ("Name.Builtin", colors.name),
        ("Name.Attribute", colors.name),
        ("Generic.Deleted", colors.number),
        ("Generic.Inserted", colors.string),
    )
    return next((color for prefix, color in table if name.startswith(prefix)), "")
