"""A child that looks inside the llama.cpp backend: prompt ids and exact logits, which no engine method shows."""

from __future__ import annotations

import hashlib
from pathlib import Path

from app.model.api import Score
from app.model.child.protocol import Json
from app.model.child.serve import Cancel, Emit, serve
from app.model.engine import wire
from app.model.engine.backends.llama import LlamaBackend
from app.model.engine.host import LoadRequest


def logits(params: Json, emit: Emit, cancel: Cancel) -> Json:
    """Go through steps in one process: an adapter, then turns; return the hash of the last logits of each step."""
    backend = _loaded(params)
    hashes = []
    for step in params["steps"]:
        if "adapter" in step:
            backend.activate(wire.adapter_from(step["adapter"]))
        backend.prefill(wire.turns_from(step["turns"]), cancel)
        hashes.append(hashlib.sha256(backend._base.chat.context.last_logits().tobytes()).hexdigest())
    return {"hashes": hashes}


def ids(params: Json, emit: Emit, cancel: Cancel) -> Json:
    """Return the ids of a prompt, and of an answer to it."""
    backend = _loaded(params)
    turns = wire.turns_from(params["turns"])
    item = Score(turns, params["answer"])
    return {"prompt": backend._prompt(turns, answer=True), "answer": list(backend._to_score(0, item).scored.answer)}


def _loaded(params: Json) -> LlamaBackend:
    backend = LlamaBackend()
    request = LoadRequest(params["passport_id"], Path(params["path"]), params["context_tokens"], params["threads"])
    backend.load(request, lambda: None)
    return backend


if __name__ == "__main__":
    serve({"logits": logits, "ids": ids})
