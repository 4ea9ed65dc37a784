"""A child that does what a test tells it, the bad things included."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time

import psutil

from app.errors import KnownError
from app.model.child.protocol import Json
from app.model.child.serve import Cancel, Cancelled, Emit, serve


def echo(params: Json, emit: Emit, cancel: Cancel) -> Json:
    print("a stray line of some library")  # noqa: T201 - the point of it
    os.write(1, b"and one from native code\n")
    for word in params.get("words", []):
        emit({"word": word})
    return params


def count(params: Json, emit: Emit, cancel: Cancel) -> Json:
    for number in range(params["to"]):
        emit({"number": number})
        if cancel.wait(params.get("pause_s", 0.01)):
            raise Cancelled
    return {"last": params["to"]}


def fail(params: Json, emit: Emit, cancel: Cancel) -> Json:
    errors = {
        "known": KnownError("open the file", "a.gguf", "Choose another."),
        "value": ValueError("the secret text of a message"),
        "memory": MemoryError(),
    }
    raise errors[params["how"]]


def die(params: Json, emit: Emit, cancel: Cancel) -> Json:
    emit({"going": True})
    if "exit" in params:
        os._exit(params["exit"])
    os.kill(os.getpid(), getattr(signal, params["signal"]))
    time.sleep(30)
    return {}


def hang(params: Json, emit: Emit, cancel: Cancel) -> Json:
    emit({"going": True})
    time.sleep(60)
    return {}


def ponder(params: Json, emit: Emit, cancel: Cancel) -> Json:
    """Say nothing for long, but look at the cancel as every good handler does."""
    end = time.monotonic() + params["seconds"]
    while time.monotonic() < end:
        if cancel.is_set():
            raise Cancelled
        time.sleep(0.01)
    return {}


def gobble(params: Json, emit: Emit, cancel: Cancel) -> Json:
    """Meet the memory limit, as Python does (an exception) or as native code does (a message and an abort)."""
    limit = psutil.Process().memory_info().vms + 64 * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        block = bytearray(1024 * 1024 * 1024)
    except MemoryError:
        if params["how"] == "python":
            raise
        sys.stderr.write("terminate called after throwing an instance of 'std::bad_alloc'\n")
        sys.stderr.flush()
        os.abort()
    return {"got": len(block)}


def break_protocol(params: Json, emit: Emit, cancel: Cancel) -> Json:
    for descriptor in range(3, 16):
        try:
            os.write(descriptor, b"not json\n")
        except OSError:
            continue
    time.sleep(30)
    return {}


def about(params: Json, emit: Emit, cancel: Cancel) -> Json:
    return {"pid": os.getpid(), "nice": psutil.Process().nice(), "environment": dict(os.environ), "path": sys.path}


HANDLERS = {
    "echo": echo,
    "count": count,
    "fail": fail,
    "die": die,
    "hang": hang,
    "gobble": gobble,
    "ponder": ponder,
    "break_protocol": break_protocol,
    "about": about,
}

if __name__ == "__main__":
    serve(HANDLERS)
