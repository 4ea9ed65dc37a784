"""Rules of this house that no linter knows, each with what to write instead and proof that it catches."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from tests.project.tracked import ROOT, tracked


@dataclass(frozen=True)
class Rule:
    pattern: str
    instead: str
    catches: str
    leaves: str
    under: tuple[str, ...] = ("app/",)
    except_for: tuple[str, ...] = ()


RULES = {
    "no lambda is connected to a signal": Rule(
        r"\.connect\(\s*lambda",
        "Connect a bound method: a lambda runs in the sender's thread, whatever it touches.",
        "worker.done.connect(\n    lambda: view.show())",
        "worker.done.connect(view.show)",
    ),
    "nobody spins the event loop": Rule(
        r"\bprocessEvents\b",
        "Await the work, or split it; spinning the loop re-enters the code that waits.",
        "app.processEvents()",
        "await self.core.call(work)",
    ),
    "no error is swallowed": Rule(
        r"except(\s+(Base)?Exception(\s+as\s+\w+)?)?\s*:\s*(#[^\n]*)?\n?\s*(pass|\.\.\.|continue)\b",
        "Catch the classes you expect, and convert or handle them.",
        "try:\n    work()\nexcept Exception:\n    pass",
        "except OSError as error:\n    raise KnownError('read', path.name) from error",
    ),
    "only the command line prints": Rule(
        r"(?<![\w.])print\(",
        "Log it, return it, or publish an event; standard output belongs to the command line and to child protocols.",
        "print(value)",
        "def _print(context): ...",
        except_for=("app/cli.py", "app/__main__.py"),
    ),
    "no thread is Qt's": Rule(
        r"\bQThread(Pool)?\b|\bQtConcurrent\b",
        "Run it on the core thread (app/tasks.py); threads know no Qt.",
        "class Worker(QThread):",
        "core.call(work())",
    ),
    "no time without a zone": Rule(
        r"datetime\.now\(\s*\)|utcnow\(|fromtimestamp\([^,()]*\)",
        "Ask the clock (app/clock.py), or pass the zone.",
        "datetime.now()",
        "datetime.now(UTC)",
    ),
    "no code comes with a model": Rule(
        r"trust_remote_code\s*=\s*True",
        "Support the architecture here, or refuse the model.",
        "load(path, trust_remote_code=True)",
        "load(path)",
        under=("app/", "benchmarks/", "scripts/"),
    ),
    "no pickle is read or written": Rule(
        r"\bimport (c?[pP]ickle|dill|joblib|shelve|marshal)\b|\bfrom (pickle|dill|joblib|shelve) import",
        "Use safetensors for weights, JSON for the rest: reading a pickle runs what is in it.",
        "import pickle",
        "from safetensors.numpy import load_file",
        under=("app/", "benchmarks/", "scripts/"),
    ),
    "torch loads weights alone": Rule(
        r"torch\.load\((?![^)]*weights_only\s*=\s*True)",
        "Read safetensors, or pass weights_only=True.",
        "torch.load(path)",
        "torch.load(path, weights_only=True)",
        under=("app/", "benchmarks/", "scripts/"),
    ),
    "no dialog blocks the window": Rule(
        r"\.exec_?\(",
        "Use open() and a signal: exec() starts a second loop inside the first.",
        "dialog.exec()",
        "dialog.open()",
        under=("app/ui/",),
    ),
    "nothing sleeps on a loop's thread": Rule(
        r"(?<!asyncio\.)\btime\.sleep\(",
        "await asyncio.sleep(), or wait for the event itself.",
        "time.sleep(1)",
        "await asyncio.sleep(1)",
        under=("app/ui/", "app/chat/", "app/learning/", "app/devmode/", "app/approvals/", "app/store/"),
        except_for=("app/store/files.py",),  # waits half a second at most for a virus scanner, on Windows
    ),
    "no module reaches the network": Rule(
        r"\b(import|from) (requests|urllib\.request|http\.client|httpx|aiohttp|huggingface_hub|socketserver)\b",
        "Nothing of this app needs the network after its set-up.",
        "import urllib.request",
        "from urllib.parse import urlsplit",
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_each_rule_catches_what_it_is_for_and_leaves_the_rest(name):
    rule = RULES[name]
    assert re.search(rule.pattern, rule.catches)
    assert not re.search(rule.pattern, rule.leaves)


@pytest.mark.parametrize("name", RULES)
def test_house_rules_hold(name):
    rule = RULES[name]
    found = [
        f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {rule.instead}"
        for path, text in sources(rule)
        for match in re.finditer(rule.pattern, text)
    ]
    assert not found, "\n".join(found)


def sources(rule):
    for path in tracked("*.py"):
        if path.startswith(rule.under) and not path.startswith(rule.except_for or ("\0",)):
            yield path, (ROOT / path).read_text("utf-8")


def test_the_rules_look_at_the_whole_app():
    assert len([path for path in tracked("*.py") if path.startswith("app/")]) > 20
