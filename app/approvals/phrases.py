"""How people say that an answer is wrong, and how they say that it is not. Patterns only, English first.

All patterns are matched against tidied text (one line, plain apostrophes), case aside.
"""

from __future__ import annotations

import re


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


_WRONG = r"wrong|incorrect|false|untrue|mistaken|not (?:right|correct|true|it|quite right|what i (?:said|told you))"

LEAD = _pattern(
    rf"(?:(?:that|this|it|which)(?:'s| is| was)|(?:that|this|it) isn't|you(?:'re| are| were)|your answer is|"
    rf"the answer is)"
    rf"\s+(?:still |just |simply |actually |completely |totally |also )?(?:{_WRONG})\b"
    r"|(?:that|this|it) (?:isn't|wasn't) (?:right|correct|true|it)\b"
    r"|you (?:got|have|had) (?:it|that|this) (?:all )?wrong\b|you made a mistake\b|you should know (?:this|that|"
    r"it)(?: one)?\b"
    r"|(?:as )?i (?:already |just )?(?:told|said to) you(?: (?:already|before|that))*\b|as i (?:already )?said\b"
    r"|not (?:quite|exactly|really|true|correct|right|at all)\b|in (?:fact|reality)\b"
    r"|(?:no|nope|nah|wrong|incorrect|false|actually|correction|almost|close)\b"
)
"""Says that what came before is wrong."""

NEEDS_MARK = _pattern(r"no|close|almost|false|wrong|correction|actually|in fact|not really")
"""Leads that are something else without a comma: "no problem", "close the window", "wrong turn"."""

GOES_ON = _pattern(
    r"(?:it|its|it's|that|that's|thats|he|he's|hes|she|she's|shes|they|my|his|her|their|the (?:correct |right |real )?"
    r"(?:answer|name|capital|year|date|number|word|result)|i|i'm|we|our|you|you're|your|this|not|actually|sorry|wrong|"
    r"called|should)\b"
)
"""What may follow such a lead directly: "no its biscuit"."""

FILLER = _pattern(
    r"(?:but|well|um+|uh|hmm+|oh|ah|hey|sorry|so|please|come on|i think|i believe|i guess|i'm (?:pretty )?sure|"
    r"i'm afraid|pretty sure|you know|look|listen|remember|let me correct you|try again)\b"
)
"""Says nothing by itself."""

MEANT = _pattern(r"(?:what )?i (?:meant|mean|said)(?: to say)?(?: (?:is|was))?\b")

AGREES = _pattern(
    r"(?:thanks|thank you|thx|cheers|great|perfect|exactly|excellent|awesome|wonderful|lovely|right|correct|yes|yeah|"
    r"yep|good|nice|cool|super|bravo|well done|brilliant|of course|indeed)\b"
    r"|(?:that|this|it)(?:'s| is| was| looks| sounds| works)\s+(?:all |really |very |quite |actually |just |so |"
    r"absolutely |"
    r"totally |pretty )?(?:right|correct|true|fine|good|great|ok|okay|perfect|it|enough|helpful|nice|well|amazing|"
    r"brilliant|wonderful|exactly|cool|clear|lovely|better|interesting|funny|useful|what i (?:wanted|needed|meant))\b"
    r"|you(?:'re| are) (?:right|correct|welcome|great|amazing|the best|absolutely right)\b"
)
"""Says that the answer is fine, in earnest or not."""

DECLINES = _pattern(
    r"(?:thanks|thank you|worries|problem|need|way|idea|doubt|offen[cs]e|hurry|rush|kidding|wonder|more|further|"
    r"questions?|"
    r"comment|thank|matter|never ?mind|forget it|leave it|stop|later|not (?:now|yet|today|really|necessarily)|"
    r"nothing|never|again|maybe|perhaps|please|other|different|better|worse|i'm (?:good|fine|okay|ok|done)|"
    r"wait|hold on|hang on|that's (?:all|everything)|that(?: is|'ll be| will be)? all|all good)\b"
)
"""Says no to going on, not to the answer."""

REQUEST = _pattern(
    r"(?:please |just |now |instead |you (?:should|must|need to|have to|can|could) |try (?:to|and) |let's |let us )*"
    r"(?:use|make|write|give|answer|try|tell|show|do|don't|let|stop|explain|add|remove|change|list|include|keep|"
    r"rewrite|"
    r"translate|be|put|(?:can|could|would|will|won't|shall|may) (?:you|i|we|it|this|that)|look|check|think|read|"
    r"start|begin|continue|go|come|repeat|"
    r"shorten|summari[sz]e|describe|compare|find|search|help|talk|speak|say it|fix|correct|improve|expand|convert|"
    r"format|"
    r"reply|respond|forget|ignore|remember|learn|focus|skip|call me|ask)\b"
)
"""Asks for something; it holds no fact."""

