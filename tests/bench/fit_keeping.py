"""Fit the head that decides what is kept without a model, choose its threshold, and write it.

python tests/bench/fit_keeping.py

What the threshold is chosen by is said of each fifth of the messages by nets fitted on the others.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memories.judging.extraction import keeping
from memories.judging.extraction.clauses import trim
from memoryhub.llm.base import Vectors
from memoryhub.llm.e5 import MultilingualEncoder
from tests.bench.bench_keeping import Counts, found_of, shares
from tests.bench.judging_data import Message, bucket, messages
from tests.bench.nets import Remembering, fit_net, together
from tests.memories.extraction_sentences import FOUND, NOTHING

TARGET = Path(keeping.__file__).with_name("head.npz")
HIDDEN, NETS, STEPS, DROPPED = 48, 3, 2000, 0.5
FOLDS = 5
LEASTS = (0.5, 0.6, 0.65, 0.68, 0.7, 0.75)
SAME = 0.75  # of the characters of both: then a clause is the fact that was marked


def fact_of(message: Message, clause: keeping.Clause) -> str:
    """Its kind, or nothing."""
    for start, end, kind in message.facts:
        a, b = trim(message.text, start, end)
        common = min(b, clause.end) - max(a, clause.start)
        if common > 0 and common >= SAME * (max(b, clause.end) - min(a, clause.start)):
            return kind
    return ""


def softmax_fit(given: Vectors, classes: Vectors, count: int, l2: float) -> tuple[Vectors, Vectors]:
    """Multinomial regression by plain descent: few examples, well apart."""
    weights, bias = np.zeros((given.shape[1], count)), np.zeros(count)
    for _ in range(600):
        scores = given @ weights + bias
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        error = (chances - np.eye(count)[classes]) / len(given)
        weights -= 0.5 * (given.T @ error + l2 * weights)
        bias -= 0.5 * error.sum(axis=0)
    return weights, bias


def older() -> list[Message]:
    """What the rules before this head were written for: fitted on, as they were tuned on it."""
    found = []
    for text, expected in FOUND:
        places = [(text.casefold().find(fact.casefold()), fact, kind) for fact, kind in expected.items()]
        facts = [(at, at + len(fact), kind) for at, fact, kind in places if at >= 0]
        if len(facts) == len(expected):
            found.append(Message("en", text, facts, None, "fit"))
    return found + [Message("en", text, [], None, "fit") for text in NOTHING]


def main() -> None:
    known = older() + [message for message in messages() if message.split in ("fit", "tune")]
    split = [(message, keeping.clauses_of(message.text)) for message in known]
    texts = [message.text[a:b] for message, found in split for a, b in keeping._pieces(message.text, found)]
    print(len(known), "messages,", len(set(texts)), "clauses to read", flush=True)
    warm = Remembering(MultilingualEncoder(), texts)
    parts = [
        (message, found, keeping.measure(message.text, found, warm)) for message, found in split if found
    ]
    fold = np.concatenate([[bucket(message.text) % FOLDS] * len(found) for message, found, _ in parts])
    own, beside, marks = (np.concatenate([measured[at] for *_, measured in parts]) for at in range(3))
    kinds = np.array([fact_of(message, clause) for message, found, _ in parts for clause in found])
    back = np.array(
        [
            message.takes_back is not None and clause.sentence[0] == message.takes_back
            for message, found, _ in parts
            for clause in found
        ]
    )
    counts: dict[float, list[tuple[str, Counts]]] = {least: [] for least in LEASTS}
    for at in range(FOLDS):
        write(own, beside, marks, kinds, back, fold != at)
        for message in known:
            if bucket(message.text) % FOLDS == at:
                for least, of in counts.items():
                    of.append((message.language, found_of(message, warm, least)))
    for least, of in counts.items():
        english, others = ([each for name, each in of if (name == "en") is same] for same in (True, False))
        print(f"{least}: English {shares(english)}, others {shares(others)}", flush=True)
    write(own, beside, marks, kinds, back, np.ones(len(fold), bool))


def write(own: Vectors, beside: Vectors, marks: Vectors, kinds: Vectors, back: Vectors, fit: Vectors) -> None:
    """Fit the nets on these rows, and the kind of what is kept and the taking back of it, and write all."""
    centre = own[fit].mean(axis=0)
    fitted = {"centre": centre, "spread": np.linalg.norm(own[fit] - centre, axis=1).mean() / 4}
    given = keeping.prepared(own, beside, marks, fitted)
    wanted = (kinds != "")[fit].astype(np.float32)
    fitted |= together(
        [
            fit_net(given[fit], wanted, seed, hidden=HIDDEN, steps=STEPS, dropped=DROPPED)
            for seed in range(NETS)
        ]
    )
    vectors = given[:, : len(centre)]
    of = fit & (kinds != "")
    classes = np.array([keeping.KINDS.index(kind) for kind in kinds[of]])
    fitted["kinds"], fitted["kinds_bias"] = softmax_fit(vectors[of], classes, len(keeping.KINDS), 2e-3)
    two, two_bias = softmax_fit(vectors[fit], back[fit].astype(int), 2, 1e-3)
    fitted["back"], fitted["back_bias"] = two[:, 1] - two[:, 0], two_bias[1] - two_bias[0]
    np.savez_compressed(TARGET, **{name: np.asarray(value, np.float16) for name, value in fitted.items()})
    keeping.head.cache_clear()


if __name__ == "__main__":
    main()
