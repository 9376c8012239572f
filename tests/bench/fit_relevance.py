# ruff: noqa: E402  Django has to be set up before its models are imported
"""Fit memories/recalling/relevance.npz, and print what it does on what was left out.

    python -m tests.bench.fit_relevance FILE … [--rows rows.pickle] [--held-out GROUP] [--keep]

FILEs are workspaces_dev.jsonl, prefeval_dev.jsonl, locomo_dev_facts.jsonl and XQuAD's, beside which the project's own
data is fitted on (relevance_data.py says how). Every message goes through the product's own recall in a scratch
workspace, whose measures are kept in ``--rows`` for the next run. Figures are those of four folds over workspaces, each
with thresholds that the other three chose; with ``--held-out`` of the workspaces of one group (the first part of a
file's name), fitted on all others. ``--keep`` writes the file, fitted on everything, with thresholds chosen on all
folds: the lowest at which a turn, and a search or a tool, has LEAST_PRECISION on each set of hand-written workspaces.
"""

import argparse
import math
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")

import django

django.setup()

from django.utils import timezone

from memories.evaluation import Conversation, load_conversation
from memories.recalling import relevance
from memories.recalling.ranked_search import RankedSearch
from memories.recalling.recall import recall
from memoryhub.database.startup import running_database
from memoryhub.llm.bundled_embedder import MULTILINGUAL, TwoEncoders
from tests.bench.bench_threshold import scratch_user
from tests.bench.nets import fit_classes
from tests.bench.relevance_data import (
    Case,
    cases,
    fold,
    labelled_statements,
    labels,
    past_questions,
    requests_for_facts,
)
from tests.factories import HERE
from workspaces.models import Membership, PassageVector, Role, User, Workspace

Array = NDArray[Any]


class Asked(NamedTuple):
    """A message, the memories found for it, and their measures."""

    group: str
    origin: str
    size: str
    kind: str
    text: str
    vector: Array  # the e5 part of the message's vector, of length 1
    found: list[str]
    statements: Array  # the same for the memories found
    plain: Array  # a row of MEASURES for each
    relevant: frozenset[str]


def collect(made: list[Case], user: User) -> Iterator[Asked]:
    """Run the product's recall on every message."""
    now = timezone.now()
    for number, case in enumerate(made):
        print(f"\r\033[K{number + 1} of {len(made)}", end="", file=sys.stderr, flush=True)
        workspace = Workspace.objects.create(name="fit_relevance")
        Membership.objects.create(workspace=workspace, user=user, role=Role.OWNER)
        memories = [{"id": key, "text": text, "at": now.isoformat()} for key, text in case.memories.items()]
        conversation = Conversation(case.origin, memories, [])
        keys = load_conversation(conversation, workspace, user, lambda: None, excerpts=False)
        stored = PassageVector.objects.filter(place=workspace.pk, ref__in=keys).values_list(
            "ref", "embedding"
        )
        vectors = {ref: _unit(np.array(vector, dtype=np.float32)[MULTILINGUAL]) for ref, vector in stored}
        for message in case.messages:
            with recorded() as seen:
                found = recall(message.text, workspace, user, limit=1, policy=HERE, now=now, noted=False)
            if not seen or found.search is None or found.search.asked is None:
                continue
            refs, plain = seen[:2]  # a message about the past is measured twice
            yield Asked(
                case.group,
                case.origin,
                case.size,
                message.kind,
                message.text,
                _unit(found.search.asked[MULTILINGUAL]),
                [keys[ref] for ref in refs],
                np.stack([vectors[ref] for ref in refs]),
                plain.astype(np.float32),
                message.relevant,
            )
        workspace.delete()


@contextmanager
def recorded() -> Iterator[list[Any]]:
    """Collect the keys and measures that one recall judges, in the yielded list."""
    seen: list[Any] = []
    judge, measure = RankedSearch.judge, relevance.measure

    def judged(search: RankedSearch, scored: list[Any]) -> dict[int, relevance.Relevance]:
        found = judge(search, scored)
        seen.insert(0, list(found))
        return found

    def measured(*given: Any) -> Array:
        seen.append(measure(*given))
        return seen[-1]

    with (
        mock.patch.object(RankedSearch, "judge", judged),
        mock.patch.object(relevance, "measure", measured),
    ):
        yield seen
        if len(seen) < 2:
            seen.clear()


