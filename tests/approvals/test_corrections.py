"""What the person's next message says about an answer, as one table a kind of sentence."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from app.approvals.corrections import disagrees, find_correction, thanks
from app.approvals.questions import question_of, restate


@dataclass(frozen=True)
class Case:
    prompt: str
    answer: str
    message: str
    lesson: str


DOG = "What is my dog's name?"
REX = "Your dog's name is Rex."
UNKNOWN = "I don't have a note of your dog's name. If you tell me, I can help."
BISCUIT = "Your dog's name is Biscuit."
CAPITAL = "What is the capital of Australia?"
SYDNEY = "The capital of Australia is Sydney, a large harbour city."
CANBERRA = "The capital of Australia is Canberra."

CORRECTIONS = {
    "no, it's": Case(DOG, REX, "No, it's Biscuit.", BISCUIT),
    "typographic apostrophe": Case(DOG, REX, "No, it\u2019s Biscuit.", BISCUIT),
    "no apostrophe, no comma": Case(DOG, REX, "no its Biscuit", BISCUIT),
    "he is called": Case(DOG, REX, "no, he is called Biscuit", BISCUIT),
    "actually": Case(DOG, REX, "Actually it's Biscuit!", BISCUIT),
    "that's wrong": Case(DOG, REX, "that's wrong, it's Biscuit", BISCUIT),
    "that is not right": Case(DOG, REX, "That is not right. His name is Biscuit.", BISCUIT),
    "I meant": Case(DOG, REX, "I meant Biscuit", BISCUIT),
    "wrong, the answer is": Case(DOG, REX, "wrong: the answer is Biscuit", BISCUIT),
    "it's X, not Y": Case(DOG, REX, "it's Biscuit, not Rex", BISCUIT),
    "X, not Y": Case(CAPITAL, SYDNEY, "Canberra, not Sydney", CANBERRA),
    "not Y but X": Case(DOG, REX, "not Rex but Biscuit", BISCUIT),
    "it's not Y, it's X": Case(DOG, REX, "it's not Rex, it's Biscuit", BISCUIT),
    "two sentences": Case(DOG, REX, "It's not Rex. It's Biscuit.", BISCUIT),
    "X instead of Y": Case(CAPITAL, SYDNEY, "It should be Canberra instead of Sydney", CANBERRA),
    "a value alone": Case(DOG, REX, "No, Biscuit!", BISCUIT),
    "a whole statement": Case(DOG, REX, "No, my dog's name is Biscuit.", BISCUIT),
    "a whole statement, unmarked": Case(DOG, UNKNOWN, "My dog's name is Biscuit.", BISCUIT),
    "told after not knowing": Case(DOG, UNKNOWN, "It's Biscuit", BISCUIT),
    "a following request": Case(DOG, REX, "Nope. It's Biscuit. Can you fix the letter?", BISCUIT),
    "a reproach behind": Case(DOG, REX, "No, it's Biscuit, you should know that", BISCUIT),
    "a reproach before": Case(DOG, UNKNOWN, "No, you should know this one: he is called Biscuit.", BISCUIT),
    "a question among other things": Case(
        "Remind me, what's my dog called? I want to print a name tag.",
        UNKNOWN,
        "No, you should know this one: he is called Biscuit.",
        "Your dog is called Biscuit.",
    ),
    "subject first": Case(
        CAPITAL, SYDNEY, "Actually, Canberra is the capital of Australia.", "Canberra is the capital of Australia."
    ),
    "said in short": Case(CAPITAL, SYDNEY, "You're wrong. The capital is Canberra.", CANBERRA),
    "yes-or-no question": Case(
        "Is Sydney the capital of Australia?",
        "Yes, Sydney is the capital of Australia.",
        "No, it's Canberra",
        "No, Canberra is the capital of Australia.",
    ),
    "about the person": Case("Where do I live?", "You live in Rome.", "No, I live in Trieste.", "You live in Trieste."),
    "about someone": Case(
        "Where does my brother live?", "He lives in Milan.", "No, he lives in Rome.", "Your brother lives in Rome."
    ),
    "a quality": Case("What colour is my car?", "Your car is blue.", "no, red", "Your car is red."),
    "the person's name": Case("What's my name?", "You are Anna.", "No, I'm Ana", "Your name is Ana."),
    "the model's name": Case("What is your name?", "SmolLM.", "No, your name is Ownmind.", "My name is Ownmind."),
    "a number": Case("How many cats do I have?", "You have 2 cats.", "No, 3", "You have 3 cats."),
    "a number in words": Case("How many legs has a spider?", "It has 6 legs.", "No, it has 8 legs.", "It has 8 legs."),
    "a year": Case("When did the war end?", "It ended in 1944.", "No, 1945!", "The war ended in 1945."),
    "a day": Case("When is my birthday?", "It is in June.", "Nope, May 4th", "Your birthday is May 4th."),
    "a relative": Case("Who called?", "Your brother.", "No, it was my sister", "Your sister called."),
    "a numeral": Case("Who followed Charles I?", "Charles II.", "No, it was Cromwell.", "Cromwell followed Charles I."),
    "a trade": Case("What does my sister do?", "She is a lawyer.", "no she's a nurse", "Your sister is a nurse."),
    "a taste": Case("Which band do I like?", "Oasis.", "No, I like The Beatles", "You like The Beatles."),
    "a sum": Case("What is 17*3?", "17*3 is 41.", "Wrong, 51", "17*3 is 51."),
    "no question, one number": Case(
        "Tell me about the tower", "The tower is 310 metres high.", "No, 330", "The tower is 330 metres high."
    ),
    "German": Case("Wie heißt mein Hund?", "Er heißt Rex.", "Nein, er heißt Biscuit.", "Er heißt Biscuit."),
    "French": Case("Comment s'appelle mon chien ?", "Il s'appelle Rex.", "Non, c'est Biscuit", "Il s'appelle Biscuit."),
    "Spanish": Case("¿Cómo se llama mi perro?", "Se llama Rex.", "No, se llama Biscuit", "Se llama Biscuit."),
    "Italian": Case("Come si chiama il cane?", "Si chiama Rex.", "No, si chiama Biscuit.", "Si chiama Biscuit."),
}


@pytest.mark.parametrize("case", CORRECTIONS.values(), ids=CORRECTIONS.keys())
def test_a_correction_becomes_a_full_sentence_in_the_models_words(case: Case):
    found = find_correction(case.prompt, case.answer, case.message)
    assert found is not None
    assert found.answer == case.lesson


NO_CORRECTIONS = """
thanks, that's right
Thanks!
No, thanks.
no thank you
no problem
No worries
No, that's fine.
Actually, that's perfect
Well, that's great
That's right, it's Rex
Great answer, thanks
No, you're right
I like Rex
it's fine, not great
No.
no, that's wrong
Wrong!
No, try again
no, wait
No, that is not what I asked.
No, I mean the other one
No, it's not.
no it isn't
No, it's too long.
no, shorter please
No, use metric units.
Actually, make it shorter
No, let's talk about cats
No, give me three
No, something else
No, because I said so
No, it's what I said
No, I don't think so
No, I don't know
Actually, I love it
Actually I have another question
Actually, never mind
no idea
No way!
no one knows
No more questions
Nothing else
not now
No, later
No, what about Biscuit?
No, isn't it Biscuit?
Is it Rex, not Biscuit?
Oh really? It's Biscuit?
Actually, can you write a poem?
What is my cat's name?
Sorry, I meant to ask about cats
I meant in French
Now tell me about dogs
My cat is called Tom
It's nice
It's raining
Rex
Rex is a good dog, not a bad one
ok
yes
Yes, it's Rex.
""".strip().splitlines()


@pytest.mark.parametrize("message", NO_CORRECTIONS)
def test_what_states_no_fact_against_the_answer_is_no_correction(message: str):
    assert find_correction(DOG, REX, message) is None


@pytest.mark.parametrize("message", ["Thanks", "I like it", "It's nice", "ok tell me a joke", "I won't tell you"])
def test_small_talk_after_not_knowing_is_no_correction(message: str):
    assert find_correction(DOG, UNKNOWN, message) is None


def test_what_the_model_said_already_is_no_correction():
    assert find_correction(DOG, BISCUIT, "No, it's Biscuit.") is None


def test_a_wrong_correction_of_a_true_answer_is_still_shown_as_what_it_is():
    found = find_correction("What is the capital of France?", "The capital of France is Paris.", "No, it's Lyon.")
    assert found is not None
    assert found.answer == "The capital of France is Lyon."


def test_a_page_of_text_is_no_correction():
    assert find_correction(DOG, REX, "No, it's Biscuit. " + "And more. " * 200) is None


@pytest.mark.parametrize("message", ["No.", "That's wrong", "nope, it's Biscuit", "Actually it's Biscuit"])
def test_a_message_that_says_wrong_disagrees(message: str):
    assert disagrees(message)


@pytest.mark.parametrize("message", ["thanks, that's right", "no thanks", "no problem", "What now?", "No, that's fine"])
def test_politeness_does_not_disagree(message: str):
    assert not disagrees(message)


def test_thanks_are_heard():
    assert thanks("Thanks, that helps")
    assert not thanks("No, that's wrong")


QUESTIONS = {
    ("Where was I born?", "Rome"): "You were born in Rome.",
    ("When was I born?", "May 4, 1985"): "You were born on May 4, 1985.",
    ("When was I born?", "1985"): "You were born in 1985.",
    ("What time does the shop open?", "9 am"): "The shop opens at 9 am.",
    ("When does the night train leave?", "22:15"): "The night train leaves at 22:15.",
    ("Tell me my dog's name.", "Biscuit"): "Your dog's name is Biscuit.",
    ("Do you know what my dog is called?", "Biscuit"): "Your dog is called Biscuit.",
    ("Can you tell me where I live?", "Trieste"): "You live in Trieste.",
    ("My dog is called ...", "Biscuit"): "Your dog is called Biscuit.",
    ("Who are you?", "Ownmind"): "I am Ownmind.",
    ("What language is spoken in Brazil?", "Portuguese"): "The language spoken in Brazil is Portuguese.",
    ("Where does my sister work?", "at the hospital"): "Your sister works at the hospital.",
    ("What do I drink in the morning?", "tea"): "You drink tea in the morning.",
    ("Who do I work for?", "Acme"): "You work for Acme.",
    ("What am I allergic to?", "nuts"): "You are allergic to nuts.",
    ("How do I take my coffee?", "black"): "You take your coffee black.",
    ("What is my brother studying?", "law"): "Your brother is studying law.",
    ("How many rooms are there in my house?", "4"): "There are 4 rooms in your house.",
    ("What should I call you?", "Ada"): "You should call me Ada.",
    ("capital of France?", "Paris"): "The capital of France is Paris.",
    ("Who wrote Emma?", "Jane Austen"): "Jane Austen wrote Emma.",
    ("How old is my daughter?", "seven"): "Your daughter is seven.",
    ("The mother of Ada is who?", "Annabella"): "The mother of Ada is Annabella.",
    ("In which city was I born?", "Rome"): "You were born in Rome.",
    ("On what date did my parents marry?", "4 May 1980"): "Your parents married on 4 May 1980.",
    ("What year was my house built in?", "1931"): "Your house was built in 1931.",
    ("Which state is my school located?", "Ohio"): "Your school is located in Ohio.",
    ("Which family is the otter a part of?", "weasels"): "The otter is a part of weasels.",
    ("What was the title that Ada held?", "countess"): "The title that Ada held was countess.",
    ("What company built my boat?", "Nordyard"): "Nordyard built your boat.",
    ("What label was responsible for my record?", "Bluebird"): "The label responsible for your record was Bluebird.",
}


@pytest.mark.parametrize(("question", "value", "statement"), [(*k, v) for k, v in QUESTIONS.items()])
def test_a_question_and_its_answer_become_one_statement(question: str, value: str, statement: str):
    assert restate(question, value) == statement


@pytest.mark.parametrize("prompt", ["Write a poem about rain", "Why is the sky blue?", "Explain recursion", "", "?"])
def test_what_no_rule_fits_is_not_guessed(prompt: str):
    assert restate(prompt, "x") is None


def test_only_the_question_of_a_longer_message_is_asked_again():
    assert question_of("Remind me, what's my dog called? I want to print a name tag.") == "What's my dog called?"
    assert question_of("What is my dog's name?") == "What is my dog's name?"
    assert question_of("Is it late? Or early?") == "Is it late? Or early?"
