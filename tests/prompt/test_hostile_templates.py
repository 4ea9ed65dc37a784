from __future__ import annotations

import time
import tracemalloc

import pytest

from app.errors import VerificationError
from app.model.api import Role, Turn
from app.model.prompt import PromptTemplate

DOUBLED = "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(99) %}{% set ns.x = OP %}{% endfor %}"

HOSTILE = {
    "loops in loops": "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
    "a range too far": "{{ range(100000000) | list | length }}",
    "ten megabytes of source": "x" * 10_000_000,
    "a repeated text": "{{ 'a' * 1000000000 }}",
    "a repeated list": "{{ [0] * 1000000000 }}",
    "doubling by plus": DOUBLED.replace("OP", "ns.x + ns.x"),
    "doubling by tilde": DOUBLED.replace("OP", "ns.x ~ ns.x"),
    "doubling by join": DOUBLED.replace("OP", "[ns.x, ns.x] | join"),
    "doubling by the join method": DOUBLED.replace("OP", "''.join([ns.x, ns.x])"),
    "growing by replace": DOUBLED.replace("OP", "ns.x | replace('a', 'aaaaaaaaaa')"),
    "growing by the replace method": DOUBLED.replace("OP", "ns.x.replace('a', 'aaaaaaaaaa')"),
    "growing by replacing nothing": DOUBLED.replace("OP", "ns.x.replace('', 'aaaaaaaaaa')"),
    "doubling by a block": DOUBLED.replace("ns.x = OP", "y %}{{ ns.x }}{{ ns.x }}{% endset %}{% set ns.x = y"),
    "doubling by JSON": DOUBLED.replace("OP", "[ns.x, ns.x] | tojson"),
    "padding": "{{ 'a'.ljust(1000000000) }}",
    "a format with a width": "{{ '{:1000000000}'.format(1) }}",
    "a percent format with a width": "{{ '%1000000000d' % 1 }}",
    "a date with a width": "{{ strftime_now('%999999999Y') }}",
    "a huge power": "{{ 10 ** 10 ** 10 }}",
    "numbers squared again and again": "{% set ns = namespace(x=9) %}"
    "{% for i in range(99) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
    "lists that pile up": "{% set ns = namespace(l=[]) %}"
    "{% for i in range(9000) %}{% set ns.l = ns.l + [range(9000) | list] %}{% endfor %}",
    "list slices that pile up": "{% set a = range(9000) | list %}{% set ns = namespace(l=[]) %}"
    "{% for i in range(9000) %}{% set ns.l = ns.l + [a[:]] %}{% endfor %}",
    "much template text": "{% for i in range(10000) %}" + "z" * 60_000 + "{% endfor %}",
    "endless recursion": "{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}",
    "branching recursion": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(30) }}",
    "a recursive loop": "{% for x in [1] recursive %}{{ loop([1, 1]) }}{% endfor %}",
    "deep brackets": "{{ " + "(" * 50_000,
    "deep blocks": "{% if 1 %}" * 5_000,
    "deep sums": "{{ 1" + "+1" * 10_000 + " }}",
    "the class of a text": "{{ ''.__class__.__mro__ }}",
    "the class by item": "{{ ''['__class__'] }}",
    "the globals of a function": "{{ raise_exception.__globals__ }}",
    "the environment": "{{ raise_exception.__self__ }}",
    "an attribute by filter": "{{ ''|attr('__class__') }}",
    "an include": "{% include 'x' %}",
    "an import": "{% import 'x' as x %}",
    "an extends": "{% extends 'x' %}",
    "a private character": "\U000f0000",
    "a private character in an escape": "{{ '\\U000f0001' }}",
    "a printed dictionary": "{{ messages }}",
    "a division by nothing": "{{ 1 / 0 }}",
    "a changed message": "{{ messages.append(1) }}",
    "a changed dictionary": "{{ messages[0].update({'role': 'x'}) }}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_template_is_refused_quickly_and_without_filling_memory(name):
    tracemalloc.start()
    start = time.process_time()
    try:
        with pytest.raises(VerificationError, match="chat template"):
            PromptTemplate(HOSTILE[name], bos="<s>", eos="</s>").render(
                [Turn(Role.USER, "hi")], add_generation_prompt=True
            )
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert time.process_time() - start < 5
    assert peak_bytes < 400_000_000


def test_time_is_limited_even_where_steps_are_not(monkeypatch):
    monkeypatch.setattr("app.model.prompt_meter.MAX_STEPS", 10**9)
    monkeypatch.setattr("app.model.prompt_meter.MAX_SECONDS", 0.2)
    with pytest.raises(VerificationError, match="too long"):
        PromptTemplate(HOSTILE["loops in loops"], bos="", eos="")


def test_a_refusal_does_not_spoil_the_next_rendering():
    source = "{% for i in range(messages[0].content | length) %}{% for j in range(9999) %}{% endfor %}{% endfor %}ok"
    template = PromptTemplate(source, bos="", eos="")
    with pytest.raises(VerificationError):
        template.render([Turn(Role.USER, "x" * 99)], add_generation_prompt=False)
    assert template.render([Turn(Role.USER, "x")], add_generation_prompt=False)[0].text == "ok"
