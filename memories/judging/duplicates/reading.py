"""Read a statement into the parts that the guard compares."""

import re
from dataclasses import dataclass, field

from memories.judging.duplicates import numbers, words
from memories.judging.duplicates.lists import word_set
from memories.judging.duplicates.stems import is_past, stem

_CONTRACTIONS = (
    (re.compile(r"\bcan['\u2019]?t\b", re.I), "can not"),
    (re.compile(r"\bwon['\u2019]t\b", re.I), "will not"),
    (re.compile(r"\bshan['\u2019]t\b", re.I), "shall not"),
    (re.compile(r"n['\u2019]t\b", re.I), " not"),
    (re.compile(r"\bcannot\b", re.I), "can not"),
    (re.compile(r"(?:['\u2019]d|\bwould) (?:like|love) (?=to\b)", re.I), " want "),
    (re.compile(r"(?:['\u2019]d|\bwould) rather\b", re.I), " prefer"),
    (re.compile(r"\bg[eo]t(?:s|ting)? up\b", re.I), "wake up"),
    (re.compile(r"\bin charge of\b", re.I), "responsible for"),
    (re.compile(r"(?<=\w)['\u2019](?:m|re|ve|ll|d)\b", re.I), ""),
    (re.compile(r"\b(?:no|any) longer\b|\bno more\b|\bnot any ?more\b", re.I), "not"),
    (re.compile(r"\bused to\b(?! (?:it|that|the)\b)", re.I), "formerly"),
    (re.compile(r"\b(?:every|each) (day|week|month|year|night|hour|morning|evening|weekend)s?\b", re.I), r"every-\1"),
    (re.compile(r"\bonce (?:a|per) (day|week|month|year)\b", re.I), r"every-\1"),
    (re.compile(r"\b(?:new york(?: city)?)\b", re.I), "nyc"),
    (re.compile(r"\b(?:united states(?: of america)?|U\.S\.A?\.?)", re.I), "USA"),
    (re.compile(r"\b(?:united kingdom|U\.K\.)", re.I), "UK"),
    (re.compile(r"\bat least\b", re.I), "at-least"),
    (re.compile(r"\bat most\b", re.I), "at-most"),
    (re.compile(r"\bo['\u2019]clock\b", re.I), ""),
    (re.compile(r"\ballergic\b", re.I), "allergy"),
    (re.compile(r"\b(?:like|love)(s?)\b(.{2,40}?)\b(?:better|more) than\b", re.I), r"prefer\1\2than"),
    (re.compile(r"\bas well as\b|\balong with\b|\bplus\b", re.I), "and"),
    (re.compile(r"\brather than\b|\binstead of\b", re.I), "over"),
    (re.compile(r"\b(?:have|has|need|needs|got) to\b", re.I), "must"),
    (re.compile(r"\bprior to\b", re.I), "before"),
    (re.compile(r"\bdue to\b|\bbecause of\b", re.I), "because"),
)  # fmt: skip
_CLOCK = re.compile(r"\b(\d{1,2})(?:[:.](\d{2}))?\s?([ap])\.?\s?m\b\.?", re.IGNORECASE)
_ISO_DATE = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_SENTENCE_START = re.compile(r"(?:^|[.!?:]\s+|\n\s*[-*]?\s*)[\"'(]*$")
_ACTING = word_set("i me we us he him she they them you user")
_PARTICIPLES = word_set(
    "made built sent paid sold told taught bought brought found held kept led lent met read run"
)

SYNONYMS = {stem(word): stem(first) for word, first in words.SYNONYM.items()}
_QUANTITY = {stem(word): first for word, first in words.QUANTITY.items()}
_TURNING = frozenset(stem(word) for word in words.TURNING)
LIGHT = frozenset(stem(word) for word in words.LIGHT)
OPPOSITES = {
    stem(word): {stem(other) for other in others} | others for word, others in words.OPPOSITES.items()
}
OPPOSITES |= words.OPPOSITES


@dataclass
class Reading:
    """What a statement says, taken apart. Lists are in the order of the text."""

    numbers: list[str] = field(default_factory=list)
    counted: dict[str, set[str]] = field(default_factory=dict)  # number -> units and nouns it counts
    units: set[str] = field(default_factory=set)
    times: set[str] = field(default_factory=set)
    codes: set[str] = field(default_factory=set)  # words with digits in them: v2, B12, python3
    negations: int = 0
    turning: set[str] = field(default_factory=set)
    quantities: set[str] = field(default_factory=set)
    persons: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    content: list[str] = field(default_factory=list)  # stems, synonyms in one form
    sequence: list[str] = field(default_factory=list)  # content and acting persons, for the order
    together: list[int] = field(
        default_factory=list
    )  # places in the sequence joined by "and" to the one before
    frame: list[str] = field(default_factory=list)  # every word in one form
    objects: dict[str, str] = field(
        default_factory=dict
    )  # preposition or negation -> the content word after it
    past: set[str] = field(default_factory=set)  # stems that stand in the past
    passive: bool = False
    was: bool = False
    now: bool = False


def _clock(match: re.Match[str]) -> str:
    hour = int(match[1]) % 12 + (12 if match[3].lower() == "p" else 0)
    return f" {hour:02d}:{match[2] or '00'} "


