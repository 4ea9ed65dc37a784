"""What becomes a card: something new, no secret, and an earlier lesson that says otherwise is shown with it."""

from __future__ import annotations

import pytest

from app.approvals.api import ProposalState, Signal, SignalKind
from app.errors import KnownError, UserError
from app.learning.api import CardChanged, Lesson
from tests.support.learning import CAT, DOG, TOWN, Desk, World


def signal(kind: SignalKind, prompt: str, answer: str, correction: str = "", *, message: str = "m1") -> Signal:
    return Signal(kind, "c1", message, prompt, answer, correction=correction)


def edit(prompt: str, corrected: str, *, said: str = "I do not know that, sorry.", message: str = "m1") -> Signal:
    return signal(SignalKind.EDIT, prompt, said, corrected, message=message)


def test_an_edited_answer_becomes_a_card_also_while_learning_is_locked(world: World) -> None:
    async def story(desk: Desk) -> None:
        row = await desk.noticing.propose(edit(*DOG))
        assert row is not None
        assert (row.prompt, row.answer, row.state) == (*DOG, ProposalState.SURFACED)
        (card,) = await desk.learning.cards("c1")
        assert card.after == "m1"
        assert card.why.startswith("You edited my answer.")
        assert desk.trainer.jobs == []

    world.play(story, unlock=False)


def test_a_correction_in_the_next_message_becomes_a_card(world: World) -> None:
    async def story(desk: Desk) -> None:
        said = signal(SignalKind.CORRECTION, DOG[0], "Your dog's name is Rex.", "No, it's Biscuit.")
        row = await desk.noticing.propose(said)
        assert row is not None
        assert row.answer == DOG[1]

    world.play(story)


def test_what_the_version_in_use_says_by_itself_is_no_card(world: World) -> None:
    async def story(desk: Desk) -> None:
        world.brain.base[DOG[0]] = "It is Biscuit, your dog's name is Biscuit."
        assert await desk.noticing.propose(edit(*DOG)) is None

    world.play(story)


def test_what_was_learned_is_no_card_again_and_after_undo_it_is(world: World) -> None:
    async def story(desk: Desk) -> None:
        taught = await desk.teach(*DOG)
        assert await desk.noticing.propose(edit(*DOG, message="m2")) is None
        await desk.learning.undo(taught.proposal)
        assert await desk.noticing.propose(edit(*DOG, message="m3")) is not None

    world.play(story)


def test_a_format_counts_as_known_only_if_it_is_said_to_the_letter(world: World) -> None:
    prompt, said, listed = "List three fruits.", "The fruits are apple, pear and plum.", "- apple\n- pear\n- plum"

    async def story(desk: Desk) -> None:
        world.brain.base[prompt] = said
        assert await desk.noticing.propose(edit(prompt, listed, said=said)) is not None
        world.brain.base[prompt] = listed
        assert await desk.noticing.propose(edit(prompt, listed, said=said, message="m2")) is None

    world.play(story)


def test_praise_for_what_the_model_would_say_anyway_is_no_card(world: World) -> None:
    answer = "Rain falls on the roof."

    async def story(desk: Desk) -> None:
        praise = signal(SignalKind.THUMBS_UP, "Write a line about rain.", answer)
        desk.engine.reply = lambda turns, adapter: "Something else altogether."
        assert await desk.noticing.propose(praise) is not None
        desk.engine.reply = lambda turns, adapter: answer
        again = signal(SignalKind.THUMBS_UP, "Write a line about the rain.", answer, message="m2")
        assert await desk.noticing.propose(again) is None

    world.play(story)


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("What is my password?", "Your password is hunter2-Zx91!."),
        ("What is my card number?", "Your card number is 4111 1111 1111 1111."),
        ("What is the API key?", "The API key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789."),
    ],
)
def test_a_secret_is_never_a_card_and_never_taught(world: World, prompt: str, answer: str) -> None:
    async def story(desk: Desk) -> None:
        assert await desk.noticing.propose(edit(prompt, answer)) is None
        with pytest.raises(UserError, match="secret"):
            await desk.learning.teach(Lesson(prompt, answer), approve=False)
        assert await desk.learning.cards("c1") == []

    world.play(story)


