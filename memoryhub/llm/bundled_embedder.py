"""The default embedder: MiniLM, strong in English, and e5, for a hundred languages, combined in one vector.

Their vectors are concatenated, so that the cosine of two texts is a fixed weighted mean of both cosines
(docs/recall.md). MiniLM's part is scaled by how much of a text is English, because its vectors of other languages are
noise. A stored text has one more component that restores its length to 1; in questions it is 0. So no language is
preferred.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memoryhub.llm import bert
from memoryhub.llm.base import Vectors, normalised
from memoryhub.llm.bert import MATRICES, VECTORS, Layer, in_batches, open_session
from memoryhub.llm.e5 import MultilingualEncoder, english_of, meaning_of
from memoryhub.llm.errors import EmbedderError, EmbedderNotInstalled
from memoryhub.llm.onnx_graph import model_of
from memoryhub.model_files import EMBEDDER, TOKENIZER

if TYPE_CHECKING:
    from tokenizers import Tokenizer


# The embedder all-MiniLM-L6-v2 in eight bits, which runs inside this process. A short text takes about 5 ms.
# Loading takes 300 ms and happens with the first text, not at import.

DIMENSION = 384


class OnnxEmbedder:
    name = "all-MiniLM-L6-v2-int8"
    keeps_recent = True  # recent vectors are cached, so embedding a text in advance saves time

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: tuple[bert.Encoder, Tokenizer] | None = None
        self._recent = RecentTexts(self._infer, DIMENSION)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text, in order. Implements ``Embedder.embed``."""
        return self._recent.embed(texts)

    embed_question = embed

    def _load(self) -> tuple[bert.Encoder, Tokenizer]:
        with self._lock:
            if self._loaded is None:
                self._loaded = _load_model()
            return self._loaded

    def _infer(self, texts: Sequence[str]) -> Vectors:
        encoder, tokenizer = self._load()
        try:
            encodings = tokenizer.encode_batch(list(texts))
            pooled = np.empty((len(texts), DIMENSION), dtype=np.float32)
            for batch in in_batches([len(encoding.ids) for encoding in encodings]):
                ids = [encodings[at].ids for at in batch]
                for at, own, states in zip(batch, ids, encoder.run(ids)[0], strict=True):
                    pooled[at] = states[: len(own)].mean(axis=0)  # without padding
        except Exception as error:  # errors of onnxruntime and tokenizers have no common base class
            raise EmbedderError(detail=str(error)) from error
        return normalised(pooled, count=len(texts))


def _load_model() -> tuple[bert.Encoder, Tokenizer]:
    from tokenizers import Tokenizer  # slow to import, and most processes never embed

    with bert.file_errors():
        model, vocabulary = MiniLM(EMBEDDER.checked_path()), TOKENIZER.content()
    session = open_session(model_of(model.layers(), rounded=False))
    try:
        tokenizer = Tokenizer.from_buffer(vocabulary)
    except Exception as error:  # the library raises plain exceptions
        raise EmbedderNotInstalled(detail=str(error)) from error
    tokenizer.enable_truncation(256)  # the model's training length
    tokenizer.no_padding()  # the file pads all texts to 128 tokens; here each batch is padded to its longest text
    return bert.Encoder(model.words, model.places(), model.evening(), session), tokenizer


# The ONNX file of all-MiniLM-L6-v2, with weights in eight bits. Its own graph expands all of them to 32 bits on load
# and takes nine times the file's memory. So only the weights are read, for the graph of `memoryhub.llm.onnx_graph`,
# which returns the same vectors.

LAYERS = 6
_TYPES = {1: np.float32, 3: np.int8}  # ONNX data types that the weights have
_GRAPH, _TENSOR = 7, 5  # protobuf field numbers of a model and of a graph
_SHAPE, _TYPE, _NAME, _RAW = 1, 2, 8, 9  # protobuf field numbers of a tensor
_WORDS, _PLACES = (f"inner.embeddings.{name}_embeddings.weight" for name in ("word", "position"))
_NAMES = dict(
    zip(
        VECTORS,
        ("attention.output.dense.bias", "attention.output.LayerNorm.weight", "attention.output.LayerNorm.bias",
         "intermediate.dense.bias", "output.dense.bias", "output.LayerNorm.weight", "output.LayerNorm.bias"),
        strict=True,
    )
)  # fmt: skip


