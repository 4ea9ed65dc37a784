"""The child process that prepares and deeply checks bases: seconds of work that must not block the conversation."""

from __future__ import annotations

from pathlib import Path

from app.model.base_manifest import check_files
from app.model.base_prepare import prepare_base
from app.model.child.protocol import Json
from app.model.child.serve import Cancel, Cancelled, Emit, serve
from app.store.files import RealFiles


def prepare(params: Json, emit: Emit, cancel: Cancel) -> Json:
    """Prepare one base; events are ``{"words", "share"}``."""

    def progress(words: str, share: float) -> None:
        if cancel.is_set():
            raise Cancelled
        emit({"words": words, "share": share})

    folder = prepare_base(Path(params["source"]), Path(params["bases"]), files=RealFiles(), progress=progress)
    return {"folder": str(folder)}


def check(params: Json, emit: Emit, cancel: Cancel) -> Json:  # noqa: ARG001 - a handler's signature
    """Re-read every file of one base and compare its hash."""
    check_files(Path(params["folder"]), deep=True)
    return {}


if __name__ == "__main__":
    serve({"prepare": prepare, "check": check})
