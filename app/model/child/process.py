"""The parent side of one child process. Belongs to the asyncio loop that started it; not thread-safe.

Requests run one at a time, in order of arrival. Whatever happens to the child, a stream ends with exactly one of
``done``, ``cancelled`` or ``failed``, and ``failed`` carries the real reason. Nothing is restarted here: whether that
is wise is for the owner to say (see ``restarts``).

Example::

    child = ChildProcess("app.model.engine.backends.llama", name="engine")
    await child.start()
    async for message in child.stream("generate", {...}):
        ...
    await child.close()
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path

import app
from app.errors import AppError, BugError, KnownError, from_info
from app.model.child.death import MemoryKills, reason
from app.model.child.protocol import MAX_LINE_BYTES, PROTOCOL, TERMINAL, Json, decode, encode, error_from
from app.model.child.serve import NICE_VARIABLE

_log = logging.getLogger(__name__)

_CANCEL_GRACE_S = 20.0
"""How long a child may take to obey a cancel before it counts as hung: one slow training step, one file load."""

_CLOSE_GRACE_S = 5.0

_LAST_WORDS_S = 1.0
"""How long to go on reading the pipes of a child that has ended."""

_KEPT_LINES = 30

_NO_WINDOW = 0x08000000 if sys.platform == "win32" else 0
"""Windows opens a console for a child otherwise."""

_INHERITED = frozenset((
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TEMP", "TMP", "TZ",
    "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
    "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA",
    "PROGRAMDATA", "NUMBER_OF_PROCESSORS",
))  # fmt: skip
"""What a child needs of our environment. Keys, tokens and Python switches of the person stay out."""

_FIXED = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONHASHSEED": "0",
}


class ChildProcess:
    """One child: ``python -m module``, which ends in ``serve(...)``."""

    def __init__(
        self,
        module: str,
        *,
        name: str,
        nice: int = 0,
        env: Mapping[str, str] | None = None,
        start_timeout_s: float = 90.0,
        silence_timeout_s: float = 120.0,
    ) -> None:
        """Set it up; nothing starts yet.

        Args:
            module: What to run.
            name: What people call it: "engine".
            nice: Its priority, as on POSIX; it acts within our session, which the child therefore shares.
            env: Added to its clean environment.
            start_timeout_s: How long it may take to become ready.
            silence_timeout_s: A request without any sign of life for longer is a hang. Asking its cancel is one.
        """
        self._module = module
        self._name = name
        self._environment = {**_clean_environment(), **_FIXED, NICE_VARIABLE: str(nice), **(env or {})}
        self._start_timeout_s = start_timeout_s
        self._silence_timeout_s = silence_timeout_s
        self._process: Process | None = None
        self._watching: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._turn = asyncio.Lock()
        self._number = 0
        self._inboxes: dict[int, asyncio.Queue[Json]] = {}
        self._running: int | None = None
        self._ready = False
        self._death: AppError | None = None
        self._verdict: AppError | None = None
        self._last_lines: deque[str] = deque(maxlen=_KEPT_LINES)

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process is not None and self.alive else None

    @property
    def alive(self) -> bool:
        """Whether it is started and, as far as we know, still there."""
        return self._ready and self._death is None

    @property
    def death(self) -> AppError | None:
        """Why it ended, once it has."""
        return self._death

    async def start(self) -> None:
        """Start it and wait until it is ready. Raises KnownError with the real reason. Does nothing if it runs."""
        async with self._starting:  # one at a time: a second caller would take the child that starts for a dead one
            if not self.alive:
                await self._start()

    async def _start(self) -> None:
        await self.kill()
        self._ready, self._death, self._verdict = False, None, None
        self._last_lines.clear()
        process = self._process = await self._spawn()
        hello: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watching = asyncio.create_task(self._watch(process, hello), name=f"{self._name}: watch")
        try:
            await asyncio.wait_for(asyncio.shield(hello), self._start_timeout_s)
        except TimeoutError:
            self._condemn(KnownError(f"start the {self._name}", f"no answer within {self._start_timeout_s:.0f} s"))
            await self.kill()
        except asyncio.CancelledError:
            await self.kill()
            raise
        if self._death is not None:
            raise self._death
        self._ready = True

    async def _spawn(self) -> Process:
        command = [sys.executable, "-P", "-X", "utf8", "-X", "faulthandler", "-m", self._module]
        try:
            return await asyncio.create_subprocess_exec(
                *command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env=self._environment,
                limit=MAX_LINE_BYTES,
                creationflags=_NO_WINDOW,
            )
        except OSError as error:
            raise KnownError(f"start the {self._name}", error.strerror or "", "Close other programs.") from error

    async def stream(self, method: str, params: Json) -> AsyncGenerator[Json, None]:
        """Run one request and yield its events, lastly ``{"done": …}``, ``{"cancelled": true}`` or ``{"failed": …}``.

        Never raises for a dead or hung child. Closing the iterator early cancels the request.
        """
        async with self._turn:
            number = self._number = self._number + 1
            inbox = self._inboxes[number] = asyncio.Queue()
            self._running = number
            try:
                await self._send({"id": number, "method": method, "params": params}, inbox)
                while number in self._inboxes:
                    yield await self._next(number, inbox)
            finally:
                await self._finish(number, inbox)

    async def _send(self, request: Json, inbox: asyncio.Queue[Json]) -> None:
        if not self.alive:
            error = self._death or KnownError(f"run the {self._name}", "it is not started")
            inbox.put_nowait(_failed(error))
            return
        try:
            await self._write(request)
        except BugError as error:
            inbox.put_nowait(_failed(error))

    async def _write(self, message: Json) -> None:
        process = self._process
        if process is None or process.stdin is None:
            return
        with contextlib.suppress(ConnectionError, RuntimeError):  # a dead child is reported by the reader
            process.stdin.write(encode(message))
            await process.stdin.drain()

    async def _next(self, number: int, inbox: asyncio.Queue[Json]) -> Json:
        """Return the next event or the terminal message; after the latter the request is no longer known."""
        message = await self._heard(inbox)
        while "alive" in message:
            message = await self._heard(inbox)
        if "event" in message:
            event: Json = message["event"]
            return event
        del self._inboxes[number]
        return {key: message[key] for key in TERMINAL if key in message}

    async def _heard(self, inbox: asyncio.Queue[Json]) -> Json:
        """Return the next message; silence ends the child, and then the message says so."""
        try:
            return await asyncio.wait_for(inbox.get(), self._silence_timeout_s)
        except TimeoutError:
            hint = "It was stopped and can be started again; nothing you wrote is lost."
            self._condemn(KnownError(f"run the {self._name}", "it stopped responding", hint))
            await self.kill()
            return await inbox.get()

    async def _finish(self, number: int, inbox: asyncio.Queue[Json]) -> None:
        """Give the turn on; a request that was abandoned half-way is cancelled first."""
        try:
            if number in self._inboxes and self.alive:
                await self._write({"cancel": number})
                await asyncio.wait_for(_drain(inbox), _CANCEL_GRACE_S)
        except TimeoutError:
            self._condemn(KnownError(f"stop the {self._name}", "it did not react", "It was ended instead."))
            await self.kill()
        finally:
            self._inboxes.pop(number, None)
            if self._running == number:
                self._running = None

    async def call(self, method: str, params: Json) -> Json:
        """Run one request and return its result; events are dropped.

        Raises the AppError of a failure, and asyncio.CancelledError if the request was cancelled.
        """
        message: Json = {}
        async with contextlib.aclosing(self.stream(method, params)) as messages:
            async for message in messages:  # noqa: B007 - only the last one counts
                pass
        if "failed" in message:
            raise from_info(error_from(message["failed"]))
        if "cancelled" in message:
            raise asyncio.CancelledError
        result: Json = message["done"]
        return result

    async def cancel(self) -> None:
        """Ask the running request to stop; it then ends as cancelled. Does nothing when nothing runs."""
        if self._running is not None and self.alive:
            await self._write({"cancel": self._running})

    async def close(self) -> None:
        """End it: close its input, wait a little, else kill. Safe to call twice."""
        process = self._process
        if process is not None and process.stdin is not None and process.returncode is None:
            self._condemn(KnownError(f"run the {self._name}", "it was closed"))
            process.stdin.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(process.wait()), _CLOSE_GRACE_S)
        await self.kill()

    async def kill(self) -> None:
        """End it at once and wait until it is gone. Safe to call twice."""
        process, self._process = self._process, None
        if process is None:
            return
        if self._verdict is None:
            self._condemn(KnownError(f"run the {self._name}", "it was ended"))
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        if self._watching is not None:
            await asyncio.shield(self._watching)

    def _condemn(self, verdict: AppError) -> None:
        """Say beforehand why it is about to end, where we are the reason."""
        if self._death is None and self._verdict is None:
            self._verdict = verdict

    async def _watch(self, process: Process, hello: asyncio.Future[None]) -> None:
        """Read what the child says until it ends, then tell its requests why."""
        kills = MemoryKills.now()
        reading = {
            asyncio.create_task(self._read_answers(process, hello)),
            asyncio.create_task(self._read_errors(process)),
        }
        code = await process.wait()
        _, late = await asyncio.wait(reading, timeout=_LAST_WORDS_S)
        for task in late:  # a grandchild holds the pipe open
            task.cancel()
        if process.stdin is not None:
            process.stdin.close()
        killed_for_memory = MemoryKills.now().count > kills.count
        lines = list(self._last_lines)
        self._die(self._verdict or reason(self._name, code, killed_for_memory=killed_for_memory, last_lines=lines))
        if not hello.done():
            hello.set_result(None)

    async def _read_answers(self, process: Process, hello: asyncio.Future[None]) -> None:
        """Hand every message to its request; a child that breaks the protocol is ended."""
        try:
            await self._read_messages(process, hello)
        except (AppError, ValueError, KeyError) as error:  # ValueError: a line over the limit
            self._condemn(BugError(f"understand the {self._name}", type(error).__name__))
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    async def _read_messages(self, process: Process, hello: asyncio.Future[None]) -> None:
        assert process.stdout is not None  # noqa: S101 - asked for in _spawn
        while line := await process.stdout.readline():
            message = decode(line)
            if "ready" in message:
                if message["ready"]["protocol"] != PROTOCOL:
                    raise BugError(f"understand the {self._name}", "another protocol")
                hello.set_result(None)
            elif (inbox := self._inboxes.get(message["id"])) is not None:
                inbox.put_nowait(message)

    async def _read_errors(self, process: Process) -> None:
        assert process.stderr is not None  # noqa: S101 - asked for in _spawn
        with contextlib.suppress(ValueError):
            while line := await process.stderr.readline():
                self._last_lines.append(line.decode("utf-8", "replace").rstrip())

    def _die(self, death: AppError) -> None:
        self._death = death
        if self._verdict is None:
            _log.warning("%s ended: %s\n%s", self._name, death.subject, "\n".join(self._last_lines))
        for inbox in self._inboxes.values():
            inbox.put_nowait(_failed(death))


async def _drain(inbox: asyncio.Queue[Json]) -> None:
    while not set(TERMINAL) & set(await inbox.get()):
        pass


def _failed(error: AppError) -> Json:
    return {"failed": error.info().as_dict()}


def _clean_environment() -> dict[str, str]:
    """Return the part of our environment that a child gets, with a path to this very package and nothing else."""
    kept = {key: value for key, value in os.environ.items() if key.upper() in _INHERITED}
    return {**kept, "PYTHONPATH": str(Path(app.__file__).parent.parent)}