def _plain(text: str) -> str:
    """Resolve contractions and fixed phrases, clock times and dates."""
    for pattern, replacement in _CONTRACTIONS:
        text = pattern.sub(replacement, text)
    text = _CLOCK.sub(_clock, text)
    months = list(dict.fromkeys(numbers.MONTH.values()))
    return _ISO_DATE.sub(
        lambda m: f"{months[int(m[2]) - 1].title()} {int(m[3])} {m[1]}" if 1 <= int(m[2]) <= 12 else m[0],
        text,
    )


def read(text: str) -> Reading:
    """Take a statement apart. Cost is linear in its length."""
    return _Reader(_plain(text)).read()


class _Reader:
    """Walks over the words once and fills a Reading."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.out = Reading()
        self.waiting: list[str] = []  # prepositions and negations that wait for their object
        self.number_words: list[str] = []  # parts of a number written in words: two hundred
        self.number: str | None = None  # the number just read, which waits for what it counts
        self.sign: str | None = None  # a currency sign before its number
        self.since_be = 9  # words since the last form of "be"
        self.since_participle = 9

    def read(self) -> Reading:
        position = 0
        for token in numbers.tokens(self.text):
            start = self.text.index(token, position)
            before = self.text[max(0, start - 8) : start]
            position = start + len(token)
            self._take(token, first=start == 0 or bool(_SENTENCE_START.search(before)))
        self._close_number()
        return self.out

    def _take(self, token: str, *, first: bool) -> None:
        low = token.lower().replace("\u2019", "'")
        self.since_be += 1
        self.since_participle += 1
        value = _digits(token) or numbers.number_word(low)
        if value is not None:
            self.number_words.append(value)
            return
        if low in ("and", "a", "hundred") and self.number_words and low == "a":
            return
        self._close_number()
        if unit := self._unit(low):
            self.out.frame.append(unit)
            return
        if time := numbers.time_word(token):
            self.out.times.add(time)
            self.out.frame.append(time)
            return
        self._word(token, low.removesuffix("'s"), first=first)

    def _close_number(self) -> None:
        if not self.number_words:
            return
        for value in numbers.merge_scales(self.number_words):
            self.out.numbers.append(value)
            self.out.frame.append(value)
            self.number = value
            if self.sign:
                self._count(self.sign)
        self.number_words = []
        self.sign = None

    def _count(self, what: str) -> None:
        if self.number is not None:
            self.out.counted.setdefault(self.number, set()).add(what)

    def _unit(self, low: str) -> str | None:
        unit = numbers.unit_of(low)
        if unit is None:
            return None
        if low in "$€£¥₹" and self.number is None:
            self.sign = unit
            self.out.units.add(unit)
            return unit
        if self.number is None and low not in ("%", "°c", "°f"):
            return None
        self._count(unit)
        self.out.units.add(unit)
        self.number = None
        return unit

    def _word(self, token: str, low: str, *, first: bool) -> None:
        out = self.out
        root = stem(low)
        meaning = SYNONYMS.get(root, root)
        if person := words.PERSON.get(low):
            out.persons.add(person)
            if low in _ACTING:
                out.sequence.append(person)
                self._bind(person)
            out.frame.append(person)
            return
        if low in words.NEGATION:
            out.negations += 1
            self.waiting.append("not")
            out.frame.append("not")
            return
        if quantity := _QUANTITY.get(low) or _QUANTITY.get(root):
            out.quantities.add(quantity)
            out.frame.append(quantity)
            return
        if root in _TURNING:
            out.turning.add(meaning)
        self._voice(low)
        if low in words.DIRECTION:
            self.waiting.append(low)
        if low in words.FUNCTION:
            out.frame.append(low)
            return
        if token[0].isupper() and not first and low not in ("i",):
            out.names.add(meaning)
        if any(char.isdigit() for char in low):
            out.codes.add(low)
        self._count(meaning)
        self.number = None
        out.frame.append(meaning)
        out.content.append(meaning)
        if out.frame[-2:-1] in (["and"], ["or"]) and out.frame[-3:-2] == out.sequence[-1:]:
            out.together.append(len(out.sequence))
        out.sequence.append(meaning)
        self._bind(meaning)
        if is_past(low):
            out.past.add(meaning)

    def _bind(self, word: str) -> None:
        for preposition in self.waiting:
            self.out.objects.setdefault(preposition, word)
        self.waiting = []

    def _voice(self, low: str) -> None:
        """Notice "was written by" and whether the statement speaks of then or of now."""
        if low in ("was", "were"):
            self.out.was = True
        if low in ("is", "are", "am"):
            self.out.now = True
        if low in ("is", "are", "was", "were", "be", "been", "being", "gets", "got", "get"):
            self.since_be = 0
        elif self.since_be <= 3 and (is_past(low) or low.endswith("en") or low in _PARTICIPLES):
            self.since_participle = 0
        elif low == "by" and self.since_participle <= 3:
            self.out.passive = True


def _digits(token: str) -> str | None:
    """The value of a token of digits in one form: 1,000 and 1000, 3.0 and 3."""
    if not token[0].isdigit() or not any(char.isdigit() for char in token):
        return None
    if re.fullmatch(r"\d+(?:st|nd|rd|th)", token, re.IGNORECASE):
        return token[:-2]
    plain = re.sub(r",(?=\d{3}\b)", "", token).replace(",", ".")
    if re.fullmatch(r"\d+(?:\.\d+)?", plain):
        return str(int(plain)) if "." not in plain else plain.rstrip("0").rstrip(".")
    if match := re.fullmatch(r"(\d{1,2}):(\d{2})(?::\d{2})?", token):
        return f"{int(match[1]):02d}:{match[2]}"
    return token.lower()
