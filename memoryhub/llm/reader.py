"""The encoder with which texts are read word by word: one a process, the embedded default's own where that embeds."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

from memoryhub.llm.e5.encoder import MultilingualEncoder, States
from memoryhub.llm.registry import get_embedder

KEPT = 256  # texts, of some 20 kB each: what is compared with several others is read once

_lock = threading.Lock()
_reader: Reader | None = None


class Reader:
    def __init__(self, encoder: MultilingualEncoder) -> None:
        self.encoder = encoder
        self._lock = threading.Lock()
        self._recent: OrderedDict[str, States] = OrderedDict()

    def states(self, texts: Sequence[str]) -> list[States]:
        """See MultilingualEncoder. Raises EmbedderError."""
        with self._lock:
            known = {text: self._recent[text] for text in texts if text in self._recent}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            known |= dict(zip(missing, self.encoder.states(missing), strict=True))
            with self._lock:
                for text in missing[-KEPT:]:
                    self._recent[text] = known[text]
                while len(self._recent) > KEPT:
                    self._recent.popitem(last=False)
        return [known[text] for text in texts]


def get_reader() -> Reader:
    """Nothing is loaded before its first text: then a second and 100 MB where another model embeds."""
    global _reader
    with _lock:
        if _reader is None:
            own = getattr(get_embedder(), "multilingual", None)
            _reader = Reader(own if isinstance(own, MultilingualEncoder) else MultilingualEncoder())
        return _reader
