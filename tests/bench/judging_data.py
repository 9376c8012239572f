"""The messages and pairs on which judging is fitted, tuned and measured, and which of them is which.

`data/same/LANG.txt`, a pair a line: `= a || b` says the same, `- a || b` does not, `! I have [two|three] cats` is an
edit, `r [Ann] manages [Bob]` an exchange of roles. `data/keeping/LANG.txt`, a message a line: `{…}` is a fact to keep
(`{p:…}` preference, `{i:…}` instruction, `{d:…}` decision, `{e:…}` event), `~` takes back what was said before it.

Files with the highest number of their kind were written last, on other matters, and are held back whole. The rest is
fitted on, but for a share, by a hash, on which thresholds were chosen.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).with_name("data")
KINDS = {"f": "fact", "p": "preference", "i": "instruction", "d": "decision", "e": "event"}
_CHOICE = re.compile(r"\[([^|\]]*)\|([^\]]*)\]")
_PART = re.compile(r"\[([^\]]*)\]")
_FACT = re.compile(r"\{(?:([pide]):)?([^}]*)\}")


def bucket(text: str) -> int:
    """0 to 99, the same on every machine."""
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % 100


@dataclass(frozen=True)
class Pair:
    language: str
    kind: str
    a: str
    b: str
    split: str

    @property
    def same(self) -> bool:
        return self.kind == "="


@dataclass(frozen=True)
class Message:
    language: str
    text: str
    facts: list[tuple[int, int, str]]  # where they stand, and their kind
    takes_back: int | None  # where it begins to take back what was said before
    split: str


def pairs() -> Iterator[Pair]:
    for path in sorted((DATA / "same").glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            kind, rest = line[0], line[2:]
            split = "held back" if path.stem[-1].isdigit() else "tune" if bucket(rest) < 30 else "fit"
            yield Pair(path.stem[:2], kind, *_two(kind, rest), split)


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
            text, facts, takes_back = _marked(line.replace("\u2019", "'"))
            share = bucket(text)
            held = "held back, short" if "short" in path.stem else "held back"
            split = held if path.stem[-1] == "3" else "fit" if share < 80 else "tune"
            yield Message(path.stem[:2], text, facts, takes_back, split)


def _marked(line: str) -> tuple[str, list[tuple[int, int, str]], int | None]:
    text, facts, at, takes_back = "", [], 0, None
    for match in _FACT.finditer(line):
        text += line[at : match.start()]
        facts.append((len(text), len(text) + len(match[2]), KINDS[match[1] or "f"]))
        text += match[2]
        at = match.end()
    text += line[at:]
    if "~" in text:
        takes_back = text.index("~")
        text = text.replace("~", "")
        facts = [(a - (a > takes_back), b - (b > takes_back), kind) for a, b, kind in facts]
    return text, facts, takes_back
