"""Networks that find the stored statement that a message replaces, and messages that only retract an earlier one.

A message replaces a statement if it is about the same thing and reports a change or a mistake: a new job, a moved
meeting, a corrected value. The networks therefore see how the two texts align and also the message as a whole. They
were fitted by tests/bench/fit_corrections.py and tests/bench/fit_taking_back.py and use no word lists. This module does
not access the database.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from memories.judging.duplicates.alignment import MEASURES, Words, measure, words_of
from memories.judging.encoder_interface import Encoder, Read, logits
from memories.judging.sentences import own_part
from memoryhub.llm.base import Vectors


def find_replaced(olds: Sequence[str], message: str, encoder: Encoder) -> int | None:
    """Return the index of the statement in ``olds`` that the message ``message`` replaces, or None.

    Encodes each text, which takes some milliseconds. Raises EmbedderError if the encoder fails.
    """
    read_said, *read = map(words_of, encoder.states([message, *olds]))
    there = [at for at, words in enumerate(read) if words.words]
    if not there or not read_said.words:
        return None
    fitted = head()
    inputs = (np.stack([network_input(read[at], read_said) for at in there]) - fitted["mean"]) / fitted[
        "scale"
    ]
    sure = logits(inputs.astype(np.float32), fitted).mean(axis=0)
    best = int(sure.argmax())
    return there[best] if sure[best] > fitted["floor"] else None


def network_input(old: Words, message: Words) -> Vectors:
    """Return the input of the networks for an old statement and a message: features of how the texts align, the
    message's vector, and the product of both texts' vectors.
    """
    width = old.vectors.shape[1]
    whole_old, whole = old.direction, message.direction
    shares = [_own(old, message), _own(message, old), 4 * float(whole_old @ whole)]
    beside = measure(old, message)[: MEASURES + width]
    return np.concatenate([beside, np.array(shares, np.float32), whole, whole_old * whole])


def _own(words: Words, other: Words) -> float:
    """Return the share of ``words`` that do not occur in ``other``."""
    return sum(word not in other.words for word in words.words) / len(words.words)


@cache
def head() -> dict[str, Vectors]:
    """Return the weights and threshold of the networks fitted by tests/bench/fit_corrections.py."""
    with np.load(Path(__file__).with_name("head.npz")) as stored:
        return {name: stored[name].astype(np.float32) for name in stored.files}


LONGEST = 100  # characters of a message that only takes back another


def only_takes_back(text: str, encoder: Encoder) -> bool:
    """Return whether the message does nothing but retract an earlier one.

    Takes some milliseconds. Raises EmbedderError if the encoder fails.
    """
    text = own_part(text).strip()
    if not text or len(text) > LONGEST:
        return False
    [read] = encoder.states([text])
    fitted = taking_back_head()
    return bool(
        len(read.pieces) and logits(taking_back_given([read], fitted), fitted).mean() > fitted["floor"]
    )


def taking_back_given(reads: list[Read], fitted: dict[str, Vectors]) -> Vectors:
    own = np.stack([read.vectors.mean(axis=0) for read in reads])
    scaled: Vectors = ((own - fitted["centre"]) / fitted["spread"]).astype(np.float32)
    return scaled


@cache
def taking_back_head() -> dict[str, Vectors]:
    with np.load(Path(__file__).with_name("back.npz")) as stored:
        return {name: stored[name].astype(np.float32) for name in stored.files}
