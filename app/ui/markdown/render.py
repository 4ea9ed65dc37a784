"""Markdown to the part of HTML that Qt's text documents understand. No Qt, and nothing here can name a resource.

Only tags written in this file ever reach the document; everything else is escaped. Images become their description.
Links keep their address only if it is http, https or mailto.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from app.ui.markdown.blocks import parser

if TYPE_CHECKING:
    from markdown_it.token import Token

SAFE_SCHEMES = frozenset({"http", "https", "mailto"})
Colors = Mapping[str, str]

_TASK = re.compile(r"\[([ xX])\] ")
_SIMPLE = {
    "strong_open": "<b>",
    "strong_close": "</b>",
    "em_open": "<i>",
    "em_close": "</i>",
    "s_open": "<s>",
    "s_close": "</s>",
    "softbreak": "<br>",
    "hardbreak": "<br>",
    "bullet_list_open": "<ul>",
    "bullet_list_close": "</ul>",
    "ordered_list_close": "</ol>",
    "list_item_open": "<li>",
    "list_item_close": "</li>",
    "thead_open": "",
    "thead_close": "",
    "tbody_open": "",
    "tbody_close": "",
    "tr_open": "<tr>",
    "tr_close": "</tr>",
    "td_close": "</td>",
    "th_close": "</th>",
    "table_close": "</table>",
    "blockquote_close": "</td></tr></table>",
    "hr": "<hr>",
}


def safe_link(address: str) -> str | None:
    """Return the address if a person may be asked to open it, else None."""
    try:
        scheme = urlsplit(address.strip()).scheme.lower()
    except ValueError:
        return None
    return address.strip() if scheme in SAFE_SCHEMES else None


def to_html(source: str, colors: Colors, *, mono: str, references: dict[str, Any] | None = None) -> str:
    """Return one run of Markdown as HTML.

    Args:
        source: Markdown.
        colors: Token name to colour.
        mono: Family of the monospace font.
        references: Link definitions of the whole answer.
    """
    tokens = parser().parse(source, {"references": dict(references or {})})
    return _Writer(colors, mono).blocks(tokens)


class _Writer:
    def __init__(self, colors: Colors, mono: str) -> None:
        self._colors = colors
        self._mono = html.escape(mono)
        self._handlers: dict[str, Callable[[Token], str]] = {
            "paragraph_open": lambda token: "" if token.hidden else "<p>",
            "paragraph_close": lambda token: "" if token.hidden else "</p>",
            "heading_open": lambda token: f"<{token.tag}>",
            "heading_close": lambda token: f"</{token.tag}>",
            "ordered_list_open": self._ordered,
            "table_open": self._table,
            "th_open": self._cell,
            "td_open": self._cell,
            "blockquote_open": self._quote,
            "fence": self._code_block,
            "code_block": self._code_block,
            "text": lambda token: _escape(token.content),
            "code_inline": self._code,
            "link_open": self._link,
            "link_close": lambda _: "</a>",
            "image": lambda token: _escape(token.content),
        }

    def blocks(self, tokens: Sequence[Token]) -> str:
        parts = []
        for index, token in enumerate(tokens):
            if token.type == "inline":
                in_item = index >= 2 and tokens[index - 2].type == "list_item_open"
                parts.append(self._inline(token.children or [], task=in_item))
            else:
                parts.append(self._one(token))
        return "".join(parts)

    def _inline(self, tokens: Sequence[Token], *, task: bool) -> str:
        text = "".join(map(self._one, tokens))
        if task and (match := _TASK.match(text)):
            return ("☐ " if match[1] == " " else "☑ ") + text[match.end() :]
        return text

    def _one(self, token: Token) -> str:
        handler = self._handlers.get(token.type)
        if handler is not None:
            return handler(token)
        # An unknown token shows its text and none of its markup.
        return _SIMPLE.get(token.type, _escape(token.content))

    def _ordered(self, token: Token) -> str:
        start = token.attrGet("start")
        return f'<ol start="{int(start)}">' if start is not None else "<ol>"

    def _table(self, _: Token) -> str:
        return (
            f'<table border="0" cellspacing="0" cellpadding="6" style="border-collapse: collapse; '
            f'border-color: {self._colors["line"]}; margin-top: 8px; margin-bottom: 8px">'
        )

    def _cell(self, token: Token) -> str:
        align = re.sub(r"^text-align:", "", str(token.attrGet("style") or ""))
        attribute = f' align="{align}"' if align in {"left", "center", "right"} else ""
        back = f"; background-color: {self._colors['code']}" if token.tag == "th" else ""
        return f'<{token.tag}{attribute} style="border: 1px solid {self._colors["line"]}{back}">'

    def _quote(self, _: Token) -> str:
        return (
            '<table cellspacing="0" cellpadding="0" style="margin-top: 2px; margin-bottom: 8px"><tr>'
            f'<td style="border-left: 3px solid {self._colors["line"]}; padding-left: 10px; '
            f'color: {self._colors["muted"]}">'
        )

    def _code(self, token: Token) -> str:
        return (
            f"<span style=\"font-family: '{self._mono}'; background-color: {self._colors['hover']}\">"
            f"{_escape(token.content)}</span>"
        )

    def _code_block(self, token: Token) -> str:
        text = _escape(token.content.rstrip("\n"))
        return f"<pre style=\"font-family: '{self._mono}'; background-color: {self._colors['code']}\">{text}</pre>"

    def _link(self, token: Token) -> str:
        address = safe_link(str(token.attrGet("href") or ""))
        if address is None:
            return "<a>"
        return f'<a href="{html.escape(address)}" style="color: {self._colors["accent"]}">'


def _escape(text: str) -> str:
    return html.escape(text, quote=False)
