"""What judging asks of an encoder, which it is given: it loads none of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

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