class MiniLM:
    def __init__(self, path: Path) -> None:
        """Map the file instead of reading it, since a text needs few rows of the word table, which is half of it."""
        raw: NDArray[np.uint8] = np.memmap(path, np.uint8, "r")
        graph = next(value for field, value in _fields(raw.data) if field == _GRAPH)
        tensors = (_tensor(value) for field, value in _fields(graph) if field == _TENSOR)
        self._tensors: dict[str, NDArray[Any]] = {name: numbers for name, numbers in tensors if name}
        self._matrices = [name for name in self._tensors if name.startswith("val_") and name.endswith("_q")]

    def words(self, ids: NDArray[np.int64]) -> Vectors:
        return self._plain(_WORDS, ids)

    def places(self) -> Vectors:
        """Return MiniLM's position embeddings plus the token type embedding of a single text."""
        token_type: Vectors = self._tensors["inner.embeddings.token_type_embeddings.weight"][0]
        return self._plain(_PLACES) + token_type

    def evening(self) -> tuple[Vectors, Vectors]:
        own = "inner.embeddings.LayerNorm."
        return self._tensors[own + "weight"], self._tensors[own + "bias"]

    def layers(self) -> Iterator[Layer]:
        for number in range(LAYERS):
            own = f"inner.encoder.layer.{number}."
            names = self._matrices[number * len(MATRICES) :]
            matrices = {
                short: (self._tensors[name], self._tensors[name[:-1] + "scale"].ravel())
                for short, name in zip(MATRICES, names, strict=False)
            }
            bias = [self._tensors[f"{own}attention.self.{name}.bias"] for name in ("query", "key", "value")]
            vectors = {short: self._tensors[own + name] for short, name in _NAMES.items()}
            yield Layer(matrices, {"qkv.b": np.concatenate(bias), **vectors})

    def _plain(self, name: str, rows: Any = slice(None)) -> Vectors:
        scale: Vectors = self._tensors[name + "_scale"][rows]
        return self._tensors[name + "_q"][rows].astype(np.float32) * scale


def _tensor(message: memoryview) -> tuple[str, NDArray[Any]]:
    """Parse a tensor. Return its name and numbers; the name is empty if its data type is not that of weights."""
    shape: list[int] = []
    kind, name, raw = 0, "", memoryview(b"")
    for field, value in _fields(message):
        if field == _SHAPE:
            shape.append(value)
        elif field == _TYPE:
            kind = value
        elif field == _NAME:
            name = bytes(value).decode()
        elif field == _RAW:
            raw = value
    return (name, np.frombuffer(raw, _TYPES[kind]).reshape(shape)) if kind in _TYPES else ("", np.empty(0))


