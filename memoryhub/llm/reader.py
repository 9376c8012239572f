"""The encoder with which texts are read word by word: one a process, the embedded default's own where that embeds."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence

from memoryhub.llm.e5 import MultilingualEncoder, States
from memoryhub.llm.errors import EmbedderError
from memoryhub.llm.registry import get_embedder

KEPT = 256  # texts, of some 20 kB each: what is compared with several others is read once

logger = logging.getLogger(__name__)
_lock = threading.Lock()
_reader: Reader | None = None
_is_missing = False


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


def get_reader() -> Reader | None:
    """Loaded when first asked for: a second and 100 MB where another model embeds.

    None where its weights are missing or altered, until the process is started again: nothing is judged without it.
    """
    global _reader, _is_missing
    with _lock:
        if _reader is None and not _is_missing:
            own = getattr(get_embedder(), "multilingual", None)
            encoder = own if isinstance(own, MultilingualEncoder) else MultilingualEncoder()
            try:
                encoder.load()
                _reader = Reader(encoder)
            except EmbedderError as error:
                logger.warning("Statements are not compared word by word: %s (%s)", error, error.code)
                _is_missing = True
        return _reader
