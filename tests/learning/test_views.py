"""What people see: cards, titles and the timeline, in plain words and in an order that no clock can upset."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.approvals.api import ProposalState
from app.errors import KnownError
from app.learning.topics import title_of, topic_of
from tests.support.learning import CAT, DOG, TOWN, Desk, World


def test_the_timeline_is_newest_first_and_ends_with_the_base(world: World) -> None:
    async def story(desk: Desk) -> None:
        await desk.teach(*DOG)
        await desk.teach(*CAT)
        rows = await desk.learning.versions()
        assert [(row.number, row.title) for row in rows] == [
            (2, "Your cat's name"),
            (1, "Your dog's name"),
            (0, "Base · Tiny"),
        ]
        assert [row.active for row in rows] == [True, False, False]
        assert [row.base for row in rows] == [False, False, True]
        assert rows[0].note.startswith("in use · 2 lessons")
        assert "1 lesson " in rows[1].note
        assert rows[-1].note.endswith("Apache-2.0")

    world.play(story)


def test_lessons_that_were_not_learned_stand_between_the_versions_with_their_reason(world: World) -> None:
    async def story(desk: Desk) -> None:
        await desk.teach(*DOG)
        world.clock.wall += timedelta(minutes=1)
        desk.gate.script.extend([("locality",)] * 3)
        await desk.teach(*CAT)
        world.clock.wall += timedelta(minutes=1)
        await desk.teach(*TOWN)
        rows = await desk.learning.versions()
        assert [row.title for row in rows] == [
            *("Where do I live", "Not learned: your cat's name", "Your dog's name", "Base · Tiny"),
        ]
        assert (rows[1].rejected, rows[1].number, rows[1].active) == (True, None, False)
        assert rows[1].note == "would have changed: locality"

    world.play(story)


def test_a_clock_that_goes_backwards_changes_no_order_and_loses_no_row(world: World) -> None:
    async def story(desk: Desk) -> None:
        await desk.teach(*DOG)
        world.clock.wall -= timedelta(days=400)
        desk.gate.script.extend([("locality",)] * 3)
        await desk.teach("Who am I?", "You are Sam.")
        await desk.teach(*CAT)
        world.clock.wall -= timedelta(days=400)
        await desk.teach(*TOWN)
        rows = await desk.learning.versions()
        assert [row.number for row in rows if not row.rejected] == [3, 2, 1, 0]
        assert len([row for row in rows if row.rejected]) == 1
        assert rows[-1].base
        assert [lesson.answer for lesson in await desk.learning.lessons()] == [DOG[1], CAT[1], TOWN[1]]

    world.play(story)


def test_a_version_names_the_conversation_it_came_from(world: World) -> None:
    async def story(desk: Desk) -> None:
        card = await desk.surfaced(*DOG, chat="c7")
        await desk.learning.approve(card.id)
        await desk.ended(card.id)
        assert (await desk.learning.versions())[0].source == "Chat c7"

    world.play(story)


def test_cards_of_a_conversation_come_oldest_first_without_those_that_were_replaced(world: World) -> None:
    async def story(desk: Desk) -> None:
        first = await desk.surfaced(*DOG, message="m1")
        second = await desk.surfaced(*CAT, message="m2")
        third = await desk.surfaced(DOG[0], "Your dog's name is Rex.", message="m3")
        elsewhere = await desk.surfaced(*TOWN, message="m4", chat="c2")
        assert desk.state(first.id) is ProposalState.SUPERSEDED
        assert [card.id for card in await desk.learning.cards("c1")] == [second.id, third.id]
        assert [card.id for card in await desk.learning.cards("c2")] == [elsewhere.id]

    world.play(story)


def test_a_failed_card_carries_the_reason_and_says_whether_trying_again_helps(world: World) -> None:
    async def story(desk: Desk) -> None:
        desk.gate.script.append(KnownError("run the engine", "it was killed from outside"))
        card = (await desk.surfaced(*DOG)).id
        await desk.learning.approve(card)
        view = await desk.ended(card)
        assert view.title == "Not learned: your dog's name"
        assert view.error is not None
        assert view.error.retryable
        assert not view.can_undo
        assert view.stage == ""

    world.play(story)


TOPICS = [
    ("What is my dog's name?", "your dog's name"),
    ("What's my dog called?", "your dog"),
    ("Write a poem about rain.", "Write a poem about rain"),
    ("  Name\n three   fruits!  ", "Name three fruits"),
    ("Hm", "Hm"),
    ("", ""),
]


@pytest.mark.parametrize(("prompt", "topic"), TOPICS)
def test_a_topic_is_what_a_question_is_about(prompt: str, topic: str) -> None:
    assert topic_of(prompt) == topic


@pytest.mark.parametrize("prompt", ["word " * 60, "x" * 300, "What is " + "the name of " * 20 + "it?"])
def test_a_long_topic_is_cut_between_words_and_ends_in_dots(prompt: str) -> None:
    topic = topic_of(prompt)
    assert len(topic) <= 45
    assert topic.endswith("…")
    assert not topic.endswith(" …")


def test_a_title_begins_with_a_capital() -> None:
    assert title_of("What is my dog's name?") == "Your dog's name"
    assert title_of("") == ""