def _unit(vector: Array) -> Array:
    own: Array = vector / np.linalg.norm(vector)
    return own


GROUPS_WEIGH = {"own": 1.0, "workspaces": 1.0, "prefeval": 0.35, "locomo": 0.35, "xquad": 0.8, "pairs": 0.5}
VARIANTS_WEIGH = {"whole": 1.0, "few": 0.5, "part": 0.6, "mixed": 0.6}
EVERYDAY_WEIGHS = 1.8
LACKING_WEIGHS = 2.0  # times as much: questions whose answer is missing
REQUESTS_WEIGH = 4.0  # times as much: there are few, and they begin as tasks do ("Tell me …")
LEAST_SCALE = 0.15  # so that rare measures do not get large weights
WORK_WEIGHS = 1.5  # times as much: rules for work are the hardest to find
RULES_WEIGH = 1.4  # times as much: a rule costs little to include and much to miss where work is requested
MESSAGES_FOLDS, STATEMENTS_FOLDS, FOLDS = 3, 3, 4
RIDGE = 20.0  # for the decision, whose measures are scaled to deviation 1
HEAD_RIDGE = 1 / 6
MATCH_RIDGE = 3e-6
HAND_WRITTEN = {"own", "workspaces"}
DEFAULT = 0.57  # MEMORYHUB_RECALL_THRESHOLD: the probability chosen for turns is shifted to this value
GRID = np.arange(0.1, 0.6, 0.01)
LEAST_PRECISION = 0.65
TURN_LIMIT, SEARCH_LIMIT = 5, 10  # memories that a turn uses and a search returns
SILENT = {"general", "small_talk", "everyday"}
WORK = {"task", "advice"}


class Data:
    """The collected messages, as arrays over messages and over (message, memory) rows."""

    def __init__(self, asked: list[Asked], embedder: TwoEncoders) -> None:
        self.asked = asked
        self.kinds = np.array([each.kind for each in asked])
        self.numbers = self._numbers()
        self.vectors = np.stack([each.vector for each in asked])
        counts = [len(each.found) for each in asked]
        self.of = np.repeat(np.arange(len(asked)), counts)
        self.plain = np.concatenate([each.plain for each in asked])
        self.statements = np.concatenate([each.statements for each in asked])
        self.wanted = np.concatenate([[key in each.relevant for key in each.found] for each in asked])
        self.ease = np.repeat([relevance.ease_of(count) for count in counts], counts)
        self.ends = np.searchsorted(self.of, np.arange(len(asked) + 1))
        self.past = units(embedder.embed_queries(past_questions()))
        self.requests = units(embedder.embed_queries(requests_for_facts()))
        self.labelled = labelled_statements()
        self.labelled_vectors = units(embedder.embed([text for _, text in self.labelled]))
        self.own = self._own_statements()
        self.weights = np.array([self._weight(each) for each in asked])

    def _numbers(self) -> Array:
        """Return how many memories each message needs in the whole workspace, of which variants have only parts."""
        most: dict[tuple[str, str], int] = {}
        for each in self.asked:
            key = (each.origin, each.text)
            most[key] = max(most.get(key, 0), len(each.relevant))
        return np.array([most[each.origin, each.text] for each in self.asked])

    def fold(self, at: int, folds: int) -> int:
        each = self.asked[at]
        loose = each.kind == "everyday" or (each.kind == "lacking" and each.group != "own")
        return fold(each.text if loose else each.origin, folds)

    def _weight(self, each: Asked) -> float:
        weight = GROUPS_WEIGH[each.group] * VARIANTS_WEIGH[each.size]
        if each.kind in SILENT:
            return EVERYDAY_WEIGHS
        if each.kind == "lacking":
            return LACKING_WEIGHS * weight
        return WORK_WEIGHS * weight if each.kind in WORK and each.group in HAND_WRITTEN else weight

    def _own_statements(self) -> dict[str, Array]:
        own = [each for each in self.asked if each.group == "own" and each.size in {"whole", "few"}]
        return {key: vector for each in own for key, vector in zip(each.found, each.statements, strict=True)}


