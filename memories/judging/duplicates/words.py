"""The words that the guard knows: what carries no meaning of its own, what means the same and what the
opposite.
"""

from memories.judging.duplicates.lists import groups, word_set


def _same(text: str, meaning: str) -> dict[str, str]:
    return dict.fromkeys(text.split(), meaning)


def _opposites(text: str) -> dict[str, set[str]]:
    """Map every word to its opposites."""
    found: dict[str, set[str]] = {}
    for pair in text.split():
        one, other = pair.split("/")
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    return found


# Words that hold a sentence together. What they change is looked at on its own: negation, persons, direction.
FUNCTION = word_set("""
a an the this that these those of to in on at by for with from as into onto about over under up down
off out than and or but so because since while when if whether then there here it its itself be is am
are was were been being do does did done doing have has had having will would shall going gonna get
gets got getting s d ll re ve m i me my mine myself we us our ours ourselves you your yours he him his
she her hers they them their theirs who whom whose which what how where why one ones also too just
really very quite rather please actually basically currently presently now nowadays right-now today's
own such some any user users user's own's kind sort bit lot upon per via within towards toward
through throughout across between among around during each every both only even still already yet well
oh yes ok okay hey hi fyi btw note remember let lets make makes sure always-so personally honestly
definitely certainly truly simply generally mainly mostly particularly especially approximately roughly
about named called name known titled call regarding concerning respect terms thing things fact case
time that's person people someone until till before after above below without against inside outside
except
""")

# One line a meaning, the first word stands for all. Words as the stemmer leaves them.
SYNONYM = groups("""
trouble difficulty
birthday born
prefer favor favour favorite favourite
like enjoy
love adore
hate detest loathe despise
want wish desire
buy purchase
begin start commence launch release
finish complete conclude wrap
live reside dwell
home house
work job employ employed employment occupation profession position
company firm employer business
boss manager supervisor
coworker colleague teammate
kid child youngster
mother mom mum mommy mummy
father dad daddy
grandmother grandma granny nana
grandfather grandpa granddad
spouse partner
doctor physician medic
lawyer attorney
teacher instructor
car automobile
bike bicycle
apartment flat
phone telephone cellphone
tv television
movie film
photo picture photograph
email mail e-mail
big large
small little tiny
quick fast rapid
difficult hard tough
easy simple
happy glad pleased
sad unhappy
important crucial vital essential
meeting meet
talk speak chat
say tell mention state
ask request
help assist aid support
use utilize utilise
choose pick select opt
decide settle
fix repair solve resolve
make build create construct
show display
send deliver
get receive obtain
answer reply respond response
reach contact
move relocate
study learn
visit tour
travel trip journey
holiday vacation
birthday bday
medicine medication drug
sick ill unwell
allergy allergic
vegetarian veggie
write author pen
read perusal
cook prepare
eat consume
drink sip
dinner supper
soda pop
cookie biscuit
store shop supermarket
road street
town city
country nation
trash garbage rubbish
couch sofa
sneaker trainer
pants trousers
deadline due
schedule plan slate arrange
assignment task
issue problem
bug defect
database db
application app
configuration config setting
repository repo
documentation docs doc
javascript js
typescript ts
kubernetes k8s
postgresql postgres
production prod
administrator admin
environment env
specification spec
information info
reference ref
approximately roughly around
daily everyday
weekly every-week
monthly every-month
yearly annually annual every-year
nightly every-night
frequently often regularly usually
sometimes occasionally
rarely seldom
always constantly
must should need require
able can could
may might
brief short concise
reply-style style tone
language tongue
afraid scared fear frightened terrified
exercise workout
run jog
game match
funny humorous
smart intelligent clever
tired exhausted
angry mad
rich wealthy
quiet silent
gather collect
own possess
remain stay
allow permit
attend join
leave depart
return come-back
arrive land
approve sign-off
cancel call-off
postpone delay defer
discuss talk-about
explain clarify
improve enhance
reduce lower decrease
increase raise boost grow bring-up
check verify
test try
find discover locate
keep retain
give provide supply
last final
main primary principal chief
entire whole
several various multiple
usual normal typical ordinary
recent latest
old elderly
beautiful gorgeous
tasty delicious
terrible awful
great excellent
usa us-country america united-states
uk britain united-kingdom
nyc new-york
goal aim objective target ambition
quit stop cease
salary pay wage
rent lease
meal food
swim bathe
walk stroll
rest relax
hobby pastime
garden yard
laptop notebook
example sample instance
error mistake fault
strict rigid
noisy loud
calm peaceful
anxious nervous worried
shy timid
stubborn obstinate
thin slim slender
fat overweight obese
cheap inexpensive affordable
expensive costly pricey
near close nearby
far distant
wrong incorrect
needed necessary
weird strange odd
tidy neat
lorry truck
surgery operation
illness disease sickness
luggage baggage
subway metro underground
bill invoice
deploy rollout
team squad
feature functionality
""")

