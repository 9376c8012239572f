"""Whether a message asks for an overview, and of what: a softmax over the message's multilingual vector. Pure.

Fitted by tests/bench/fit_overview.py; docs/recall.md has the figures.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FILE = Path(__file__).with_name("overview.npz")
NONE, SELF, HERE, TOPIC = "none", "self", "here", "topic"
CLASSES = (
    NONE,
    SELF,
    HERE,
    TOPIC,
)  # of the rows of the head; about the person, the workspace, part of either
STEEP = 3.0  # the head is fitted to vectors of this length
AT = 0.7  # the probability from which on a message asks for an overview


@lru_cache(maxsize=1)
def fitted() -> Array:
    with np.load(FILE) as file:
        return file["head"].astype(np.float32)


def kind_of(vector: Array, head: Array | None = None) -> str:
    """SELF, HERE or TOPIC, or "" if the message asks for no overview. ``vector``: the e5 part of the message's."""
    head = fitted() if head is None else head
    logits = STEEP * head[:, :-1] @ vector / np.linalg.norm(vector) + head[:, -1]
    share = np.exp(logits - logits.max())
    if share[0] > (1 - AT) * share.sum():
        return ""
    return CLASSES[1 + int(share[1:].argmax())]