def units(vectors: Array) -> Array:
    own = vectors[:, MULTILINGUAL]
    units: Array = own / np.linalg.norm(own, axis=1, keepdims=True)
    return units


def logistic(given: Array, wanted: Array, weights: Array, ridge: float, steps: int = 200) -> Array:
    """Return weights and constant, by Nesterov's method; the loss is a sum, as is the penalty ``ridge / 2 * w²``."""
    x = np.hstack([given, np.ones((len(given), 1), np.float32)]).astype(np.float32)
    penalty = np.full(x.shape[1], ridge, np.float32)
    penalty[-1] = 1e-3
    step = 1 / (0.25 * float(np.linalg.norm(x.T @ (x * weights[:, None]), 2)) + ridge)

    def slope(at: Array) -> Array:
        own: Array = x.T @ (weights * (_sigmoid(x @ at) - wanted)) + penalty * at
        return own

    return nesterov(np.zeros(x.shape[1], np.float32), slope, step, steps)


def nesterov(start: Array, slope: Callable[[Array], Array], step: float | Array, steps: int) -> Array:
    """Return the parameters after these steps of Nesterov's accelerated gradient method."""
    at = ahead = start
    for number in range(steps):
        last, at = at, ahead - step * slope(ahead)
        ahead = at + number / (number + 3) * (at - last)
    return at.astype(np.float32)


def _sigmoid(logits: Array) -> Array:
    return 1 / (1 + np.exp(-np.clip(logits, -30, 30)))


def balanced(wanted: Array, weights: Array) -> Array:
    """Return weights that give both classes the same total."""
    return np.where(
        wanted, 0.5 / max(1e-9, weights[wanted].sum()), 0.5 / max(1e-9, weights[~wanted].sum())
    ) * (weights * len(wanted))


def message_heads(data: Data, used: Array) -> tuple[Array, Array, Array]:
    """Fit MESSAGE_HEADS on the texts of these messages: ``hidden``, ``outer`` and ``past`` of ``Fitted``."""
    once = {data.asked[at].text: at for at in np.flatnonzero(used)}
    rows = np.array(sorted(once.values()))
    names = np.append(data.kinds[rows], ["question"] * len(data.requests))
    numbers = np.append(data.numbers[rows], [1] * len(data.requests))
    silent, work = np.isin(names, list(SILENT)), np.isin(names, list(WORK))
    three = np.stack([silent, ~silent & ~work, work], axis=1).astype(np.float32)
    numbers = np.clip(
        numbers, 1 - work, relevance.NUMBERS - 1
    )  # a question needs a memory even if none answers it
    by_number = np.eye(relevance.NUMBERS, dtype=np.float32)[numbers]
    classes = np.hstack([three[:, :1], three[:, 1:2] * by_number, three[:, 2:] * by_number])
    given = relevance.STEEP * np.vstack([data.vectors[rows], data.requests])
    weights = (three / three.sum(axis=0)).sum(axis=1)
    weights[len(rows) :] *= REQUESTS_WEIGH
    hidden, outer = fit_classes(given, classes, weights)
    given = np.vstack([given, relevance.STEEP * data.past])
    past = np.concatenate([names == "past", np.ones(len(data.past), bool)])
    return hidden, outer, logistic(given, past, balanced(past, np.ones(len(past))), HEAD_RIDGE)


