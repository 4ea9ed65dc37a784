"""Whatever happens in a conversation, its words are not in the logs."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from app.approvals.drafts import draft
from app.errors import KnownError
from app.log import loop_crash, start_logging, stop_logging
from tests.chat.room import Room, ended

CANARY = "xylocarp"


def test_no_word_of_a_conversation_reaches_the_logs(tmp_path: Path):
    logs = tmp_path / "logs"
    handler = start_logging(logs, level=logging.DEBUG)
    root = logging.getLogger()
    root.setLevel(logging.DEBUG)
    room = Room(tmp_path)

    async def story():
        asyncio.get_running_loop().set_exception_handler(loop_crash())
        chat = await room.new()
        answer = await room.say(chat, f"What is a {CANARY}?", f"A {CANARY} is ", "a bird.")
        room.engine.fail_next = KnownError("answer", "the model", "It ended.").info()
        await room.say(chat, f"No, it's a hard fruit, a {CANARY}", CANARY)
        room.engine.break_next = RuntimeError(CANARY)
        await room.say(chat, f"again {CANARY}", CANARY)
        await room.again(chat, answer.id, CANARY)
        edited = await room.chats.edit_answer(chat, answer.id, f"A {CANARY} is a hard fruit.")
        await room.chats.like(chat, edited.id, liked=True)
        await room.chats.rename(chat, CANARY)
        await room.chats.save_draft(chat, CANARY)
        room.sink.error = RuntimeError(CANARY)
        room.engine.hold = asyncio.Event()
        room.engine.scripts.append([CANARY, CANARY])
        listening = asyncio.ensure_future(ended(room.chats.send(chat, f"{CANARY}!")))
        await asyncio.sleep(0.01)
        with room.database.session() as session:  # every store of an answer fails from here on
            session.connection().exec_driver_sql(
                f"CREATE TRIGGER t BEFORE UPDATE ON message BEGIN SELECT RAISE(ABORT, '{CANARY}'); END"
            )
        await asyncio.sleep(0.05)
        room.engine.hold.set()
        assert (await listening).error is not None
        assert any(draft(signal) for signal in room.sink.signals)

    try:
        room.run(story())
    finally:
        stop_logging(handler)
        root.setLevel(logging.WARNING)
    text = "".join(path.read_text() for path in logs.iterdir())
    assert "could not be stored" in text
    assert "a task failed" in text
    assert CANARY not in text.lower()
