"""Small networks of one hidden layer, several of which were fitted and are asked together. Pure."""

import numpy as np

from memoryhub.llm.base import Vectors


def logits(given: Vectors, fitted: dict[str, Vectors]) -> Vectors:
    """What each net says of each row: (nets, rows)."""
    hidden = np.maximum(given @ fitted["inner"] + fitted["inner_bias"][:, None], 0)
    said: Vectors = np.einsum("mnh,mh->mn", hidden, fitted["outer"]) + fitted["outer_bias"][:, None]
    return said
