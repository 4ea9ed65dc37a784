"""The meter on a chat template: what a rendering may use up, and the rewriting that makes every template pay for it.

A template is parsed; every loop, concatenation, slice and piece of text in it is replaced by a form that the
environment counts, and statements outside a short list are refused, before any of it is compiled.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, cast

from jinja2 import Environment, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.visitor import NodeTransformer

from app.model.prompt_text import MARKED

MAX_STEPS = 200_000
MAX_SECONDS = 2.0
MAX_TEXT = 8_000_000
"""Characters that a template may make over and above what the messages are worth."""
TEXT_PER_MESSAGE_CHARACTER = 16

_STATEMENTS = (
    nodes.Assign, nodes.AssignBlock, nodes.Break, nodes.CallBlock, nodes.Continue, nodes.For, nodes.If, nodes.Macro,
    nodes.Output, nodes.Template,
)  # fmt: skip


class Refused(Exception):  # noqa: N818 - reads as what happened, as in the outcome types
    """The template asked for what it may not have, or refused the conversation itself (``by_template``)."""

    def __init__(self, reason: str, *, by_template: bool = False) -> None:
        super().__init__(reason)
        self.by_template = by_template


class Meter:
    """What is left of one rendering's allowance."""

    def __init__(self, message_characters: int) -> None:
        self._steps = MAX_STEPS
        self._text = MAX_TEXT + TEXT_PER_MESSAGE_CHARACTER * message_characters
        self._deadline = time.monotonic() + MAX_SECONDS

    def step(self) -> None:
        """Count one loop round, call or printed piece."""
        self._steps -= 1
        if self._steps < 0:
            raise Refused("it runs too many steps")
        if time.monotonic() > self._deadline:
            raise Refused("it runs too long")

    def pay(self, characters: int) -> None:
        """Count text about to be made."""
        self._text -= characters
        if self._text < 0:
            raise Refused("it makes too much text")


class Generation(Extension):
    """``{% generation %}`` only marks what a trainer may learn from; here it is transparent."""

    tags = {"generation"}  # noqa: RUF012 - declared so by the base class

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Return what stands inside, as if the tags were not there."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Metered(NodeTransformer):
    """Rewrites a parsed template so that nothing escapes the meter."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def generic_visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> nodes.Node:
        if isinstance(node, nodes.Stmt | nodes.Template) and not isinstance(node, _STATEMENTS):
            raise _at(node, f"the statement {type(node).__name__.lower()} is not allowed")
        if isinstance(node, nodes.Const | nodes.TemplateData):
            value = node.value if isinstance(node, nodes.Const) else node.data
            if isinstance(value, str) and MARKED.search(value):
                raise _at(node, "it contains characters reserved for private use")
        return super().generic_visit(node, *args, **kwargs)

    def visit_TemplateData(self, node: nodes.TemplateData) -> nodes.Node:  # noqa: N802 - named by the visitor
        self.generic_visit(node)
        return nodes.Const(node.data, lineno=node.lineno, environment=self._environment)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return self._filtered(nodes.List(node.nodes, lineno=node.lineno), "join", node)

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802
        if node.recursive:
            raise _at(node, "a recursive loop is not allowed")
        self.generic_visit(node)
        node.iter = self._filtered(cast("nodes.Expr", node.iter), "metered", node)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        if not isinstance(node.arg, nodes.Slice):
            return node
        bounds = (node.arg.start, node.arg.stop, node.arg.step)
        return self._filtered(node.node, "sliced", node, [bound or nodes.Const(None) for bound in bounds])

    def _filtered(self, value: nodes.Expr, name: str, at: nodes.Node, args: Sequence[nodes.Expr] = ()) -> nodes.Filter:
        made = nodes.Filter(value, name, list(args), [], None, None)
        made.set_lineno(at.lineno).set_environment(self._environment)
        return made


def _at(node: nodes.Node, reason: str) -> Refused:
    return Refused(f"line {node.lineno}: {reason}")


def metered(tree: nodes.Template, environment: Environment) -> nodes.Template:
    """Return a parsed template rewritten for the meter. Raises Refused for a statement that is not allowed."""
    return cast("nodes.Template", _Metered(environment).visit(tree))
