"""The English forms of lasting statements, by the kind of memory they make.

A rule is a beginning that a statement must have, and what it must not hold. The order matters: the first that
fits wins.
"""

import re
from dataclasses import dataclass

from memories.judging.extraction import vocabulary as v
from memories.judging.extraction.patterns import expression


@dataclass(frozen=True)
class KindRule:
    """Statements that begin with `pattern` and hold nothing of `unless` are of this kind."""

    name: str
    kind: str
    importance: float
    pattern: re.Pattern[str]
    unless: re.Pattern[str] | None = None


def _rule(name: str, kind: str, importance: float, pattern: str, unless: str = "") -> KindRule:
    return KindRule(name, kind, importance, expression(pattern), expression(unless) if unless else None)


KIND_RULES: tuple[KindRule, ...] = (
    _rule(
        "name",
        "fact",
        0.8,
        r"(?:please )?(?:just )?(?:call me|address me as|refer to me as) \w+",
        r"\bme (?:back|when|if|at|on|later|tomorrow|today|crazy|an?|the|stupid|old|maybe|as soon|again)\b",
    ),
    _rule(
        "standing wish",
        "instruction",
        0.8,
        r"(?:(?:please |i(?:'d| would)? (?:want|like|need|prefer) you to |you (?:should|must) |make sure "
        r"(?:to |you )?)"
        rf"(?:always|never) \w+|(?:always|never) {v.TOLD_TO}) \w+",
        r"(?:always|never) (?:ever )?(?:mind|been|had|knew|heard|thought|saw|seen|tried|have|has|did|was|"
        r"were)\b",
    ),
    _rule(
        "standing wish",
        "instruction",
        0.8,
        rf"(?:please )?{v.FROM_NOW_ON}\b,? .{{6,}}",
        r"\b(?:it|this) (?:crash|fail|break)",
    ),
    _rule(
        "standing wish",
        "instruction",
        0.7,
        rf"(?:please )?(?:don't|do not|stop|avoid) (?:ever )?{v.NEVER_DO}\b(?! (?:this|that|it|"
        rf"here)\b).*\b{v.STANDING_OBJECT}\b",
        r"\bin (?:this|the (?:email|letter|essay|text|code|query|function|story))\b",
    ),
    _rule(
        "standing wish",
        "instruction",
        0.75,
        r"(?:please )?(?:answer|reply|respond|write|speak|talk|communicate) (?:to me |with me )?(?:only |"
        r"always )?"
        rf"(?:in {v.LANGUAGE}|formally|informally|briefly|concisely)\b",
        r"\b(?:this|the following|an? (?:poem|story|letter|mail|email|song|haiku|essay))\b",
    ),
    _rule(
        "standing wish",
        "instruction",
        0.75,
        r"(?:please )?use (?:metric|imperial|celsius|fahrenheit|british spelling|american spelling|the "
        r"metric system|"
        r"type hints|tabs|24-hour|simple words)\b.{0,80}",
    ),
    _rule(
        "decision",
        "decision",
        0.75,
        rf"{v.DECIDER}(?: have| has)? {v.ADVERBS}{v.DECIDED}\s+(?:to|on|for|that|against|not|from|with|in "
        rf"favou?r|the|an?|{v.NAME}"
        r"|support|\w+ (?:as|over|for|instead))\b.*",
        r"\bto (?:ask|write to you|try (?:this|it|you)|give (?:it|this|you))\b",
    ),
    _rule(
        "decision",
        "decision",
        0.7,
        r"(?:we're|we are|i'm|i am) (?:going|sticking|staying) (?:ahead )?with .{3,}",
        r"\b(?:it|this|that|your)\b",
    ),
    _rule("decision", "decision", 0.7, r"(?:the|our|my) (?:final )?decision (?:is|was) .{4,}"),
    _rule(
        "event",
        "event",
        0.75,
        rf"(?:my|our)\s+(?:\w[\w'-]* ){{0,4}}?{v.OCCASION}\s+(?:is|are|was moved|got moved|has been moved|"
        rf"will be|starts?|"
        rf"takes place|falls|got postponed|moved|has moved)\b.*{v.DATE}.*",
    ),
    _rule(
        "event",
        "event",
        0.7,
        rf"(?:i|we)(?:'ve got|'ve| have got| have| got) (?:an? |the |our |my )(?:\w[\w'-]* "
        rf"){{0,3}}?{v.OCCASION}\b.*{v.DATE}.*",
    ),
    _rule(
        "event",
        "event",
        0.7,
        r"(?:i'm|i am|we're|we are|(?:i|we)(?:'ll| will) be) (?:getting married|moving|flying|travell?ing|"
        r"going on|visiting|launching|"
        rf"releasing|retiring|graduating|expecting|hosting|starting|leaving|presenting|"
        rf"defending)\b.*{v.DATE}.*",
    ),
    _rule(
        "event",
        "event",
        0.7,
        rf"(?:we|i) (?:launch|release|go live|graduate|retire|move|fly|open|present|defend) "
        rf".{{0,60}}{v.DATE}.*",
    ),
    _rule(
        "favourite",
        "preference",
        0.65,
        r"(?:my|our) (?:all-time |absolute |personal )?(?:favou?rite|preferred|go-to)\b.{2,60}\b(?:is|are|"
        r"has always been) .{2,}",
        r"\bfavou?rite (?:part|thing) (?:is|of this|about this)\b|\b(?:is|are) (?:this|that|it|the "
        r"(?:first|second|last))\b",
    ),
    _rule("liking", "preference", 0.6, rf"i (?:do )?{v.ADVERBS}{v.LIKE} \w+.*", v.NO_LIKING),
    _rule(
        "liking",
        "preference",
        0.6,
        r"i(?:'d| would) (?:rather|prefer) .{5,}",
        r"\b(?:if|you (?:to|didn't|did)|this|that)\b",
    ),
    _rule(
        "liking",
        "preference",
        0.6,
        rf"{v.AM}(?:(?:a )?(?:big |huge |great )?fan of|into|fond of|keen on|obsessed with|passionate "
        rf"about|afraid of|"
        r"scared of|terrified of|addicted to|interested in|not (?:a )?(?:big |huge )?(?:fan of|into|fond "
        r"of|keen on))"
        r" (?!this|that|it\b|your|the (?:idea|result|answer|error)|knowing|hearing|seeing)\w+.*",
    ),
    _rule(
        "liking",
        "preference",
        0.55,
        r"(?:we|(?:my|our|the) team) (?:all )?(?:prefers?|likes?|loves?|hates?|dislikes?|don't like|"
        r"avoids?) \w+.*",
        rf"{v.NO_LIKING}|\b(?:your|this|that|it)\b",
    ),
    _rule(
        "personal detail",
        "fact",
        0.85,
        rf"(?:my (?:full |first |last |nick|middle |real |preferred )?name(?:'s| is)|i go by|people call "
        rf"me|my pronouns are|"
        rf"i'm called|i am called|my {v.DETAIL} (?:is|are)) .+",
        rf"\b(?:is|are) (?:not working|broken|this|that|it|here|below)\b|{v.NO_THING} (?:error|bug)",
    ),
    _rule(
        "being",
        "fact",
        0.7,
        rf"{v.AM}(?:not )?(?:{v.CONDITION}\b|{v.PLACE}\b|an? \w+|the (?:\w+ )?{v.POST}\b|{v.DOING_NOW}\b|"
        rf"{v.NAME}$)",
        rf"^{v.AM}(?:not )?{v.STATE}\b",
    ),
    _rule("having", "fact", 0.6, rf"{v.HAVE} {v.POSSESSED}\b.*", rf"^{v.HAVE} {v.NO_POSSESSION}\b"),
    _rule("doing", "fact", 0.65, rf"(?:i|we) {v.ADVERBS}{v.DO}\b.+", v.NO_DEED),
    _rule(
        "goal",
        "fact",
        0.6,
        rf"(?:i|we)(?: want| hope| aim|'d love| would love|'d like| would like) to {v.GOAL}.*",
        r"\b(?:now|here|please|with this)\b",
    ),
    _rule(
        "goal",
        "fact",
        0.65,
        r"(?:my|our) (?:\w+ )?(?:goal|dream|aim|ambition|plan|resolution|target|mission) (?:is|for \w+ is|"
        r"this year is) .+",
    ),
    _rule(
        "people",
        "fact",
        0.6,
        rf"my (?:\w[\w'-]* ){{0,3}}?{v.PERSON}(?:'s)?(?:,? {v.NAME},?| and i)? (?:is|are|was|were|has|have|"
        rf"lives?|works?|loves?|likes?|"
        r"hates?|prefers?|speaks?|studies|plays?|goes|teaches|owns?|runs?|uses?|died|passed|got|moved|"
        r"graduated|started|"
        r"turned|turns|name(?:'s)? is|names are|birthday|sits|reports|eats|doesn't|don't|can't|suffers|calls|"
        r"wants to (?:become|be|study)|will (?:be|turn|start))\b.+",
        rf"\b(?:is|are|was|were) {v.TROUBLE}\b|\b(?:doesn't|don't|can't) (?:work|understand|believe|"
        rf"know)\b|\blikes? (?:it|this|that)\b",
    ),
    _rule(
        "possession",
        "fact",
        0.6,
        rf"(?:my|our) (?!(?:\w+ )?{v.NO_THING}\b)(?:\w[\w'./-]* ){{0,4}}?\w[\w'./-]* (?:is|are|uses?|runs?|"
        rf"has|have|was founded|was built|"
        r"needs to|must|will be|targets?|supports?|contains?|ships?|consists?|lives? (?:in|on|at)|"
        r"belongs?|starts?|ends?|"
        r"meets?|deploys?|follows?|costs?|requires?) .+",
        rf"\b(?:is|are|has|have|was|been) {v.TROUBLE}\b|\bdoesn't work\b|\b(?:error|bug|crash|exception)\b",
    ),
)