def _fields(message: memoryview) -> Iterator[tuple[int, Any]]:
    """Yield the number and value (integer or bytes) of each field of a protobuf message."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, at = _varint(message, at)  # the field's value, or the length of its value in bytes
        if key & 7:
            yield key >> 3, message[at : at + number]
            at += number
        else:
            yield key >> 3, number


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (message[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if message[at - 1] < 128:
            return number, at


CACHED_TEXTS = 256  # because a query is often embedded again a moment later


class RecentTexts:
    """A cache of recent texts' vectors. One ``infer`` runs at a time, so requests at once compute a vector once."""

    def __init__(self, infer: Callable[[Sequence[str]], Vectors], dimension: int) -> None:
        self._infer = infer
        self._dimension = dimension
        self._lock = threading.Lock()
        self._inferring = threading.Lock()
        self._recent: OrderedDict[str, Vectors] = OrderedDict()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector per text, in order. Raises the errors of ``infer``."""
        known = self._known(texts)
        if len(known) < len(set(texts)):
            with self._inferring:
                known |= self._known(texts)
                missing = [text for text in dict.fromkeys(texts) if text not in known]
                if missing:
                    vectors = self._infer(missing)
                    known |= dict(zip(missing, vectors, strict=True))
                    self._keep(missing, vectors)
        if not texts:
            return np.empty((0, self._dimension), dtype=np.float32)
        return np.stack([known[text] for text in texts])

    def _known(self, texts: Sequence[str]) -> dict[str, Vectors]:
        with self._lock:
            known = {text: self._recent[text] for text in texts if text in self._recent}
            for text in known:
                self._recent.move_to_end(text)
        return known

    def _keep(self, texts: Sequence[str], vectors: Vectors) -> None:
        with self._lock:
            for text, vector in zip(texts[-CACHED_TEXTS:], vectors[-CACHED_TEXTS:], strict=True):
                self._recent[text] = vector.copy()  # a view would keep its whole batch in memory
            while len(self._recent) > CACHED_TEXTS:
                self._recent.popitem(last=False)


E5_WEIGHS = 2.5  # weight of e5's cosine relative to MiniLM's
LENGTH = DIMENSION  # length of each part
ENGLISH, MULTILINGUAL = slice(0, DIMENSION), slice(DIMENSION, 2 * DIMENSION)  # position of each part


class TwoEncoders:
    name = "minilm-e5-small"
    keeps_recent = True  # recent vectors are cached, so embedding a text in advance saves time
    dimension = 2 * DIMENSION + 1

    def __init__(self) -> None:
        self.english = OnnxEmbedder()
        self.multilingual = MultilingualEncoder()
        self._stored = RecentTexts(self._infer_stored, self.dimension)
        self._asked = RecentTexts(self._infer_asked, self.dimension)
        # Its thread starts with the first text.
        self._beside = ThreadPoolExecutor(max_workers=1, thread_name_prefix="minilm")

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per text, in order, for texts to store. Implements ``Embedder.embed``."""
        return self._stored.embed(texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return vectors of questions. Compare them only with vectors of stored texts, not with each other."""
        return self._asked.embed(texts)

    def embed_question(self, texts: Sequence[str]) -> Vectors:
        """Implement ``Embedder.embed_question``. Only MiniLM embeds the variants: e5's vectors would hardly differ."""
        self._start_minilm(texts)
        vectors = self._asked.embed(texts[:1]).repeat(len(texts), axis=0)
        if len(texts) > 1 and _is_latin(texts[0]):
            share = np.linalg.norm(vectors[0, ENGLISH])
            vectors[1:, ENGLISH] = share * self.english.embed(texts[1:])
        return vectors

    def _infer_stored(self, texts: Sequence[str]) -> Vectors:
        self._start_minilm(texts)
        vectors = self.multilingual.encode(texts, "passage: ")
        share = _english(texts, vectors)
        return self._laid(texts, vectors, share, np.sqrt(1 - share**2))

    def _infer_asked(self, texts: Sequence[str]) -> Vectors:
        self._start_minilm(texts)
        vectors = self.multilingual.encode(texts, "query: ")
        return self._laid(texts, vectors, _english(texts, vectors), np.zeros(len(texts), dtype=np.float32))

    def _start_minilm(self, texts: Sequence[str]) -> None:
        """Start MiniLM beside e5 in another thread. Its errors occur again when this thread requests the vectors."""
        if latin := [text for text in texts if _is_latin(text)][:CACHED_TEXTS]:
            self._beside.submit(self.english.embed, latin)

    def _laid(self, texts: Sequence[str], vectors: Vectors, share: Vectors, rest: Vectors) -> Vectors:
        english = np.zeros((len(texts), DIMENSION), dtype=np.float32)
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

    Texts that differ only in a date or name are very similar to MiniLM, but not to e5. MiniLM's cosine therefore shows
    which statement may replace another. For vectors of other embedders only the cosine is used.
    """
    whole: Vectors = some @ others.T
    if some.shape[1] != TwoEncoders.dimension:
        return whole
    left, right = (_normalised(vectors[:, ENGLISH]) for vectors in (some, others))
    return np.maximum(whole, left @ right.T)


def _normalised(vectors: Vectors) -> Vectors:
    """Return unit vectors. Vectors close to zero, of texts that are not English, stay close to zero."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-2)
