"""The words that the forms of lasting statements are made of, as expressions."""

from memories.judging.extraction.patterns import phrases

ADVERBS = (
    "(?:(?:also|really|actually|currently|now|still|usually|generally|typically|mostly|mainly|normally|"
    "personally|"
    "always|never|absolutely|totally|definitely|especially|just|often|rarely|only|strongly|much|both|all|"
    "finally) )*"
)
AM = rf"(?:i'm|i am|we're|we are) {ADVERBS}"
NAME = "(?-i:[A-Z][\\w'-]+)"
DATE = phrases(r"""
\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\d
tomorrow|next |this |in (?:a|two|three|spring|summer|autumn|fall|winter)|end of|christmas|easter
""")
OCCASION = phrases(r"""
deadline|due date|launch|release|release date|wedding|appointment|exam|interview|flight|birthday|anniversary
graduation|surgery|trip|vacation|holiday|meeting|presentation|defen[cs]e|marathon|race|party|move|review|demo|go-live
start date|conference|concert|check-?up|kick-?off
""")
PERSON = phrases(r"""
mother|father|mom|mum|dad|brother|sister|son|daughter|wife|husband|partner|girlfriend|boyfriend|fianc[e\u00e9]e?
spouse
friend|boss|manager|team|company|cat|dog|pet|kids?|children|child|baby|grand\w+|uncle|aunt|cousin|niece|nephew
parents?
roommate|landlord|doctor|dentist|coach|neighbou?rs?|client|colleague|co-?worker|family|employer|twins?|horse|parrot
""")
# Things of the user's that belong to the conversation or the moment, not to their life.
NO_THING = phrases(r"""
question|guess|point|problem|issue|error|code|function|query|understanding|bad|apolog(?:y|ies)|mistake|answer|request
task|prompt|previous|thinking|opinion|thoughts?|hope|fear|turn|fault|pleasure|god|goodness|sentence|text|essay|email
draft|message|input|output|script|program|idea|concern|feeling|head|brain|day|morning|mood|battery|internet|wifi
screen
assumption|impression|wish|eyes|coffee|food|bus|train|package|order|(?:last|next|first|second) \w+
""")
TROUBLE = phrases(r"""
not working|broken|failing|crashing|slow|wrong|down|frozen|stuck|acting|returning|giving|throwing|killing|aching
hurting
this|that|it|as follows|here|below|above|empty|dead|ringing|burning|sore|tired|a mess|sleeping|asleep|calling|crying
mad|angry|annoyed|late|being|driving me|asking|waiting|right|yelling|barking|hungry|sick of|funny|great|nice
""")
LANGUAGE = phrases(r"""
(?:british |american |plain |simple )?english|french|german|spanish|italian|portuguese|dutch|polish|russian|turkish
arabic|hindi|japanese|korean|chinese|mandarin|swedish|norwegian|danish|finnish|greek|hebrew|ukrainian
simple (?:words|terms)
""")
CONDITION = phrases(r"""
(?:a )?(?:strict )?(?:vegan|vegetarian|pescatarian)|lactose.intolerant|gluten.(?:free|intolerant)|coeliac|celiac
diabetic
allergic|intolerant|asthmatic|colou?r-?blind|deaf|blind|dyslexic|autistic|pregnant|left-handed|right-handed|married
divorced|single|engaged|widowed|retired|unemployed|self-employed|freelanc\w+|muslim|christian|jewish|hindu|buddhist
catholic|atheist|american|british|german|french|italian|spanish|indian|chinese|japanese|korean|brazilian|canadian
mexican|dutch|polish|turkish|swedish|irish|australian
""")
PLACE = phrases(rf"""
based (?:in|at|near)|located in|(?:originally )?from {NAME}|born (?:in|on)|responsible for|in charge of|fluent in
bilingual|enrolled|certified|employed (?:at|by)|\d{{1,3}} years? old|\d{{2}}$|in my (?:\w+ )?(?:year|twenties|thirties
forties|fifties)|in the \w+ (?:team|department)|on a (?:\w+ )?diet|on medication|on (?:parental|maternity) leave
on the \w+ team|a member|one of (?:the )?(?:two|three|four|\d)
""")
POST = phrases(r"""
lead|head|owner|founder|co-founder|manager|ceo|cto|director|maintainer|author|chair|president|treasurer|oldest
youngest
""")
DOING_NOW = phrases(r"""
living|working (?:as|at|for|in|with|from|on (?:a|an|my|our|the)|full-time|part-time|remotely)|building|learning
studying|training for|developing|migrating|moving to|expecting|raising|renovating|leading|managing|saving (?:up )?for
preparing for|getting married|running (?:a|an|my|our)|writing (?:a|my) (?:\w+ )?(?:book|novel|thesis|dissertation|phd
memoir)|planning (?:to|a|an|our|my)|recovering from|taking (?:care|medication|\w+ classes|\w+ lessons|classes|lessons)
using|hosting|launching|hiring|pursuing|teaching|collecting|growing
trying to (?:quit|lose|conceive|get pregnant|learn|eat less|save|cut)|deploying|shipping|switching to|dating|retiring
flying to|travell?ing to|visiting
""")
# Ways to be that pass, or that speak of the conversation.
STATE = phrases(r"""
a (?:bit|little|big fan|huge fan|few|mess|potato|genius|wreck|loss|fan of (?:this|that|it|your))|an? idiot|a moron
using (?:this|that|it|your?)|building (?:this|that|it)|working on (?:the (?:following|below)|this|that|it)
the one|an? (?:error|exception)|a (?:fan|ton|lot)$|learning a (?:ton|lot)|a (?:robot|wizard|dragon|ghost|unicorn
god)|planning to (?:ask|use this|submit|send)
learning (?:that|how)|expecting (?:a (?:reply|result|response|list|string|json)|the|it|that|this)
""")
HAVE = "(?:i|we)(?:'ve got| have got|'ve| have| own)"
NO_POSSESSION = phrases(r"""
to|an? (?:\w+ ){0,2}(?:question|problem|issue|doubt|bug|feeling|request|task|cold|headache|hunch|point|minute|moment
hard time|look|file|list|function|script|query|table|string|text|sentence|idea|error|exception|quick \w+|favou?r
second|chance|picture|photo|few (?:plans|things)|date tonight|thought|hangover|bad day|long day)|no (?:idea|clue
problem|doubt)
the (?:following|same|feeling)|two questions|three questions|a few questions
""")
POSSESSED = phrases(r"""
an?|the|two|three|four|five|six|seven|eight|nine|ten|\d+|my own|type|no|several|many|lots of|both|c(?:o)?eliac
diabetes|asthma|adhd|autism|dyslexia|allerg\w+|lived|worked|been (?:an?|the|married|living|working|vegetarian|vegan
with)
kids|children|cats|dogs|twins|high blood pressure|insomnia|migraines?
""")
DO = phrases(r"""
live|work|study|speak|own|drive|teach|play|run|manage|lead|coach|volunteer|collect|practi[cs]e|train|grew up
(?:was|were) (?:born|raised)|graduated|majored|moved (?:to|from|here)|come from|commute|report to|maintain|build
develop|sell|host|deploy|ship|use|rely on|store|write (?:all|our|my|most|in|python|java|rust|go|novels|books|code in)
follow an?|take (?:\w+ )?(?:medication|insulin|pills|mg)|take \d+|wake up|get up|go to (?:bed|the gym|church|school)
exercise|meditate|(?:don't |do not )?smoke|(?:don't|do not) (?:have (?:an?|any)|own|drive)|bake|cook|paint|sing|swim
cycle|bike|hike|jog|garden|knit|dance|sail|ski|surf|climb|fish|quit|stopped|started (?:an?|my|working|learning|at)
plan to|intend to
""")
NO_DEED = (
    r"\b(?:following|code below|this (?:code|error|script|function|command))\b"
    r"|^(?:i|we) (?:\w+ )?(?:play|run|use|start|build|deploy|write|host|ship|quit|stopped|cook|store|"
    r"maintain) "
    r"(?:it|this|that|your?|the (?:code|script|command|program|app|function|test|tests|query))\b"
    r"|^(?:i|we) work hard\b|\b(?:a fire|new chat)\b|^i plan to (?:ask|use this|submit|send)|^i run "
    r"into\b|^i come from\b$"
)
LIKE = phrases(r"""
like|love|prefer|enjoy|adore|hate|dislike|detest|loathe|despise|avoid|eat|drink
(?:can't|cannot) (?:stand|eat|drink|tolerate|have)
(?:don't|do not) (?:eat|drink|like|enjoy|use|care for|watch|want (?:any|emojis|bullet))
""")
NO_LIKING = (
    r"^(?:i|we) (?:\w+ ){0,2}?(?:like|love|hate|enjoy|prefer|adore) (?:the (?!ocean|sea|mountains?|"
    r"outdoors|beach|rain|cold|"
    r"heat|smell|taste|city|countryside|night)|his |their |its |those )|^(?:i|we) (?:\w+ )?(?:like|love|"
    r"hate|prefer) (?:how|what|where|when|the (?:way|idea|answer|result|first|second|tone)|to (?:know|ask"
    r"|see|hear|say|thank|point)|your)\b|^i (?:like|love|enjoy|eat|drink) (?:a lot|lunch now)$"
    r"|\bhate to (?:ask|bother|say|break)\b|\bavoid (?:the )?(?:question|answer)\b"
)
GOAL = phrases(r"""
become|retire|move to|run an?|lose|quit|start an?|learn (?!how|about|more|what|why|if|this|that)|visit|buy an?
adopt|save|climb|get (?:fit|certified|an? (?:degree|dog|cat|phd))|write an? (?:\w+ )?(?:book|novel)
be (?:an?|fluent)|travel to|launch|reach
""")
DETAIL = phrases(r"""
birthday|phone number|address|e-?mail(?: address)?|job|job title|profession|occupation|role|time ?zone
native language|mother tongue|nationality|religion|blood type|star sign|shoe size|height|weight|age|diet|allerg(?:y
ies)
hobb(?:y|ies)|goal|dream|hometown|school|university|major|degree|company|startup|website|handle|username|budget|salary
""")
NEVER_DO = phrases(r"""
use|using|call|calling|give|giving|answer|answering|reply|replying|write|writing|suggest|suggesting|recommend
recommending|include|including|add|adding|mention|mentioning|ask|asking|apologi[sz]\w+|start|starting|end|ending|show
showing|schedule|scheduling|send|sending|put|putting|repeat|repeating
""")
STANDING_OBJECT = phrases(r"""
emojis?|words?|me|answers?|repl(?:y|ies)|responses?|messages?|lists?|bullet|jargon|tables?|disclaimers?|questions
english|meat|pork|alcohol|gluten|dairy|fish|nuts|weekends?|mornings?|evenings?|(?:mon|tues|wednes|thurs|fri|satur
sun)days?
again|anymore|language|comments|semicolons|examples|explanations?|apolog\w+
""")
TOLD_TO = phrases(r"""
use|answer|reply|respond|give|write|explain|include|suggest|recommend|ask|call|address|start|end|show|speak|keep
format
add|cite|provide|mention|send|put|say|tell|assume|check|double-check|round|convert|translate|schedule|book|remind|warn
state|avoid|mark|name|list|return|order|offer|apologi[sz]e|talk|talk to me|summari[sz]e|propose|quote|shorten|spell
""")
FROM_NOW_ON = phrases(r"""
from now on|going forward|in (?:the )?future|from here on|for all (?:future )?(?:answers|replies|responses
conversations)
in all (?:future |your )?(?:answers|replies|responses|conversations)|by default|every time|whenever i|each time
""")
DECIDER = phrases(r"""
i|we|i've|we've|(?:my|our|the) (?:team|company)|my (?:wife|husband|partner|boss|manager|team) and i
""")
DECIDED = phrases(r"""
decided|chosen|chose|agreed|settled|opted|picked|selected|committed|resolved|signed up|standardi[sz]ed|dropped
switched
migrated
""")
