"""Networks that find the stored statement that a message replaces, and messages that only retract an earlier one.

A message replaces a statement if it is about the same thing and reports a change or a mistake: a new job, a moved
meeting, a corrected value. The networks were fitted by tests/bench/fit_corrections.py and fit_taking_back.py.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from memories.judging.duplicates.alignment import MEASURES, Words, measure, words_of
from memories.judging.encoder_interface import Encoder, Read, logits, weights
from memories.judging.sentences import own_part
from memoryhub.llm.base import Vectors


def find_replaced(olds: Sequence[str], message: str, encoder: Encoder) -> int | None:
    """Return the index of the statement in ``olds`` that the message replaces, or None. Encodes each text."""
    read_said, *read = map(words_of, encoder.states([message, *olds]))
    there = [at for at, words in enumerate(read) if words.words]
    if not there or not read_said.words:
        return None
    fitted = head()
    inputs = np.stack([network_input(read[at], read_said) for at in there])
    scaled = ((inputs - fitted["mean"]) / fitted["scale"]).astype(np.float32)
    sure = logits(scaled, fitted).mean(axis=0)
    best = int(sure.argmax())
    return there[best] if sure[best] > fitted["floor"] else None


def network_input(old: Words, message: Words) -> Vectors:
    """Return how the texts align, the message's vector, and the product of both texts' vectors."""
    width = old.vectors.shape[1]
    whole_old, whole = old.direction, message.direction
    shares = [_own(old, message), _own(message, old), 4 * float(whole_old @ whole)]
    beside = measure(old, message)[: MEASURES + width]
    return np.concatenate([beside, np.array(shares, np.float32), whole, whole_old * whole])


def _own(words: Words, other: Words) -> float:
    return sum(word not in other.words for word in words.words) / len(words.words)


def head() -> dict[str, Vectors]:
    return weights(Path(__file__).with_name("head.npz"))


LONGEST = 100  # characters of a message that only takes back another


def only_takes_back(text: str, encoder: Encoder) -> bool:
    """Return whether the message does nothing but retract an earlier one. Encodes it."""
    text = own_part(text).strip()
    if not text or len(text) > LONGEST:
        return False
    [read] = encoder.states([text])
    fitted = taking_back_head()
    if not read.pieces:
        return False
    return bool(logits(taking_back_given([read], fitted), fitted).mean() > fitted["floor"])


def taking_back_given(reads: list[Read], fitted: dict[str, Vectors]) -> Vectors:
    own = np.stack([read.vectors.mean(axis=0) for read in reads])
    scaled: Vectors = ((own - fitted["centre"]) / fitted["spread"]).astype(np.float32)
    return scaled


def taking_back_head() -> dict[str, Vectors]:
    return weights(Path(__file__).with_name("back.npz"))