def statement_heads(data: Data, origins: set[str]) -> Array:
    """Fit STATEMENT_HEADS on these workspaces of the project and on labelled statements: (2, 385)."""
    named = labels()
    own = [(key, vector) for key, vector in data.own.items() if key.split("/")[0] in origins]
    vectors = [vector for _, vector in own] + list(data.labelled_vectors)
    rules = [key.split("/")[1] in named[key.split("/")[0]][0] for key, _ in own]
    over = [key.split("/")[1] in named[key.split("/")[0]][1] for key, _ in own]
    rules += [kind in {"rule", "kept rule"} for kind, _ in data.labelled]
    over += [kind == "over" for kind, _ in data.labelled]
    weights = np.array(
        [1.5] * len(own) + [0.4 if kind.startswith("kept") else 1.0 for kind, _ in data.labelled]
    )
    given = relevance.STEEP * np.stack(vectors)
    rule, is_over = np.array(rules), np.array(over)
    return np.stack(
        [
            logistic(given, rule, weights, HEAD_RIDGE),
            logistic(given, is_over, balanced(is_over, weights), HEAD_RIDGE),
        ]
    )


def logits(heads: Array, vectors: Array) -> Array:
    own: Array = relevance.STEEP * vectors @ heads[:, :-1].T + heads[:, -1]
    return own


def kinds(data: Data, used: Array) -> tuple[Array, tuple[Array, Array, Array], Array]:
    """Return KINDS for every row, those of ``used`` messages from heads that did not see them, and both heads."""
    of_messages = message_heads(data, used)
    messages = relevance.message_kinds(data.vectors, *of_messages)
    folds = np.array([data.fold(at, MESSAGES_FOLDS) for at in range(len(data.asked))])
    for number in range(MESSAGES_FOLDS):
        left = used & (folds == number)
        messages[left] = relevance.message_kinds(data.vectors[left], *message_heads(data, used & ~left))
    origins = {data.asked[at].origin for at in np.flatnonzero(used) if data.asked[at].group == "own"}
    of_statements = statement_heads(data, origins)
    statements = logits(of_statements, data.statements)
    for number in range(STATEMENTS_FOLDS):
        left_origins = {origin for origin in origins if fold(origin, STATEMENTS_FOLDS) == number}
        left = np.array([each.origin in left_origins for each in data.asked])[data.of]
        if left.any():
            statements[left] = logits(statement_heads(data, origins - left_origins), data.statements[left])
    columns = [
        relevance.kinds_of(messages[at], statements[begin:end], data.plain[begin:end], data.ease[begin])
        for at, (begin, end) in enumerate(zip(data.ends[:-1], data.ends[1:], strict=True))
    ]
    return np.concatenate(columns).astype(np.float32), of_messages, of_statements


def fit(data: Data, used: Array) -> tuple[Array, relevance.Fitted]:
    """Return the probability of every row, and the weights fitted on the ``used`` messages."""
    of_kinds, of_messages, of_statements = kinds(data, used)
    columns = np.hstack([data.plain, of_kinds]).astype(np.float32)
    rows = used[data.of]
    mean, scale = columns[rows].mean(axis=0), np.maximum(columns[rows].std(axis=0), LEAST_SCALE)
    pieces = relevance.pieces(columns, mean, scale)
    weighed = data.weights[data.of] * np.where(
        data.wanted & np.isin(data.kinds, list(WORK))[data.of], RULES_WEIGH, 1.0
    )
    weights = newton(pieces[rows], data.wanted[rows], weighed[rows], RIDGE)
    logits = pieces @ weights[:-1] + weights[-1] + data.ease
    centres = np.stack([data.vectors[used].mean(axis=0), data.statements[rows].mean(axis=0)])
    match, added, constant = bilinear(data, centres, logits, np.where(rows, weighed, 0))
    weights[-1] += constant
    fitted = relevance.Fitted(
        *of_messages, of_statements, mean, scale, weights, match, centres, np.array(DEFAULT)
    )
    return _sigmoid(logits + added + constant), fitted


