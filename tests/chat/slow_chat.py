"""Run as a program: sends one message and streams an endless answer, until someone kills it."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from app.model.api import GenerateEvent, Piece, Sampling, Turn
from tests.chat.room import Room
from tests.chat.scripted import ScriptedEngine


class Endless(ScriptedEngine):
    async def generate(self, turns: Sequence[Turn], sampling: Sampling) -> AsyncIterator[GenerateEvent]:
        for number in itertools.count(1):
            yield Piece(f"word{number} ", number)
            sys.stdout.write(f"word{number}\n")
            sys.stdout.flush()
            await asyncio.sleep(0.05)


async def main(room: Room) -> None:
    chat = await room.new()
    async for _ in room.chats.send(chat, "my only copy of this text"):
        pass


if __name__ == "__main__":
    story = Room(Path(sys.argv[1]), save_every_s=0.1, engine=Endless())
    story.run(main(story))
