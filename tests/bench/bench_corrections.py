"""Measure which memory a message replaces, alone and beside the eight nearest facts of other people.

python tests/bench/bench_corrections.py [--show]
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memories.judging.corrections import find_replaced
from tests.bench.fit_corrections import Facts
from tests.bench.judging_data import corrections_said

BESIDE = 8


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--show", action="store_true", help="print those looked at that were judged wrongly")
    show = parser.parse_args().show
    said = list(corrections_said())
    facts = Facts(said)
    print(f"{'':22}{'replaced':>12}{'another one':>14}{'needlessly':>14}")
    for split in ("fit", "looked at", "held back"):
        for number in (0, BESIDE):
            for name, is_english in (("English", True), ("others", False)):
                of = [each for each in said if each.split == split and (each.language == "en") == is_english]
                right = wrong = needless = 0
                for each in of:
                    olds = [*each.kept, *facts.near(each.language, each.said, number)]
                    got = find_replaced(olds, each.said, facts.encoder)
                    right += got is not None and got == each.replaces
                    wrong += None not in (got, each.replaces) and got != each.replaces
                    needless += got is not None and each.replaces is None
                    if show and split == "looked at" and got != each.replaces:
                        print("  ", each.said, "->", "nothing" if got is None else olds[got])
                there = sum(each.replaces is not None for each in of)
                cells = f"{right} of {there}", f"{wrong} of {there}", f"{needless} of {len(of) - there}"
                print(f"{split:11}{name:8}+{number:<2}{cells[0]:>12}{cells[1]:>14}{cells[2]:>14}")


if __name__ == "__main__":
    main()
