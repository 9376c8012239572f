"""Fit the nets that decide what is kept without a model, and write them. With --folds, only print what thresholds give.

OPENBLAS_NUM_THREADS=1 nice python tests/bench/fit_keeping.py [--folds] [--states FILE]

With more threads it takes longer. Each threshold is measured on the messages of each of two authors, by nets fitted on
all others. The limits of clauses that a head is fitted on come from nets that have not seen the message: else it would
learn from better limits than it gets later.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memories.judging.encoder_interface import weights
from memories.judging.extraction import with_classifier
from memories.judging.sentences import TAGS, EncodedMessage, beside, read, sentences, tagged, texts_read, trim
from memoryhub.llm.base import Vectors
from memoryhub.llm.e5 import MultilingualEncoder
from tests.bench.bench_keeping import found_of, shares
from tests.bench.judging_data import AUTHORS, DATA, Fact, Message, bucket, messages, replies, takings_back
from tests.bench.nets import Net, Remembering, fit_net, together

TARGET = Path(with_classifier.__file__).with_name("head.npz")
HIDDEN, NETS, STEPS, DROPPED = 24, 6, 2000, 0.5
TAG_HIDDEN, TAG_STEPS, TAG_DROPPED, OTHERS = 24, 1200, 0.4, 12  # untagged pieces for each tagged one
SMALL_HIDDEN, SMALL_STEPS = 16, 800
FOLDS = 5
LEASTS = (0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6)
TAKING_BACK = 0.1  # share of what takes back, repeated, among the clauses that this is fitted on
SAME, NEARLY = 0.92, 0.75  # least shares of common characters: a clause is the marked fact, or half of one
Rows = Vectors


class Fitted:
    """The messages with the encoder's states, and the fitting of the nets."""

    def __init__(self, known: list[Message], warm: Remembering) -> None:
        self.known, self.warm = known, warm
        self.fold = np.array([bucket(message.text) % FOLDS for message in known])
        self.author = np.array([message.author for message in known])
        self.passages = [read(message.text, warm) for message in known]
        every = np.concatenate([passage.vectors for passage in self.passages[::7]])
        centre = every.mean(axis=0)
        spread = np.array(np.linalg.norm(every - centre, axis=1).mean() / 4)
        self.base = {"centre": centre, "spread": spread}
        self.own = [with_classifier.scaled(passage.vectors, self.base) for passage in self.passages]
        self.tags = [tag_wanted(*pair) for pair in zip(known, self.passages, strict=True)]

    def tag_nets(self, at: np.ndarray) -> dict[str, Vectors]:
        """Fit the nets of clauses.tagged on these messages."""
        fitted = {}
        for number, tag in enumerate(TAGS):
            of = [n for n in np.flatnonzero(at) if tag != "topic" or self.known[n].topic]
            rows, wanted = [], []
            chance = np.random.default_rng(0)
            for n in of:
                values, useful = self.tags[n][number]
                picked = np.flatnonzero(useful & ((values > 0) | (chance.random(len(values)) < OTHERS / 100)))
                if tag == "topic":
                    picked = np.flatnonzero(useful)
                rows.append(beside(self.own[n])[picked])
                wanted.append(values[picked])
            net = fit_net(
                np.concatenate(rows), np.concatenate(wanted), 0,
                hidden=TAG_HIDDEN, steps=TAG_STEPS, dropped=TAG_DROPPED,
            )  # fmt: skip
            fitted |= {f"{tag}_{name}": value for name, value in together([net]).items()}
        return fitted

    def clauses(self) -> None:
        """Cut every message into clauses by nets that were fitted on others."""
        self.found: list[list[with_classifier.Clause]] = [[] for _ in self.known]
        self.rows: list[Rows] = [np.zeros((0, 0))] * len(self.known)
        for at in range(FOLDS):
            nets = self.tag_nets(self.fold != at)
            for n in np.flatnonzero(self.fold == at):
                found = with_classifier.clauses_of(self.passages[n], tagged(self.own[n], nets))
                self.found[n] = found
            print("cut fold", at, flush=True)
        parts = [
            passage.text[each.start : each.end]
            for passage, found in zip(self.passages, self.found, strict=True)
            for each in found
        ]
        self.warm.states(parts)
        for n, found in enumerate(self.found):
            if found:
                self.rows[n] = with_classifier.clause_features(
                    self.passages[n], self.own[n], found, self.warm, self.base
                )

    def heads(self, at: np.ndarray) -> dict[str, Vectors]:
        """Fit the heads that judge clauses on these messages."""
        of = [n for n in np.flatnonzero(at) if self.found[n]]
        rows = np.concatenate([self.rows[n] for n in of])
        pairs = [fact_of(self.known[n], clause) for n in of for clause in self.found[n]]
        wanted = np.array([share for share, _ in pairs], np.float32)
        nets = [
            fit_net(rows, wanted, seed, hidden=HIDDEN, steps=STEPS, dropped=DROPPED) for seed in range(NETS)
        ]
        fitted = self.base | together(nets)
        facts = np.array([number for number, (share, _) in enumerate(pairs) if share == 1])
        lacks = np.array([fact.lacks_topic for share, fact in pairs if fact and share == 1], np.float32)
        fitted |= {f"lacks_{name}": value for name, value in small(rows[facts], lacks).items()}
        vectors = rows[:, with_classifier.ALONE]
        kinds = np.array(
            [with_classifier.KINDS.index(fact.kind) for share, fact in pairs if fact and share == 1]
        )
        fitted["kinds"], fitted["kinds_bias"] = softmax_fit(
            vectors[facts], kinds, len(with_classifier.KINDS), 2e-3
        )
        back = [
            self.known[n].takes_back is not None and clause.sentence[0] == self.known[n].takes_back
            for n in of
            for clause in self.found[n]
        ]
        positive = np.flatnonzero(back)
        repeated = np.repeat(positive, int(TAKING_BACK * len(back) / len(positive)))
        drawn = np.concatenate([np.arange(len(back)), repeated])
        two, two_bias = softmax_fit(vectors[drawn], np.array(back).astype(int)[drawn], 2, 1e-3)
        fitted["back"], fitted["back_bias"] = two[:, 1] - two[:, 0], two_bias[1] - two_bias[0]
        return fitted


