"""From a conversation to a card: the real chat, the real judgement, the real table; only the model is scripted."""

from __future__ import annotations

import asyncio
from pathlib import Path

from app.approvals.api import ProposalState, Signal
from app.approvals.drafts import draft
from app.approvals.proposals import Proposals
from app.store.tables import ProposalRow
from tests.chat.room import Room


class Judge:
    """What the learning loop does with a signal, without a model to ask."""

    def __init__(self, room: Room) -> None:
        self.proposals = Proposals(room.database, lambda _kind, _payload: None, room.clock)

    def on_signal(self, signal: Signal) -> None:
        found = draft(signal)
        if found is not None:
            self.proposals.surface(found, signal)


def judged(room: Room) -> Judge:
    judge = Judge(room)
    room.chats._sink = judge
    return judge


async def cards(judge: Judge, chat: str) -> list[ProposalRow]:
    await asyncio.sleep(0)
    return judge.proposals.of_chat(chat)


def test_a_correction_in_the_conversation_becomes_a_card_below_it(tmp_path: Path):
    room = Room(tmp_path)
    judge = judged(room)

    async def story():
        chat = await room.new()
        await room.say(chat, "Remind me, what's my dog called? I want to print a name tag.", "I don't know your dog.")
        assert await cards(judge, chat) == []
        await room.say(chat, "No, you should know this one: he is called Biscuit.", "I see.")
        (card,) = await cards(judge, chat)
        assert card.message == (await room.chats.open(chat)).messages[2].id
        assert (card.prompt, card.answer) == ("What's my dog called?", "Your dog is called Biscuit.")
        await room.say(chat, "thanks, that's right", "You're welcome.")
        assert len(await cards(judge, chat)) == 1

    room.run(story())


def test_liking_and_then_correcting_one_answer_leaves_one_card(tmp_path: Path):
    room = Room(tmp_path)
    judge = judged(room)

    async def story():
        chat = await room.new()
        answer = await room.say(chat, "What is my dog's name?", "Your dog's name is Rex.")
        await room.chats.like(chat, answer.id, liked=True)
        (liked,) = await cards(judge, chat)
        assert liked.answer == "Your dog's name is Rex."
        await room.say(chat, "No, it's Biscuit.", "Sorry.")
        (card,) = await cards(judge, chat)
        assert card.answer == "Your dog's name is Biscuit."
        assert judge.proposals.get(liked.id).state == ProposalState.SUPERSEDED

    room.run(story())


def test_one_of_three_regenerated_answers_is_taught_and_its_siblings_never(tmp_path: Path):
    room = Room(tmp_path)
    judge = judged(room)

    async def story():
        chat = await room.new()
        first = await room.say(chat, "Write a motto", "alpha alpha")
        second = await room.again(chat, first.id, "beta beta")
        await room.again(chat, first.id, "gamma gamma")
        await room.chats.choose(chat, second.id)
        await room.chats.like(chat, second.id, liked=True)
        (card,) = await cards(judge, chat)
        assert (card.prompt, card.answer, card.rejected) == ("Write a motto", "beta beta", "")

    room.run(story())


def test_editing_twice_leaves_the_last_wording_on_one_card(tmp_path: Path):
    room = Room(tmp_path)
    judge = judged(room)

    async def story():
        chat = await room.new()
        answer = await room.say(chat, "What is my dog's name?", "Your dog's name is Rex.")
        once = await room.chats.edit_answer(chat, answer.id, "Your dog's name is Bisquit Brown.")
        await asyncio.sleep(0)
        twice = await room.chats.edit_answer(chat, once.id, "Your dog's name is Biscuit.")
        (card,) = await cards(judge, chat)
        assert (card.answer, card.message) == ("Your dog's name is Biscuit.", twice.id)

    room.run(story())


def test_a_secret_in_a_conversation_makes_no_card(tmp_path: Path):
    room = Room(tmp_path)
    judge = judged(room)

    async def story():
        chat = await room.new()
        answer = await room.say(chat, "What is my password?", "I don't know your password.")
        await room.say(chat, "It's hunter2. My password is hunter2!", "I must not keep that.")
        await room.chats.edit_answer(chat, answer.id, "Your password is hunter2.")
        assert await cards(judge, chat) == []

    room.run(story())
