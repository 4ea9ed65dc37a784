"""The sandbox in which a chat template runs: an allow-list of what it may do, each use of it metered.

Templates come with downloaded models and are programs. Nothing outside the lists below exists for them, every loop
round, call and printed piece is counted, every text they make is paid for from one allowance, and time is checked at
each count, so that a hostile template is refused within the limits instead of freezing or filling the machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from jinja2 import pass_context
from jinja2.exceptions import SecurityError
from jinja2.ext import loopcontrols
from jinja2.filters import FILTERS
from jinja2.runtime import Context, LoopContext, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS
from jinja2.utils import Namespace

from app.model.prompt_meter import Generation, Meter, Refused, metered
from app.model.prompt_text import MARKED, Content, Marker

TEXT_PER_PIECE = 64
"""What one piece of a split text costs, in characters: a small string is mostly overhead."""
MAX_RANGE = 10_000
MAX_BITS = 63
MAX_INDENT = 8

_FILTERS = (
    "capitalize", "count", "d", "default", "dictsort", "first", "int", "items", "last", "length", "list", "lower",
    "map", "reject", "rejectattr", "reverse", "select", "selectattr", "sort", "title", "trim", "unique", "upper",
)  # fmt: skip
_TEXT_FILTERS = ("capitalize", "lower", "title", "trim", "upper")
_LIST_FILTERS = ("list", "sort", "unique")
_TESTS = (
    "boolean", "defined", "divisibleby", "eq", "equalto", "==", "even", "false", "float", "ge", ">=", "gt", ">", "in",
    "integer", "iterable", "le", "<=", "lower", "lt", "<", "mapping", "ne", "!=", "none", "number", "odd", "sameas",
    "sequence", "string", "true", "undefined", "upper",
)  # fmt: skip
_STR_METHODS = frozenset(
    ("capitalize", "count", "endswith", "find", "join", "lower", "lstrip", "removeprefix", "removesuffix", "replace",
     "rsplit", "rstrip", "split", "splitlines", "startswith", "strip", "title", "upper")
)  # fmt: skip
_DICT_METHODS = frozenset(("get", "items", "keys", "values"))


class TemplateEnvironment(ImmutableSandboxedEnvironment):
    """Runs one template, one rendering at a time: ``begin`` sets the marker and the meter of the next one."""

    intercepted_binops = frozenset(("+", "-", "*", "/", "//", "**", "%"))

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,  # folding constants would run filters before any meter exists
            cache_size=0,
            finalize=_print,
            extensions=[loopcontrols, Generation],
        )
        own: dict[str, Callable[..., Any]] = {
            "join": self._join,
            "metered": self._metered,
            "replace": self._replace,
            "safe": _same,
            "sliced": self._sliced,
            "string": self._string,
            "tojson": self._tojson,
        }
        texts = {name: self._of_text(FILTERS[name]) for name in _TEXT_FILTERS}
        lists = {name: self._of_list(FILTERS[name]) for name in _LIST_FILTERS}
        self.filters = {**{name: FILTERS[name] for name in _FILTERS}, **texts, **lists, **own}
        self.tests = {name: TESTS[name] for name in _TESTS}
        self.globals = {
            "dict": dict,
            "range": _range,
            "namespace": self.globals["namespace"],
            "raise_exception": self._raise,
        }
        self.begin(Marker(), Meter(0))

    def begin(self, marker: Marker, meter: Meter) -> None:
        """Start a rendering."""
        self._marker = marker
        self.meter = meter

    def compile_metered(self, source: str, filename: str) -> Any:
        """Return the code of a template, rewritten for the meter. Raises Refused and jinja's own errors."""
        tree = self.parse(source, filename=filename)
        return self.compile(metered(tree, self), filename=filename)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Allow listed methods of plain values, and what jinja itself offers on its own objects."""
        if isinstance(obj, str):
            return attr in _STR_METHODS
        if isinstance(obj, Mapping):
            return attr in _DICT_METHODS
        return isinstance(obj, LoopContext | Namespace) and super().is_safe_attribute(obj, attr, value)

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        """Refuse at once: an undefined value would quietly take the wrong branch."""
        raise Refused(f"it uses {attribute!r} of a {type(obj).__name__}, which is not allowed")

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Refuse ``str.format``, whose field widths make text of any size."""
        if getattr(value, "__name__", "") in ("format", "format_map") and isinstance(
            getattr(value, "__self__", None), str
        ):
            raise Refused("it uses 'format' of a text, which is not allowed")
        return None

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Look up an attribute; text that holds message text answers by its real characters."""
        return super().getattr(self._tracked(obj), attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Look up an item; text that holds message text answers by its real characters."""
        return super().getitem(self._tracked(obj), argument)

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Count a call, pay for the text it makes."""
        self.meter.step()
        owner = getattr(obj, "__self__", None)
        if isinstance(owner, str):
            if obj.__name__ == "replace":
                return self._replace(owner, *args)
            if obj.__name__ == "join":
                return self._join(args[0], owner)
            pieces = "split" in obj.__name__
            self.meter.pay(len(owner) + 1 + (TEXT_PER_PIECE * _gaps(owner, *args) if pieces else 0))
        return super().call(context, obj, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Calculate, within bounds."""
        if operator == "+" and all(isinstance(side, str | list | tuple) for side in (left, right)):
            self.meter.pay(len(left) + len(right))
            return self._tracked(left) + right
        if isinstance(left, Undefined) or isinstance(right, Undefined):
            return super().call_binop(context, operator, left, right)
        if not all(isinstance(side, int | float) for side in (left, right)):
            raise Refused(f"it calculates with {operator} on texts or lists")
        if any(abs(side) >= 2**MAX_BITS for side in (left, right)) or (
            operator == "**" and max(abs(left), right) > MAX_BITS
        ):
            raise Refused("it calculates with too large numbers")
        return super().call_binop(context, operator, left, right)

    def printed(self, value: Any) -> Any:
        """Count one printed piece. Whole lists and dictionaries would show how the program writes them: refused."""
        self.meter.step()
        text = self._string(value)
        self.meter.pay(len(text))
        return text

    def _tracked(self, value: Any) -> Any:
        if isinstance(value, str) and not isinstance(value, Content) and MARKED.search(value):
            return Content(value, self._marker)
        return value

    def _of_text(self, change: Callable[..., str]) -> Callable[..., str]:
        def changed(value: Any, *args: Any) -> str:
            text = self._string(value)
            self.meter.pay(len(text))
            return change(text, *args)

        return changed

    def _of_list(self, change: Callable[..., Any]) -> Any:
        # These filters take the environment, the context or nothing first; the mark says which, so it is kept.
        def changed(*args: Any, **kwargs: Any) -> Any:
            values = [list(self._metered(arg)) if number == taken else arg for number, arg in enumerate(args)]
            return change(*values, **kwargs)

        mark = getattr(change, "jinja_pass_arg", None)
        taken = 0 if mark is None else 1
        if mark is not None:
            changed.jinja_pass_arg = mark  # type: ignore[attr-defined]
        return changed

    def _sliced(self, value: Any, *bounds: int | None) -> Any:
        found = self._tracked(value)[slice(*bounds)]
        self.meter.pay(len(found))
        return found

    def _string(self, value: Any) -> str:
        if isinstance(value, str):
            return self._tracked(value)  # type: ignore[no-any-return]
        if value is None or isinstance(value, int | float | Undefined):
            return str(value)
        raise Refused("it prints a whole list or dictionary")

    def _metered(self, values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            self.meter.step()
            yield value

    def _join(self, values: Iterable[Any], d: str = "", attribute: str | None = None) -> str:
        found = [v if attribute is None else self.getitem(v, attribute) for v in self._metered(values)]
        texts = [self._string(value) for value in found]
        self.meter.pay(sum(map(len, texts)) + len(d) * len(texts))
        return self._tracked(d.join(texts))  # type: ignore[no-any-return]

    def _replace(self, value: Any, old: str, new: str, count: int | None = None) -> str:
        text = self._string(value)
        times = len(text) + 1 if not old else text.count(old)
        self.meter.pay(len(text) + times * len(new))
        return text.replace(old, new, -1 if count is None else count)

    def _tojson(self, value: Any, indent: int | None = None) -> str:
        if indent is not None and not 0 <= indent <= MAX_INDENT:
            raise Refused("it indents too far")
        text = json.dumps(self._escaped(value), ensure_ascii=False, indent=indent)
        self.meter.pay(len(text))
        return text

    def _escaped(self, value: Any) -> Any:
        """Return ``value`` with message text escaped for JSON, since json sees only its stand-ins."""
        self.meter.step()
        value = self._tracked(value)
        if isinstance(value, Content):
            marked = (
                self._marker.mark(json.dumps(t, ensure_ascii=False)[1:-1]) if own else t for t, own in value.runs()
            )
            return "".join(marked)
        if isinstance(value, Mapping):
            return {self._escaped(key): self._escaped(item) for key, item in value.items()}
        return [self._escaped(item) for item in value] if isinstance(value, list | tuple) else value

    def _raise(self, message: str = "") -> None:
        shown = "".join("…" if own else text for text, own in self._marker.runs(str(message)))
        raise Refused(shown, by_template=True)


@pass_context  # a finalizer that takes the context is never run while compiling
def _print(context: Context, value: Any) -> Any:
    environment = context.environment
    if not isinstance(environment, TemplateEnvironment):
        raise SecurityError("foreign environment")
    return environment.printed(value)


def _range(*args: int) -> range:
    found = range(*args)
    if len(found) > MAX_RANGE:
        raise Refused("it counts too far")
    return found


def _gaps(text: str, sep: str | None = None, *_: int) -> int:
    """Return an upper bound on where splitting ``text`` cuts it; cheap, since it is asked before the work."""
    return text.count(sep) if sep else len(text) // 2 + 1


def _same(value: Any) -> Any:
    """Return the value: nothing here is escaped, so nothing needs to be called safe."""
    return value