def bilinear(data: Data, centres: Array, logits: Array, weights: Array) -> tuple[Array, Array, float]:
    """Fit a bilinear form of the centred vectors, added to these logits, by Nesterov's method.

    Return the form (384, 384), what it adds to each row, and a constant. The loss is the weighted mean, and the penalty
    ``MATCH_RIDGE / 2 * form²`` for vectors of mean length 1.
    """
    messages, statements = data.vectors - centres[0], data.statements - centres[1]
    lengths = [float(np.linalg.norm(each, axis=1).mean()) for each in (messages, statements)]
    messages, statements = messages / lengths[0], statements / lengths[1]
    share = (weights / weights.sum()).astype(np.float32)

    def applied(form: Array) -> Array:
        return np.einsum("ij,ij->i", (messages @ form)[data.of], statements)

    def gathered(errors: Array) -> Array:
        return messages.T @ np.add.reduceat(errors[:, None] * statements, data.ends[:-1], axis=0)

    def slope(at: Array) -> Array:
        form = at[:-1].reshape(size)
        errors = share * (_sigmoid(logits + applied(form) + at[-1]) - data.wanted).astype(np.float32)
        return np.append(gathered(errors) + MATCH_RIDGE * form, errors.sum())

    size = (messages.shape[1], statements.shape[1])
    steepest = np.random.default_rng(0).normal(size=size).astype(np.float32)
    for _ in range(6):  # power iteration: the largest curvature, which bounds the step
        steepest = gathered(share * applied(steepest / np.linalg.norm(steepest)))
    curvature = 0.25 * 1.05 * float(np.linalg.norm(steepest)) + MATCH_RIDGE
    step = np.full(steepest.size + 1, 1 / curvature, np.float32)
    step[-1] = 1.0  # the constant's step
    at = nesterov(np.zeros(len(step), np.float32), slope, step, steps=40)
    form = at[:-1].reshape(size)
    return form / (lengths[0] * lengths[1]), applied(form), float(at[-1])


def newton(given: Array, wanted: Array, weights: Array, ridge: float, steps: int = 7) -> Array:
    """Fit as ``logistic`` does, by Newton's method, for few columns."""
    x = np.hstack([given, np.ones((len(given), 1))]).astype(np.float32)
    penalty = np.full(x.shape[1], ridge)
    penalty[-1] = 1e-3
    at = np.zeros(x.shape[1])
    for _ in range(steps):
        probability = _sigmoid(x @ at)
        slope = x.T @ (weights * (probability - wanted)) + penalty * at
        steep = (weights * probability * (1 - probability) + 1e-9).astype(np.float32)
        curve = (x * steep[:, None]).T @ x + np.diag(penalty)
        at = at - np.linalg.solve(curve, slope)
    return at.astype(np.float32)


def in_folds(data: Data) -> tuple[Array, Array]:
    """Return the fold of every message, and the probability of every row, fitted on the other folds."""
    folds = np.array([data.fold(at, FOLDS) for at in range(len(data.asked))])
    found = np.zeros(len(data.of))
    for number in range(FOLDS):
        left = folds == number
        found[left[data.of]] = fit(data, ~left)[0][left[data.of]]
    return folds, found


def choose(data: Data, found: Array, used: Array, most: int) -> float:
    """Return the lowest threshold with LEAST_PRECISION on each set of hand-written workspaces, of the ``used``
    messages.
    """
    sets = [
        np.array([each.group == group and each.size == "whole" for each in data.asked]) & used
        for group in sorted(HAND_WRITTEN)
    ]
    for at in GRID:
        if all(figures(data, found, at, np.flatnonzero(each), most)[0] >= LEAST_PRECISION for each in sets):
            return float(at)
    raise SystemExit("no threshold is precise enough")


def scaled(probability: Array, at: float) -> Array:
    """Return the probabilities on the relevance scale on which this threshold is the default of turns."""
    own = np.clip(probability, 1e-9, 1 - 1e-9)
    return _sigmoid(np.log(own / (1 - own)) + shift(at))


def shift(at: float) -> float:
    return math.log(DEFAULT / (1 - DEFAULT)) - math.log(at / (1 - at))


