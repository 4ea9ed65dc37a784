"""Message text inside a template, marked so that it can never be mistaken for template text.

While a template runs, each character of a message is stood in for by a private character (planes 15 and 16 of
Unicode), one for one. Whatever the template does with it (concatenate, slice, strip, split, join), the private
characters say where the text came from; and since characters that people type are always replaced, nothing that
people type can claim to be template text. Positions are the same in both forms, so string methods look at the real
text and cut the marked one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Self

from app.errors import UserError

_FIRST_PLANE = range(0xF0000, 0xFFFFE)
_SECOND_PLANE = range(0x100000, 0x10FFFE)
MARKED = re.compile("[\U000f0000-\U000ffffd\U00100000-\U0010fffd]+")


class Marker:
    """Replaces characters by private ones and back; one for each rendering."""

    def __init__(self) -> None:
        self._private = iter((*_FIRST_PLANE, *_SECOND_PLANE))
        self._marks: dict[int, int] = {}
        self._reals: dict[int, int] = {}

    def mark(self, text: str) -> str:
        """Return ``text`` in private characters, same length. ``text`` is real: it holds nothing marked."""
        for char in set(map(ord, text)) - self._marks.keys():
            private = next(self._private, None)
            if private is None:
                raise UserError(
                    "render the conversation", hint="It uses more different characters than can be told apart."
                )
            self._marks[char] = private
            self._reals[private] = char
        return text.translate(self._marks)

    def reveal(self, text: str) -> str:
        """Return ``text`` with every marked character real again."""
        return text.translate(self._reals)

    def runs(self, text: str) -> Iterator[tuple[str, bool]]:
        """Yield maximal runs of ``text``, real, each with whether it came from a message."""
        end = 0
        for match in MARKED.finditer(text):
            if match.start() > end:
                yield text[end : match.start()], False
            yield self.reveal(match.group()), True
            end = match.end()
        if end < len(text):
            yield text[end:], False


class Content(str):  # noqa: SLOT000 - a str cannot have slots beside it
    """A string that holds message text: compares, searches and cuts by the real text, stays marked throughout."""

    marker: Marker
    real: str

    def __new__(cls, marked: str, marker: Marker) -> Self:
        """Wrap marked text."""
        self = super().__new__(cls, marked)
        self.marker = marker
        self.real = marker.reveal(marked)
        return self

    def _at(self, start: int, end: int) -> Content:
        return Content(str.__getitem__(self, slice(start, end)), self.marker)

    def _real_of(self, other: str) -> str:
        return self.marker.reveal(other)

    def __str__(self) -> str:  # filters call str() on what they get; it must stay marked and comparable
        return self

    def __repr__(self) -> str:
        return self.marker.mark(repr(self.real))

    def __hash__(self) -> int:
        return hash(self.real)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.real == self._real_of(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: str) -> bool:
        return self.real < self._real_of(other)

    def __gt__(self, other: str) -> bool:
        return self.real > self._real_of(other)

    def __contains__(self, part: object) -> bool:
        return isinstance(part, str) and self._real_of(part) in self.real

    def __iter__(self) -> Iterator[str]:
        return (self._at(i, i + 1) for i in range(len(self)))

    def __getitem__(self, key: object) -> str:
        return Content(str.__getitem__(self, key), self.marker)  # type: ignore[index]

    def __add__(self, other: str) -> str:
        return Content(str.__add__(self, other), self.marker)

    def __radd__(self, other: str) -> str:
        return Content(str.__add__(other, self), self.marker)

    def lstrip(self, chars: str | None = None, /) -> str:
        """Cut leading characters."""
        kept = self.real.lstrip(None if chars is None else self._real_of(chars))
        return self._at(len(self) - len(kept), len(self))

    def rstrip(self, chars: str | None = None, /) -> str:
        """Cut trailing characters."""
        return self._at(0, len(self.real.rstrip(None if chars is None else self._real_of(chars))))

    def strip(self, chars: str | None = None, /) -> str:
        """Cut characters at both ends."""
        return self.rstrip(chars).lstrip(chars)

    def startswith(self, prefix: str | tuple[str, ...], *range_: int) -> bool:  # type: ignore[override]
        """Tell whether the real text starts so."""
        return self.real.startswith(self._real_options(prefix), *range_)

    def endswith(self, suffix: str | tuple[str, ...], *range_: int) -> bool:  # type: ignore[override]
        """Tell whether the real text ends so."""
        return self.real.endswith(self._real_options(suffix), *range_)

    def _real_options(self, options: str | tuple[str, ...]) -> str | tuple[str, ...]:
        return self._real_of(options) if isinstance(options, str) else tuple(map(self._real_of, options))

    def find(self, part: str, *range_: int) -> int:  # type: ignore[override]
        """Return where ``part`` first is in the real text, or -1."""
        return self.real.find(self._real_of(part), *range_)

    def count(self, part: str, *range_: int) -> int:  # type: ignore[override]
        """Count ``part`` in the real text."""
        return self.real.count(self._real_of(part), *range_)

    def removeprefix(self, prefix: str, /) -> str:
        """Cut ``prefix`` if it is there."""
        return self._at(len(prefix), len(self)) if self.startswith(prefix) else self

    def removesuffix(self, suffix: str, /) -> str:
        """Cut ``suffix`` if it is there."""
        return self._at(0, len(self) - len(suffix)) if suffix and self.endswith(suffix) else self

    def split(self, sep: str | None = None, maxsplit: int = -1) -> list[str]:  # type: ignore[override]
        """Split as str does, by the real text."""
        sep = None if sep is None else self._real_of(sep)
        return self._pieces(self.real.split(sep, maxsplit), sep)

    def rsplit(self, sep: str | None = None, maxsplit: int = -1) -> list[str]:  # type: ignore[override]
        """Split from the right as str does, by the real text."""
        sep = None if sep is None else self._real_of(sep)
        return self._pieces(self.real.rsplit(sep, maxsplit), sep)

    def splitlines(self, keepends: bool = False) -> list[str]:
        """Split at line ends, by the real text."""
        return self._pieces(self.real.splitlines(keepends), None)

    def _pieces(self, pieces: list[str], sep: str | None) -> list[str]:
        """Cut the marked form where the real one was cut; without ``sep`` no piece can occur inside a gap."""
        found: list[str] = []
        end = 0
        for number, piece in enumerate(pieces):
            start = self.real.index(piece, end) if sep is None else end + len(sep) * (number > 0)
            end = start + len(piece)
            found.append(self._at(start, end))
        return found

    def replace(self, old: str, new: str, count: int = -1, /) -> str:  # type: ignore[override]
        """Replace as str does, by the real text; ``new`` keeps its own origin."""
        wanted = self._real_of(old)
        if not wanted:
            raise TypeError("replacing an empty text")
        starts = [match.start() for match in re.finditer(re.escape(wanted), self.real)]
        parts: list[str] = []
        end = 0
        for start in starts if count < 0 else starts[:count]:
            parts += [str.__getitem__(self, slice(end, start)), new]
            end = start + len(wanted)
        return Content("".join([*parts, str.__getitem__(self, slice(end, None))]), self.marker)

    def _by_run(self, change: Callable[[str], str]) -> str:
        runs = self.runs()
        return Content("".join(self.marker.mark(change(t)) if own else change(t) for t, own in runs), self.marker)

    def runs(self) -> Iterator[tuple[str, bool]]:
        """Yield real runs, each with whether it came from a message."""
        return self.marker.runs(str.__getitem__(self, slice(None)))

    def upper(self) -> str:
        """Change case."""
        return self._by_run(str.upper)

    def lower(self) -> str:
        """Change case."""
        return self._by_run(str.lower)

    def title(self) -> str:
        """Change case."""
        return self._by_run(str.title)

    def capitalize(self) -> str:
        """Change case."""
        return self._by_run(str.capitalize)
