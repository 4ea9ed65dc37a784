"""The engine on MLX, for Apple silicon."""

from __future__ import annotations

from app.model.child.process import ChildProcess
from app.model.child.restarts import Restarts
from app.model.engine.client import ChildEngine
from app.model.engine.crash_note import CrashNote


class MlxEngine(ChildEngine):
    """The engine on MLX: loads a model folder, and adapter folders in mlx-lm's form."""

    def __init__(
        self,
        *,
        name: str = "engine",
        nice: int = 0,
        restarts: Restarts | None = None,
        note: CrashNote | None = None,
    ) -> None:
        """``nice`` is more than 0 for the gate's engine; ``note`` remembers a crash while loading."""
        child = ChildProcess("app.model.engine.backends.mlx", name=name, nice=nice)
        super().__init__(child, restarts=restarts or Restarts(name), note=note)
