"""Documents say what is there, and nothing in the project names the machine that it was made on."""

from __future__ import annotations

import argparse
import re

import pytest

import bootstrap
from app import cli
from tests.project.tracked import ROOT, tracked

TEXT = ("*.md", "*.py", "*.toml", "*.lock", "*.json", "*.txt", "*.cfg", "Makefile", ".ci/*", ".gitignore")
HOSTS = (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("deb", "debian", "org"), ("pytorch", "org"))
PATHS = ("work", "farm", "root")
FORBIDDEN = "|".join([*(r"\.".join(host) for host in HOSTS), *(rf"(?<![\w./~-])/{path}/" for path in PATHS)])


def read(path):
    return (ROOT / path).read_text("utf-8")


def documents():
    return tracked("*.md")


def test_no_file_names_a_registry_or_a_folder_of_one_machine():
    found = [
        f"{path}:{number}: {line.strip()[:80]}"
        for path in tracked(*TEXT)
        for number, line in enumerate(read(path).splitlines(), 1)
        if re.search(FORBIDDEN, line)
    ]
    assert not found, "\n".join(found)


def test_the_search_for_forbidden_words_finds_them():
    for text in ("see " + ".".join(HOSTS[0]), "cd /" + PATHS[0] + "/main"):
        assert re.search(FORBIDDEN, text)
    assert not re.search(FORBIDDEN, "docs/work/notes and ~/root/x")


def test_every_make_verb_in_a_document_exists():
    (first,) = re.findall(r"^([a-z ]+):$", read("Makefile"), re.MULTILINE)
    targets = set(first.split())
    assert targets <= set(bootstrap.VERBS)
    used = {
        verb
        for path in documents()
        for code in re.findall(r"`([^`\n]+)`|^((?:OWNMIND\S+ )?make .*)$", read(path), re.MULTILINE)
        for verb in re.findall(r"\bmake ([a-z]+)", " ".join(code))
    }
    assert {"run", "test"} <= used
    assert used <= targets


def test_every_bootstrap_verb_in_a_document_exists():
    used = {verb for path in documents() for verb in re.findall(r"bootstrap\.py ([a-z]+)", read(path))}
    assert {"run", "test"} <= used
    assert used <= set(bootstrap.VERBS)


def commands():
    """Return the command line's commands with their options."""
    (subparsers,) = (action for action in cli._parser()._actions if isinstance(action, argparse._SubParsersAction))
    return {
        name: {option for action in command._actions for option in action.option_strings if option.startswith("--")}
        for name, command in subparsers.choices.items()
    }


def test_every_command_is_documented_with_its_options_and_no_other():
    headings = re.findall(r"^### (.+)$", read("docs/cli.md"), re.MULTILINE)
    documented = {
        usage.split()[0]: set(re.findall(r"--[a-z-]+", usage)) | {"--home", "--json", "--help"}
        for heading in headings
        for usage in re.findall(r"`([^`]+)`", heading)
    }
    assert documented == commands()


def test_the_readme_uses_only_existing_commands():
    used = set(re.findall(r"bin/ownmind ([a-z]+)", read("README.md")))
    assert used
    assert used <= set(commands())


@pytest.mark.parametrize("path", documents())
def test_links_between_documents_lead_somewhere(path):
    folder = (ROOT / path).parent
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", read(path))
    missing = [target for target in targets if "://" not in target and not (folder / target).exists()]
    assert not missing


def test_every_decision_is_listed():
    listed = set(re.findall(r"\]\((\d{4}-[^)]+\.md)\)", read("docs/adr/README.md")))
    written = {path.rpartition("/")[2] for path in tracked("docs/adr/0*.md")}
    assert listed == written


@pytest.mark.parametrize("path", tracked("docs/adr/0*.md"))
def test_every_decision_says_what_was_rejected(path):
    assert "**Decision.**" in read(path)
    assert "**Rejected.**" in read(path)


def test_the_architecture_names_every_room():
    text = read("docs/architecture.md")
    rooms = {path.rpartition("/")[0] for path in tracked("app/*/__init__.py")}
    inner = ("/backends", "/versions")
    missing = {room for room in rooms if not room.endswith(inner) and f"`{room}/" not in text}
    assert not missing


def test_the_architecture_names_nothing_that_is_not_there():
    named = re.findall(r"`(app/[\w/]+(?:\.py)?)/?`", read("docs/architecture.md"))
    missing = [path for path in named if not (ROOT / path).exists()]
    assert not missing
