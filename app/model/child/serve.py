"""The child side: runs handlers one at a time on the main thread. Imports nothing of Qt, asyncio or a model.

A child module ends with::

    if __name__ == "__main__":
        serve({"echo": echo})

Invariants:
- Standard output belongs to the protocol. It is moved away first, so a stray ``print`` of any library goes to
  standard error and cannot break a message.
- A second thread takes requests and cancels, so a cancel arrives while a handler computes.
- When standard input closes, the parent has died or wants an end: the running handler is cancelled, and after a
  short grace the process exits whatever it is doing.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import BinaryIO

import psutil

from app.errors import AppError, BugError, KnownError
from app.model.child.protocol import PROTOCOL, Json, decode, encode

NICE_VARIABLE = "OWNMIND_CHILD_NICE"
"""Environment variable by which the parent tells the wanted nice value."""

EXIT_GRACE_S = 3.0
"""How long a running handler may take to notice that standard input has closed."""

ALIVE_S = 1.0
"""How often at most a silent handler tells that it is alive."""

Emit = Callable[[Json], None]


class Cancel:
    """Whether the running request was asked to stop. Cheap to ask, from any thread and from native callbacks.

    A handler that asks shows that it is getting on, so asking also keeps the parent from taking silence for a hang.
    """

    def __init__(self, tell_alive: Callable[[], None] | None = None) -> None:
        self._event = threading.Event()
        self._tell_alive = tell_alive
        self._told = time.monotonic()

    def is_set(self) -> bool:
        """Return whether to stop."""
        if self._tell_alive is not None and time.monotonic() - self._told > ALIVE_S:
            self._told = time.monotonic()
            self._tell_alive()
        return self._event.is_set()

    def set(self) -> None:
        """Ask to stop."""
        self._event.set()

    def wait(self, seconds: float) -> bool:
        """Sleep, but no longer than until someone asks to stop; return whether they did."""
        return self._event.wait(seconds)


class Cancelled(Exception):  # noqa: N818 - an outcome, not an error
    """Raised by a handler that noticed its cancel."""


Handler = Callable[[Json, Emit, Cancel], Json]


class _Pipe:
    """The parent's two pipes, taken away from the standard streams."""

    def __init__(self) -> None:
        self._requests = _take_over(0, "rb")
        self._answers = _take_over(1, "wb")
        self._lock = threading.Lock()

    def send(self, message: Json) -> None:
        line = encode(message)
        try:
            with self._lock:
                self._answers.write(line)
                self._answers.flush()
        except OSError as error:  # the parent is gone; there is nobody to tell
            raise SystemExit(0) from error

    def receive(self) -> Json | None:
        line = self._requests.readline()
        return decode(line) if line else None


def _take_over(descriptor: int, mode: str) -> BinaryIO:
    """Move a standard stream to a private descriptor; what stays behind is harmless to use."""
    private = os.dup(descriptor)
    if descriptor == 0:
        harmless = os.open(os.devnull, os.O_RDONLY)
        os.dup2(harmless, 0)
        os.close(harmless)
    else:
        sys.stdout.flush()
        os.dup2(2, descriptor)
    stream: BinaryIO = os.fdopen(private, mode)  # type: ignore[assignment]
    return stream


class _Inbox:
    """Requests in order of arrival, each with its cancel."""

    def __init__(self, pipe: _Pipe) -> None:
        self._pipe = pipe
        self._waiting: queue.Queue[tuple[Json, Cancel] | None] = queue.Queue()
        self._cancels: dict[int, Cancel] = {}
        threading.Thread(target=self._read, name="requests", daemon=True).start()

    def __iter__(self) -> _Inbox:
        return self

    def __next__(self) -> tuple[Json, Cancel]:
        item = self._waiting.get()
        if item is None:
            raise StopIteration
        return item

    def finished(self, request: Json) -> None:
        self._cancels.pop(request["id"], None)

    def _read(self) -> None:
        try:
            while (message := self._pipe.receive()) is not None:
                self._take(message)
        finally:
            self._end()

    def _take(self, message: Json) -> None:
        if "cancel" in message:
            if (cancel := self._cancels.get(message["cancel"])) is not None:
                cancel.set()
            return
        number = message["id"]
        cancel = self._cancels[number] = Cancel(lambda: self._pipe.send({"id": number, "alive": True}))
        self._waiting.put((message, cancel))

    def _end(self) -> None:
        for cancel in list(self._cancels.values()):
            cancel.set()
        self._waiting.put(None)
        timer = threading.Timer(EXIT_GRACE_S, os._exit, args=(0,))
        timer.daemon = True
        timer.start()


def _answer(handler: Handler | None, request: Json, emit: Emit, cancel: Cancel) -> Json:
    """Run one request and return its terminal message; every exception becomes one."""
    try:
        if handler is None:
            raise BugError("find what a child process should do", str(request["method"]))  # noqa: TRY301
        if cancel.is_set():
            return {"cancelled": True}
        return {"done": handler(request["params"], emit, cancel)}
    except Cancelled:
        return {"cancelled": True}
    except AppError as error:
        return {"failed": error.info().as_dict()}
    except MemoryError:
        hint = "Close other programs, or use a shorter context or a smaller model."
        return {"failed": KnownError("get enough memory", hint=hint).info().as_dict()}
    except Exception as error:  # noqa: BLE001 - the converting boundary of this process
        return {"failed": _bug(error).info().as_dict()}


def _bug(error: Exception) -> BugError:
    """Name class and place only: the exception's own text may quote a message."""
    frames = traceback.extract_tb(error.__traceback__)
    sys.stderr.write("".join(f"  {frame.filename}:{frame.lineno} {frame.name}\n" for frame in frames))
    sys.stderr.write(f"{type(error).__name__}\n")
    sys.stderr.flush()
    return BugError("finish in a child process", type(error).__name__, "Please report this with the log.")


def _set_priority() -> None:
    nice = int(os.environ.get(NICE_VARIABLE, "0"))
    if nice <= 0:
        return
    with contextlib.suppress(psutil.Error, OSError):  # only a courtesy to other programs
        if sys.platform == "win32":
            psutil.Process().nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
        else:
            psutil.Process().nice(nice)


def serve(handlers: Mapping[str, Handler]) -> None:
    """Answer requests until standard input closes; each handler gets params, emit and cancel and returns its result.

    A handler may raise Cancelled (ends as cancelled), an AppError (ends as failed with its info), MemoryError (ends
    as a KnownError); anything else ends as a BugError that names the class only.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the parent, which then closes the pipe
    _set_priority()
    pipe = _Pipe()
    pipe.send({"ready": {"protocol": PROTOCOL, "pid": os.getpid()}})
    inbox = _Inbox(pipe)
    for request, cancel in inbox:
        number = request["id"]

        def emit(event: Json, number: int = number) -> None:
            pipe.send({"id": number, "event": event})

        outcome = _answer(handlers.get(request["method"]), request, emit, cancel)
        inbox.finished(request)
        pipe.send({"id": number, **outcome})
