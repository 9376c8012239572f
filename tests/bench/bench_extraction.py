"""Measure extraction without a model on whole messages: precision and recall by language and by kind.

python tests/bench/bench_extraction.py [FILE] [--show]

A file of `data/extraction` is a series of messages, each followed by the facts to keep of it:

    ## en                      the language of what follows
    reply: Do you smoke? >> Never      kind, the assistant's message before (where there is one), the message
    = smoke + never            a fact: each part stands in the memory, at the beginning of a word; `a|b` is one of them
    ~ smoke                    may be kept: counts neither way

A memory is right if it has all parts of a fact that no other memory has. One that holds two facts finds one of them.
"""

import argparse
import re
import sys
import time
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memories.judging.encoder_interface import Encoder
from memories.judging.extraction.with_classifier import extract_with_rules
from memories.judging.secret_filter import find_personal, find_secret
from memoryhub.llm.e5 import MultilingualEncoder

DATA = Path(__file__).with_name("data") / "extraction"


@dataclass
class Said:
    language: str
    kind: str
    before: str
    text: str
    facts: list[str] = field(default_factory=list)
    maybe: list[str] = field(default_factory=list)


@dataclass
class Count:
    facts: int = 0
    found: int = 0
    kept: int = 0
    wrong: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def add(self, other: "Count") -> None:
        self.facts += other.facts
        self.found += other.found
        self.kept += other.kept

    def __str__(self) -> str:
        precision = self.found / self.kept if self.kept else 1.0
        recall = self.found / self.facts if self.facts else 1.0
        return f"{self.found:4} of {self.kept:4} kept, of {self.facts:4} facts: {precision:.3f}  {recall:.3f}"


def read(path: Path) -> Iterator[Said]:
    language, said = "", None
    for line in path.read_text(encoding="utf-8").splitlines():
        mark, _, rest = line.partition(" ")
        if mark == "##":
            language = rest
        elif said is not None and mark in ("=", "~"):
            (said.facts if mark == "=" else said.maybe).append(rest)
        elif line:
            if said is not None:
                yield said
            kind, _, rest = line.partition(": ")
            before, _, text = rest.rpartition(" >> ")
            said = Said(language, kind, before, text)
    if said is not None:
        yield said


def holds(memory: str, fact: str) -> bool:
    plain = _plain(memory)
    return all(any(_has(plain, _plain(word)) for word in part.split("|")) for part in fact.split(" + "))


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold().strip()


def _has(text: str, word: str) -> bool:
    begins = r"(?<!\w)" if word.isascii() or word[0] < "\u2e80" else ""
    return bool(re.search(begins + re.escape(word), text))


def count(said: Said, encoder: Encoder) -> Count:
    before = [("assistant", said.before)] if said.before else []
    found = extract_with_rules([("user", said.text)], encoder, before=before)
    kept = [each.text for each in found if not (find_secret(each.text) or find_personal(each.text))]
    left, result = list(said.facts), Count(len(said.facts))
    for memory in kept:
        if right := next((fact for fact in left if holds(memory, fact)), None):
            left.remove(right)
            result.kept += 1
        elif not any(holds(memory, each) for each in said.maybe):
            result.wrong.append(memory)
            result.kept += 1
    result.found, result.missed = len(said.facts) - len(left), left
    return result


def table(counted: Sequence[tuple[Said, Count]], by: str) -> None:
    sums: dict[str, Count] = defaultdict(Count)
    for said, each in counted:
        sums[getattr(said, by)].add(each)
    for name, total in sums.items():
        print(f"{name:14} {total}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", nargs="?", type=Path, default=DATA / "held_back.txt")
    parser.add_argument("--show", action="store_true", help="print each message with what is wrong or missed")
    options = parser.parse_args()
    encoder = MultilingualEncoder()
    encoder.states(["ready"])
    begun = time.perf_counter()
    counted = [(said, count(said, encoder)) for said in read(options.file)]
    print(f"{(time.perf_counter() - begun) / len(counted) * 1000:.0f} ms a message")
    for by in ("language", "kind"):
        table(counted, by)
    total = Count()
    for _, each in counted:
        total.add(each)
    print(f"{'all':14} {total}")
    for said, each in counted if options.show else ():
        if each.wrong or each.missed:
            print(
                f"\n{said.language} {said.kind}: {said.text}\n   wrong {each.wrong}\n   missed {each.missed}"
            )


if __name__ == "__main__":
    main()
