"""Jobs and events of a trainer as JSON, for both sides of its child process. Pure: no files, no runtime.

The child answers two methods. ``warm`` takes a base, perhaps with a recipe and generic examples, and returns ``{}``.
``train`` takes a job, emits ``Training`` steps and returns ``Trained``. The types of ``app.model.api`` are the format:
pydantic checks every field on arrival, so a value of the wrong shape never reaches a training loop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from app.errors import BugError
from app.model.api import (
    BaseFiles,
    Cancelled,
    Example,
    Failed,
    Recipe,
    Trained,
    TrainEvent,
    Training,
    TrainJob,
)
from app.model.child.protocol import Json, error_from

T = TypeVar("T")

_BASE = TypeAdapter(BaseFiles)
_JOB = TypeAdapter(TrainJob)
_RECIPE = TypeAdapter(Recipe)
_EXAMPLES = TypeAdapter(tuple[Example, ...])
_STEP = TypeAdapter(Training)
_RESULT = TypeAdapter(Trained)


def base_to_json(base: BaseFiles) -> Json:
    """Return the parameters of ``warm``."""
    return {"base": _dump(_BASE, base)}


def base_from_json(params: Json) -> BaseFiles:
    """Read the parameters of ``warm``. Raises BugError if they are none."""
    return _read(_BASE, params.get("base"), "the base of a trainer")


def warm_to_json(base: BaseFiles, recipe: Recipe | None, generic: Sequence[Example]) -> Json:
    """Return the parameters of ``warm`` with what it may measure beforehand."""
    if recipe is None or not generic:
        return base_to_json(base)
    return {
        **base_to_json(base),
        "recipe": _dump(_RECIPE, recipe),
        "generic": _EXAMPLES.dump_python(tuple(generic), mode="json"),
    }


def warm_from_json(params: Json) -> tuple[BaseFiles, Recipe | None, tuple[Example, ...]]:
    """Read the parameters of ``warm``. Raises BugError if they are none."""
    base = base_from_json(params)
    if "recipe" not in params:
        return base, None, ()
    return (
        base,
        _read(_RECIPE, params["recipe"], "the recipe of a trainer"),
        _read(_EXAMPLES, params.get("generic"), "generic examples of a trainer"),
    )


def job_to_json(job: TrainJob) -> Json:
    """Return the parameters of ``train``."""
    return _dump(_JOB, job)


def job_from_json(params: Json) -> TrainJob:
    """Read the parameters of ``train``. Raises BugError if they are none."""
    return _read(_JOB, params, "a training job")


def step_to_json(step: Training) -> Json:
    """Return one event of ``train``."""
    return _dump(_STEP, step)


def result_to_json(result: Trained) -> Json:
    """Return the result of ``train``."""
    return _dump(_RESULT, result)


def event_from_message(message: Json) -> TrainEvent:
    """Read one message of the stream of ``train``: a step, or how it ended. Raises BugError if it is none."""
    if "cancelled" in message:
        return Cancelled()
    if "failed" in message:
        return Failed(error_from(message["failed"]))
    if "done" in message:
        return _read(_RESULT, message["done"], "the result of a training job")
    return _read(_STEP, message, "a step of a training job")


def _dump(kind: TypeAdapter[T], value: T) -> Json:
    plain: Json = kind.dump_python(value, mode="json")
    return {key: _finite(item) for key, item in plain.items()}


def _finite(item: Any) -> Any:
    """JSON has no infinity; its name reads back as the same float. A margin is -inf before anything was measured."""
    return str(item) if isinstance(item, float) and not math.isfinite(item) else item


def _read(kind: TypeAdapter[T], value: Any, subject: str) -> T:
    """Check and convert a value; pydantic's own words would quote what people wrote, so only places are told."""
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        places = sorted({".".join(str(part) for part in problem["loc"][:1]) for problem in error.errors()})
        raise BugError("read a message of the trainer", f"{subject}: {', '.join(places)}") from None
