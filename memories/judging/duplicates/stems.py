"""Bring the forms of an English word together: plurals, tenses, irregular verbs, and words of one family."""

import re
from functools import lru_cache

import snowballstemmer

from memories.judging.duplicates.lists import word_set

_IRREGULAR = {
    form: line.split()[0]
    for line in """
write wrote written writing
go went gone goes
use using used uses
take took taken
give gave given
get got gotten
make made
buy bought
bring brought
think thought
teach taught
catch caught
find found
keep kept
sleep slept
leave left-past
meet met
send sent
spend spent
lend lent
build built
lose lost
win won
hold held
tell told
say said says
pay paid
sell sold
stand stood
understand understood
eat ate eaten
drink drank drunk
drive drove driven
ride rode ridden
speak spoke spoken
break broke broken
choose chose chosen
wear wore worn
begin began begun
sing sang sung
swim swam swum
run ran
know knew known
grow grew grown
fly flew flown
see saw seen
fall-down fell fallen
feel felt
read reads
hear heard
become became
come came
draw drew drawn
hire hiring
child children
person people
man men
woman women
foot feet
tooth teeth
mouse mice
life lives-noun
wife wives
knife knives
half halves
bus buses
die died dying
lie lying
""".strip().splitlines()
    for form in line.split()
}
_PAST = word_set("""
wrote went took gave got made bought brought thought taught caught found kept slept met sent spent lent built lost won
held told said paid sold stood understood ate drank drove rode spoke broke chose wore began sang swam ran knew grew flew
saw fell felt heard became came drew had did
""")
_ENDINGS = word_set("""
e er or y ion ation ing ed s es al ical ic ist ment ement ence ance ent ness able ive ship ian ture ure ling ery
""") | {""}

_OUR = re.compile("our(?=s$|ed$|ing$|ite|able|hood|al$|$)")
_ISE = re.compile("is(e|es|ed|ing|ation|er)$")
_english = snowballstemmer.stemmer("english")


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """The stem of a lower-case word: the same for all its forms, not always a word itself."""
    word = word.removesuffix("'s").removesuffix("\u2019s")
    word = _IRREGULAR.get(word, word)
    if len(word) > 5:  # British spelling
        word = _OUR.sub("or", _ISE.sub(r"iz\1", word))
    return str(_english.stemWord(word))


def is_past(word: str) -> bool:
    """True for a form that can only be a past tense or a participle."""
    return word in _PAST or (len(word) > 4 and word.endswith("ed"))


def same_family(a: str, b: str) -> bool:
    """True for stems of one word family, such as allergy and allergic, develop and developer."""
    length = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return any(
        a[cut:] in _ENDINGS and b[cut:] in _ENDINGS
        for cut in range(max(length - 1, 4), length + 1)
        if cut >= 4
    )