def small(rows: Rows, wanted: Vectors) -> dict[str, Vectors]:
    nets: list[Net] = [
        fit_net(rows, wanted, seed, hidden=SMALL_HIDDEN, steps=SMALL_STEPS, dropped=DROPPED)
        for seed in range(2)
    ]
    return together(nets)


def tag_wanted(message: Message, passage: EncodedMessage) -> list[tuple[Vectors, Vectors]]:
    """Return for each tag the targets of the pieces and a mask of those to fit on; sentence limits are known."""
    of = [trim(message.text, start, end) for start, end, _quotes in sentences(message.text)]
    facts = [trim(message.text, fact.start, fact.end) for fact in message.facts]
    topic = message.topic or (0, 0)
    begins = np.array([any(a <= start < b for start, _ in facts) for a, b in passage.places], bool)
    ends = np.array([any(a < end <= b for _, end in facts) for a, b in passage.places], bool)
    about = np.array([topic[0] <= (a + b) / 2 < topic[1] for a, b in passage.places], bool)
    inner = np.array([not any(a <= start < b for start, _ in of) for a, b in passage.places], bool)
    before = np.array([not any(a < end <= b for _, end in of) for a, b in passage.places], bool)
    return [
        (begins.astype(np.float32), inner),
        (ends.astype(np.float32), before),
        (about.astype(np.float32), np.ones(len(about), bool)),
    ]


def fact_of(message: Message, clause: with_classifier.Clause) -> tuple[float, Fact | None]:
    """Return the fact that a clause matches, and the share of it that counts."""
    for fact in message.facts:
        a, b = trim(message.text, fact.start, fact.end)
        common = min(b, clause.end) - max(a, clause.start)
        share = common / (max(b, clause.end) - min(a, clause.start))
        if share >= NEARLY:
            return (1.0 if share >= SAME else 0.5), fact
    return 0.0, None


