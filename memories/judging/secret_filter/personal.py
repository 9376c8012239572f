"""Find numbers that are a person's own: cards, PINs, accounts, identities, recovery codes, keys of wallets.

They are no credentials that nobody should store anywhere, so whoever wants one kept is asked, and nothing automatic
keeps one. Pure and linear, as the package promises: each place of a text is looked at a bounded number of times, and a
text that holds more candidates than talk can is called one rather than read on.

A number of a form that no other has, with its check digits right, is one wherever it stands. Others need a word for
them shortly before ("SSN", "PESEL", "my PIN is"), and must be said to be it where their check
digits are wrong, or they have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from stdnum import luhn

from memories.judging.secret_filter.alternatives import choice_of, spell_out
from memories.judging.secret_filter.finding import Finding
from memories.judging.secret_filter.identities import (
    AMBIGUOUS,
    NAMED,
    ONLY_VALID,
    SAID,
    Check,
    any_number,
)
from memories.judging.secret_filter.languages import column, folded
from memories.judging.secret_filter.postal import is_postal
from memories.judging.secret_filter.shaped_numbers import ALLOWANCE, AROUND, JUDGED, SEPARATORS, find_shaped

_WORTH_IT = re.compile(r"[0-9](?:[^0-9]{0,3}[0-9]){2}")  # no personal number has fewer than three digits
_REACH, _LONGEST = 48, 40  # characters from a word to its number, and of a number


def find_personal(text: str) -> Finding | None:
    """Return the first personal number in `text` (folded), or None."""
    if not _WORTH_IT.search(text):
        return None
    upper = _same_length(text, str.upper)
    lower = _same_length(text, str.lower)
    return find_shaped(upper) or _find_named(lower, upper) or _find_backwards(lower)


def _same_length(text: str, change: Callable[[str], str]) -> str:
    """The text in one case. A few letters grow by it; they stay as they are, so that positions hold."""
    changed = change(text)
    if len(changed) == len(text):
        return changed
    return "".join(new if len(new := change(char)) == 1 else char for char in text)


# Numbers behind a word for them


_JOINED = re.compile(
    "[\u1100-\u11ff\u3040-\u30ff\u4e00-\u9fff]"
)  # scripts without blanks, and what stands with them


def _any_of(words: list[str]) -> str:
    """Any of the words, whole ones where blanks part them; scripts without blanks know no such thing."""
    apart = [spelled for word in words if not _JOINED.search(word) for spelled in spell_out(word)]
    joined = [spelled for word in words if _JOINED.search(word) for spelled in spell_out(word)]
    return (
        rf"(?<![^\W\d_])(?=[^\W\d_])(?:{choice_of(apart)})(?![^\W\d_])"
        + rf"|(?=[^\x00-\x7f]|pin)(?:{choice_of(joined)})" * bool(joined)
    )


_OF = "|".join([*column("of"), *column("whose"), *column("card"), "bancomat"])
_EQUALS = "|".join(column("equals"))
_ARTICLE = "el|la|le|il|a|o|die|the"
_ATTACHED = "|".join(column("attached"))
# What may stand between a word and the number that is said to be it: what it is for and then "is", or a sign.
_SAYS_SO = re.compile(
    rf"[\"'`*_)\]]{{0,3}}(?:(?: (?:{_OF})(?![^\W\d_])(?: [^\s0-9:=]{{1,20}}){{0,4}}?| \u0644[^\W\d_]{{1,20}})?"
    rf"(?:\s?[:=|]\s{{0,3}}|\s{{1,2}}(?:-{{1,2}}>?|[\u2192\u21d2])\s{{1,2}}"
    rf"|(?:'s|,?(?: (?:{_EQUALS})){{1,2}}(?: (?:{_ARTICLE}))?) ?:?\s{{1,3}})|\s?(?:{_ATTACHED}):?\s?)[\"'`*_(\[]{{0,3}}"
)
_ALMOST_NOTHING = re.compile(r"[\s\"'`*_(-]{0,3}")
_LOOSELY = re.compile(r"[^0-9.!?]{0,32}")
_ENDS = re.compile(
    rf"[\"'`*_)\]#]{{0,4}}\s{{0,3}}(?:$|[\n,;!?|(]|\.(?:\s|$)|(?:{'|'.join(column('after'))}))"
)

# The same of a number of identity: its word may go on with "number", in brackets or with whose it is.
_NUMBER_WORD = "|".join(column("number"))
_SAYS_ID = re.compile(
    rf"(?:[ _-]?(?:{_NUMBER_WORD}))?(?: \([^)0-9\n]{{1,24}}\))?(?: (?:{'|'.join(column('own'))}))?"
    rf"(?:{_SAYS_SO.pattern}|[\s\"'`*_(#|-]{{0,4}})"
)

_CARD_WORD = re.compile(_any_of(column("card") + column("cvv")))
_BANK = re.compile(
    r"(?:sort[ -]?code|blz|bankleitzahl|routing(?: (?:number|no\.?))?|bsb|ifsc)[^0-9\n]{0,12}[0-9]{2}"
    r"|ifsc[: ]{1,2}[a-z]{4}0"
)
_YEAR = re.compile("(?:19|20)[0-9]{2}")


def _luhn(number: str) -> bool:
    return len(number) >= 12 and bool(luhn.is_valid(number))


@dataclass(frozen=True, slots=True)
class _Named:
    """Numbers that a word announces, in their forms. ``said``: they must be said to be it, since nothing else tells."""

    kind: str
    words: list[str]
    forms: tuple[tuple[re.Pattern[str], Check], ...]
    said: bool = False
    near: re.Pattern[str] | None = None  # the word means such a number only beside another
    loosely: bool = False  # anything but another sentence may stand between
    states: bool = False  # of a state: said to be it, a number counts whatever its check digits are


def _form(expression: str, check: Check = any_number) -> tuple[tuple[re.Pattern[str], Check], ...]:
    return ((re.compile(expression), check),)


def _nothing(number: str) -> bool:
    """For numbers that nothing but their word tells."""
    return False


_NOT_MORE = r"(?![0-9A-Z_%$€£\u5186\u4e2a\u500b\u5e74\u5143\u4e07]|[.,:/-][0-9])"
_SHORT = rf"(?<![0-9A-Za-z_.,-])(?:[0-9]{{4,8}}|[0-9](?:[ -][0-9]){{3,7}}){_NOT_MORE}"
_CODE = (
    r"(?<![\w-])(?:(?=[A-Z-]{0,12}[0-9])[A-Z0-9]{3,10}(?:-[A-Z0-9]{3,10}){1,7}|[0-9]{4}(?: [0-9]{4}){1,7}"
    r"|[0-9]{6,12}|(?=[A-Z]{0,31}[0-9])(?=[0-9]{0,31}[A-Z])[A-Z0-9]{8,32})(?![\w-])"
)
_RULES = (
    _Named("cvv", column("cvv"), _form(rf"(?<![\w.,-])[0-9]{{3,4}}{_NOT_MORE}"), said=True),
    _Named(
        "cvv", column("check"), _form(rf"(?<![\w.,-])[0-9]{{3,4}}{_NOT_MORE}"), near=_CARD_WORD, loosely=True
    ),
    _Named("pin", column("pin"), _form(_SHORT), said=True),
    _Named("pin", column("door"), _form(_SHORT), said=True),
    _Named("recovery_code", column("recovery"), _form(_CODE), loosely=True),
    _Named(
        "passport",
        column("passport"),
        _form(r"(?<!\w)(?:[0-9]{4} ?[0-9]{6}|(?=(?:[A-Z]{0,3}[0-9]){4})[A-Z0-9]{7,9})(?![\w-])"),
        said=True,
    ),
    _Named(
        "card", column("card"), _form(r"(?<![\w.])[0-9](?:[ ./_\u00b7\n-]{0,2}[0-9]){11,18}(?![0-9])", _luhn)
    ),
    _Named("iban", column("bank"), _form(r"(?<![\w.,-])[0-9]{6,12}(?![\w-])"), near=_BANK, loosely=True),
    *(
        _Named(
            "national_id",
            folded(words),
            tuple((re.compile(form), check) for form, check in forms),
            states=words != ONLY_VALID,
        )
        for words, forms in (
            *NAMED,
            *((words, tuple((form, _nothing) for form in forms)) for words, forms in SAID),
        )
    ),
)
_NUMBER = re.compile("[0-9]+")


@cache
def _word() -> re.Pattern[str]:
    """Compiled when a text is first looked at: it takes a twentieth of what a process takes to start."""
    return re.compile(
        _any_of(sorted({word for rule in _RULES for word in rule.words}, key=len, reverse=True))
    )


@lru_cache(maxsize=1000)
def _rules_of(word: str) -> tuple[_Named, ...]:
    """The rules that have this word of a text."""
    rules = (rule for rule in _RULES if re.fullmatch("|".join(rule.words), word))
    first = next(rules)
    return (first, *(rule for rule in rules if rule.states))


def _words(lower: str) -> Iterator[re.Match[str]]:
    """The words that announce a number, where one follows within reach: the rest of the text is not looked at."""
    begun = end = 0
    for number in _NUMBER.finditer(lower):
        if number.start() - _REACH - _LONGEST > end:
            yield from _word().finditer(lower, begun, end)
            begun = number.start() - _REACH - _LONGEST
        end = number.start()
    yield from _word().finditer(lower, begun, end)


def _find_named(lower: str, upper: str) -> Finding | None:
    spent = 0
    for word in _words(lower):
        spent += JUDGED
        if spent > ALLOWANCE + word.end():
            return Finding("too_many_numbers", *word.span())
        for rule in _rules_of(word.group()):
            for form, check in rule.forms:
                number = form.search(upper, word.end(), word.end() + _REACH + _LONGEST)
                if number is None or number.start() > word.end() + _REACH:
                    continue
                is_valid = check(number.group().translate(SEPARATORS)) and _is_it(rule, word, number, lower)
                if is_valid or (rule.states and _is_said(word, number, lower)):
                    return Finding(rule.kind, *number.span())
    return None


def _is_said(word: re.Match[str], number: re.Match[str], lower: str) -> bool:
    """Whether the number is said to be the one of identity that the word names."""
    if word.group() in AMBIGUOUS and _ALMOST_NOTHING.fullmatch(lower, word.end(), number.start()):
        return bool(_ENDS.match(lower, number.end()))
    return bool(_SAYS_ID.fullmatch(lower, word.end(), number.start()))


# "4711 is my PIN": the number stands before its word.
@cache
def _backwards() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Of a code, and of identity. Compiled late, as ``_word`` is."""
    codes = _any_of(column("pin") + column("door"))
    states = _any_of([word for rule in _RULES if rule.states for word in rule.words])
    return (
        re.compile(_BEFORE % ("[0-9]{4,8}", codes)),
        re.compile(_BEFORE % (r"[0-9]{2,12}(?:[ .-][0-9]{2,12}){0,4}(?<=[0-9 .-]{9})", states)),
    )