OPINION = _pattern(
    r"(?:too|so|very|really|still|just|quite|rather|fairly|pretty|a (?:bit|little|lot)|kind of|sort of|way|much|"
    r"far|not|"
    r"no|never|always|only|because|since|like|about|what|how|why|when|if|up to|all|already|missing|fine|ok|okay|good|"
    r"great|nice|perfect|wrong|right|true|false|correct|incorrect|bad|better|worse|boring|long|short|longer|shorter|"
    r"simpler|clearer|confusing|weird|strange|odd|unclear|clear|helpful|unhelpful|useless|useful|enough|incomplete|"
    r"complicated|hard|easy|funny|sad|annoying|ridiculous|nonsense|stupid|silly|great|amazing|hot|raining|sunny|late|"
    r"the (?:same|other|opposite|wrong|right|first|second|last) (?:one|thing|way)|the (?:same|other|opposite|"
    r"wrong one)|"
    r"something|anything|nothing|someone|one of|them|this|that|these|those|me|you|him|her|us|yours?|mine|"
    r"(?:very|too) \w+|impossible|important|obvious|a (?:joke|lie|mistake|question|problem|shame|pity)|none|"
    r"unacceptable|unfair|lol|haha)\b"
)
"""Judges the answer, or points at something, instead of saying what is right."""

FEELS = _pattern(
    r"(?:i|we) (?:don't|do not|didn't|can't|cannot|won't|think|want|wanted|need|needed|like|love|"
    r"get it|knew|feel|felt|know|"
    r"believe|guess|"
    r"hope|wish|agree|disagree|doubt|wonder|wondered|changed|have (?:another|a|one|some) (?:more )?(?:question|"
    r"request|idea)s?|"
    r"asked|was asking|am asking|'m asking|would|'d|could|should|was just|just|never|also|see|understand|remember|"
    r"forgot|"
    r"found|figured|solved|am (?:not|fine|done|good|sure|sorry|confused|tired|lost))\b"
    r"|i'm (?:not|fine|done|good|sure|sorry|confused|tired|lost|asking|just|talking)\b"
)
"""Speaks of the speaker's mood or wish, not of a fact."""

UNSURE = _pattern(
    r"\b(?:don't|do not|cannot|can't|couldn't) (?:know|have|recall|remember|find|access|provide|tell|see)\b|"
    r"\bnot sure\b|"
    r"\bunable to\b|\bno (?:information|record|access|idea|way of knowing)\b|\bunknown\b|\byou haven't told\b|"
    r"\bhaven't been told\b|\b(?:please|could you) (?:tell|provide|share|let)\b"
)
"""The model says that it does not know."""

CUT = re.compile(
    r"\s*(?:[,;—]|\s-)\s*(?:you|i|please|thanks|thank|but|so|as|ok|okay|remember|dummy|silly|my friend|sorry|"
    r"and (?:you|i|not)|"
    r"not|which|because|since|don't|though|actually|right|obviously|of course|by the way|instead|rather|mate|lol|"
    r"haha)\b.*$"
    r"|\s+(?:though|actually|please|instead|obviously|lol|haha|of course|by the way|and not .*|instead of .*|"
    r"rather than .*)$",
    re.IGNORECASE,
)
"""What people add behind the fact."""

OTHER_LEADS = _pattern(
    r"(?:nein|falsch|stimmt nicht|das (?:ist falsch|stimmt nicht)|eigentlich|non|faux|c'est faux|en fait|"
    r"no|incorrecto|está mal|en realidad|sbagliato|in realtà|não)\b"
)
OTHER_FACTS = _pattern(
    r"(?:(?:er|sie|es|das|der|die)(?: \w+)? (?:heißt|ist|lautet)|die (?:richtige )?antwort (?:ist|lautet)|"
    r"c'est|(?:il|elle) s'appelle|il est|elle est|la (?:bonne )?réponse est|"
    r"es|se llama|la respuesta (?:correcta )?es|è|si chiama|la risposta (?:giusta |corretta )?è|é|chama-se)\s+(?P<x>.+)"
)
"""The same in German, French, Spanish, Italian and Portuguese; restating needs English, so these keep their clause."""
