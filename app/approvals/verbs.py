"""The English verb forms that turning a question into a statement needs. Pure data and two small rules."""

from __future__ import annotations

from app.approvals.words import word_set

_PAST = {
    "become": "became", "begin": "began", "break": "broke", "bring": "brought", "build": "built", "buy": "bought",
    "catch": "caught", "choose": "chose", "come": "came", "cost": "cost", "cut": "cut", "do": "did", "draw": "drew",
    "drink": "drank", "drive": "drove", "eat": "ate", "fall": "fell", "feel": "felt", "fight": "fought",
    "find": "found", "fly": "flew", "forget": "forgot", "get": "got", "give": "gave", "go": "went", "grow": "grew",
    "have": "had", "hear": "heard", "hide": "hid", "hold": "held", "keep": "kept", "know": "knew", "lead": "led",
    "learn": "learned", "leave": "left", "lose": "lost", "make": "made", "mean": "meant", "meet": "met", "pay": "paid",
    "put": "put", "read": "read", "ride": "rode", "run": "ran", "say": "said", "see": "saw", "sell": "sold",
    "send": "sent", "sing": "sang", "sit": "sat", "sleep": "slept", "speak": "spoke", "spend": "spent",
    "stand": "stood", "steal": "stole", "swim": "swam", "take": "took", "teach": "taught", "tell": "told",
    "think": "thought", "throw": "threw", "understand": "understood", "wear": "wore", "win": "won", "write": "wrote",
}  # fmt: skip

_REGULAR = word_set(
    "add agree arrive ask attend bake believe belong borrow call carry change close collect compose contain cook "
    "count cross dance deliver depart die discover drop earn end enjoy enter expire finish follow found graduate hate "
    "happen help import invent invest join last laugh like listen live look love marry measure mix move name need "
    "open order own paint park pass pick plan plant play prefer print produce publish pull push recommend release "
    "remember rent repair report retire return sail save serve share sign start stay stop store study support talk "
    "train travel treat try turn use visit wait walk want wash watch water weigh work"
)

_FORMS = frozenset({*_PAST.values(), *word_set("is are am was were be been has had can will would could does did")})

_NOUNS_TOO = word_set(
    "name train plan watch play work cost cut water open park order finish drop start end love report last need cook "
    "call change count cross dance help import laugh walk wash visit store study use want rent repair share sign talk "
    "travel treat try turn wait answer place measure print mix cover ride run drink drive catch hide hold lead put "
    "read sleep stand swim say cover fall fight find fly meet feel release live record return move look"
)
"""Verbs that are as often something else: one of them decides nothing if another verb follows."""

PARTICIPLES = word_set(
    "called named titled born made written spelled spelt located based held found founded built known drawn painted "
    "sung played directed invented discovered released published set used worn kept stored parked hidden buried "
    "spoken grown pronounced composed due married employed insured registered scheduled planned"
)
"""What may stand at the end of "what is my dog …" and belongs behind the verb."""

_NOUNS_IN_ING = word_set("morning evening building thing king ring spring wedding meeting ceiling string wing")


def is_verb(word: str) -> bool:
    """Whether this is the base form of a known verb."""
    return word in _PAST or word in _REGULAR


def is_known_form(word: str) -> bool:
    """Whether this is some form of a known verb, "be" and the auxiliaries included."""
    stems = (word, word.removesuffix("s"), word.removesuffix("es"), word.removesuffix("d"), word.removesuffix("ed"))
    return word in _FORMS or word.endswith(("'s", "'re", "'m")) or any(map(is_verb, stems))


def is_only_verb(word: str) -> bool:
    """Whether this is a known verb and hardly ever a noun."""
    return is_verb(word) and word not in _NOUNS_TOO


def is_behind_verb(word: str) -> bool:
    """Whether this participle or gerund moves behind "is" in a statement."""
    return word in PARTICIPLES or (word.endswith("ing") and len(word) > 4 and word not in _NOUNS_IN_ING)  # noqa: PLR2004


def past(verb: str) -> str:
    """Return the simple past of a known verb."""
    if verb in _PAST:
        return _PAST[verb]
    if verb.endswith("e"):
        return verb + "d"
    if verb[-1] == "y" and verb[-2] not in "aeiou":
        return verb[:-1] + "ied"
    return verb + (verb[-1] + "ed" if verb in {"stop", "drop", "plan"} else "ed")


def third_person(verb: str) -> str:
    """Return the form for he, she or it."""
    if verb == "have":
        return "has"
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return verb + "es"
    if verb[-1] == "y" and verb[-2] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + "s"
