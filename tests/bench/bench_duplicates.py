"""Measure which pairs are taken for duplicates, on pairs that were fitted on, tuned on and held back.

python tests/bench/bench_duplicates.py [--show]
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memories.judging.duplicates import may_merge
from memoryhub.llm.e5 import MultilingualEncoder
from tests.bench.judging_data import Pair, pairs, swaps

KINDS = {"=": "rewordings", "!": "edits", "r": "roles", "-": "edits inside rewordings"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--show", action="store_true", help="print the pairs that were judged wrongly")
    show = parser.parse_args().show
    known = list(pairs())
    # Reads both texts in one batch, as a save does: its 8-bit scale depends on the batch
    encoder = MultilingualEncoder()
    merged = {pair: may_merge(pair.a, pair.b, encoder) for pair in known}
    likely = {
        pair: is_merged or may_merge(pair.a, pair.b, encoder, likely=True)
        for pair, is_merged in merged.items()
    }
    for split, judged, what in (
        ("fit", merged, "merged"),
        ("held back", merged, "merged"),
        ("held back", likely, "shown as said twice"),
    ):
        print(f"\n{split}, {what}\n{'':10}" + "".join(f"{name:>26}" for name in KINDS.values()))
        for language in sorted({pair.language for pair in known}):
            cells = [_cell(judged, split, language, kind) for kind in KINDS]
            print(f"{language:10}" + "".join(f"{cell:>26}" for cell in cells))
    exchanged = {pair: may_merge(pair.a, pair.b, encoder) for pair in swaps()}
    for split in ("open", "counted"):
        for kind in "!=":
            of = [
                is_merged for pair, is_merged in exchanged.items() if (pair.split, pair.kind) == (split, kind)
            ]
            print(f"sixteen languages, {split}, {KINDS[kind]} merged: {sum(of)} of {len(of)}")
    if show:
        for pair, is_merged in merged.items():
            if is_merged != pair.same and pair.split == "held back":
                print("merged" if is_merged else "kept apart", pair.a, " | ", pair.b)


def _cell(merged: dict[Pair, bool], split: str, language: str, kind: str) -> str:
    of = [
        is_merged
        for pair, is_merged in merged.items()
        if (pair.split, pair.language, pair.kind) == (split, language, kind)
    ]
    return f"{sum(of) / len(of):.0%} of {len(of)}" if of else ""


if __name__ == "__main__":
    main()
