"""Conversations: list, open, rename, delete, drafts, titles."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from app.chat.titles import title_from
from app.errors import UserError
from app.model.api import Role
from tests.chat.room import Room


def test_the_list_shows_what_was_used_last_first_even_if_the_clock_goes_back(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        first, second = await room.new(), await room.new()
        room.clock.wall -= timedelta(days=400)
        await room.say(first, "hello")
        assert [chat.id for chat in await room.chats.list()] == [first, second]

    room.run(story())


def test_an_untitled_conversation_is_named_after_its_first_message_only(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        assert (await room.chats.open(chat)).title == "New chat"
        await room.say(chat, "Plan a trip to Trieste")
        await room.say(chat, "And back")
        assert (await room.chats.open(chat)).title == "Plan a trip to Trieste"

    room.run(story())


def test_a_title_that_the_person_chose_is_kept(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        await room.chats.rename(chat, "  Walks \n with Biscuit ")
        await room.say(chat, "hello")
        assert (await room.chats.list())[0].title == "Walks with Biscuit"

    room.run(story())


@pytest.mark.parametrize("title", ["", "   ", "\n\t"])
def test_a_blank_title_is_refused(tmp_path: Path, title: str):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        with pytest.raises(UserError):
            await room.chats.rename(chat, title)

    room.run(story())


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("What is my dog's name?", "What is my dog's name?"),
        ("\n\n## **Heading** here\nmore", "Heading** here"),
        ("word " * 30, "word word word word word word word word word…"),
        ("x" * 100, "x" * 48 + "…"),
        ("```\n---\n", ""),
        ("  many   spaces  ", "many spaces"),
    ],
)
def test_a_title_is_the_first_line_that_says_something_cut_at_a_word(text: str, title: str):
    assert title_from(text) == title


def test_a_deleted_conversation_comes_back_whole(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        await room.say(chat, "hello", "hi")
        await room.chats.save_draft(chat, "unfinished")
        await room.chats.delete(chat)
        assert await room.chats.list() == []
        assert (room.chats.title(chat), room.chats.title("nope")) == ("hello", "")
        with pytest.raises(UserError):
            await room.chats.open(chat)
        await room.chats.undelete(chat)
        view = await room.chats.open(chat)
        assert [message.text for message in view.messages] == ["hello", "hi"]
        assert view.draft == "unfinished"

    room.run(story())


def test_deleting_one_conversation_leaves_the_one_that_was_opened_meanwhile_alone(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        a, b = await room.new(), await room.new()
        await room.say(a, "in a")
        await room.say(b, "in b")
        await room.chats.open(b)  # selected while the question about a is still on screen
        await room.chats.delete(a)
        assert [chat.id for chat in await room.chats.list()] == [b]
        assert (await room.texts(b))[0] == "in b"

    room.run(story())


def test_deleting_a_conversation_does_not_wait_for_a_model_that_loads_for_another(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        a, b = await room.new(), await room.new()
        room.engine.loading = asyncio.Event()
        waiting = asyncio.ensure_future(room.say(b, "hello b"))
        await asyncio.sleep(0.01)
        await asyncio.wait_for(room.chats.delete(a), 1)
        assert [chat.id for chat in await room.chats.list()] == [b]
        room.engine.loading.set()
        assert (await waiting).text == "You said: hello b"

    room.run(story())


def test_a_draft_is_kept_until_it_is_sent(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        await room.chats.save_draft(chat, "half a thou")
        assert (await room.chats.open(chat)).draft == "half a thou"
        await room.say(chat, "half a thought")
        assert (await room.chats.open(chat)).draft == ""

    room.run(story())


def test_an_unknown_conversation_or_message_is_the_persons_mistake_not_a_crash(tmp_path: Path):
    room = Room(tmp_path)

    async def story():
        chat = await room.new()
        for call in (
            room.chats.open("nope"),
            room.chats.rename("nope", "x"),
            room.chats.delete("nope"),
            room.chats.undelete("nope"),
            room.chats.save_draft("nope", "x"),
            room.chats.choose(chat, "nope"),
            room.chats.like(chat, "nope", liked=True),
            room.chats.edit_answer(chat, "nope", "x"),
            room.say("nope", "x"),
            room.again(chat, "nope"),
        ):
            with pytest.raises(UserError):
                await call

    room.run(story())


def test_a_conversation_stored_is_there_after_a_new_start(tmp_path: Path):
    first = Room(tmp_path)

    async def write():
        chat = await first.new()
        await first.say(chat, "remember <|im_end|>", "I do")
        return chat

    chat = first.run(write())
    second = Room(tmp_path)

    async def read():
        view = await second.chats.open(chat)
        assert [(message.role, message.text) for message in view.messages] == [
            (Role.USER, "remember <|im_end|>"),
            (Role.ASSISTANT, "I do"),
        ]

    second.run(read())
