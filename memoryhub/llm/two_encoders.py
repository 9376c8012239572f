"""The default embedder: MiniLM, strong in English, and e5, for a hundred languages, combined in one vector.

Their vectors are concatenated, so that the cosine of two texts is a fixed weighted mean of both cosines
(docs/recall.md). MiniLM's part is scaled by how much of a text is English, because its vectors of other languages are
noise. A stored text has one more component that restores its length to 1; in questions it is 0. So no language is
preferred.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from memoryhub.llm.base import Vectors, normalised
from memoryhub.llm.e5 import MultilingualEncoder, english_of, meaning_of
from memoryhub.llm.onnx_embedder import CACHED_TEXTS, DIMENSION, OnnxEmbedder, RecentTexts

E5_WEIGHS = 2.5  # weight of e5's cosine relative to MiniLM's
LENGTH = DIMENSION  # length of each part
ENGLISH, MULTILINGUAL = slice(0, DIMENSION), slice(DIMENSION, 2 * DIMENSION)  # position of each part


class TwoEncoders:
    name = "minilm-e5-small"
    keeps_recent = True  # recent vectors are cached, so embedding a text in advance saves time
    dimension = 2 * DIMENSION + 1

    def __init__(self, *, threads: int = 1) -> None:
        self.english = OnnxEmbedder(threads=threads)
        self.multilingual = MultilingualEncoder(threads=threads)
        self._stored = RecentTexts(self._infer_stored, self.dimension)
        self._asked = RecentTexts(self._infer_asked, self.dimension)
        self._beside = ThreadPoolExecutor(
            max_workers=1, thread_name_prefix="minilm"
        )  # its thread starts with the first text

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See Embedder. Return vectors for texts to store."""
        return self._stored.embed(texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return vectors of questions. Compare them only with vectors of stored texts, not with each other."""
        return self._asked.embed(texts)

    def embed_question(self, texts: Sequence[str]) -> Vectors:
        """Embed a question, the first text, and its shorter variants, the other texts.

        Only MiniLM embeds the variants, since e5 gives them nearly the same vector as the question.
        """
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
        """Start MiniLM on another core while e5 works. Errors are raised again when the caller requests the result."""
        if latin := [text for text in texts if _is_latin(text)][:CACHED_TEXTS]:
            self._beside.submit(self.english.embed, latin)

    def _laid(self, texts: Sequence[str], vectors: Vectors, share: Vectors, rest: Vectors) -> Vectors:
        english = np.zeros((len(texts), LENGTH), dtype=np.float32)
        latin = [at for at, text in enumerate(texts) if _is_latin(text)]
        english[latin] = self.english.embed([texts[at] for at in latin]) * share[latin, None]
        laid = np.concatenate([english, np.sqrt(E5_WEIGHS) * meaning_of(vectors), rest[:, None]], axis=1)
        return normalised(laid, count=len(texts))


def _english(texts: Sequence[str], vectors: Vectors) -> Vectors:
    """Return the English share of each text, 0 to 1; 0 for texts in another script."""
    return english_of(vectors) * np.array([_is_latin(text) for text in texts], dtype=np.float32)


def _is_latin(text: str) -> bool:
    """Return whether at least half of a text is ASCII, so that it may be English."""
    return 2 * sum(map(str.isascii, text)) >= len(text)


def likeness(some: Vectors, others: Vectors) -> Vectors:
    """Return the pairwise similarity of stored vectors: their cosine, or MiniLM's cosine if it is higher.

    e5 separates texts with different dates or names well, MiniLM hardly, so MiniLM's cosine shows which statement may
    replace another. For vectors of other embedders only the cosine is used.
    """
    whole: Vectors = some @ others.T
    if some.shape[1] != TwoEncoders.dimension:
        return whole
    left, right = (_of_length_one(vectors[:, ENGLISH]) for vectors in (some, others))
    return np.maximum(whole, left @ right.T)


def _of_length_one(vectors: Vectors) -> Vectors:
    """Normalize vectors. Vectors that are almost zero, of texts that are not English, stay almost zero."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-2)
