"""Measure what is taken for a duplicate: cosine alone, and with the guard, on edits and honest rewordings.

    python tests/bench/bench_duplicates.py [--threshold 0.92] [--part even|odd|all] [--show]

"even" are the pairs the guard was tuned on, "odd" those held out.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memories.duplicates import may_merge
from memoryhub.llm.onnx_embedder import OnnxEmbedder
from tests.memories.duplicate_pairs import EDITS, edits, rewordings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threshold", type=float, default=0.92)
    parser.add_argument("--part", choices=("even", "odd", "all"), default="all")
    parser.add_argument("--show", action="store_true", help="print the pairs that went wrong")
    options = parser.parse_args()
    part = {"even": slice(0, None, 2), "odd": slice(1, None, 2), "all": slice(None)}[options.part]

    embedder = OnnxEmbedder()
    print(f"{'pairs':20}{'count':>6}{'near':>8}{'guard only':>12}{'near+guard':>12}   (cosine >= {options.threshold})")
    edited = wrong = 0
    for kind in [*EDITS, "rewording"]:
        pairs = (rewordings() if kind == "rewording" else edits(kind))[part]
        vectors = embedder.embed([text for pair in pairs for text in pair])
        near = [bool(vectors[2 * i] @ vectors[2 * i + 1] >= options.threshold) for i in range(len(pairs))]
        merged = [may_merge(a, b) for a, b in pairs]
        both = [x and y for x, y in zip(near, merged, strict=True)]
        shares = [sum(values) / len(pairs) for values in (near, merged, both)]
        print(f"{kind:20}{len(pairs):6}{shares[0]:8.0%}{shares[1]:12.0%}{shares[2]:12.0%}")
        if kind != "rewording":
            edited, wrong = edited + len(pairs), wrong + sum(both)
        if options.show:
            for (a, b), is_near, is_merged in zip(pairs, near, merged, strict=True):
                if is_merged != (kind == "rewording"):
                    print(f"    {'near' if is_near else 'far '}  {a}  |  {b}")
    print(f"\nedits taken for duplicates: {wrong} of {edited} ({wrong / edited:.1%})")


if __name__ == "__main__":
    main()
