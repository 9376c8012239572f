"""Measure what is taken for a duplicate: cosine alone, and with the guard, on edits and honest rewordings.

python tests/bench/bench_duplicates.py [--threshold 0.92] [--show]
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memories.judging.duplicates import may_merge
from memoryhub.llm.onnx_embedder import OnnxEmbedder
from tests.memories.duplicate_pairs import EDITS, edits, held_out, rewordings


def measure(name: str, pairs: list[tuple[str, str]], near: list[bool], *, show: bool) -> int:
    """Print one line of shares and return how many pairs are merged."""
    merged = [may_merge(a, b) for a, b in pairs]
    both = [x and y for x, y in zip(near, merged, strict=True)]
    shares = [sum(values) / len(pairs) for values in (near, merged, both)]
    print(f"{name:22}{len(pairs):6}{shares[0]:8.0%}{shares[1]:12.0%}{shares[2]:12.0%}")
    if show:
        for (a, b), is_near, is_merged in zip(pairs, near, merged, strict=True):
            if is_merged != ("reword" in name):
                print(f"    {'near' if is_near else 'far '}  {a}  |  {b}")
    return sum(both)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threshold", type=float, default=0.92)
    parser.add_argument("--show", action="store_true", help="print the pairs that the guard judged wrongly")
    options = parser.parse_args()

    embedder = OnnxEmbedder()
    held_out_edits, held_out_rewordings = held_out()
    sets = {kind: edits(kind) for kind in EDITS} | {"rewording": rewordings()}
    sets |= {"held-out edits": held_out_edits, "held-out rewordings": held_out_rewordings}
    print(f"cosine >= {options.threshold}")
    print(f"{'pairs':22}{'count':>6}{'near':>8}{'guard only':>12}{'near+guard':>12}")
    edited = wrong = 0
    for name, pairs in sets.items():
        vectors = embedder.embed([text for pair in pairs for text in pair])
        near = [bool(vectors[2 * i] @ vectors[2 * i + 1] >= options.threshold) for i in range(len(pairs))]
        merged = measure(name, pairs, near, show=options.show)
        if "reword" not in name:
            edited, wrong = edited + len(pairs), wrong + merged
    print(f"\nedits taken for duplicates: {wrong} of {edited} ({wrong / edited:.1%})")


if __name__ == "__main__":
    main()
