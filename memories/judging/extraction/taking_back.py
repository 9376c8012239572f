"""Whether a message only takes back what was said before: "Scratch that." in whatever language.

Small nets hear it in the message as a whole; they were fitted by tests/bench/fit_taking_back.py on messages in twelve
languages. There is no list of words.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from memories.judging.encoder import Encoder, Read
from memories.judging.extraction.sentences import own_part
from memories.judging.nets import logits
from memoryhub.llm.base import Vectors

LONGEST = 100  # characters of such a message


def only_takes_back(text: str, encoder: Encoder) -> bool:
    """One reading, some milliseconds. Raises EmbedderError."""
    text = own_part(text).strip()
    if not text or len(text) > LONGEST:
        return False
    [read] = encoder.states([text])
    fitted = head()
    return bool(len(read.pieces) and logits(given_of([read], fitted), fitted).mean() > fitted["floor"])


def given_of(reads: list[Read], fitted: dict[str, Vectors]) -> Vectors:
    own = np.stack([read.vectors.mean(axis=0) for read in reads])
    scaled: Vectors = ((own - fitted["centre"]) / fitted["spread"]).astype(np.float32)
    return scaled


@cache
def head() -> dict[str, Vectors]:
    with np.load(Path(__file__).with_name("back.npz")) as stored:
        return {name: stored[name].astype(np.float32) for name in stored.files}
