"""The core thread: who hears of what fails there."""

from __future__ import annotations

import asyncio

from app.tasks import CoreThread, TaskSet


def test_a_background_task_of_the_core_that_fails_is_told_to_its_owner() -> None:
    told: list[object] = []
    core = CoreThread(lambda _, context: told.append(context.get("exception")))

    async def fail() -> None:
        raise ValueError

    async def main() -> None:
        await asyncio.wait([TaskSet().start(fail(), "failing")])

    core.run(main())
    core.close()
    assert [type(error) for error in told] == [ValueError]
