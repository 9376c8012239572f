"""The English forms of lasting statements, by the kind of memory they make.

A rule is a beginning that a statement must have, and what it must not hold. The order matters: the first that fits wins.
"""

import re
from dataclasses import dataclass

from memories.extraction.patterns import expression, phrases

_ADVERBS = (
    "(?:(?:also|really|actually|currently|now|still|usually|generally|typically|mostly|mainly|normally|personally|"
    "always|never|absolutely|totally|definitely|especially|just|often|rarely|only|strongly|much|both|all|finally) )*"
)
_AM = rf"(?:i'm|i am|we're|we are) {_ADVERBS}"
_NAME = "(?-i:[A-Z][\\w'-]+)"
_DATE = phrases(r"""
\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\d
tomorrow|next |this |in (?:a|two|three|spring|summer|autumn|fall|winter)|end of|christmas|easter
""")
_OCCASION = phrases(r"""
deadline|due date|launch|release|release date|wedding|appointment|exam|interview|flight|birthday|anniversary
graduation|surgery|trip|vacation|holiday|meeting|presentation|defen[cs]e|marathon|race|party|move|review|demo|go-live
start date|conference|concert|check-?up|kick-?off
""")
_PERSON = phrases(r"""
mother|father|mom|mum|dad|brother|sister|son|daughter|wife|husband|partner|girlfriend|boyfriend|fianc[e\u00e9]e?|spouse
friend|boss|manager|team|company|cat|dog|pet|kids?|children|child|baby|grand\w+|uncle|aunt|cousin|niece|nephew|parents?
roommate|landlord|doctor|dentist|coach|neighbou?rs?|client|colleague|co-?worker|family|employer|twins?|horse|parrot
""")
# Things of the user's that belong to the conversation or the moment, not to their life.
_NO_THING = phrases(r"""
question|guess|point|problem|issue|error|code|function|query|understanding|bad|apolog(?:y|ies)|mistake|answer|request
task|prompt|previous|thinking|opinion|thoughts?|hope|fear|turn|fault|pleasure|god|goodness|sentence|text|essay|email
draft|message|input|output|script|program|idea|concern|feeling|head|brain|day|morning|mood|battery|internet|wifi|screen
assumption|impression|wish|eyes|coffee|food|bus|train|package|order|(?:last|next|first|second) \w+
""")
_TROUBLE = phrases(r"""
not working|broken|failing|crashing|slow|wrong|down|frozen|stuck|acting|returning|giving|throwing|killing|aching|hurting
this|that|it|as follows|here|below|above|empty|dead|ringing|burning|sore|tired|a mess|sleeping|asleep|calling|crying
mad|angry|annoyed|late|being|driving me|asking|waiting|right|yelling|barking|hungry|sick of|funny|great|nice
""")
_LANGUAGE = phrases(r"""
(?:british |american |plain |simple )?english|french|german|spanish|italian|portuguese|dutch|polish|russian|turkish
arabic|hindi|japanese|korean|chinese|mandarin|swedish|norwegian|danish|finnish|greek|hebrew|ukrainian
simple (?:words|terms)
""")
_CONDITION = phrases(r"""
(?:a )?(?:strict )?(?:vegan|vegetarian|pescatarian)|lactose.intolerant|gluten.(?:free|intolerant)|coeliac|celiac|diabetic
allergic|intolerant|asthmatic|colou?r-?blind|deaf|blind|dyslexic|autistic|pregnant|left-handed|right-handed|married
divorced|single|engaged|widowed|retired|unemployed|self-employed|freelanc\w+|muslim|christian|jewish|hindu|buddhist
catholic|atheist|american|british|german|french|italian|spanish|indian|chinese|japanese|korean|brazilian|canadian
mexican|dutch|polish|turkish|swedish|irish|australian
""")
_PLACE = phrases(rf"""
based (?:in|at|near)|located in|(?:originally )?from {_NAME}|born (?:in|on)|responsible for|in charge of|fluent in
bilingual|enrolled|certified|employed (?:at|by)|\d{{1,3}} years? old|\d{{2}}$|in my (?:\w+ )?(?:year|twenties|thirties
forties|fifties)|in the \w+ (?:team|department)|on a (?:\w+ )?diet|on medication|on (?:parental|maternity) leave
on the \w+ team|a member|one of (?:the )?(?:two|three|four|\d)
""")
_POST = phrases(r"""
lead|head|owner|founder|co-founder|manager|ceo|cto|director|maintainer|author|chair|president|treasurer|oldest|youngest
""")
_DOING_NOW = phrases(r"""
living|working (?:as|at|for|in|with|from|on (?:a|an|my|our|the)|full-time|part-time|remotely)|building|learning
studying|training for|developing|migrating|moving to|expecting|raising|renovating|leading|managing|saving (?:up )?for
preparing for|getting married|running (?:a|an|my|our)|writing (?:a|my) (?:\w+ )?(?:book|novel|thesis|dissertation|phd
memoir)|planning (?:to|a|an|our|my)|recovering from|taking (?:care|medication|\w+ classes|\w+ lessons|classes|lessons)
using|hosting|launching|hiring|pursuing|teaching|collecting|growing
trying to (?:quit|lose|conceive|get pregnant|learn|eat less|save|cut)|deploying|shipping|switching to|dating|retiring
flying to|travell?ing to|visiting
""")
# Ways to be that pass, or that speak of the conversation.
_STATE = phrases(r"""
a (?:bit|little|big fan|huge fan|few|mess|potato|genius|wreck|loss|fan of (?:this|that|it|your))|an? idiot|a moron
using (?:this|that|it|your?)|building (?:this|that|it)|working on (?:the (?:following|below)|this|that|it)
the one|an? (?:error|exception)|a (?:robot|wizard|dragon|ghost|unicorn|god)|planning to (?:ask|use this|submit|send)
learning (?:that|how)|expecting (?:a (?:reply|result|response|list|string|json)|the|it|that|this)
""")
_HAVE = "(?:i|we)(?:'ve got| have got|'ve| have| own)"
_NO_POSSESSION = phrases(r"""
to|an? (?:\w+ ){0,2}(?:question|problem|issue|doubt|bug|feeling|request|task|cold|headache|hunch|point|minute|moment
hard time|look|file|list|function|script|query|table|string|text|sentence|idea|error|exception|quick \w+|favou?r
second|chance|date tonight|thought|hangover|bad day|long day)|no (?:idea|clue|problem|doubt)
the (?:following|same|feeling)|two questions|three questions|a few questions
""")
_POSSESSED = phrases(r"""
an?|the|two|three|four|five|six|seven|eight|nine|ten|\d+|my own|type|no|several|many|lots of|both|c(?:o)?eliac
diabetes|asthma|adhd|autism|dyslexia|allerg\w+|lived|worked|been (?:an?|the|married|living|working|vegetarian|vegan|with)
kids|children|cats|dogs|twins|high blood pressure|insomnia|migraines?
""")
_DO = phrases(r"""
live|work|study|speak|own|drive|teach|play|run|manage|lead|coach|volunteer|collect|practi[cs]e|train|grew up
(?:was|were) (?:born|raised)|graduated|majored|moved (?:to|from|here)|come from|commute|report to|maintain|build
develop|sell|host|deploy|ship|use|rely on|store|write (?:all|our|my|most|in|python|java|rust|go|novels|books|code in)
follow an?|take (?:\w+ )?(?:medication|insulin|pills|mg)|take \d+|wake up|get up|go to (?:bed|the gym|church|school)
exercise|meditate|(?:don't |do not )?smoke|(?:don't|do not) (?:have (?:an?|any)|own|drive)|bake|cook|paint|sing|swim
cycle|bike|hike|jog|garden|knit|dance|sail|ski|surf|climb|fish|quit|stopped|started (?:an?|my|working|learning|at)
plan to|intend to
""")
_NO_DEED = (
    r"\b(?:following|code below|this (?:code|error|script|function|command))\b"
    r"|^(?:i|we) (?:\w+ )?(?:play|run|use|start|build|deploy|write|host|ship|quit|stopped|cook|store|maintain) "
    r"(?:it|this|that|your?|the (?:code|script|command|program|app|function|test|tests|query))\b"
    r"|^(?:i|we) work hard\b|\b(?:a fire|new chat)\b|^i plan to (?:ask|use this|submit|send)|^i run into\b|^i come from\b$"
)
_LIKE = phrases(r"""
like|love|prefer|enjoy|adore|hate|dislike|detest|loathe|despise|avoid|eat|drink
(?:can't|cannot) (?:stand|eat|drink|tolerate|have)
(?:don't|do not) (?:eat|drink|like|enjoy|use|care for|watch|want (?:any|emojis|bullet))
""")
_NO_LIKING = (
    r"^(?:i|we) (?:\w+ )?(?:like|love|hate|prefer) (?:how|what|where|when|the (?:way|idea|answer|result|first|second|tone)|to (?:know|ask"
    r"|see|hear|say|thank|point)|your)\b|^i (?:like|love|enjoy|eat|drink) (?:a lot|lunch now)$"
    r"|\bhate to (?:ask|bother|say|break)\b|\bavoid (?:the )?(?:question|answer)\b"
)
_GOAL = phrases(r"""
become|retire|move to|run an?|lose|quit|start an?|learn (?!how|about|more|what|why|if|this|that)|visit|buy an?
adopt|save|climb|get (?:fit|certified|an? (?:degree|dog|cat|phd))|write an? (?:\w+ )?(?:book|novel)
be (?:an?|fluent)|travel to|launch|reach
""")
_DETAIL = phrases(r"""
birthday|phone number|address|e-?mail(?: address)?|job|job title|profession|occupation|role|time ?zone
native language|mother tongue|nationality|religion|blood type|star sign|shoe size|height|weight|age|diet|allerg(?:y|ies)
hobb(?:y|ies)|goal|dream|hometown|school|university|major|degree|company|startup|website|handle|username|budget|salary
""")
_NEVER_DO = phrases(r"""
use|using|call|calling|give|giving|answer|answering|reply|replying|write|writing|suggest|suggesting|recommend
recommending|include|including|add|adding|mention|mentioning|ask|asking|apologi[sz]\w+|start|starting|end|ending|show
showing|schedule|scheduling|send|sending|put|putting|repeat|repeating
""")
_STANDING_OBJECT = phrases(r"""
emojis?|words?|me|answers?|repl(?:y|ies)|responses?|messages?|lists?|bullet|jargon|tables?|disclaimers?|questions
english|meat|pork|alcohol|gluten|dairy|fish|nuts|weekends?|mornings?|evenings?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?
again|anymore|language|comments|semicolons|examples|explanations?|apolog\w+
""")
_FROM_NOW_ON = phrases(r"""
from now on|going forward|in (?:the )?future|from here on|for all (?:future )?(?:answers|replies|responses|conversations)
in all (?:future |your )?(?:answers|replies|responses|conversations)|by default|every time|whenever i|each time
""")
_DECIDER = phrases(r"""
i|we|i've|we've|(?:my|our|the) (?:team|company)|my (?:wife|husband|partner|boss|manager|team) and i
""")
_DECIDED = phrases(r"""
decided|chosen|chose|agreed|settled|opted|picked|selected|committed|resolved|signed up|standardi[sz]ed|dropped|switched
migrated
""")


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
        "name", "fact", 0.8,
        r"(?:please )?(?:just )?(?:call me|address me as|refer to me as) \w+",
        r"\bme (?:back|when|if|at|on|later|tomorrow|today|crazy|an?|the|stupid|old|maybe|as soon|again)\b",
    ),
    _rule(
        "standing wish", "instruction", 0.8,
        r"(?:please |i(?:'d| would)? (?:want|like|need|prefer) you to |you (?:should|must) |make sure (?:to |you )?)?"
        r"(?:always|never) \w+ \w+",
        r"(?:always|never) (?:ever )?(?:mind|been|had|knew|heard|thought|saw|seen|tried|understood|have|has|did|was|were|"
        r"gonna|going|wanted|liked|learned|really|say never)\b",
    ),
    _rule("standing wish", "instruction", 0.8, rf"(?:please )?{_FROM_NOW_ON}\b,? .{{6,}}", r"\b(?:it|this) (?:crash|fail|break)"),
    _rule(
        "standing wish", "instruction", 0.7,
        rf"(?:please )?(?:don't|do not|stop|avoid) (?:ever )?{_NEVER_DO}\b(?! (?:this|that|it|here)\b).*\b{_STANDING_OBJECT}\b",
        r"\bin (?:this|the (?:email|letter|essay|text|code|query|function|story))\b",
    ),
    _rule(
        "standing wish", "instruction", 0.75,
        r"(?:please )?(?:answer|reply|respond|write|speak|talk|communicate) (?:to me |with me )?(?:only |always )?"
        rf"(?:in {_LANGUAGE}|formally|informally|briefly|concisely)\b",
        r"\b(?:this|the following|an? (?:poem|story|letter|mail|email|song|haiku|essay))\b",
    ),
    _rule(
        "standing wish", "instruction", 0.75,
        r"(?:please )?use (?:metric|imperial|celsius|fahrenheit|british spelling|american spelling|the metric system|"
        r"type hints|tabs|24-hour|simple words)\b.{0,80}",
    ),
    _rule(
        "decision", "decision", 0.75,
        rf"{_DECIDER}(?: have| has)? {_ADVERBS}{_DECIDED}\s+(?:to|on|for|that|against|not|from|with|in favou?r|the|an?|{_NAME}"
        r"|support|\w+ (?:as|over|for|instead))\b.*",
        r"\bto (?:ask|write to you|try (?:this|it|you)|give (?:it|this|you))\b",
    ),
    _rule("decision", "decision", 0.7, r"(?:we're|we are|i'm|i am) (?:going|sticking|staying) (?:ahead )?with .{3,}", r"\b(?:it|this|that|your)\b"),
    _rule("decision", "decision", 0.7, r"(?:the|our|my) (?:final )?decision (?:is|was) .{4,}"),
    _rule(
        "event", "event", 0.75,
        rf"(?:my|our)\s+(?:\w[\w'-]* ){{0,4}}?{_OCCASION}\s+(?:is|are|was moved|got moved|has been moved|will be|starts?|"
        rf"takes place|falls|got postponed|moved|has moved)\b.*{_DATE}.*",
    ),
    _rule("event", "event", 0.7, rf"(?:i|we)(?:'ve got|'ve| have got| have| got) (?:an? |the |our |my )(?:\w[\w'-]* ){{0,3}}?{_OCCASION}\b.*{_DATE}.*"),
    _rule(
        "event", "event", 0.7,
        r"(?:i'm|i am|we're|we are|(?:i|we)(?:'ll| will) be) (?:getting married|moving|flying|travell?ing|going on|visiting|launching|"
        rf"releasing|retiring|graduating|expecting|hosting|starting|leaving|presenting|defending)\b.*{_DATE}.*",
    ),
    _rule("event", "event", 0.7, rf"(?:we|i) (?:launch|release|go live|graduate|retire|move|fly|open|present|defend) .{{0,60}}{_DATE}.*"),
    _rule(
        "favourite", "preference", 0.65,
        r"(?:my|our) (?:all-time |absolute |personal )?(?:favou?rite|preferred|go-to)\b.{2,60}\b(?:is|are|has always been) .{2,}",
        r"\bfavou?rite (?:part|thing) (?:is|of this|about this)\b|\b(?:is|are) (?:this|that|it|the (?:first|second|last))\b",
    ),
    _rule("liking", "preference", 0.6, rf"i (?:do )?{_ADVERBS}{_LIKE} \w+.*", _NO_LIKING),
    _rule("liking", "preference", 0.6, r"i(?:'d| would) (?:rather|prefer) .{5,}", r"\b(?:if|you (?:to|didn't|did)|this|that)\b"),
    _rule(
        "liking", "preference", 0.6,
        rf"{_AM}(?:(?:a )?(?:big |huge |great )?fan of|into|fond of|keen on|obsessed with|passionate about|afraid of|"
        r"scared of|terrified of|addicted to|interested in|not (?:a )?(?:big |huge )?(?:fan of|into|fond of|keen on))"
        r" (?!this|that|it\b|your|the (?:idea|result|answer|error)|knowing|hearing|seeing)\w+.*",
    ),
    _rule(
        "liking", "preference", 0.55,
        r"(?:we|(?:my|our|the) team) (?:all )?(?:prefers?|likes?|loves?|hates?|dislikes?|don't like|avoids?) \w+.*",
        rf"{_NO_LIKING}|\b(?:your|this|that|it)\b",
    ),
    _rule(
        "personal detail", "fact", 0.85,
        rf"(?:my (?:full |first |last |nick|middle |real |preferred )?name(?:'s| is)|i go by|people call me|my pronouns are|"
        rf"i'm called|i am called|my {_DETAIL} (?:is|are)) .+",
        rf"\b(?:is|are) (?:not working|broken|this|that|it|here|below)\b|{_NO_THING} (?:error|bug)",
    ),
    _rule(
        "being", "fact", 0.7,
        rf"{_AM}(?:not )?(?:{_CONDITION}\b|{_PLACE}\b|an? \w+|the (?:\w+ )?{_POST}\b|{_DOING_NOW}\b|{_NAME}$)",
        rf"^{_AM}(?:not )?{_STATE}\b",
    ),
    _rule("having", "fact", 0.6, rf"{_HAVE} {_POSSESSED}\b.*", rf"^{_HAVE} {_NO_POSSESSION}\b"),
    _rule("doing", "fact", 0.65, rf"(?:i|we) {_ADVERBS}{_DO}\b.+", _NO_DEED),
    _rule("goal", "fact", 0.6, rf"(?:i|we)(?: want| hope| aim|'d love| would love|'d like| would like) to {_GOAL}.*", r"\b(?:now|here|please|with this)\b"),
    _rule("goal", "fact", 0.65, r"(?:my|our) (?:\w+ )?(?:goal|dream|aim|ambition|plan|resolution|target|mission) (?:is|for \w+ is|this year is) .+"),
    _rule(
        "people", "fact", 0.6,
        rf"my (?:\w[\w'-]* ){{0,3}}?{_PERSON}(?:'s)?(?:,? {_NAME},?| and i)? (?:is|are|was|were|has|have|lives?|works?|loves?|likes?|"
        r"hates?|prefers?|speaks?|studies|plays?|goes|teaches|owns?|runs?|uses?|died|passed|got|moved|graduated|started|"
        r"turned|turns|name(?:'s)? is|names are|birthday|sits|reports|eats|doesn't|don't|can't|suffers|calls|"
        r"wants to (?:become|be|study)|will (?:be|turn|start))\b.+",
        rf"\b(?:is|are|was|were) {_TROUBLE}\b|\b(?:doesn't|don't|can't) (?:work|understand|believe|know)\b|\blikes? (?:it|this|that)\b",
    ),
    _rule(
        "possession", "fact", 0.6,
        rf"(?:my|our) (?!(?:\w+ )?{_NO_THING}\b)(?:\w[\w'./-]* ){{0,4}}?\w[\w'./-]* (?:is|are|uses?|runs?|has|have|was founded|was built|"
        r"needs to|must|will be|targets?|supports?|contains?|ships?|consists?|lives? (?:in|on|at)|belongs?|starts?|ends?|"
        r"meets?|deploys?|follows?|costs?|requires?) .+",
        rf"\b(?:is|are|has|have|was|been) {_TROUBLE}\b|\bdoesn't work\b|\b(?:error|bug|crash|exception)\b",
    ),
)  # fmt: skip
