"""The command line: the same use cases as the window, for scripts and tests. See ``docs/cli.md``.

With ``--json`` one object goes to standard output and nothing else; progress and sentences go to standard error.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict
from typing import Any, NoReturn

from app import __version__
from app.devmode.api import SENTENCE, Budget, DevState
from app.errors import AppError, BugError, DeniedError, ErrorInfo, KnownError, UserError, VerificationError, from_info
from app.learning.api import CardChanged, LearningEvent, Lesson, Taught
from app.learning.ledger_view import lessons_at
from app.log import start_logging_if_writable, stop_logging
from app.model.api import Commit, Done, Failed, Greedy, GreedyResult, Outcome, Role, Sampling, Turn
from app.model.gate.verdicts import check_to_dict
from app.paths import home_folder
from app.store.home import Home
from app.wiring import App, open_app, prepare_embedded

DONE, REFUSED, USAGE, ENVIRONMENT = 0, 1, 2, 3
ASK_TOKENS = 512
CLICKS = 7
HOTTEST = 10.0

DISCLAIMER = """\
Unlocking lets Ownmind change the weights of your model when you approve a lesson.
Every change is checked before it is used, and every earlier version is kept, but no check is perfect: a lesson can
have effects that nobody noticed. Going back to an earlier version is always possible and exact.
"""

Json = dict[str, Any]
Command = Callable[[App, argparse.Namespace], Coroutine[Any, Any, tuple[int, Json]]]

_logger = logging.getLogger(__name__)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    try:
        options = _parser().parse_args(arguments)
    except UserError as error:
        _report(error, as_json="--json" in arguments)
        return USAGE
    command: Command = options.command
    _speak_anyway()
    try:
        code, result = asyncio.run(_with_app(command, options))
    except AppError as error:
        return _report(error, as_json=options.json)
    except KeyboardInterrupt:
        return REFUSED
    _print(json.dumps(result) if options.json else options.words(result))  # JSON in ASCII: no terminal chokes on it
    return code


async def _with_app(command: Command, options: argparse.Namespace) -> tuple[int, Json]:
    root = home_folder(options.home)
    base = await prepare_embedded(root, once(_say))
    app = open_app(root, base)
    handler = start_logging_if_writable(Home(root).logs)
    try:
        for sentence in await app.start(learn=options.learns, mend=command is not _doctor):
            _say(sentence)
        return await command(app, options)
    except AppError:
        raise
    except Exception as error:
        _logger.critical("not caught", exc_info=True)
        hint = "This is a fault of Ownmind. What was there before is kept; the log says where it happened."
        raise BugError("finish the command", type(error).__name__, hint) from error
    finally:
        await app.close()
        stop_logging(handler)


# --- commands -------------------------------------------------------------------------------------------------------


async def _ask(app: App, options: argparse.Namespace) -> tuple[int, Json]:
    turns = (Turn(Role.USER, options.text),)
    commit = app.lineage.get(options.at) if options.at is not None else app.lineage.head()
    begun = app.parts.clock.monotonic()
    await app.engine.ready()
    if commit.id != app.lineage.head().id:
        (said,) = await app.engine.evaluate([Greedy(turns, ASK_TOKENS)], adapter=app.versions.ref(commit))
        assert isinstance(said, GreedyResult)  # noqa: S101 - the engine's contract
        text, tokens = said.text, len(said.tokens)
    else:
        text, tokens = await _generated(app, turns, options.temperature)
    seconds = app.parts.clock.monotonic() - begun
    return DONE, {"text": text, "commit": commit.id, "tokens": tokens, "seconds": round(seconds, 3)}


async def _generated(app: App, turns: tuple[Turn, ...], temperature: float) -> tuple[str, int]:
    sampling = Sampling(temperature=temperature, max_tokens=ASK_TOKENS)
    async for event in app.engine.generate(turns, sampling):
        if isinstance(event, Done):
            return event.text, event.tokens
        if isinstance(event, Failed):
            raise from_info(event.error)
    return "", 0


async def _teach(app: App, options: argparse.Namespace) -> tuple[int, Json]:
    stop = app.learning_events.listen(_progress)
    try:
        taught = await app.learning.teach(Lesson(options.prompt, options.answer), approve=options.approve)
    finally:
        stop()
    return _taught(taught, approved=options.approve)


def _taught(taught: Taught, *, approved: bool) -> tuple[int, Json]:
    verdict = taught.verdict
    seconds = asdict(taught.stages)
    del seconds["extra"]
    result: Json = {
        "proposal": taught.proposal,
        "commit": taught.commit,
        "verdict": verdict.outcome.value if verdict else None,
        "evidence": [check_to_dict(check) for check in verdict.checks] if verdict else [],
        "seconds": {name: round(value, 3) for name, value in seconds.items()},
        "state": taught.state.value,
        "reason": verdict.reason if verdict else "",
    }
    if taught.error is not None:
        result["error"] = _error_json(taught.error)
    learned = taught.commit is not None and (verdict is None or verdict.outcome is Outcome.ACCEPT)
    return (DONE if (learned and taught.error is None) or not approved else REFUSED), result


async def _log(app: App, _: argparse.Namespace) -> tuple[int, Json]:
    return DONE, {"commits": [_commit_json(app, commit) for commit in app.lineage.log()]}


async def _show(app: App, options: argparse.Namespace) -> tuple[int, Json]:
    commit = app.lineage.get(options.commit)
    held = lessons_at(app.lineage, app.parts.ledger, commit)
    documents = {
        name: app.lineage.document(digest) if (digest := getattr(commit, name)) else None
        for name in ("recipe", "verdict")
    }
    lessons = [{"id": row.id, "prompt": row.prompt, "answer": row.answer} for row in held]
    summary = _commit_json(app, commit)
    more = {"number": commit.number, "action": commit.action, "title": commit.title, "scale": commit.scale}
    return DONE, {**summary, **more, "holds": lessons, "recipe": documents["recipe"], "evidence": documents["verdict"]}


def _commit_json(app: App, commit: Commit) -> Json:
    return {
        "id": commit.id,
        "parents": list(commit.parents),
        "lessons": list(commit.lessons),
        "verdict": _outcome(app, commit),
        "time": commit.time,
        "active": commit.id == app.lineage.head().id,
    }


def _outcome(app: App, commit: Commit) -> str | None:
    """Return what the gate said; None also where that is missing or damaged, which is for doctor to tell."""
    try:
        return str(app.lineage.document(commit.verdict)["outcome"]) if commit.verdict else None
    except (KnownError, VerificationError):
        return None


async def _rollback(app: App, options: argparse.Namespace) -> tuple[int, Json]:
    await app.engine.ready()
    begun = app.parts.clock.monotonic()
    commit = app.lineage.get(options.commit)
    await app.learning.use(commit.id)
    return DONE, {"commit": commit.id, "seconds": round(app.parts.clock.monotonic() - begun, 3)}


async def _lessons(app: App, _: argparse.Namespace) -> tuple[int, Json]:
    lessons = await app.learning.lessons()
    return DONE, {
        "lessons": [
            {
                "id": lesson.id,
                "kind": lesson.kind.value,
                "prompt": lesson.prompt,
                "answer": lesson.answer,
                "learned": lesson.learned.isoformat(),
                "commit": lesson.commit,
                "active": lesson.active,
            }
            for lesson in lessons
        ]
    }


async def _forget(app: App, options: argparse.Namespace) -> tuple[int, Json]:
    taught = await app.learning.forget(options.lesson)
    _, result = _taught(taught, approved=True)
    return (DONE if taught.commit and taught.error is None else REFUSED), result


async def _doctor(app: App, options: argparse.Namespace) -> tuple[int, Json]:
    problems = app.doctor(deep=options.deep)
    listed = [{"rule": problem.rule, "subject": problem.subject, "words": problem.words} for problem in problems]
    return (ENVIRONMENT if problems else DONE), {"ok": not problems, "problems": listed}


async def _unlock(app: App, options: argparse.Namespace) -> tuple[int, Json]:
    _say(DISCLAIMER)
    sentence = options.accept
    if sentence is None:
        _say(f'Type this sentence to unlock learning: "{SENTENCE}"')
        sentence = await asyncio.to_thread(sys.stdin.readline)
    if app.devmode.status().state is DevState.LOCKED:
        for _ in range(CLICKS):  # naming the command is this place's seven clicks
            app.devmode.click_version()
    budget = Budget(changes_per_day=options.changes_per_day)
    status = app.devmode.unlock(sentence, budget)
    return DONE, {"state": status.state.value, "changes_left_today": status.changes_left_today}


async def _lock(app: App, _: argparse.Namespace) -> tuple[int, Json]:
    return DONE, {"state": app.devmode.lock().state.value}


async def _models(app: App, _: argparse.Namespace) -> tuple[int, Json]:
    passport = app.base.passport
    return DONE, {"models": [{**asdict(passport), "serving": app.base.serving.name, "active": True}]}


# --- arguments ------------------------------------------------------------------------------------------------------


def _temperature(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0.0 <= (value := float(text)) <= HOTTEST:
            return value
    raise argparse.ArgumentTypeError(f"choose a number from 0 to {HOTTEST:.0f}")


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with a command like any other error, so that scripts can read it."""

    def error(self, message: str) -> NoReturn:
        """Raise a UserError in place of printing and leaving."""
        raise UserError("understand the command", message, f"See {self.prog} --help.")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="ownmind", description="Talk with a model that is yours, and teach it.")
    parser.add_argument("--version", action="version", version=f"ownmind {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, command: Command, words: Callable[[Json], str], text: str, *, learns: bool = False) -> Any:
        sub = commands.add_parser(name, help=text, description=text)
        sub.add_argument("--home", metavar="DIR", help="the folder to work in")
        sub.add_argument("--json", action="store_true", help="print one JSON object")
        sub.set_defaults(command=command, words=words, learns=learns)
        return sub

    ask = add("ask", _ask, lambda result: str(result["text"]), "ask one question")
    ask.add_argument("text")
    ask.add_argument("--at", metavar="COMMIT", help="ask an earlier version")
    ask.add_argument(
        "--temperature", type=_temperature, default=0.0, help=f"0, the default, is greedy; up to {HOTTEST:.0f}"
    )
    teach = add("teach", _teach, _taught_words, "propose a lesson", learns=True)
    teach.add_argument("--prompt", required=True)
    teach.add_argument("--answer", required=True)
    teach.add_argument("--approve", action="store_true", help="learn it now")
    add("log", _log, _log_words, "list every version")
    add("show", _show, _json_words, "show one version").add_argument("commit", metavar="COMMIT")
    add("rollback", _rollback, lambda result: f"In use: {result['commit']}", "use another version").add_argument(
        "commit", metavar="COMMIT"
    )
    add("lessons", _lessons, _json_words, "list what was taught")
    add("forget", _forget, _forgot_words, "take a lesson back", learns=True).add_argument("lesson", metavar="LESSON")
    doctor = add("doctor", _doctor, _doctor_words, "check the home folder")
    doctor.add_argument("--deep", action="store_true", help="read every byte and derive everything again")
    unlock = add("unlock", _unlock, _state_words, "allow changes of the weights")
    unlock.add_argument("--accept", metavar="SENTENCE", help="the sentence, for scripts")
    unlock.add_argument("--changes-per-day", type=int, default=Budget().changes_per_day)
    add("lock", _lock, _state_words, "forbid changes of the weights")
    add("models", _models, _json_words, "list the base models")
    return parser


# --- words ----------------------------------------------------------------------------------------------------------


def _speak_anyway() -> None:
    """Write what a terminal or a pipe has no sign for as an escape, in place of failing after the work is done."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _print(text: str) -> None:
    try:
        print(text, flush=True)  # noqa: T201 - this is the output
    except BrokenPipeError:  # the reader wants no more; the interpreter flushes again at its end, to nowhere
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr)  # noqa: T201 - progress for people


def once(say: Callable[[str], None]) -> Callable[[str, float], None]:
    """Return a progress callback that says each stage once."""
    said: set[str] = set()

    def progress(words: str, _: float) -> None:
        if words not in said:
            said.add(words)
            say(words)

    return progress


def _progress(event: LearningEvent) -> None:
    if isinstance(event, CardChanged) and event.card.stage:
        _say(f"{event.card.stage} {event.card.share:4.0%}")


def _taught_words(result: Json) -> str:
    if result["commit"] and result["state"] == "proven":
        return f"Learned in {result['seconds']['total']:.1f} s: version {result['commit'][:12]}"
    if "error" in result:
        return f"Not learned: {result['error']['what']}. {result['error']['hint']}"
    if result["state"] == "surfaced":
        return f"Proposed: {result['proposal']}. Open the window to decide."
    return f"Not learned. {result['reason']}"


def _forgot_words(result: Json) -> str:
    if "error" in result:
        return f"Not forgotten: {result['error']['what']}. {result['error']['hint']}"
    doubts = "" if result["verdict"] in (None, "accept") else " The checks of what remains have doubts; see --json."
    return f"Forgotten in {result['seconds']['total']:.1f} s: version {result['commit'][:12]}.{doubts}"


def _log_words(result: Json) -> str:
    return "\n".join(map(_log_line, result["commits"]))


def _log_line(commit: Json) -> str:
    return f"{'*' if commit['active'] else ' '} {commit['id'][:12]}  {commit['time'][:19]}  {commit['verdict'] or '-'}"


def _doctor_words(result: Json) -> str:
    return "All is well." if result["ok"] else "\n".join(problem["words"] for problem in result["problems"])


def _state_words(result: Json) -> str:
    return f"Learning is {result['state']}."


def _json_words(result: Json) -> str:
    return json.dumps(result, indent=2, ensure_ascii=False)


def _error_json(error: ErrorInfo) -> Json:
    return {"what": error.what, "subject": error.subject, "hint": error.hint, "retryable": error.retryable}


def _report(error: AppError, *, as_json: bool) -> int:
    if as_json:
        _print(json.dumps({"error": _error_json(error.info())}))
    else:
        _say(error.sentence())
    refused = isinstance(error, UserError | DeniedError | VerificationError)
    return REFUSED if refused else ENVIRONMENT
