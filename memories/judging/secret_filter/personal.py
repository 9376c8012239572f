"""Find numbers that are a person's own: cards, PINs, accounts, identities, recovery codes, keys of wallets.

They are no credentials that nobody should store anywhere, so whoever wants one kept is asked, and nothing automatic
keeps one. Pure and linear, as the package promises: each place of a text is looked at a bounded number of times, and a
text that holds more candidates than talk can is called one rather than read on.

A number of a form that no other has, with its check digits right, is one wherever it stands. Others need a word for
them shortly before ("SSN", "PESEL", "my PIN is"), and those without check digits must be said to be it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from stdnum import iban, luhn, numdb

from memories.judging.secret_filter.alternatives import choice_of, spell_out
from memories.judging.secret_filter.finding import Finding
from memories.judging.secret_filter.identities import NAMED, SHAPES, Check, any_number
from memories.judging.secret_filter.languages import column, folded
from memories.judging.secret_filter.postal import is_postal

_WORTH_IT = re.compile(r"[0-9](?:[^0-9]{0,3}[0-9]){2}")  # no personal number has fewer than three digits
_ALLOWANCE, _JUDGED = (
    32_768,
    64,
)  # characters: what judging may cost beyond the text's length, and one candidate
_REACH, _LONGEST = 48, 40  # characters from a word to its number, and of a number
_AROUND = 60  # characters about a number in which what it belongs to is named
_SEPARATORS = str.maketrans("", "", " .-/_\u00b7\n")


def find_personal(text: str) -> Finding | None:
    """Return the first personal number in `text` (folded), or None."""
    if not _WORTH_IT.search(text):
        return None
    upper = _same_length(text, str.upper)
    lower = _same_length(text, str.lower)
    return _find_shaped(upper) or _find_named(lower, upper) or _find_backwards(lower)


def _same_length(text: str, change: Callable[[str], str]) -> str:
    """The text in one case. A few letters grow by it; they stay as they are, so that positions hold."""
    changed = change(text)
    if len(changed) == len(text):
        return changed
    return "".join(new if len(new := change(char)) == 1 else char for char in text)


# Numbers that their form and their check digits give away wherever they stand

# How the schemes begin and how long their numbers are: American Express, Diners, Visa, Mastercard, Discover, JCB,
# UnionPay, Maestro.
_ISSUED = re.compile(
    r"3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:4|5[0-8]|6[0-9]|35)[0-9]{14,15}|62[0-9]{14,17}"
    r"|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}"
)
_SIGN = r"[ ./_\u00b7\n-]{1,2}"
_CARD = re.compile(
    rf"(?<![\w.,/-])(?:[0-9]{{4}}(?:{_SIGN}[0-9]{{4}}){{3}}(?:{_SIGN}[0-9]{{1,3}})?"
    rf"|[0-9]{{4}}{_SIGN}[0-9]{{6}}{_SIGN}[0-9]{{4,5}}|[0-9]{{8}}\n[0-9]{{8}}|[0-9]{{14,19}}"
    r"|[0-9]{2}(?P<two>[ .-])[0-9]{2}(?:(?P=two)[0-9]{2}){6}|[0-9](?P<one>[ .-])[0-9](?:(?P=one)[0-9]){12,17}"
    r")(?![\w]|[.,-][0-9])"
)
_OF_A_PHONE = re.compile(r"\bIMEI(?:[ -]?(?:NUMBER|NO\.?|NUMMER))?(?: IS| IST)?[\s:=#]{0,3}\Z")
_IBAN = re.compile(
    r"(?<![A-Z0-9])(?=([A-Z]{2}[0-9]{2}(?:[ ./_\u00b7\n-]{0,2}[A-Z0-9]{2}){5,15}[A-Z0-9]?))[A-Z]{2}[0-9]{2}"
)
_IDENTITY = re.compile(rf"(?<![\w.-])(?:{'|'.join(f'({form})' for form, _ in SHAPES)})(?!\w|-[0-9])")
_BITLOCKER = re.compile(r"(?<![\w-])[0-9]{6}(?:-[0-9]{6}){7}(?![\w-])")
_WALLET_KEY = re.compile(r"(?<![0-9A-Z])(?:0X)?[0-9A-F]{64}(?![0-9A-Z])")
_OF_A_WALLET = re.compile(
    r"wallet|metamask|ethereum|\beth\b|bitcoin|\bbtc\b|solana|trezor|krypto|crypto|portefeuille|кошел|钱包|지갑"
)
_PUBLIC_HASH = re.compile(r"transa|\btx|hash|sha-?256|block|digest|commit|checksum|public")


def _card(match: re.Match[str]) -> int:
    number = match.group().translate(_SEPARATORS)
    if _OF_A_PHONE.search(match.string, max(match.start() - _AROUND, 0), match.start()):
        return 0
    return len(match.group()) if _ISSUED.fullmatch(number) and luhn.is_valid(number) else 0


def _iban(match: re.Match[str]) -> int:
    """What follows the account's number may look as if it went on: the country says how long it is."""
    given, wanted = match[1], _iban_length(match[1][:2])
    end = 0
    while wanted and end < len(given):
        wanted -= given[end].isalnum()
        end += 1
    whole = not wanted and not match.string[match.start() + end : match.start() + end + 1].isalnum()
    return end if end and whole and iban.is_valid(given[:end].translate(_SEPARATORS)) else 0


