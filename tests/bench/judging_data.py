"""Messages and pairs for fitting, tuning and measuring the judging of memories, with the split of each.

`data/same/LANG.txt`, a pair a line: `= a || b` says the same, `- a || b` does not, `! I have [two|three] cats` is an
edit, `r [Ann] manages [Bob]` an exchange of roles, `t Ann is ill || [Ann|Bob] is sick` a rewording, an edit of that,
and both at once. `data/keeping/LANG.txt`, a message a line: `{…}` is a fact to keep (`{p:…}` preference, `{i:…}`
instruction, `{d:…}` decision, `{e:…}` event), `~` takes back the statement before it.

`data/corrections/LANG.txt`, a message a line: the facts stored before, the message, and the number of the fact that it
replaces, or 0: `I live in Bristol | I run >> I've just moved to Cardiff. >> 1`.

`data/back/LANG.txt`, a message a line: `+` takes back the statement before it, `-` does not. Two fifths, by a hash, are
held back, and all of `UNFITTED`.

Files with the highest number of their kind were written independently, before the last fit, and are held back whole,
except two by other authors, on which the networks for keeping are fitted: `keeping/LANG8.txt`, mostly long messages,
and `keeping/LANG9.txt`, of many trades and kinds, of which a quarter by a hash is held back. The threshold for
keeping was chosen by the held-back files and the tests; those for pairs by folds.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).with_name("data")
Span = tuple[int, int]
KINDS = {"f": "fact", "p": "preference", "i": "instruction", "d": "decision", "e": "event"}
AUTHORS = ("8", "9")
UNFITTED = {"ar", "hi", "ko", "vi"}  # languages in which nothing of "Scratch that." is fitted on
_CHOICE = re.compile(r"\[([^|\]]*)\|([^\]]*)\]")
_PART = re.compile(r"\[([^\]]*)\]")
_MARK = re.compile(r"\{(<?)(?:([pide]):)?|[}\u2039\u203a~]")


def bucket(text: str) -> int:
    """Return a number from 0 to 99, the same on every machine."""
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % 100


@dataclass(frozen=True)
class Pair:
    language: str
    kind: str
    a: str
    b: str
    split: str
    line: int  # 0 to 99, the same for everything made from one line

    @property
    def same(self) -> bool:
        return self.kind == "="


@dataclass(frozen=True)
class Reply:
    language: str
    question: str
    answer: str
    is_kept: bool


@dataclass(frozen=True)
class TakingBack:
    language: str
    text: str
    takes_back: bool
    split: str


class Fact(NamedTuple):
    start: int
    end: int
    kind: str
    lacks_topic: bool = False


@dataclass(frozen=True)
class Message:
    language: str
    text: str
    facts: list[Fact]
    topic: Span | None  # the subject of those facts that do not name it
    takes_back: int | None  # position where it begins to take back the statement before
    split: str
    author: str = ""  # "8" and "9": two authors who wrote after the others


@dataclass(frozen=True)
class Correction:
    language: str
    kept: list[str]
    said: str
    replaces: int | None  # index of the fact that it replaces
    split: str
    line: int  # 0 to 99, the same for messages on one subject


def corrections_said() -> Iterator[Correction]:
    """Yield the corrections. Files with a 2 were written first; half of their lines were seen while the head was
    chosen.
    """
    for path in sorted((DATA / "corrections").glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            kept, said, at = line.split(" >> ")
            halves = "looked at" if bucket(line) < 50 else "held back"
            split = halves if path.stem[-1] == "2" else "fit"
            replaces = int(at) - 1 if int(at) else None
            yield Correction(path.stem[:2], kept.split(" | "), said, replaces, split, bucket(kept))


def pairs() -> Iterator[Pair]:
    for path in sorted((DATA / "same").glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            kind, rest = line[0], line[2:]
            split = "held back" if path.stem[-1] == "3" else "fit"
            for own, a, b in _three(rest) if kind == "t" else [(kind, *_two(kind, rest))]:
                yield Pair(path.stem[:2], own, a, b, split, bucket(rest))


def swaps() -> Iterator[Pair]:
    """Return the pairs of `data/swaps`, written before the rules that they measure.

    Half of them, by a hash, were looked at while those rules were written ("open"); the others were only counted.
    """
    for name, kind in (("edits", "!"), ("rewordings", "=")):
        for line in (DATA / "swaps" / f"{name}.tsv").read_text(encoding="utf-8").splitlines():
            language, _, a, b = line.split("\t")
            is_counted = hashlib.sha256((a + b).encode()).digest()[0] % 2
            yield Pair(language, kind, a, b, "counted" if is_counted else "open", bucket(a))


def _three(line: str) -> Iterator[tuple[str, str, str]]:
    """Yield three pairs of a statement, its rewording, and that with another value: alike, an edited rewording, an
    edit.
    """
    said, other = line.split(" || ")
    right, wrong = _two("!", other)
    yield from (("=", said, right), ("-", said, wrong), ("!", right, wrong))


def _two(kind: str, line: str) -> tuple[str, str]:
    if kind in "=-":
        a, b = line.split(" || ")
        return a.strip(), b.strip()
    if kind == "!":
        a, b = _CHOICE.sub(r"\1", line), _CHOICE.sub(r"\2", line)
    else:
        parts = iter(_PART.findall(line)[::-1])
        a, b = _PART.sub(r"\1", line), _PART.sub(lambda _: next(parts), line)
    a, b = (re.sub(r"(['\u2019]) ", r"\1", " ".join(text.split())) for text in (a, b))
    return a[0].upper() + a[1:], b[0].upper() + b[1:]


def messages() -> Iterator[Message]:
    for path in sorted((DATA / "keeping").glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            text, facts, topic, takes_back = _marked(line.replace("\u2019", "'"))
            share = bucket(text)
            held = "held back, short" if "short" in path.stem else "held back"
            split = held if path.stem[-1] in "45" else "fit" if share < 80 else "tune"
            if path.stem[-1] == "6":  # written before the code was run on them; the second half was not seen
                split = "tune" if share < 50 else "held back, blind"
            if path.stem[-1] == "3":  # held back once; seen since
                split = "tune"
            if path.stem[-1] == "7":  # written last, before the code was run on them
                split = "held back, last"
            if path.stem[-1] == "9":  # a quarter was set aside before the code was run on them
                split = "fit" if share < 75 else "held back, wide"
            author = path.stem[-1] if path.stem[-1] in AUTHORS else ""
            yield Message(path.stem[:2], text, facts, topic, takes_back, split, author)


def replies() -> Iterator[Reply]:
    for path in sorted((DATA / "replies").glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            question, answer = line[2:].split(" >> ")
            yield Reply(path.stem, question, answer, line[0] == "+")


def takings_back() -> Iterator[TakingBack]:
    for path in sorted((DATA / "back").glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            text = line[2:]
            is_held = path.stem in UNFITTED or bucket(text) < 40
            yield TakingBack(path.stem, text, line[0] == "+", "held back" if is_held else "fit")


def _marked(line: str) -> tuple[str, list[Fact], Span | None, int | None]:
    """Return the text without marks, its facts, their subject, and the position where it takes back a statement."""
    text, at = "", 0
    facts: list[Fact] = []
    begun, topic, takes_back = ("", "", 0), None, None
    for match in _MARK.finditer(line):
        text += line[at : match.start()]
        at = match.end()
        match match[0][0]:
            case "{":
                begun = match[1], match[2] or "f", len(text)
            case "}":
                facts.append(Fact(begun[2], len(text), KINDS[begun[1]], bool(begun[0])))
            case "\u2039":
                topic = len(text), len(text)
            case "\u203a":
                assert topic is not None
                topic = topic[0], len(text)
            case _:
                takes_back = len(text)
    return text + line[at:], facts, topic, takes_back