def figures(data: Data, found: Array, at: float, messages: Array, most: int) -> tuple[float, float, float]:
    """Return precision, recall, and the share of messages without a result, at most ``most`` memories each."""
    right = chosen = silent = 0
    for message in messages:
        begin, end = data.ends[message], data.ends[message + 1]
        used = np.flatnonzero(found[begin:end] >= at)[:most]
        right += int(data.wanted[begin:end][used].sum())
        chosen, silent = chosen + len(used), silent + (not len(used))
    relevant = sum(len(data.asked[message].relevant) for message in messages)
    return right / max(1, chosen), right / max(1, relevant), silent / max(1, len(messages))


def report(data: Data, of_turns: Array, of_searches: Array, of: Array) -> None:
    """Print the figures of turns and of search by group, size and kind, of these messages.

    ``of_turns``, ``of_searches``: the relevance of every row, on scales on which DEFAULT is the threshold of each.
    """
    print(f"{'':<44}{'turns P':>9}{'R':>7}{'silent':>8}{'search P':>10}{'R':>7}{'silent':>8}{'messages':>10}")
    keys: dict[str, list[int]] = {}
    for at in np.flatnonzero(of).tolist():
        each = data.asked[at]
        if each.kind in {"everyday", "lacking"} and each.group not in HAND_WRITTEN:
            keys.setdefault(f"everyday: {each.kind}", []).append(at)
        elif each.kind == "everyday":
            keys.setdefault("everyday: everyday", []).append(at)
        else:
            keys.setdefault(f"{each.group}, {each.size}", []).append(at)
            if each.group in HAND_WRITTEN and each.size == "whole":
                keys.setdefault(f"{each.group}, {each.size}: {each.kind}", []).append(at)
    for name, messages in sorted(keys.items()):
        turn = figures(data, of_turns, DEFAULT, np.array(messages), TURN_LIMIT)
        search = figures(data, of_searches, DEFAULT, np.array(messages), SEARCH_LIMIT)
        print(
            f"{name:<44}{turn[0]:9.3f}{turn[1]:7.3f}{turn[2]:8.3f}"
            f"{search[0]:10.3f}{search[1]:7.3f}{search[2]:8.3f}{len(messages):10}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--held-out", help="a group of workspaces to leave out")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    data = Data(rows_of(options.files, options.rows), TwoEncoders())
    everything = np.ones(len(data.asked), bool)
    folds, found = in_folds(data)
    turns, searches = (choose(data, found, everything, most) for most in (TURN_LIMIT, SEARCH_LIMIT))
    print(f"thresholds of all folds: turns {turns:.2f}, searches {searches:.2f}")
    if options.keep:
        fitted = fit(data, everything)[1]
        fitted.weights[-1] += shift(turns)
        looked_up = scaled(np.array(searches), turns)
        np.savez(
            relevance.FILE,
            **fitted._replace(looked_up=looked_up, match=fitted.match.astype(np.float16))._asdict(),
        )
    if options.held_out:
        left = np.array([each.group == options.held_out for each in data.asked])
        found = fit(data, ~left)[0]
        report(data, scaled(found, turns), scaled(found, searches), left)
        return
    of_turns, of_searches = np.zeros_like(found), np.zeros_like(found)
    for number in range(FOLDS):
        left = folds == number
        rows = left[data.of]
        for own, most in ((of_turns, TURN_LIMIT), (of_searches, SEARCH_LIMIT)):
            at = choose(data, found, ~left, most)
            print(f"fold {number}, at most {most}: {at:.2f} chosen by the others")
            own[rows] = scaled(found[rows], at)
    report(data, of_turns, of_searches, everything)


def rows_of(files: Sequence[Path], kept: Path | None) -> list[Asked]:
    """Return the collected messages with measures, from ``kept`` if it exists."""
    if kept is not None and kept.exists():
        return [Asked(*each) for each in pickle.loads(kept.read_bytes())]
    with running_database(), scratch_user() as user:
        asked = [*collect(cases([*files]), user)]
    if kept is not None:
        kept.write_bytes(pickle.dumps([tuple(each) for each in asked]))
    return asked


if __name__ == "__main__":
    main()