def softmax_fit(given: Vectors, classes: Vectors, count: int, l2: float) -> tuple[Vectors, Vectors]:
    """Fit a multinomial regression by plain gradient descent, for a few well separated examples."""
    weights, bias = np.zeros((given.shape[1], count)), np.zeros(count)
    for _ in range(400):
        scores = given @ weights + bias
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        error = (chances - np.eye(count)[classes]) / len(given)
        weights -= 0.5 * (given.T @ error + l2 * weights)
        bias -= 0.5 * error.sum(axis=0)
    return weights, bias


def older() -> list[Message]:
    """Return the examples that the rules before this head were tuned on; they are fitted on."""
    found = []
    for line in (DATA / "older" / "messages.jsonl").read_text(encoding="utf-8").splitlines():
        text, expected = json.loads(line).values()
        places = [(text.casefold().find(fact.casefold()), fact, kind) for fact, kind in expected.items()]
        facts = [Fact(at, at + len(fact), kind) for at, fact, kind in places if at >= 0]
        if len(facts) == len(expected):
            found.append(Message("en", text, facts, None, None, "fit"))
    return found


def taking_back() -> list[Message]:
    """Return the messages that only take back the statement before them; nothing of these is kept."""
    return [
        Message(each.language, each.text, [], None, 0, each.split)
        for each in takings_back()
        if each.takes_back and each.split == "fit"
    ]


def reply_nets(known: list[Message], warm: Remembering, base: dict[str, Vectors]) -> dict[str, Vectors]:
    """Fit the net that decides whether a short reply states a fact: on pairs, and on questions before messages without
    facts.
    """
    pairs = list(replies())
    nothing = [each for each in known if not each.facts and len(each.text) <= 40]
    chance = np.random.default_rng(0)
    given = [(each.question, each.answer, each.is_kept) for each in pairs]
    for each in pairs:
        of = [other.text for other in nothing if other.language == each.language]
        given += [(each.question, str(chance.choice(of)), False)] if of else []
    rows = [with_classifier.reply_features(question, answer, warm, base) for question, answer, _ in given]
    wanted = np.array([is_kept for *_, is_kept in given], np.float32)
    return {f"reply_{name}": value for name, value in small(np.stack(rows), wanted).items()}


def write(fitted: dict[str, Vectors]) -> None:
    np.savez_compressed(TARGET, **{name: np.asarray(value, np.float16) for name, value in fitted.items()})
    weights.cache_clear()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--folds", action="store_true", help="print what thresholds give on each of two authors"
    )
    parser.add_argument(
        "--states", type=Path, help="a file that keeps what the encoder returns for the next run"
    )
    options = parser.parse_args()
    known = [*older(), *taking_back(), *(each for each in messages() if each.split in ("fit", "tune"))]
    texts = [part for message in known for part in texts_read(message.text)]
    for reply in replies():
        texts.append(with_classifier.statement(reply.question, reply.answer))
    print(len(known), "messages,", len(set(texts)), "texts to read", flush=True)
    warm = Remembering(MultilingualEncoder(), texts, options.states)
    of = Fitted(known, warm)
    of.clauses()
    warm.save()
    if options.folds:
        print_folds(of)
    else:
        every = np.ones(len(known), bool)
        write(of.heads(every) | of.tag_nets(every) | reply_nets(known, warm, of.base))


def print_folds(of: Fitted) -> None:
    """Print messages, facts, precision and recall for each threshold, by nets that have not seen the author."""
    for author in AUTHORS:
        fitted = of.heads(of.author != author) | of.tag_nets(of.author != author)
        with_classifier.head = lambda fitted=fitted: fitted  # type: ignore[assignment]
        for least in LEASTS:
            counts = [found_of(each, of.warm, least) for each in of.known if each.author == author]
            print(f"author {author}, {least}: {shares(counts)}", flush=True)


if __name__ == "__main__":
    main()