@cache
def _iban_length(country: str) -> int:
    """Characters of the country's account numbers, 0 for none."""
    known: list[tuple[str, dict[str, str]]] = numdb.get("iban").info(country)
    form = known[0][1].get("bban", "") if known else ""
    return 4 + sum(map(int, re.findall("[0-9]+", form))) if form else 0


def _identity(match: re.Match[str]) -> int:
    _, is_valid = SHAPES[(match.lastindex or 1) - 1]
    return len(match.group()) if is_valid(match.group()) else 0


def _recovery_key(match: re.Match[str]) -> int:
    return len(match.group())


def _wallet_key(match: re.Match[str]) -> int:
    """As long as any hash: what is said around it tells."""
    around = match.string[max(match.start() - _AROUND, 0) : match.end() + _AROUND].lower()
    return len(match.group()) if _OF_A_WALLET.search(around) and not _PUBLIC_HASH.search(around) else 0


_SHAPED: tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], int]], ...] = (
    ("card", _CARD, _card),
    ("iban", _IBAN, _iban),
    ("national_id", _IDENTITY, _identity),
    ("recovery_code", _BITLOCKER, _recovery_key),
    ("wallet_key", _WALLET_KEY, _wallet_key),
)


def _find_shaped(upper: str) -> Finding | None:
    for kind, pattern, length_of in _SHAPED:
        spent = 0
        for match in pattern.finditer(upper):
            if length := length_of(match):
                return Finding(kind, match.start(), match.start() + length)
            spent += _JUDGED
            if spent > _ALLOWANCE + match.end():
                return Finding("too_many_numbers", *match.span())
    return None


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


def _form(expression: str, check: Check = any_number) -> tuple[tuple[re.Pattern[str], Check], ...]:
    return ((re.compile(expression), check),)


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
        _Named("national_id", folded(words), tuple((re.compile(form), check) for form, check in forms))
        for words, forms in NAMED
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
def _rule_of(word: str) -> _Named:
    """The first rule that has this word of a text."""
    return next(rule for rule in _RULES if re.fullmatch("|".join(rule.words), word))


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
        rule = _rule_of(word.group())
        spent += _JUDGED
        if spent > _ALLOWANCE + word.end():
            return Finding("too_many_numbers", *word.span())
        for form, check in rule.forms:
            number = form.search(upper, word.end(), word.end() + _REACH + _LONGEST)
            if number is None or number.start() > word.end() + _REACH:
                continue
            if check(number.group().translate(_SEPARATORS)) and _is_it(rule, word, number, lower):
                return Finding(rule.kind, *number.span())
    return None


# "4711 is my PIN": the number stands before its word.
@cache
def _backwards() -> re.Pattern[str]:
    """Compiled late, as ``_word`` is."""
    return re.compile(
        rf"(?<![\w.,-])(?P<number>[0-9]{{4,8}})[\"'`]?,? (?:{_EQUALS}) (?:(?!not )[^\W\d_]{{1,12}} ){{0,3}}?"
        rf"(?:{_any_of(column('pin') + column('door'))})(?:{_ENDS.pattern}| (?:{_OF})(?![^\W_]))"
    )


def _find_backwards(lower: str) -> Finding | None:
    match = _backwards().search(lower)
    return Finding("pin", *match.span("number")) if match else None


def _is_it(rule: _Named, word: re.Match[str], number: re.Match[str], lower: str) -> bool:
    """Whether the number is what the word announces, by what stands between and around."""
    between = lower[word.end() : number.start()]
    around = lower[max(word.start() - _AROUND, 0) : number.end() + _AROUND]
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
