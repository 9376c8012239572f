"""Small networks that decide whether a message replaces a stored statement, or takes back an earlier message.

A message replaces a statement (a job left for another, a meeting moved, a wrong value) if it reports a change or a
mistake and is about that statement. The networks therefore get both the alignment of the two texts and the message as a
whole. They were fitted by tests/bench/fit_corrections.py and tests/bench/fit_taking_back.py, and contain no word lists
of any language. This module does not access the database.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from memories.judging.duplicates.alignment import MEASURES, Words, measure, words_of
from memories.judging.encoder import Encoder, Read, logits
from memories.judging.sentences import own_part
from memoryhub.llm.base import Vectors


def surest(olds: Sequence[str], said: str, encoder: Encoder) -> int | None:
    """Return the index of the statement that ``said`` replaces, or None.

    Encodes each text, which takes some milliseconds. Raises EmbedderError if the encoder fails.
    """
    read_said, *read = map(words_of, encoder.states([said, *olds]))
    there = [at for at, words in enumerate(read) if words.words]
    if not there or not read_said.words:
        return None
    fitted = head()
    given = (np.stack([given_of(read[at], read_said) for at in there]) - fitted["mean"]) / fitted["scale"]
    sure = logits(given.astype(np.float32), fitted).mean(axis=0)
    best = int(sure.argmax())
    return there[best] if sure[best] > fitted["floor"] else None


def given_of(old: Words, said: Words) -> Vectors:
    """Return the input of the networks: how the texts align, the message, and the product of both texts' vectors."""
    width = old.vectors.shape[1]
    whole_old, whole = old.direction, said.direction
    shares = [_own(old, said), _own(said, old), 4 * float(whole_old @ whole)]
    beside = measure(old, said)[: MEASURES + width]
    return np.concatenate([beside, np.array(shares, np.float32), whole, whole_old * whole])


def _own(words: Words, other: Words) -> float:
    """Return the share of ``words`` that ``other`` lacks."""
    return sum(word not in other.words for word in words.words) / len(words.words)


@cache
def head() -> dict[str, Vectors]:
    """Return the networks fitted by tests/bench/fit_corrections.py."""
    with np.load(Path(__file__).with_name("head.npz")) as stored:
        return {name: stored[name].astype(np.float32) for name in stored.files}


LONGEST = 100  # characters of a message that only takes back another


def only_takes_back(text: str, encoder: Encoder) -> bool:
    """Return whether the message only takes back an earlier one.

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
