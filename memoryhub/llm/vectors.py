"""The check every embedder's output passes before anyone sees it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from memoryhub.llm.base import Vectors
from memoryhub.llm.errors import EmbedderBadReply


def normalised(rows: ArrayLike, *, count: int) -> Vectors:
    """`rows` as float32 unit vectors; EmbedderBadReply unless they are `count` usable vectors of one size."""
    try:
        vectors = np.asarray(rows, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise EmbedderBadReply(detail=f"not a table of numbers: {error}") from error
    if vectors.ndim != 2 or vectors.shape[0] != count or vectors.shape[1] == 0:
        raise EmbedderBadReply(detail=f"expected {count} vectors, got shape {vectors.shape}")
    if not np.isfinite(vectors).all():
        raise EmbedderBadReply(detail="a vector contains NaN or infinity")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or (lengths < 1e-12).any():
        raise EmbedderBadReply(detail="a vector has no direction (its length is zero or infinite)")
    unit: Vectors = (vectors / lengths).astype(np.float32)
    return unit
