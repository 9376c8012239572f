"""Classifier of messages that ask for an overview, and of what: a softmax over the message's multilingual vector.

Does not access the database. Fitted by tests/bench/fit_overview.py; docs/recall.md has the figures.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FILE = Path(__file__).with_name("overview.npz")
NONE, SELF, HERE, TOPIC = "none", "self", "here", "topic"
# Rows of the head: no overview, or one of the person, the workspace or a topic.
CLASSES = (NONE, SELF, HERE, TOPIC)
STEEP = 3.0  # length of the vectors that the head was fitted to
AT, SURE = 0.75, 0.95  # minimum probability that a message asks for an overview, usually and in doubt


class Fitted(NamedTuple):
    head: Array  # (4, 385): CLASSES over an e5 vector, the constant last
    frame: Array  # the mean of messages that ask for an overview of some topic
    statement: Array  # the mean of memories


@lru_cache(maxsize=1)
def fitted() -> Fitted:
    with np.load(FILE) as file:
        return Fitted(*(file[name].astype(np.float32) for name in Fitted._fields))


def kind_of(vector: Array, head: Array | None = None, *, in_doubt: bool = False) -> str:
    """Return SELF, HERE or TOPIC, or "" if the message asks for no overview.

    ``vector`` is the e5 part of the message's vector. ``in_doubt`` requires a higher probability, because a single
    memory answers the message or the message seems to ask for nothing.
    """
    head = fitted().head if head is None else head
    logits = STEEP * head[:, :-1] @ vector / np.linalg.norm(vector) + head[:, -1]
    share = np.exp(logits - logits.max())
    if share[0] > (1 - (SURE if in_doubt else AT)) * share.sum():
        return ""
    return CLASSES[1 + int(share[1:].argmax())]
