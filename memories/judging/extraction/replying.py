"""Whether a short reply states something that lasts, together with the assistant's question before it."""

from __future__ import annotations

import numpy as np

from memories.judging.encoder import Encoder
from memories.judging.extraction.clauses import read
from memories.judging.extraction.keeping import NETS, head, scaled
from memories.judging.extraction.sentences import sentences
from memories.judging.nets import logits
from memoryhub.llm.base import Vectors

LEAST = 0.6
LONGEST = 120  # characters of a question, and of a reply, that are looked at
_ASKS = ("?", "\uff1f", "\u061f")


def question_of(before: str) -> str:
    """The question that the assistant's message ends with; empty where it ends otherwise."""
    asked = list(sentences(before))
    if not asked:
        return ""
    start, end, quotes = asked[-1]
    question = before[start:end].strip()
    is_last = not before[end:].strip() and not quotes
    return question if is_last and question.endswith(_ASKS) and len(question) <= LONGEST else ""


def states_fact(question: str, answer: str, encoder: Encoder) -> float:
    """The chance of it. One reading, some milliseconds. Raises EmbedderError."""
    fitted = head()
    row = measure(question, answer, encoder, fitted)
    nets = {name: fitted[f"reply_{name}"] for name in NETS}
    return float((1 / (1 + np.exp(-logits(row[None], nets)))).mean())


def statement(question: str, answer: str) -> str:
    return f"{question} {answer}"


def measure(question: str, answer: str, encoder: Encoder, fitted: dict[str, Vectors]) -> Vectors:
    """The means of the question and of the reply, which are read together, and the reply's first and last state."""
    passage = read(statement(question, answer), encoder)
    own = scaled(passage.vectors, fitted)
    asked = sum(a < len(question) for a, _b in passage.places)
    said = own[asked:] if asked < len(own) else own[-1:]
    row: Vectors = np.concatenate([own[:asked].mean(axis=0), said.mean(axis=0), said[0], said[-1]])
    return row
