"""Measure what is kept without a model: precision and recall of facts, by language and split.

python tests/bench/bench_keeping.py [--show]
"""

import argparse
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memories.judging.encoder import Encoder
from memories.judging.extraction.rules import LEAST, extract_with_rules
from memoryhub.llm.e5.encoder import MultilingualEncoder
from tests.bench.judging_data import Message, messages

ENOUGH = 0.6  # of the letters of both, in common: then it is the fact that was marked


def shingles(text: str) -> set[str]:
    plain = re.sub(r"\W+", " ", text.casefold()).strip()
    return {plain[at : at + 3] for at in range(max(len(plain) - 2, 1))}


def found_of(message: Message, encoder: Encoder, least: float) -> tuple[int, int, int, list[str]]:
    """How many facts are marked, were found, how many statements were kept, and the mistaken ones."""
    kept = [
        candidate.text for candidate in extract_with_rules([("user", message.text)], encoder, least=least)
    ]
    left = [message.text[a:b] for a, b, _ in message.facts]
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


def score(of: Sequence[Message], encoder: Encoder, least: float) -> str:
    cells = []
    for name, group in (
        ("en", [each for each in of if each.language == "en"]),
        ("others", [each for each in of if each.language != "en"]),
    ):
        counts = [found_of(message, encoder, least)[:3] for message in group]
        facts, found, kept = (sum(column) for column in zip(*counts, strict=True))
        cells.append(f"{name}: precision {found / max(kept, 1):.3f} recall {found / facts:.3f} of {facts}")
    return "; ".join(cells)


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
    for split in ("fit", "tune", "held back", "held back, short", "held back, blind"):
        print(f"\n{split}: messages, facts, precision, recall")
        for language in sorted({message.language for message in known}):
            of = [counts for m, counts in measured if (m.language, m.split) == (language, split)]
            if of:
                facts, found, kept = (sum(row[at] for row in of) for at in range(3))
                print(
                    f"{language}  {len(of):4} {facts:4}  {found / max(kept, 1):.3f}  {found / max(facts, 1):.3f}"
                )
    if show:
        for message, (*_, wrong) in measured:
            if wrong and message.split == "tune":
                print(wrong, " <- ", message.text)


if __name__ == "__main__":
    main()
