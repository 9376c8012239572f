"""The interface of the encoder for the modules of judging, and the evaluation of small networks fitted on its
states.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from memoryhub.llm.base import Vectors


class Read(Protocol):
    """A text as encoded by the encoder."""

    @property
    def pieces(self) -> list[str]:
        """Return the pieces of the text. The first piece of a word begins with ▁."""

    @property
    def vectors(self) -> Vectors:
        """Return the contextual state of each piece: (pieces, 384)."""

    @property
    def middle(self) -> Vectors:
        """Return the state of each piece in a middle layer, which says more about grammar: (pieces, 384)."""


class Encoder(Protocol):
    """The interface of `memoryhub.llm.e5.MultilingualEncoder`, for which tests use a substitute."""

    def states(self, texts: Sequence[str]) -> Sequence[Read]:
        """Encode the texts, some milliseconds each. Raises EmbedderError if the encoder fails."""


class ReadOnce:
    """An encoder with a cache, so that texts encoded in one batch can then be requested one by one at no cost."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._read: dict[str, Read] = {}

    def states(self, texts: Sequence[str]) -> Sequence[Read]:
        missing = [text for text in dict.fromkeys(texts) if text not in self._read]
        if missing:
            self._read |= zip(missing, self._encoder.states(missing), strict=True)
        return [self._read[text] for text in texts]


def logits(given: Vectors, fitted: dict[str, Vectors]) -> Vectors:
    """Return the logit of each network for each row: (networks, rows)."""
    hidden = np.maximum(given @ fitted["inner"] + fitted["inner_bias"][:, None], 0)
    said: Vectors = np.einsum("mnh,mh->mn", hidden, fitted["outer"]) + fitted["outer_bias"][:, None]
    return said