_BEFORE = (
    rf"(?<![\w.,-])(?P<number>%s)[\"'`]?,? (?:{_EQUALS}) (?:(?!not )[^\W\d_]{{1,12}} ){{0,3}}?"
    rf"(?:%s)(?:{_ENDS.pattern}| (?:{_OF})(?![^\W_]))"
)


def _find_backwards(lower: str) -> Finding | None:
    for kind, pattern in zip(("pin", "national_id"), _backwards(), strict=True):
        if match := pattern.search(lower):
            return Finding(kind, *match.span("number"))
    return None


def _is_it(rule: _Named, word: re.Match[str], number: re.Match[str], lower: str) -> bool:
    """Whether the number is what the word announces, by what stands between and around."""
    between = lower[word.end() : number.start()]
    around = lower[max(word.start() - AROUND, 0) : number.end() + AROUND]
    if rule.kind == "pin" and is_postal(word.group(), number.group(), around):
        return False
    if rule.near and (not rule.near.search(around) or _YEAR.fullmatch(number.group())):
        return False
    if rule.loosely:
        return bool(_LOOSELY.fullmatch(between))
    if not rule.said:
        return not re.search(r"\n[^\n]*[^\W\d_]", between)  # a line of its own is no longer about the word
    if _SAYS_SO.fullmatch(between):
        return True
    return bool(_ALMOST_NOTHING.fullmatch(between) and _ENDS.match(lower, number.end()))
