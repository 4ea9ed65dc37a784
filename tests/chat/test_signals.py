"""What the person does to answers becomes signals, from the active branch only."""

from __future__ import annotations

import asyncio
from pathlib import Path

from app.approvals.api import Signal, SignalKind
from app.chat.api import MessageState
from app.errors import KnownError
from tests.chat.room import Room


def kinds(room: Room) -> list[SignalKind]:
    return [signal.kind for signal in room.sink.signals]


async def settle() -> None:
    await asyncio.sleep(0)


def test_the_next_message_is_a_signal_about_the_answer_before_it(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        answer = await room.say(chat, "What is my dog's name?", "Rex")
        assert kinds(room) == []
        await room.say(chat, "No, it's Biscuit.", "Sorry")
        question = (await room.chats.open(chat)).messages[2]
        assert room.sink.signals == [
            Signal(
                SignalKind.CORRECTION,
                chat,
                answer.id,
                prompt="What is my dog's name?",
                answer="Rex",
                correction="No, it's Biscuit.",
                after=question.id,
            )
        ]

    room.run(story())


def test_an_edit_is_a_signal_with_both_texts(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        answer = await room.say(chat, "q", "Rex")
        edited = await room.chats.edit_answer(chat, answer.id, "Biscuit")
        await settle()
        assert room.sink.signals == [Signal(SignalKind.EDIT, chat, answer.id, "q", "Rex", "Biscuit", edited.id)]

    room.run(story())


def test_a_like_is_a_signal_once(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        answer = await room.say(chat, "q", "a")
        await room.chats.like(chat, answer.id, liked=True)
        await room.chats.like(chat, answer.id, liked=True)
        await room.chats.like(chat, answer.id, liked=False)
        await settle()
        assert kinds(room) == [SignalKind.THUMBS_UP]

    room.run(story())


def test_asking_again_and_going_on_is_a_signal_about_the_kept_answer(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        first = await room.say(chat, "q", "thrown away")
        kept = await room.again(chat, first.id, "kept")
        await room.say(chat, "thanks, and now?", "x")
        assert kinds(room) == [SignalKind.REGENERATE, SignalKind.CORRECTION, SignalKind.REGENERATE_KEPT]
        assert {signal.message for signal in room.sink.signals[1:]} == {kept.id}
        assert "thrown away" not in str(room.sink.signals[1:])

    room.run(story())


def test_asking_again_and_liking_is_kept_too(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        first = await room.say(chat, "q", "one")
        kept = await room.again(chat, first.id, "two")
        await room.chats.like(chat, kept.id, liked=True)
        await settle()
        assert kinds(room) == [SignalKind.REGENERATE, SignalKind.THUMBS_UP, SignalKind.REGENERATE_KEPT]

    room.run(story())


def test_an_edited_answer_does_not_count_as_chosen_among_regenerated_ones(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        first = await room.say(chat, "q", "one")
        await room.chats.edit_answer(chat, first.id, "two")
        await room.say(chat, "and now?", "x")
        assert kinds(room) == [SignalKind.EDIT, SignalKind.CORRECTION]

    room.run(story())


def test_one_of_three_regenerated_answers_is_the_only_text_in_its_signal(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        first = await room.say(chat, "q", "alpha")
        second = await room.again(chat, first.id, "beta")
        await room.again(chat, first.id, "gamma")
        await room.chats.choose(chat, second.id)
        await room.chats.like(chat, second.id, liked=True)
        await settle()
        liked = [signal for signal in room.sink.signals if signal.kind is SignalKind.THUMBS_UP]
        assert [(signal.answer, signal.message) for signal in liked] == [("beta", second.id)]
        assert all(word not in str(liked) for word in ("alpha", "gamma"))

    room.run(story())


def test_a_receiver_that_fails_cannot_touch_the_conversation(tmp_path: Path):
    room = Room(tmp_path)
    seen: list[str] = []

    async def story():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: seen.append(str(context["exception"])))
        room.sink.error = RuntimeError("bad receiver")
        chat = await room.new()
        await room.say(chat, "q1", "a1")
        assert (await room.say(chat, "q2", "a2")).text == "a2"

    room.run(story())
    assert seen == ["bad receiver"]


def test_an_answer_that_failed_gives_no_signal(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        room.engine.die_next = True
        await room.say(chat, "q1", "half")
        await room.say(chat, "no, it's X", "a2")
        assert kinds(room) == []

    room.run(story())


def test_open_turns_are_those_of_the_conversation_used_last(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        assert await room.chats.open_turns() == ()
        a, b = await room.new(), await room.new()
        await room.say(a, "in a", "1")
        await room.say(b, "in b", "2")
        await room.chats.open(a)
        assert [turn.text for turn in await room.chats.open_turns()] == ["in a", "1"]
        await room.chats.delete(a)
        assert await room.chats.open_turns() == ()

    room.run(story())


def test_a_signal_is_told_once_its_answer_is_on_its_way_or_has_failed(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        await room.say(chat, "q1", "a1")
        asked_when_told: list[int] = []
        room.sink.told = lambda: asked_when_told.append(len(room.engine.asked))
        await room.say(chat, "no, it's X", "a2")
        assert asked_when_told == [2]
        room.engine.count_error = KnownError("count")
        room.chats._limit = 200  # holds the message, not the branch
        failed = await room.say(chat, "q3")
        await settle()
        assert failed.state is MessageState.FAILED
        assert len(asked_when_told) == 2

    room.run(story())
