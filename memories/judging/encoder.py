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
    """`memoryhub.llm.e5.encoder.MultilingualEncoder`, or what stands in for it."""

    def states(self, texts: Sequence[str]) -> Sequence[Read]:
        """Read the texts, some milliseconds each. Raises EmbedderError."""