OPPOSITES = _opposites("""
left/right before/after early/late above/below over/under up/down in/out on/off to/from with/without
inside/outside first/last more/less most/least many/few all/none every/no always/never love/hate like/dislike
like/hate like/love enable/disable enabled/disabled open/close open/closed start/finish begin/end begin/finish
start/end start/stop begin/stop begin/cancel accept/reject accept/decline approve/reject approve/deny
allow/forbid allow/block include/exclude add/remove buy/sell lend/borrow give/get give/take send/get push/pull
win/lose increase/reduce increase/decrease rise/fall grow/shrink hot/cold warm/cool big/small long/brief
long/short tall/short high/low fast/slow quick/slow hard/soft easy/difficult cheap/expensive old/new old/young
early/late light/dark light/heavy wet/dry full/empty strong/weak rich/poor happy/sad good/bad best/worst
better/worse right/wrong true/false public/private internal/external local/remote online/offline front/back
top/bottom near/far north/south east/west morning/evening day/night summer/winter spring/autumn morning/night
mother/father brother/sister son/daughter husband/wife uncle/aunt man/woman boy/girl male/female
vegan/vegetarian vegan/omnivore single/married arrive/leave come/go enter/leave enter/exit join/leave
remember/forget succeed/fail pass/fail agree/disagree appear/disappear connect/disconnect install/uninstall
lock/unlock mount/unmount subscribe/unsubscribe import/export upload/download encrypt/decrypt encode/decode
read/write sync/async manual/automatic optional/mandatory optional/required required/forbidden safe/dangerous
minimum/maximum min/max upper/lower major/minor senior/junior employer/employee teacher/student buyer/seller
doctor/patient parent/child host/guest client/server frontend/backend input/output source/target
present/absent alive/dead awake/asleep asleep/awake clean/dirty quiet/loud noisy/quiet full-time/part-time
indoor/outdoor indoors/outdoors hardware/software formal/informal casual/formal brief/detailed verbose/brief
sweet/savory sweet/salty sour/sweet spicy/mild raw/cooked fresh/frozen still/sparkling black/white plus/minus
credit/debit profit/loss income/expense asset/liability gain/loss surplus/deficit until/since until/from
for/against ally/enemy friend/enemy same/different together/apart together/alone tighten/loosen
expand/contract raise/lower ascend/descend ascending/descending forward/backward introvert/extrovert
optimist/pessimist cat/dog tea/coffee temporary/permanent daily/weekly weekly/monthly monthly/yearly odd/even
positive/negative plural/singular prefer/avoid prefer/hate want/refuse use/avoid keep/discard hire/fire
employ/fire build/destroy create/delete save/delete insert/delete deploy/rollback merge/split active/inactive
visible/hidden known/unknown able/unable possible/impossible legal/illegal
""")

NEGATION = word_set("not no never none nobody nothing neither nor without cannot hardly barely nowhere")
# Words that end or refuse what another statement says goes on: they turn a statement over like a negation.
TURNING = word_set("""
stop quit avoid refuse former formerly ex previously cease lack fail dislike unable except instead longer anymore cancel
hate unlike false
""")
QUANTITY = groups("""
all every everyone everything everybody entire each
most majority mostly mainly
many lot lots numerous
some several
few handful
none no nothing nobody
always constantly
frequently often usually regularly
sometimes occasionally
rarely seldom
never
only solely exclusively
both
more
less fewer
at-least minimum
at-most maximum
""")
PERSON = {
    **_same("i me my mine myself user user's users", "self"),
    **_same("we us our ours ourselves", "we"),
    **_same("he him his himself", "he"),
    **_same("she her hers herself", "she"),
    **_same("they them their theirs themselves", "they"),
    **_same("you your yours yourself", "you"),
}
# Prepositions whose object may not change places with another word.
DIRECTION = word_set("""
to from than over under before after instead without by until against except not for with versus vs into
""")
# Content words that add nothing when they stand on one side only.
LIGHT = word_set("""
much lot together
currently really very quite please also just now still already actually always-on day kind type way bit
personally typically normally usual general set schedule own use have work go say find mean keep tell remember
state mention note inform indicate come take do new brand current whole entire overall total exactly precisely
strictly highly deeply absolutely completely totally extremely so-called happen user born date located based
live place kid's place's speak call name number sure able going
""")
# People and beings that act and are acted upon.
ROLES = word_set("""
mother father brother sister son daughter husband wife spouse uncle aunt cousin grandmother grandfather friend neighbor
neighbour manager coworker lead director ceo cto engineer designer developer teacher student doctor patient nurse client
customer vendor team server kid dog cat company user landlord tenant coach trainer lawyer partner
""")
