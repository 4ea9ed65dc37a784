"""Where one answer divides into blocks, while it is still coming. No Qt.

An answer becomes a row of blocks: code fences on their own, everything else in runs of text. A block is *committed*
once a later, complete line has begun another block; from then on nothing can change it, so its widget is never touched
again. What remains is the *pending* tail, parsed anew as it grows. Because a run ends at the first boundary past
``RUN_CHARS``, the tail stays short, and cutting a growing text gives the same blocks as cutting the finished one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

RUN_CHARS = 1500
"""A run of text ends at the first block boundary past this many characters."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*$")
_PARTIAL_LINK = re.compile(r"!?\[([^\[\]]*)(?:\](?:\([^()\s]*)?)?$")


@dataclass(frozen=True, slots=True)
class Block:
    """One piece of an answer."""

    source: str
    """Markdown of a run of text, or the content of a fence."""
    language: str | None = None
    """None for text; for code what the fence names, maybe ""."""
    closed: bool = True
    """False for a fence whose end has not come yet."""

    @property
    def is_code(self) -> bool:
        """Whether this is a fence."""
        return self.language is not None


@functools.cache
def parser() -> MarkdownIt:
    """Return the parser: HTML off, dangerous links refused, bare addresses linked."""
    # Imported here since it takes longer than showing the first window may.
    from markdown_it import MarkdownIt  # noqa: PLC0415

    markdown = MarkdownIt("js-default", {"linkify": True, "breaks": True, "maxNesting": 40}).enable("linkify")
    if markdown.linkify is not None:
        # Without a scheme, "readme.md" would become a link to a server in Moldova.
        markdown.linkify.set({"fuzzy_link": False, "fuzzy_email": False, "fuzzy_ip": False})
    return markdown


@dataclass
class Segmenter:
    """Cuts a growing text. ``references`` holds the link definitions met so far, for all its blocks."""

    references: dict[str, Any] = field(default_factory=dict)
    _tail: str = ""
    _carry: str = ""
    _unseen: bool = False

    def feed(self, text: str) -> None:
        """Append text. Every kind of line end becomes a newline, and NUL, which no text means, is left out."""
        text = self._carry + text
        self._carry = "\r" if text.endswith("\r") else ""
        text = text[: len(text) - len(self._carry)].replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
        self._tail += text
        self._unseen = self._unseen or "\n" in text

    def commit(self) -> list[Block]:
        """Return the blocks that have become final since the last call, and forget their text."""
        if not self._unseen:
            return []
        self._unseen = False
        whole_lines = self._tail[: self._tail.rfind("\n") + 1]
        groups = list(_groups(whole_lines, self.references))
        if len(groups) < 2:
            return []
        start, _ = groups[-1]
        self._tail = "".join(_lines(whole_lines)[start:]) + self._tail[len(whole_lines) :]
        return [block for _, block in groups[:-1]]

    def pending(self) -> list[Block]:
        """Return the tail as blocks, with marks that are still open closed for the eye."""
        blocks = [block for _, block in _groups(self._tail, {})]
        if blocks and not blocks[-1].is_code:
            blocks[-1] = Block(close_marks(blocks[-1].source))
        return blocks

    def finish(self) -> list[Block]:
        """Return the rest as final blocks."""
        rest = [block for _, block in _groups(self._tail, self.references)]
        self._tail = ""
        return rest


def split(text: str) -> tuple[list[Block], dict[str, Any]]:
    """Return the blocks of a finished text, and its link definitions."""
    segmenter = Segmenter()
    segmenter.feed(text)
    return segmenter.finish(), segmenter.references


def close_marks(text: str) -> str:
    """Return text whose unfinished emphasis, code span or link at the end reads as if it were finished."""
    head, gap, last = text.rpartition("\n\n")
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", last, flags=re.DOTALL)
    if (open_code := re.search(r"(?<!\\)(`+)[^`]*$", outside)) is not None:
        content = outside[open_code.end(1) :]
        return text + open_code[1] if content.strip() else text[: len(text) - len(open_code[0])]
    if (link := _PARTIAL_LINK.search(last)) is not None and not last.endswith("]"):
        last = last[: link.start()] + link[1]
        outside = re.sub(r"`[^`]*`", "", last)
    for mark in ("**", "~~"):
        if outside.count(mark) % 2:
            bare = last.rstrip()
            last = bare[: -len(mark)] if bare.endswith(mark) else bare + mark
    return head + gap + last


def _lines(text: str) -> list[str]:
    # The parser counts "\n" alone as the end of a line; str.splitlines would find more.
    return re.findall(r"[^\n]*\n|[^\n]+$", text)


def _groups(text: str, references: dict[str, Any]) -> Iterator[tuple[int, Block]]:
    """Yield (first line, block) for each block of ``text``; adds link definitions to ``references``."""
    lines = _lines(text)
    start, size, run = 0, 0, False
    for token in _tops(text, references):
        first, last = token.map or (0, 0)
        if token.type == "fence":
            if run:
                yield start, Block("".join(lines[start:first]).strip("\n"))
            yield first, _fence(token, lines[first:last])
            run = False
            continue
        if run and size > RUN_CHARS:
            yield start, Block("".join(lines[start:first]).strip("\n"))
            run = False
        if not run:
            start, size, run = first, 0, True
        size += sum(map(len, lines[first:last]))
    if run:
        yield start, Block("".join(lines[start:]).strip("\n"))


def _tops(text: str, references: dict[str, Any]) -> list[Token]:
    """Return the first token of each top-level block. Inline text is not parsed."""
    markdown = parser()
    tokens: list[Token] = []
    markdown.block.parse(text, markdown, {"references": references}, tokens)
    return [token for token in tokens if token.level == 0 and token.nesting >= 0 and token.map is not None]


def _fence(token: Token, lines: list[str]) -> Block:
    match = _FENCE.match(lines[-1].rstrip("\n")) if len(lines) > 1 else None
    closed = match is not None and match[1].startswith(token.markup)
    words = token.info.strip().split()
    return Block(token.content, words[0] if words else "", closed)
