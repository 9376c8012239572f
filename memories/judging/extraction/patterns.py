"""What the rule-based extractor leaves alone, and how it takes a sentence apart.

All expressions are matched against one sentence, so their cost is bounded by its length.
"""

import re

_SPACE = re.compile(r"\s+")


def phrases(text: str) -> str:
    """Return an expression for any of the phrases, which stand on lines of their own or between bars."""
    lines = [_SPACE.sub(" ", line.strip().strip("|")) for line in text.strip().splitlines()]
    return "(?:" + "|".join(line for line in lines if line) + ")"


def expression(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_GREETING = phrases(r"""
hi|hello|hey|hiya|good (?:morning|afternoon|evening)|thanks|thank you|thx
ok|okay|cool|great|nice|perfect|sure|yes|yeah|yep|no|nope|well|so|right|oh|ah|um|hmm|alright|sorry
note|please note|fyi|btw|by the way|also|and|but|plus|anyway|actually|basically|honestly|in fact
just so you know|for (?:your|the) (?:information|record|context|reference)|for (?:context|reference|background)
to be clear|to clarify|as i said|as mentioned|one more thing|another thing|some (?:context|background)
context|background|about me|a bit about me|please be aware|be aware|let me tell you|i'd say
first(?:ly| of all)?|second(?:ly)?|finally|additionally|furthermore|however|personally|generally|in general
as you know|to give you (?:some )?(?:context|background)
""")
_LEAD_IN = phrases(r"""
also|and|but|so|well|actually|btw|fyi|by the way|just so you know|please note(?: that)?|note that|honestly|plus
you should know(?: that)?|i forgot to (?:mention|say)(?: that)?|i want you to know(?: that)?
i (?:should|must|want to|wanted to|'d like to|would like to) (?:mention|add|say|tell you)(?: that)?
""")
# Greetings and connecting words before a statement: "Hi! By the way, …".
OPENING = expression(
    rf"\s*(?:{_GREETING}(?:\s+(?:there|all|everyone|again|so much|then|that))?\s*[,:!.;\u2013\u2014-]+\s*"
    rf"|{_LEAD_IN}\s+(?=(?:i|my|we|our|i'm|i've)\b))"
)

_REMEMBER = phrases(r"""
remember|remember this|memori[sz]e|keep in mind|bear in mind|make a note|take note|note down|note
don't forget|do not forget|never forget|save this|store this
""")
# "Remember that …": the person asks for it, so little else is asked of the statement.
REMEMBER = expression(
    rf"\s*(?:(?:please|pls|and|also|so|hey|ok|okay)[, ]+)*(?:(?:can|could) you )?(?:please )?{_REMEMBER}"
    r"(?:\s*:\s*|,?\s+(?:the fact )?that\s+|\s+(?=(?:i|my|we|our|i'm|i've|we're)\b)"
    r"(?!(?:i|we) (?:asked|told|said|mentioned)))"
)
# "Since I'm allergic to nuts, which …": the reason is a statement, the rest a request.
REASON = expression(
    r"(?:since|as|because|given that|considering(?: that)?|seeing as|now that)\s+"
    r"(?P<reason>(?:i|i'm|i've|my|we|we're|our)\b[^,?]{3,120}),\s*(?P<rest>.+)"
)
_ASKS = phrases(r"""
please|pls|can|could|would|will|what|which|how|where|when|who|why|should|do|does|did|is|are|any|help|suggest
recommend|give|show|tell|write|explain|find|make|create|let me know
""")
_ASKED_OF = phrases(r"""
you|me|i|we|the|a|an|some|any|would|should|is|are|do|does|tips?|ideas?|suggestions?|recommendations?|it|my|us
kind|to|recipes?|give|suggest|recommend|help|tell|show|keep|write|can|could|might|about|else
""")
# "…, can you suggest a dinner?" at the end of a statement.
REQUEST_TAIL = expression(
    rf"(?:,|;|\s[-\u2013\u2014]|\s(?:so|and|but|then))\s*(?:(?:so|and|then|but) "
    rf")?{_ASKS}\b(?=\s+{_ASKED_OF}\b)"
    r"(?!\s+(?:always|never)\b)"
)
_OWN_VERB = phrases(r"""
am|was|have|had|live|work|use|love|like|hate|prefer|enjoy|own|speak|play|study|need|want|don't|do not|can't|cannot
never|always|usually|decided|chose|agreed|also|really|grew|moved|drive|teach|run|manage|lead|deploy|ship|are|eat|drink
""")
# Between two statements of one sentence: "… and I am vegetarian".
SPLIT = expression(
    r"(?:,?\s+(?:and|but|while|whereas|plus|also)|;|,)\s+(?:(?:also|then)\s+)?(?="
    rf"(?:i|we)\s+{_OWN_VERB}\b|(?:i'm|i've|i'd|we're|we've)\s|"
    r"(?:my|our)\s+[\w' -]{2,40}?\s(?:is|are|was|has|have|lives?|works?|will|uses?|likes?|loves?|hates?|"
    r"prefers?|plays?|speaks?|studies)\b|"
    r"please\s+(?:always|never)\b|(?:always|never)\s+\w+|call me\b)"
)
# Politeness and laughter after a statement.
ASIDE = expression(
    r"\s*(?:,?\s*(?:by the way|btw|fyi|you know|if you must know|as you know|though|too|thanks|thank you|"
    r"please))+"
    r"\s*[.!]*$"
)
JOKE = expression(
    r"\b(?:just kidding|jk|j/k|lol|lmao|rofl|ha(?:ha)+|only joking|just joking|sarcasm|never ?mind|"
    r"scratch that)\b"
    r"|/s\b|[\U0001f602\U0001f923\U0001f61c\U0001f609]"
)

_IMAGINED = phrases(r"""
if (?:i|we|my|our|you|he|she|they|it)|as if|what if|suppose|supposing|imagine|pretend|let's say|let us say
hypothetically|i wish|if only|assume|assuming|say i|were i|for example|e\.g\.
in (?:this|the|my) (?:story|scenario|game|novel|dream|example|book)|character|protagonist
the (?:narrator|speaker|author|lyrics)
""")
_SAID = phrases(r"say|says|said|thinks?|thought|claims?|asked|told|believes?")
# Somebody else's words, or a world that is not.
HYPOTHETICAL = expression(
    rf"\b(?:{_IMAGINED}|(?:he|she|they|it|who|someone|people|everyone|everybody|somebody|\w+ people) "
    rf"{_SAID})\b"
)
# A guess is no statement; "I would rather" is one.
UNCERTAIN = expression(
    r"\b(?:maybe|perhaps|probably|possibly|might|may be|i guess|i think|i suppose|i believe|i assume|i "
    r"doubt|i wonder|"
    r"not sure|unsure|no idea|don't know|do not know|don't remember|can't remember|not certain|it seems|"
    r"seems like|"
    r"apparently|could|should(?= i)|i hope|hopefully|thinking (?:of|about)|considering|tempted|wouldn't|"
    r"would(?! (?:rather|prefer|like to be|like you to|want you to|love to)))\b"
)
# Moods, moments and whatever is over by tomorrow.
PASSING = expression(
    r"\b(?:today|right now|at the moment|just now|tonight|this (?:morning|afternoon|evening|minute|"
    r"second)|last night|"
    r"yesterday|so far|for now|a minute ago|earlier|in a (?:hurry|rush|meeting)|on my way|all day)\b"
)
_POINTING_VERB = phrases(r"""
like|love|prefer|enjoy|hate|dislike|use|used|have|need|want|decided|chose|own|stand|do|did|see|know|agree|mean
get|got|understand|find|am|was|know about
""")
_POINTER = phrases(r"""
it|this|that|these|those|them|him|her|your|you|so|both|neither|either|the way you|one|same|above|following
the (?:first|second|last|other|idea|answer|result|one|same|above|following)
""")
# What the words point at was said elsewhere: "I love it", "we use that one".
UNRESOLVED = expression(
    rf"^(?:i|we)(?:'ve|'m|'re|'d)?\s+(?:\w+ ){{0,3}}?{_POINTING_VERB}\s+"
    rf"(?:(?:on|with|about|to do|how|what|why|where) )?{_POINTER}\b(?!\s+(?:to always|to never))"
    r"|\b(?:the above|the following|as follows|see below|attached|like this|this one|that one)\b|:\s*$"
)
