"""Relevance of recalled memories to a message, for chat turns, tools, MCP, REST and search. Does not access the
database.

The relevance is the probability from a piecewise linear logistic regression. Its features (``MEASURES``, ``KINDS``)
are:

- the similarity to the message by both encoders, compared with other memories of the workspace and with the best one
- the words and parts of words in common with the message, and how rare these are
- the kind of message (it asks for nothing, looks something up, asks for work or advice) and how many memories it
  needs, both read by a small net, and whether it asks about the past
- the kind of statement (a rule or preference, or something that is over)

A bilinear form of both vectors is added to the logit. It has learned which statements matter to which messages without
sharing their subject, such as the town where a person lives to plans for a weekend.

No feature decides alone: a message that seems to ask for nothing still gets a memory that is much nearer than others.
Everything is fitted by tests/bench/fit_relevance.py; docs/figures.md has the figures.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memories.judging.sentences import JOINED
from memories.judging.stated_period import says_over, speaks_of_before
from memories.recalling.ranking import WEIGHTS
from memories.recalling.shared_words import shared_words
from memoryhub.llm.bundled_embedder import E5_WEIGHS, MULTILINGUAL
from workspaces.index.scores import Asked, cosines, read_asked

Array = NDArray[Any]
FILE = Path(__file__).with_suffix(".npz")
LOOKED_AT = 20  # memories, the first in the order of recall
BACKGROUND = 200  # memories of the same places, to which a message's cosines are compared
STRONG = 0.80  # minimum relevance that a receipt calls strong
CLEAR = 0.97  # minimum ``if_asked`` of a memory that is used even if the message seems to ask for nothing
LEAST_SCORE = 0.25  # minimum score for a search or a tool where relevance is unknown
PRIOR_COUNT = 8.0  # weight of PRIORS in a workspace's background, as a number of memories
PRIORS = {"english": (0.12, 0.12), "multilingual": (0.05, 0.09), "both": (0.07, 0.09)}  # mean, deviation
STEEP = 3.0  # the heads were fitted to vectors of this length
BEND = 0.7  # deviations from a measure's mean at which its weight may change
# Each halving below FEW memories, down to FEWEST, adds EASE to the logit.
FEW, FEWEST, EASE = 20, 5, 0.35
# Minimum logits of a message about the past, with words that say so and without.
PAST, SURELY_PAST = -1.5, 4.0
OVER = -4.0  # minimum logit of a statement that is over; its words must say so too
ORDER_SHARE = 0.1  # weight of relevance in the order of results; chosen on two conversations of LoCoMo
OVER_SHARE = 0.25  # factor for the relevance of what is over, which keeps it below the default thresholds
MOST = 6.0  # the logits of heads are clipped here
SUREST = (
    3.0  # the same for the first three MESSAGE_HEADS, so that the kind of a message alone decides nothing
)

MESSAGE_HEADS = ("silent", "lookup", "work", "past", "number")
NUMBERS = 4  # a message needs no memory, one, two, or more
STATEMENT_HEADS = ("rule", "over")
HEADS = (*STATEMENT_HEADS, "match")
MEASURES = (
    "english", "z_english", "behind_english", "multilingual", "z_multilingual", "behind_multilingual",
    "both", "z_both", "behind_both", "score", "behind_score", "lead", "words", "behind_words", "signals", "rank",
    "shared_words", "covered_message", "covered_statement", "rarest", "parts", "behind_parts", "parts_of_statement",
    "long_message", "long_statement", "best_z",
)  # fmt: skip
# fmt: off
KINDS = (
    "silent", "lookup", "work", "past", "rule", "over", "no_longer", "wanted_past", "rule_for_work",
    "rule_near", "silent_near", "silent_score", "rule_of_few", "number", "number_near", "number_behind", "number_rank",
)
# fmt: on


class Fitted(NamedTuple):
    hidden: Array  # (385, 64): the hidden layer of a net over a message's e5 vector, the constants last
    # (65, 9): its output layer, the constants last: silent, then lookups and work, by the NUMBERS of memories they need
    outer: Array
    past: Array  # (385,): a linear classifier of the same vector
    statement: Array  # (2, 385): STATEMENT_HEADS
    mean: Array  # of MEASURES and KINDS
    scale: Array
    weights: Array  # for the ``pieces`` of these columns, the constant last
    match: Array  # (384, 384): bilinear form of a message's and a statement's e5 vector, both of length 1 and centred
    centres: Array  # (2, 384): the means of messages and of statements, subtracted for ``match``
    looked_up: Array  # minimum relevance for a search or a tool; a turn uses RECALL_THRESHOLD


class Relevance(NamedTuple):
    """The relevance of a memory to a message.

    - ``value``: the relevance, from 0 to 1.
    - ``if_asked``: the relevance if the message asked for something.
    - ``if_current``: the relevance if the statement were still valid.
    - ``asks``: the kind of message: "silent" (asks for nothing), "lookup" or "work".
    - ``is_over``: the statement is no longer valid, and the message does not ask about the past.
    """

    value: float
    if_asked: float
    if_current: float
    asks: str = ""
    is_over: bool = False


class Message(NamedTuple):
    text: str
    kinds: Array  # MESSAGE_HEADS, as from ``message_kinds``
    asked: Asked
    match: Array  # (384,): the product of its vector with ``Fitted.match``


class Found(NamedTuple):
    """A recalled memory with the values from ``ranked_search`` that its relevance is computed from."""

    content: str
    score: float
    words: float  # share of the message's words, by BM25
    meaning: float  # what the cosine adds to the score
    # English, multilingual, length of the English part, each of STATEMENT_HEADS, and ``Message.match``.
    products: Sequence[float]
    holds: bool | None = None  # at the time in question; None if unknown


@lru_cache(maxsize=1)
def fitted() -> Fitted:
    with np.load(FILE) as file:
        return Fitted(*(file[name].astype(np.float32) for name in Fitted._fields))


def read_message(text: str, vector: Array) -> Message:
    """Classify a message by its vector ``vector``."""
    own, part = fitted(), vector[MULTILINGUAL]
    unit = part / float(np.linalg.norm(part))
    kinds = message_kinds(unit[None], own.hidden, own.outer, own.past)[0]
    return Message(text, kinds, read_asked(vector), (unit - own.centres[0]) @ own.match)


def message_kinds(units: Array, hidden: Array, outer: Array, past: Array) -> Array:
    """Return MESSAGE_HEADS, one row for each e5 vector in ``units``. The other arguments are as in ``Fitted``.

    They are logits, but the last is the expected number of memories that a message needs, from 0 to 3.
    """
    silent, lookup, work = np.split(net_logits(units, hidden, outer), [1, 1 + NUMBERS], axis=1)
    three = [np.logaddexp.reduce(each, axis=1) for each in (silent, lookup, work)]
    odds = np.exp(np.logaddexp(lookup, work) - np.logaddexp(three[1], three[2])[:, None])
    return np.column_stack([*three, STEEP * units @ past[:-1] + past[-1], odds @ np.arange(NUMBERS)])


def net_logits(units: Array, hidden: Array, outer: Array) -> Array:
    """Return the logits of a net with one hidden layer, one row for each e5 vector of length 1."""
    active = np.maximum(0, STEEP * units @ hidden[:-1] + hidden[-1])
    own: Array = active @ outer[:-1] + outer[-1]
    return own


def heads_for(message: Message) -> dict[str, Array]:
    """Return the arrays by name whose inner products with a stored vector's multilingual part ``judge`` needs.

    They are the weights of the classifiers STATEMENT_HEADS, and ``match``.
    """
    return dict(zip(HEADS, (*fitted().statement[:, :-1], message.match), strict=True))


def silence_of(vector: Array) -> float:
    """Return the probability that a message asks for nothing, given its vector."""
    return float(_shares(read_message("", vector).kinds)[0])


def judge(
    message: Message,
    candidates: Sequence[Found],
    background: Sequence[Sequence[float]],
    *,
    past: bool | None = None,
) -> list[Relevance]:
    """Return the relevance of each memory in ``candidates``, which must be in the order of recall.

    ``background`` has the first three ``Found.products`` of other memories, for comparison. ``past`` says whether the
    message asks about the past; by default, this is read from the message. If it does not, the relevance of memories
    that are no longer valid is multiplied by OVER_SHARE. The recorded validity decides; without one, the text of the
    memory does.
    """
    if not candidates:
        return []
    plain = measure(message, candidates, background)
    rules, match = _statement_logits(message, candidates)
    ease = ease_of(len(background))
    added = match + ease
    value = _probability(np.hstack([plain, kinds_of(message.kinds, rules, plain, ease)]), added)
    asking = np.concatenate([[-MOST, MOST, -MOST], message.kinds[3:]])
    if_asked = _probability(np.hstack([plain, kinds_of(asking, rules, plain, ease)]), added)
    value = np.where(if_asked >= CLEAR, np.maximum(value, if_asked), value)
    current = np.stack([rules[:, 0], np.full(len(candidates), -MOST)], axis=1)
    if_current = _probability(np.hstack([plain, kinds_of(message.kinds, current, plain, ease)]), added)
    over = np.zeros(len(candidates), bool)
    if not (asks_past(message) if past is None else past):
        known = np.array([math.nan if each.holds is None else each.holds for each in candidates])
        says = (rules[:, 1] >= OVER) & np.array([says_over(each.content) for each in candidates])
        over = (known == 0) | (np.isnan(known) & says)
        value = np.where(known == 1, np.maximum(value, if_current), np.where(over, OVER_SHARE * value, value))
    asks = MESSAGE_HEADS[int(message.kinds[:3].argmax())]
    return [
        Relevance(float(own), float(asked_value), float(current), asks, bool(is_over))
        for own, asked_value, current, is_over in zip(value, if_asked, if_current, over, strict=True)
    ]


def ease_of(count: int) -> float:
    """Return the number to add to the logit of the relevance in a workspace with ``count`` memories to compare with.

    It is higher in a small workspace, where fewer memories can be confused with each other.
    """
    return EASE * max(0.0, math.log2(FEW / max(FEWEST, count)))


def in_order(scores: Mapping[int, float], judged: Mapping[int, Relevance]) -> list[int]:
    """Return the primary keys in ``scores``, best first, by score plus a tenth of the relevance.

    Memories that are no longer valid come last, unless the message asks about the past.
    """

    def place(key: int) -> tuple[bool, float]:
        relevance = judged.get(key)
        return (
            (relevance.is_over, -scores[key] - ORDER_SHARE * relevance.value)
            if relevance
            else (False, -scores[key])
        )

    return sorted(scores, key=place)


def asks_past(message: Message) -> bool:
    """Return whether a message asks about the past, so that memories that are no longer valid may be used."""
    least = PAST if speaks_of_before(message.text) else SURELY_PAST
    return bool(message.kinds[MESSAGE_HEADS.index("past")] >= least)


def measure(message: Message, candidates: Sequence[Found], background: Sequence[Sequence[float]]) -> Array:
    """Return a row of features, in the order of MEASURES, for each of the ``candidates``. Arguments as in ``judge``."""
    near = cosines(message.asked, np.array([each.products[:3] for each in candidates]))
    around = cosines(message.asked, np.array(background).reshape(-1, 3))
    values: dict[str, Array] = {}
    for name, own in near.items():
        mean, deviation = _background(around[name], *PRIORS[name])
        values |= {name: own, f"z_{name}": (own - mean) / deviation, f"behind_{name}": own.max() - own}
    score = np.array([each.score for each in candidates])
    words = np.array([each.words for each in candidates])
    second = sorted(score, reverse=True)[1] if len(candidates) > 1 else 0.0
    same = np.ones(len(candidates))
    values |= {
        "score": score,
        "behind_score": score.max() - score,
        "lead": score - second,
        "words": words,
        "behind_words": words.max() - words,
        "signals": score - np.array([each.meaning for each in candidates]) - WEIGHTS.words * words,
        "rank": np.arange(len(candidates)),
        "best_z": values["z_both"].max() * same,
        "long_message": np.log1p(len(message.text)) * same,
        "long_statement": np.log1p([len(each.content) for each in candidates]),
        **shared_words(message.text, [each.content for each in candidates]),
    }
    return np.stack([values[name] for name in MEASURES], axis=1)


def kinds_of(message: Array, statements: Array, plain: Array, ease: float) -> Array:
    """Return the features KINDS of each statement, one row each.

    ``message`` has MESSAGE_HEADS, and ``statements`` the logits of STATEMENT_HEADS, one row for each statement.
    ``plain`` has the features returned by ``measure``. ``ease`` is that of ``ease_of``: a rule is relevant more often
    in a workspace with few memories.
    """
    three = np.clip(message[:3] - message[:3].mean(), -SUREST, SUREST)
    silent, _lookup, work = _shares(three)
    past = _sigmoid(2 * (message[3] - PAST))
    rule, over = np.clip(statements, -MOST, MOST).T
    is_rule, is_over = _sigmoid(statements[:, 0]), _sigmoid(statements[:, 1])
    above, score, behind, rank = (
        plain[:, MEASURES.index(name)] for name in ("z_both", "score", "behind_score", "rank")
    )
    above, number, same = np.clip(above, 0, 4), message[4], np.ones(len(statements))
    columns = [each * same for each in (*three, np.clip(message[3], -MOST, MOST))]
    columns += [rule, over, is_over * (1 - past), is_over * past]
    columns += [work * is_rule, work * is_rule * above, silent * above, silent * score]
    columns += [work * is_rule * ease, number * same, number * above, number * behind, number * rank]
    return np.stack(columns, axis=1)


def _shares(message: Array) -> Array:
    """Return the probabilities that a message asks for nothing, looks something up, or asks for work or advice.

    ``message`` has the logits of at least the first three MESSAGE_HEADS.
    """
    odds = np.exp(message[:3] - message[:3].max())
    shares: Array = odds / odds.sum()
    return shares


def _statement_logits(message: Message, candidates: Sequence[Found]) -> tuple[Array, Array]:
    """Return the logits of STATEMENT_HEADS for each memory, one row each, and its match with the message."""
    own, to_unit = fitted(), float(np.sqrt((1 + E5_WEIGHS) / E5_WEIGHS))
    products = to_unit * np.array([each.products[3:] for each in candidates])
    match = products[:, -1] - message.match @ own.centres[1]
    return STEEP * products[:, :-1] + own.statement[:, -1], match


def statement_kinds(vectors: Array) -> Array:
    """Return the probabilities of STATEMENT_HEADS, one row for each of ``vectors``.

    ``vectors`` are the multilingual encoder's parts of memories' vectors.
    """
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    heads = fitted().statement
    return _sigmoid(STEEP * units @ heads[:, :-1].T + heads[:, -1])


def is_found(score: float, relevance: Relevance | None) -> bool:
    """Return whether a search or a tool returns a memory with this score and relevance."""
    return score >= LEAST_SCORE if relevance is None else relevance.value >= float(fitted().looked_up)


def is_shown(score: float, relevance: Relevance | None) -> bool:
    """Return whether a list that a person searches shows a memory. It shows more than ``is_found`` accepts.

    In a list, a single word counts as a question. A memory near to it in meaning is shown even if another contains a
    part of the word.
    """
    near = relevance is not None and min(score, relevance.if_asked) >= LEAST_SCORE
    return near or is_found(score, relevance)


def is_one_word(text: str) -> bool:
    """Return whether the text is one word; in scripts without spaces, whether it has at most four characters."""
    return len(text.split()) == 1 and (len(text.strip()) <= 4 or not JOINED.search(text))


def _background(cosines: Array, mean: float, deviation: float) -> tuple[float, float]:
    """Return the mean and standard deviation of the cosines.

    If there are few cosines, both are shifted towards the typical values ``mean`` and ``deviation``.
    """
    count = len(cosines) + PRIOR_COUNT
    own = (cosines.sum() + PRIOR_COUNT * mean) / count
    return own, float(np.sqrt((((cosines - own) ** 2).sum() + PRIOR_COUNT * deviation**2) / count))


def pieces(columns: Array, mean: Array, scale: Array) -> Array:
    """Return the columns, standardized and clipped to [-3, 4], and their parts above ``BEND`` and below ``-BEND``.

    With these parts, a linear model can weight low, middle and high values of a measure differently.
    """
    scaled = np.clip((columns - mean) / scale, -3, 4)
    return np.hstack([scaled, np.maximum(0, scaled - BEND), np.maximum(0, -BEND - scaled)])


def _probability(columns: Array, added: Array) -> Array:
    own = fitted()
    return _sigmoid(pieces(columns, own.mean, own.scale) @ own.weights[:-1] + own.weights[-1] + added)


def _sigmoid(logits: Array) -> Array:
    probability: Array = 1 / (1 + np.exp(-np.clip(logits, -30, 30)))
    return probability
