"""The interface of the text encoder, and the evaluation of small networks on its output."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np

from memoryhub.llm.base import Vectors


class Read(Protocol):
    """The encoder's output for one text."""

    @property
    def pieces(self) -> list[str]:
        """Return the pieces (tokens) of the text. The first piece of a word begins with ▁."""

    @property
    def vectors(self) -> Vectors:
        """Return the state of each piece in the last layer, as an array of shape (pieces, 384)."""

    @property
    def middle(self) -> Vectors:
        """Return the state of each piece in a middle layer, which represents grammar better: shape (pieces, 384)."""


class Encoder(Protocol):
    """The interface of `memoryhub.llm.e5.MultilingualEncoder`, for which tests use a substitute."""

    def states(self, texts: Sequence[str]) -> Sequence[Read]:
        """Encode the texts, which takes some milliseconds each. Raises EmbedderError if the encoder fails."""


class ReadOnce:
    """An encoder that caches its results, so that texts encoded in one batch can later be requested one by one."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._read: dict[str, Read] = {}

    def states(self, texts: Sequence[str]) -> Sequence[Read]:
        missing = [text for text in dict.fromkeys(texts) if text not in self._read]
        if missing:
            self._read |= zip(missing, self._encoder.states(missing), strict=True)
        return [self._read[text] for text in texts]


@cache
def weights(file: Path) -> dict[str, Vectors]:
    """Return the arrays of a file of fitted weights, by name."""
    with np.load(file) as stored:
        return {name: stored[name].astype(np.float32) for name in stored.files}


def logits(inputs: Vectors, fitted: dict[str, Vectors]) -> Vectors:
    """Return the logit of each network for each row of ``inputs``: shape (networks, rows). ``fitted``: the weights."""
    hidden = np.maximum(inputs @ fitted["inner"] + fitted["inner_bias"][:, None], 0)
    outputs: Vectors = np.einsum("mnh,mh->mn", hidden, fitted["outer"]) + fitted["outer_bias"][:, None]
    return outputs


def chances(inputs: Vectors, fitted: dict[str, Vectors]) -> Vectors:
    """Return the mean probability of the networks for each row of ``inputs``."""
    means: Vectors = (1 / (1 + np.exp(-logits(inputs, fitted)))).mean(axis=0)
    return means
