"""kill -9 while an answer streams: nothing stored is lost, and the next start says how it stands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from app.chat.api import MessageState
from tests.chat.room import Room

ROOT = Path(__file__).parents[2]


def test_a_killed_app_keeps_the_prompt_and_the_text_streamed_half_a_second_before(tmp_path: Path):
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.chat.slow_chat", str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert child.stdout is not None
    for line in child.stdout:
        if line.strip() == "word20":
            break
    child.kill()
    child.wait()
    child.stdout.close()

    room = Room(tmp_path)

    async def after():
        assert await room.chats.recover() == 1
        (chat,) = await room.chats.list()
        question, answer = (await room.chats.open(chat.id)).messages
        assert question.text == "my only copy of this text"
        assert answer.state is MessageState.STOPPED
        assert answer.text.startswith("word1 word2 word3 word4 ")
        again = await room.again(chat.id, answer.id, "whole")
        assert again.text == "whole"

    room.run(after())
