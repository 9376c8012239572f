"""Find numbers that their form and their check digits give away wherever they stand. For ``personal``."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from stdnum import iban, luhn, numdb

from memories.judging.secret_filter.finding import Finding
from memories.judging.secret_filter.identities import SHAPES

# Characters: what judging may cost beyond the text's length, and one candidate.
ALLOWANCE, JUDGED = 32_768, 64
AROUND = 60  # characters about a number in which what it belongs to is named
SEPARATORS = str.maketrans("", "", " .-/_\u00b7\n")


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
    number = match.group().translate(SEPARATORS)
    if _OF_A_PHONE.search(match.string, max(match.start() - AROUND, 0), match.start()):
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
    return end if end and whole and iban.is_valid(given[:end].translate(SEPARATORS)) else 0


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
    around = match.string[max(match.start() - AROUND, 0) : match.end() + AROUND].lower()
    return len(match.group()) if _OF_A_WALLET.search(around) and not _PUBLIC_HASH.search(around) else 0


_SHAPED: tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], int]], ...] = (
    ("card", _CARD, _card),
    ("iban", _IBAN, _iban),
    ("national_id", _IDENTITY, _identity),
    ("recovery_code", _BITLOCKER, _recovery_key),
    ("wallet_key", _WALLET_KEY, _wallet_key),
)


def find_shaped(upper: str) -> Finding | None:
    """Return the first such number in a folded text in upper case, or None."""
    for kind, pattern, length_of in _SHAPED:
        spent = 0
        for match in pattern.finditer(upper):
            if length := length_of(match):
                return Finding(kind, match.start(), match.start() + length)
            spent += JUDGED
            if spent > ALLOWANCE + match.end():
                return Finding("too_many_numbers", *match.span())
    return None
