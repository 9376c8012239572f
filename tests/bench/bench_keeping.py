"""Measure which facts extraction without a model keeps: precision and recall, by language and split.

python tests/bench/bench_keeping.py [--show]
"""

import argparse
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memories.judging.encoder_interface import Encoder
from memories.judging.extraction.with_classifier import LEAST, extract_with_rules
from memoryhub.llm.e5 import MultilingualEncoder
from tests.bench.judging_data import Message, messages

Counts = tuple[int, int, int, list[str]]  # marked facts, facts found, statements kept, mistaken statements
ENOUGH = 0.6  # least share of common characters at which a statement counts as the marked fact


def shingles(text: str) -> set[str]:
    plain = re.sub(r"\W+", " ", text.casefold()).strip()
    return {plain[at : at + 3] for at in range(max(len(plain) - 2, 1))}


def found_of(message: Message, encoder: Encoder, least: float) -> Counts:
    kept = [
        candidate.text for candidate in extract_with_rules([("user", message.text)], encoder, least=least)
    ]
    left = [message.text[fact.start : fact.end] for fact in message.facts]
    wrong = []
    for text in kept:
        ours = shingles(text)
        best = max(left, key=lambda fact: _likeness(ours, shingles(fact)), default=None)
        if best is not None and _likeness(ours, shingles(best)) >= ENOUGH:
            left.remove(best)
        else:
            wrong.append(text)
    return len(message.facts), len(message.facts) - len(left), len(kept), wrong


def _likeness(a: set[str], b: set[str]) -> float:
    return 2 * len(a & b) / (len(a) + len(b))


def shares(counts: Sequence[Counts]) -> str:
    facts = sum(row[0] for row in counts)
    found = sum(row[1] for row in counts)
    kept = sum(row[2] for row in counts)
    return f"{len(counts):4} {facts:4}  {found / max(kept, 1):.3f}  {found / max(facts, 1):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--show", action="store_true", help="print what was kept wrongly of the tuning part")
    show = parser.parse_args().show
    encoder = MultilingualEncoder()
    encoder.states(["ready"])
    known = list(messages())
    begun = time.perf_counter()
    measured = [(message, found_of(message, encoder, LEAST)) for message in known]
    print(f"{(time.perf_counter() - begun) / len(known) * 1000:.0f} ms a message")
    for split in (
        "fit",
        "tune",
        *(f"held back{kind}" for kind in ("", ", short", ", blind", ", last", ", wide")),
    ):
        print(f"\n{split}: messages, facts, precision, recall")
        for language in sorted({message.language for message in known}):
            of = [counts for m, counts in measured if (m.language, m.split) == (language, split)]
            if of:
                print(f"{language}  {shares(of)}")
    held = [
        (m.language == "en", counts)
        for m, counts in measured
        if m.split.startswith("held back") and m.split != "held back, wide"
    ]
    for name, is_english in (("English", True), ("others", False)):
        print(
            f"all older held back, {name}: {shares([counts for english, counts in held if english is is_english])}"
        )
    if show:
        for message, (*_, wrong) in measured:
            if wrong and message.split == "tune":
                print(wrong, " <- ", message.text)


if __name__ == "__main__":
    main()
