"""The interface of the encoder that judging is given, and the small networks fitted on its states. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from memoryhub.llm.base import Vectors


class Read(Protocol):
    """A text as the encoder read it."""

    @property
    def pieces(self) -> list[str]:
        """A word's first piece begins with ▁."""

    @property
    def vectors(self) -> Vectors:
        """The state of each piece where it stands: (pieces, 384)."""


class Encoder(Protocol):
    """`memoryhub.llm.e5.MultilingualEncoder`, or what stands in for it."""

    def states(self, texts: Sequence[str]) -> Sequence[Read]:
        """Read the texts, some milliseconds each. Raises EmbedderError."""


class ReadOnce:
    """An encoder that keeps what it has read: texts that were read together cost nothing when asked for one by one."""

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