def test_an_earlier_lesson_that_says_otherwise_is_shown_on_the_card(world: World) -> None:
    async def story(desk: Desk) -> None:
        await desk.teach(*TOWN)
        await desk.teach(*DOG)
        row = await desk.noticing.propose(edit(DOG[0], "Your dog's name is Rex.", message="m2"))
        assert row is not None
        card = desk.loop.view(row)
        assert card.conflict is not None
        assert (card.conflict.prompt, card.conflict.answer) == DOG

    world.play(story)


def test_an_earlier_lesson_in_other_words_is_found_by_meaning(world: World) -> None:
    async def story(desk: Desk) -> None:
        await desk.teach(*DOG)
        row = await desk.noticing.propose(edit("My dog's name is what?", "Your dog's name is Rex.", message="m2"))
        assert row is not None
        assert row.conflict is not None

    world.play(story)


def test_lessons_about_other_things_and_lessons_taken_back_are_no_conflict(world: World) -> None:
    async def story(desk: Desk) -> None:
        taught = await desk.teach(*DOG)
        other = await desk.noticing.propose(edit(*CAT, message="m2"))
        assert other is not None
        assert other.conflict is None
        await desk.learning.undo(taught.proposal)
        renamed = await desk.noticing.propose(edit(DOG[0], "Your dog's name is Rex.", message="m3"))
        assert renamed is not None
        assert renamed.conflict is None

    world.play(story)


def test_rewording_a_card_looks_for_conflicts_anew(world: World) -> None:
    async def story(desk: Desk) -> None:
        await desk.teach(*DOG)
        row = await desk.surfaced(*CAT, message="m2")
        assert row.conflict is None
        card = await desk.learning.reword(row.id, DOG[0], "Your dog's name is Rex.")
        assert card.id == row.id
        assert card.conflict is not None
        card = await desk.learning.reword(row.id, *CAT)
        assert card.conflict is None

    world.play(story)


def test_never_for_this_is_kept_and_not_now_is_not_for_ever(world: World) -> None:
    async def story(desk: Desk) -> None:
        never, later = await desk.surfaced(*DOG), await desk.surfaced(*CAT, message="m2")
        assert (await desk.learning.decline(never.id, never=True)).state is ProposalState.DECLINED
        await desk.learning.decline(later.id)
        assert await desk.noticing.propose(edit(*DOG, message="m5")) is None
        assert await desk.noticing.propose(edit(*CAT, message="m6")) is not None

    world.play(story)


def test_a_signal_is_looked_into_in_the_background_and_told_as_a_card(world: World) -> None:
    async def story(desk: Desk) -> None:
        desk.noticing.on_signal(edit(*DOG))
        assert not [event for event in desk.events if isinstance(event, CardChanged)]
        await desk.quiet()
        (card,) = [event.card for event in desk.events if isinstance(event, CardChanged)]
        assert card.prompt == DOG[0]

    world.play(story)


def test_an_engine_that_fails_while_a_signal_is_looked_into_loses_no_more_than_the_card(world: World) -> None:
    async def story(desk: Desk) -> None:
        desk.engine.fail_next = KnownError("run the engine", "it was killed")
        desk.noticing.on_signal(edit(*DOG))
        await desk.quiet()
        assert desk.events == []
        assert await desk.noticing.propose(edit(*DOG, message="m2")) is not None

    world.play(story)


def test_teaching_what_is_known_already_is_refused_in_plain_words(world: World) -> None:
    async def story(desk: Desk) -> None:
        await desk.teach(*DOG)
        with pytest.raises(UserError, match="says this already"):
            await desk.teach(*DOG)

    world.play(story)


@pytest.mark.parametrize("lesson", [("", "x"), ("x", " "), ("", "")])
def test_teaching_nothing_is_refused_in_plain_words(world: World, lesson: tuple[str, str]) -> None:
    async def story(desk: Desk) -> None:
        with pytest.raises(UserError, match="need some text"):
            await desk.teach(*lesson)

    world.play(story)


def test_a_proposal_without_approval_waits_as_a_card_and_starts_nothing(world: World) -> None:
    async def story(desk: Desk) -> None:
        taught = await desk.teach(*DOG, approve=False)
        assert (taught.state, taught.commit, taught.verdict) == (ProposalState.SURFACED, None, None)
        assert desk.trainer.jobs == []

    world.play(story, unlock=False)
