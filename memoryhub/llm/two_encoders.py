"""The default embedder: MiniLM, strong in English, and e5, for a hundred languages, side by side in one vector.

Their vectors are laid end to end, so that the cosine of two texts is a fixed mean of both cosines (docs/recall.md).
MiniLM is given as much of a text as is English: of another language it says nothing but noise. What that takes from a
stored text's length stands in one number more, which a question leaves at 0: so no language is nearer than another.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from memoryhub.llm.base import Vectors, normalised
from memoryhub.llm.e5 import MultilingualEncoder, english_of, meaning_of
from memoryhub.llm.onnx_embedder import CACHED_TEXTS, DIMENSION, OnnxEmbedder, RecentTexts

E5_WEIGHS = 2.5  # times what MiniLM's cosine does
LENGTH = DIMENSION  # of each part
ENGLISH, MULTILINGUAL = slice(0, DIMENSION), slice(DIMENSION, 2 * DIMENSION)  # where each lies


class TwoEncoders:
    name = "minilm-e5-small"
    keeps_recent = True  # so that embedding a text ahead of its use pays
    dimension = 2 * DIMENSION + 1

    def __init__(self, *, threads: int = 1) -> None:
        self.english = OnnxEmbedder(threads=threads)
        self.multilingual = MultilingualEncoder(threads=threads)
        self._stored = RecentTexts(self._infer_stored, self.dimension)
        self._asked = RecentTexts(self._infer_asked, self.dimension)
        self._beside = ThreadPoolExecutor(
            max_workers=1, thread_name_prefix="minilm"
        )  # begun with the first text

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See Embedder: vectors of what is stored."""
        return self._stored.embed(texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return vectors of questions; compared with those of stored texts, never with one another."""
        return self._asked.embed(texts)

    def embed_question(self, texts: Sequence[str]) -> Vectors:
        """Embed the question by both encoders. Its gists mean the same to e5, so only MiniLM embeds them."""
        self._begin_english(texts)
        whole = self._asked.embed(texts[:1])
        if len(texts) < 2 or not _is_latin(texts[0]):
            return whole.repeat(len(texts), axis=0)
        vectors = whole.repeat(len(texts), axis=0)
        share = np.linalg.norm(whole[0, ENGLISH])
        vectors[1:, ENGLISH] = share * self.english.embed(texts[1:])
        return vectors

    def _infer_stored(self, texts: Sequence[str]) -> Vectors:
        self._begin_english(texts)
        vectors = self.multilingual.encode(texts, "passage: ")
        share = _english(texts, vectors)
        return self._laid(texts, vectors, share, np.sqrt(1 - share**2))

    def _infer_asked(self, texts: Sequence[str]) -> Vectors:
        self._begin_english(texts)
        vectors = self.multilingual.encode(texts, "query: ")
        return self._laid(texts, vectors, _english(texts, vectors), np.zeros(len(texts), dtype=np.float32))

    def _begin_english(self, texts: Sequence[str]) -> None:
        """Start MiniLM on another core while e5 works. The caller that needs the result meets any error again."""
        if latin := [text for text in texts if _is_latin(text)][:CACHED_TEXTS]:
            self._beside.submit(self.english.embed, latin)

    def _laid(self, texts: Sequence[str], vectors: Vectors, share: Vectors, rest: Vectors) -> Vectors:
        english = np.zeros((len(texts), LENGTH), dtype=np.float32)
        latin = [at for at, text in enumerate(texts) if _is_latin(text)]
        english[latin] = self.english.embed([texts[at] for at in latin]) * share[latin, None]
        laid = np.concatenate([english, np.sqrt(E5_WEIGHS) * meaning_of(vectors), rest[:, None]], axis=1)
        return normalised(laid, count=len(texts))


def _english(texts: Sequence[str], vectors: Vectors) -> Vectors:
    """Return how much of each text is English."""
    return english_of(vectors) * np.array([_is_latin(text) for text in texts], dtype=np.float32)


def _is_latin(text: str) -> bool:
    """Return whether a text may be English: not if most letters are of another script."""
    return 2 * sum(map(str.isascii, text)) >= len(text)


def likeness(some: Vectors, others: Vectors) -> Vectors:
    """Return the pairwise similarity of these stored vectors: their cosine, or MiniLM's if it is higher.

    e5 tells two dates or names well apart, MiniLM hardly: that a statement may replace another is seen by the second.
    Vectors of another embedder have nothing but their cosine.
    """
    whole: Vectors = some @ others.T
    if some.shape[1] != TwoEncoders.dimension:
        return whole
    left, right = (_of_length_one(vectors[:, ENGLISH]) for vectors in (some, others))
    return np.maximum(whole, left @ right.T)


def _of_length_one(vectors: Vectors) -> Vectors:
    """As they are where there is next to nothing: a text that is not English."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-2)
