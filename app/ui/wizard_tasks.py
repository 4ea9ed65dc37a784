"""The tasks of one dialog: they end with it, since what they would show is gone."""

from __future__ import annotations

from app.tasks import TaskSet


class DialogTasks(TaskSet):
    """Tasks that are told to stop when their dialog closes, without waiting for them."""

    def cancel_all(self) -> None:
        """Cancel everything that runs; each task ends at its next turn."""
        for task in list(self._tasks):
            task.cancel()
