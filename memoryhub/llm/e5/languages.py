"""What of a vector is the language of its text: taken out, and read, so that a question finds what another tongue says.

Fitted by tests/bench/fit_languages.py on sentences in sixteen languages (docs/recall.md).
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from memoryhub.llm.base import Vectors

FILE = Path(__file__).with_suffix(".npz")
CENTRED = 0.8  # of the mean of all texts: all of it makes languages meet best, none finds best within one
STEEP, EDGE = 10.0, -0.2  # of the regression to 1 for English and -1 for the rest


class Fitted(NamedTuple):
    centre: Vectors  # (384,)
    directions: Vectors  # (15, 384), orthonormal: those in which sixteen languages' means differ
    english: Vectors  # (385,), the last added


@lru_cache(maxsize=1)
def fitted() -> Fitted:
    with np.load(FILE) as file:
        return Fitted(*(file[name] for name in Fitted._fields))


def meaning_of(vectors: Vectors) -> Vectors:
    """The vectors without their language and most of what all texts have in common; of length 1."""
    centre, directions, _ = fitted()
    rest = vectors - CENTRED * centre
    rest = rest - (rest @ directions.T) @ directions
    of_length_one: Vectors = rest / np.linalg.norm(rest, axis=1, keepdims=True)
    return of_length_one


def english_of(vectors: Vectors) -> Vectors:
    """How sure it is that each text is English, 0 to 1."""
    head = fitted().english
    sure: Vectors = 1 / (1 + np.exp(-STEEP * (vectors @ head[:-1] + head[-1] - EDGE)))
    return sure
