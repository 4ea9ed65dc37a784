"""One answer after another: streaming, stopping, failing, queueing, context."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from sqlmodel import select

from app.chat.api import AnswerEnded, AnswerText, MessageState, Started
from app.chat.context import ChatSettings
from app.chat.context import room as room_for
from app.errors import KnownError, UserError
from app.model.api import Role, Sampling, Turn
from app.store.tables import MessageRow
from tests.chat.room import WINDOW, Room, ended


def stored(room: Room, answer: str) -> MessageRow:
    with room.database.session() as session:
        return session.exec(select(MessageRow).where(MessageRow.id == answer)).one()


async def until_text(room: Room, answer: str, text: str) -> None:
    for _ in range(300):
        if stored(room, answer).text == text:
            return
        await asyncio.sleep(0.01)
    pytest.fail("the text was never stored")


def test_a_turn_starts_streams_and_ends(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        room.engine.scripts.append(["Hel", "lo", "."])
        events = [event async for event in room.chats.send(chat, "Hi")]
        assert isinstance(events[0], Started)
        assert (events[0].message.text, events[0].message.role) == ("Hi", Role.USER)
        assert [event.text for event in events[1:-1] if isinstance(event, AnswerText)] == ["Hel", "lo", "."]
        assert isinstance(events[-1], AnswerEnded)
        answer = events[-1].message
        assert (answer.id, answer.text, answer.state) == (events[0].answer_id, "Hello.", MessageState.COMPLETE)
        assert answer.version == 3
        assert answer.tokens_per_second == pytest.approx(50)
        assert stored(room, answer.id).commit == room.head.commit

    room.run(story())


def test_both_messages_are_stored_before_the_first_event(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        events = room.chats.send(chat, "Hi")
        started = await anext(aiter(events))
        assert isinstance(started, Started)
        assert stored(room, started.message.id).text == "Hi"
        assert stored(room, started.answer_id).state == MessageState.STREAMING
        _ = [event async for event in events]

    room.run(story())


def test_streamed_text_is_stored_while_it_streams_and_survives_a_kill(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        room.engine.hold = asyncio.Event()
        room.engine.scripts.append(["so far", " so good"])
        listening = asyncio.ensure_future(ended(room.chats.send(chat, "Hi")))
        await asyncio.sleep(0.01)
        answer = (await room.chats.open(chat)).messages[-1]
        await until_text(room, answer.id, "so far")
        assert stored(room, answer.id).state == MessageState.STREAMING
        # what another process would find after kill -9 now
        assert await room.chats.recover() == 1
        after = (await room.chats.open(chat)).messages
        assert [(message.text, message.state) for message in after] == [
            ("Hi", MessageState.COMPLETE),
            ("so far", MessageState.STOPPED),
        ]
        room.engine.hold.set()
        await listening

    room.run(story())


def test_stopping_keeps_the_text_so_far(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        room.engine.hold = asyncio.Event()
        room.engine.scripts.append(["one", " two"])
        listening = asyncio.ensure_future(ended(room.chats.send(chat, "count")))
        await asyncio.sleep(0.01)
        await room.chats.stop()
        answer = await listening
        assert (answer.text, answer.state, answer.error) == ("one", MessageState.STOPPED, None)
        assert stored(room, answer.id).state == MessageState.STOPPED

    room.run(story())


def test_stopping_when_nothing_streams_does_nothing(tmp_path: Path):
    room = Room(tmp_path)
    room.run(room.chats.stop())


def test_a_failure_keeps_both_texts_and_says_why_and_can_be_retried(tmp_path: Path):
    room = Room(tmp_path)
    error = KnownError("answer", "the model process", "It was killed because memory ran out.").info()

    async def story():
        chat = await room.new()
        room.engine.fail_next = error
        failed = await room.say(chat, "Hi", "half an ans")
        assert (failed.state, failed.text, failed.error) == (MessageState.FAILED, "half an ans", error)
        again = await room.again(chat, failed.id, "whole answer")
        assert (again.state, again.text) == (MessageState.COMPLETE, "whole answer")
        assert await room.texts(chat) == ["Hi", "whole answer"]

    room.run(story())


def test_an_answer_that_failed_without_a_word_is_no_alternative_to_the_retry(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        room.engine.scripts.append([])
        room.engine.fail_next = KnownError("answer").info()
        failed = await ended(room.chats.send(chat, "Hi"))
        assert (failed.text, failed.siblings, failed.sibling_ids) == ("", 1, (failed.id,))
        again = await room.again(chat, failed.id, "fine")
        assert (again.siblings, again.sibling) == (1, 1)
        assert [turn.text for turn in room.engine.asked[-1]] == ["Hi"]

    room.run(story())


def test_a_stream_without_an_end_is_a_failure_not_an_answer(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        room.engine.die_next = True
        answer = await room.say(chat, "Hi", "half")
        assert (answer.state, answer.text) == (MessageState.FAILED, "half")
        assert answer.error is not None
        assert answer.error.kind == "BugError"

    room.run(story())


def test_an_error_nobody_named_ends_the_answer_and_reaches_the_loops_handler(tmp_path: Path):
    room = Room(tmp_path)
    seen: list[object] = []

    async def story():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: seen.append(context["exception"]))
        chat = await room.new()
        room.engine.break_next = RuntimeError("boom")
        answer = await room.say(chat, "Hi", "half")
        await asyncio.sleep(0)
        assert (answer.state, answer.text) == (MessageState.FAILED, "half")
        assert (await room.say(chat, "Still there?", "Yes")).text == "Yes"

    room.run(story())
    assert [str(error) for error in seen] == ["boom"]


def test_a_turn_ends_although_nobody_listens_any_more(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        room.engine.hold = asyncio.Event()
        room.engine.scripts.append(["one", " two"])
        events = room.chats.send(chat, "count")
        started = await anext(aiter(events))
        assert isinstance(started, Started)
        await events.aclose()  # type: ignore[attr-defined]
        room.engine.hold.set()
        await until_text(room, started.answer_id, "one two")
        assert stored(room, started.answer_id).state == MessageState.COMPLETE

    room.run(story())


def test_closing_the_app_stores_what_was_streamed(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        room.engine.hold = asyncio.Event()
        room.engine.scripts.append(["one", " two"])
        events = room.chats.send(chat, "count")
        await anext(aiter(events))
        await asyncio.sleep(0.005)
        await room.chats.close()
        return (await room.chats.open(chat)).messages[-1]

    answer = room.run(story())
    assert (answer.text, answer.state) == ("one", MessageState.STOPPED)


def test_another_conversation_can_be_opened_while_one_streams_and_two_sends_queue(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        a, b = await room.new(), await room.new()
        room.engine.hold = asyncio.Event()
        room.engine.scripts += [["in ", "a"], ["in ", "b"]]
        first = asyncio.ensure_future(ended(room.chats.send(a, "to a")))
        await asyncio.sleep(0.01)
        second = asyncio.ensure_future(ended(room.chats.send(b, "to b")))
        await asyncio.sleep(0.01)
        view = await asyncio.wait_for(room.chats.open(b), 1)
        assert [message.text for message in view.messages] == ["to b", ""]
        assert view.messages[-1].state is MessageState.STREAMING
        assert len(room.engine.asked) == 1
        room.engine.hold.set()
        assert [(await first).text, (await second).text] == ["in a", "in b"]
        assert room.engine.most_running == 1

    room.run(story())


def test_stop_ends_the_running_answer_and_lets_the_queued_one_run(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        a, b = await room.new(), await room.new()
        room.engine.hold = asyncio.Event()
        room.engine.scripts += [["in ", "a"], ["in ", "b"]]
        first = asyncio.ensure_future(ended(room.chats.send(a, "to a")))
        await asyncio.sleep(0.01)
        second = asyncio.ensure_future(ended(room.chats.send(b, "to b")))
        await asyncio.sleep(0.01)
        await room.chats.stop()
        assert (await first).state is MessageState.STOPPED
        room.engine.hold.set()
        assert (await second).text == "in b"

    room.run(story())


def test_a_second_message_in_the_same_conversation_sees_the_first_answer(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        room.engine.scripts += [["Hello", " Ada"], ["fine"]]
        first = asyncio.ensure_future(ended(room.chats.send(chat, "I am Ada")))
        second = asyncio.ensure_future(ended(room.chats.send(chat, "How are you?")))
        await asyncio.gather(first, second)
        assert [turn.text for turn in room.engine.asked[-1]] == ["I am Ada", "Hello Ada", "How are you?"]

    room.run(story())


def test_deleting_a_conversation_stops_its_answer_and_skips_its_queued_one(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        room.engine.hold = asyncio.Event()
        room.engine.scripts += [["one", " two"], ["never"]]
        first = asyncio.ensure_future(ended(room.chats.send(chat, "a")))
        second = asyncio.ensure_future(ended(room.chats.send(chat, "b")))
        await asyncio.sleep(0.01)
        await room.chats.delete(chat)
        assert ((await first).text, (await first).state) == ("one", MessageState.STOPPED)
        assert ((await second).text, (await second).state) == ("", MessageState.STOPPED)
        assert len(room.engine.asked) == 1

    room.run(story())


@pytest.mark.parametrize("text", ["", " ", "\n\t \n"])
def test_blank_text_is_not_sent(tmp_path: Path, text: str):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        with pytest.raises(UserError):
            await room.say(chat, text)
        assert await room.texts(chat) == []

    room.run(story())


def test_without_a_model_the_text_stays_in_the_composer_with_a_reason(tmp_path: Path):
    room = Room(tmp_path)
    room.readiness.error = KnownError("answer", "no model is loaded", "Choose a model in Settings.")

    async def story():
        chat = await room.new()
        with pytest.raises(KnownError, match="Choose a model"):
            await room.say(chat, "my text")
        view = await room.chats.open(chat)
        assert (view.messages, view.draft) == ((), "my text")

    room.run(story())


def test_a_message_longer_than_the_window_is_refused_and_kept_as_the_draft(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        text = "word " * WINDOW
        with pytest.raises(UserError, match="Shorten it"):
            await room.say(chat, text)
        view = await room.chats.open(chat)
        assert (view.messages, view.draft) == ((), text)

    room.run(story())


def test_a_megabyte_is_refused_or_taken_within_a_second(tmp_path: Path):
    room = Room(tmp_path)
    text = "\n".join(f"line {number} of a long paste with some words" for number in range(20_000)) + "x" * 100_000

    async def story():
        chat = await room.new()
        before = time.process_time()
        with pytest.raises(UserError):
            await room.say(chat, text)
        assert time.process_time() - before < 1
        assert (await room.chats.open(chat)).draft == text

    room.run(story())


def test_a_short_message_is_stored_without_asking_the_model_for_its_length(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        room.engine.count_error = KnownError("count")
        events = room.chats.send(chat, "Hi")
        assert isinstance(await anext(aiter(events)), Started)
        assert room.engine.counted == 0
        room.engine.count_error = None
        _ = [event async for event in events]

    room.run(story())


def test_a_message_that_cannot_be_counted_stays_as_the_draft(tmp_path: Path):
    room = Room(tmp_path)
    room.engine.count_error = KnownError("count the tokens", "", "The model is gone.")

    async def story():
        chat = await room.new()
        with pytest.raises(KnownError):
            await room.say(chat, "x" * WINDOW)
        assert (await room.chats.open(chat)).draft == "x" * WINDOW

    room.run(story())


def test_the_model_sees_the_whole_branch_while_it_fits(tmp_path: Path):
    room = Room(tmp_path)
    room.settings = ChatSettings(system_prompt="Be kind.")

    async def story():
        chat = await room.new()
        await room.say(chat, "one", "1")
        await room.say(chat, "two", "2")
        assert room.engine.asked[-1] == (
            Turn(Role.SYSTEM, "Be kind."),
            Turn(Role.USER, "one"),
            Turn(Role.ASSISTANT, "1"),
            Turn(Role.USER, "two"),
        )

    room.run(story())


def test_the_oldest_exchanges_are_dropped_when_the_branch_is_too_long(tmp_path: Path):
    room = Room(tmp_path)
    room.settings = ChatSettings(system_prompt="Be kind.", sampling=Sampling(max_tokens=100))
    limit = room_for(WINDOW, room.settings.sampling)

    async def story():
        chat = await room.new()
        for number in range(6):
            await room.say(chat, f"{number}" * 300, f"answer {number} " + "a" * 200)
        seen = room.engine.asked[-1]
        assert seen[0] == Turn(Role.SYSTEM, "Be kind.")
        assert seen[1].role is Role.USER
        assert seen[-1].text == "5" * 300
        used = await room.engine.count(seen)
        assert used <= limit < used + 520  # not one exchange more would have fitted
        view = await room.chats.open(chat)
        assert view.context_tokens > view.context_limit == WINDOW
        assert len(view.messages) == 12

    room.run(story())


def test_the_view_tells_the_measured_tokens_once_the_engine_has_answered(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        assert (await room.chats.open(chat)).context_tokens == 0
        await room.say(chat, "four", "five!")
        assert (await room.chats.open(chat)).context_tokens == (4 + 4) + 5

    room.run(story())


def test_a_disk_that_refuses_in_the_middle_still_shows_the_whole_answer(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        room.engine.hold = asyncio.Event()
        room.engine.scripts.append(["one", " two"])
        listening = asyncio.ensure_future(ended(room.chats.send(chat, "count")))
        await asyncio.sleep(0.005)
        with room.database.session() as session:
            session.connection().exec_driver_sql(
                "CREATE TRIGGER full BEFORE UPDATE ON message BEGIN SELECT RAISE(ABORT, 'no'); END"
            )
        room.engine.hold.set()
        answer = await listening
        assert (answer.text, answer.state) == ("one two", MessageState.FAILED)
        assert answer.error is not None
        with room.database.session() as session:
            session.connection().exec_driver_sql("DROP TRIGGER full")
        assert await room.chats.recover() == 1

    room.run(story())
