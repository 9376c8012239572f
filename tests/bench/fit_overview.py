# ruff: noqa: E402  Django has to be set up before its models are imported
"""Fit memories/recalling/overview.npz, and print what it does on phrasings that were left out.

    python -m tests.bench.fit_overview FILE … [--keep] [--show]

data/relevance/overview.tsv has a phrasing a line, in sixteen languages, some in one alone. A ``frame`` is filled
with every object, whose kind begins with ``+``. ``near`` is what sounds like a question about everything but is none.
The other messages that relevance is fitted on are no such questions either. Figures are those of three folds over
phrasings (a filled frame is left out with its frame and with its object), and of what nothing is fitted on: the lines
that begin with ``held-`` and the overviews of the FILEs, which are those that relevance is fitted on. Of their other
messages some of each are fitted on. ``--keep`` writes the file, ``--show`` prints what is mistaken of what was held
back.
"""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")

import django

django.setup()

from memories.recalling import overview
from memories.recalling.relevance import STEEP
from memoryhub.llm.bundled_embedder import TwoEncoders
from tests.bench.fit_relevance import units
from tests.bench.judging_data import bucket
from tests.bench.nets import fit_classes
from tests.bench.relevance_data import DATA, everyday, own_workspaces, past_questions

Array = NDArray[Any]
FOLDS = 3
FRAME_WEIGHS, ALONE_WEIGHS, NEAR_WEIGHS = 0.1, 3.0, 3.0  # filled frames; phrasings in one language alone
NONE_WEIGHS = 2.0  # times as much as each other class: most messages ask for no overview
SOME = 300  # messages of each FILE
NONE = ("near", "none")


class Row(NamedTuple):
    """A phrasing. ``folds``: those of its phrasing and of its frame; empty if it is never fitted on."""

    kind: str
    language: str
    text: str
    folds: frozenset[int]
    weight: float = 1.0


def phrasings() -> Iterator[Row]:
    head, *lines = [
        line.split("|") for line in (DATA / "overview.tsv").read_text(encoding="utf-8").splitlines()
    ]
    frames = [texts for kind, *texts in lines if kind == "frame"]
    count: Counter[str] = Counter()
    for kind, *texts in lines:
        count[kind] += 1
        fold = count[kind] % FOLDS
        for at, (language, text) in enumerate(zip(head[1:], texts, strict=True)):
            if not text:
                continue
            if kind.startswith("+"):
                for number, frame in enumerate(frames):
                    if not frame[at]:
                        continue
                    filled = frame[at].replace("{}", text)
                    folds = frozenset([fold, number % FOLDS])
                    yield Row(kind[1:], language, filled, folds, FRAME_WEIGHS)
            elif kind != "frame":
                folds = frozenset[int]() if kind.startswith("held-") else frozenset([fold])
                weight = ALONE_WEIGHS if sum(map(bool, texts)) == 1 else 1.0
                yield Row(kind.removeprefix("held-"), language, text, folds, weight)


def others(known: set[str], files: list[Path]) -> Iterator[Row]:
    texts = {message.text for case in own_workspaces() for message in case.messages}
    texts |= {*everyday(), *past_questions()}
    for path in files:
        asked = [query for query in queries(path) if query.get("kind") != "overview"]
        texts |= {query["text"] for query in sorted(asked, key=lambda query: bucket(query["text"]))[:SOME]}
    for text in sorted(texts - known):
        yield Row("none", "", text, frozenset([bucket(text) % FOLDS]))


def queries(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        yield from json.loads(line)["queries"]


def outside(path: Path) -> Iterator[Row]:
    for query in queries(path):
        if query.get("kind") == "overview":
            yield Row("topic", "", query["text"], frozenset())


def read(rows: list[Row], embedder: TwoEncoders) -> Array:
    parts = [rows[at : at + 32] for at in range(0, len(rows), 32)]
    return units(np.concatenate([embedder.embed_queries([row.text for row in part]) for part in parts]))


def fit(rows: list[Row], vectors: Array) -> tuple[Array, Array]:
    """Fit a net that tells ``overview.CLASSES`` apart; all but the first have the same weight."""
    kinds = ["none" if row.kind in NONE else row.kind for row in rows]
    classes = np.array([[kind == name for name in overview.CLASSES] for kind in kinds], np.float32)
    weights = np.array([max(row.weight, NEAR_WEIGHS * (row.kind == "near")) for row in rows])
    each = np.array([NONE_WEIGHS, 1.0, 1.0, 1.0]) / (classes * weights[:, None]).sum(axis=0)
    return fit_classes(STEEP * vectors, classes, weights * (classes * each).sum(axis=1))


def report(name: str, rows: list[Row], found: list[str], *, show: bool = False) -> None:
    """Print how often each kind is classified as which, and precision and recall of "about everything or a topic"."""
    pairs = Counter((row.kind, kind or "no overview") for row, kind in zip(rows, found, strict=True))
    print(f"\n{name}")
    for kind in dict.fromkeys(row.kind for row in rows):
        print(f"  {kind:6}", dict(sorted((to, n) for (of, to), n in pairs.items() if of == kind)))
    right = sum(n for (of, to), n in pairs.items() if of not in NONE and to != "no overview")
    chosen = sum(n for (_, to), n in pairs.items() if to != "no overview")
    wanted = sum(n for (of, _), n in pairs.items() if of not in NONE)
    print(f"  precision {right / max(1, chosen):.3f}, recall {right / max(1, wanted):.3f}")
    for row, kind in zip(rows, found, strict=True):
        if show and kind != ("" if row.kind in NONE else row.kind):
            print(f"    {row.kind} as {kind or 'no overview'}: {row.text}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    rows = list(dict.fromkeys(phrasings()))
    rows += others({row.text for row in rows}, options.files)
    rows += [row for path in options.files for row in outside(path)]
    embedder = TwoEncoders()
    vectors = read(rows, embedder)
    left_out: list[Row] = []
    found: list[str] = []
    for fold in range(FOLDS):
        used = [at for at, row in enumerate(rows) if row.folds and fold not in row.folds]
        left = [at for at, row in enumerate(rows) if row.folds == {fold}]
        net = fit([rows[at] for at in used], vectors[used])
        left_out += [rows[at] for at in left]
        found += [overview.kind_of(vectors[at], net) for at in left]
    report("left out by folds", left_out, found)
    used = [at for at, row in enumerate(rows) if row.folds]
    held = [at for at, row in enumerate(rows) if not row.folds]
    net = fit([rows[at] for at in used], vectors[used])
    found = [overview.kind_of(vectors[at], net) for at in held]
    report("held back", [rows[at] for at in held], found, show=options.show)
    if options.keep:
        topics = np.stack([vectors[at] for at in used if rows[at].kind == "topic"])
        texts = [text for case in own_workspaces() for text in case.memories.values()]
        statements = units(embedder.embed(texts))
        np.savez(
            overview.FILE,
            hidden=net[0],
            outer=net[1],
            frame=topics.mean(axis=0),
            statement=statements.mean(axis=0),
        )


if __name__ == "__main__":
    main()
