"""Tools for fitting heads: cached encoder states, and the nets of memories/judging/encoder_interface.py."""

import pickle
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memories.judging.encoder_interface import Encoder, Read
from memoryhub.llm.base import Vectors

Net = tuple[Vectors, Vectors, Vectors, float]
RATE, DECAY, ROWS = 3e-3, 0.3, 256
READ = 256  # texts at once
# Of ``fit_classes``; chosen on held-out messages.
CLASSES_HIDDEN, CLASSES_STEPS, CLASSES_DROPPED, CLASSES_DECAY = 64, 4000, 0.3, 0.5
NAMES = ("inner", "inner_bias", "outer", "outer_bias")


class Adam:
    """Adam with decaying weights, and a rate that falls to zero over ``steps``.

    ``decays`` has a factor for each of the ``weights``, which ``step`` changes in place.
    """

    def __init__(self, weights: Sequence[Vectors], decays: Sequence[Any], steps: int) -> None:
        self._weights, self._decays, self._steps, self._done = weights, decays, steps, 0
        self._means, self._squares = ([np.zeros_like(each) for each in weights] for _ in range(2))

    def step(self, slopes: Sequence[Vectors]) -> None:
        self._done += 1
        rate = RATE * (1 - self._done / (self._steps + 1))
        parts = zip(self._weights, self._decays, slopes, self._means, self._squares, strict=True)
        for weight, decay, slope, mean, square in parts:
            mean += 0.1 * (slope - mean)
            square += 0.001 * (slope**2 - square)
            move = (mean / (1 - 0.9**self._done)) / (np.sqrt(square / (1 - 0.999**self._done)) + 1e-8)
            weight -= (rate * (move + decay * weight)).astype(np.float32)


def fit_net(given: Vectors, wanted: Vectors, seed: int, *, hidden: int, steps: int, dropped: float) -> Net:
    """Fit a net with one hidden layer by Adam with decaying weights.

    ``dropped`` is the share of the inputs that is zeroed, chosen again at each step: without it a net overfits.
    """
    chance = np.random.default_rng(seed)
    size = given.shape[1]
    begun = [chance.normal(0, (2 / size) ** 0.5, (size, hidden)), np.zeros(hidden)]
    begun += [chance.normal(0, hidden**-0.5, hidden), np.zeros(1)]
    weights = [each.astype(np.float32) for each in begun]
    adam = Adam(weights, [DECAY, 0, 0, 0], steps)
    for _ in range(steps):
        rows = chance.choice(len(given), ROWS)
        x, y = given[rows], wanted[rows]
        x = x * (chance.random(x.shape, dtype=np.float32) >= dropped) / (1 - dropped)
        inner = x @ weights[0] + weights[1]
        active = np.maximum(inner, 0)
        error = (1 / (1 + np.exp(-(active @ weights[2] + weights[3]))) - y) / len(x)
        back = np.outer(error, weights[2]) * (inner > 0)
        adam.step([x.T @ back, back.sum(axis=0), active.T @ error, error.sum(keepdims=True)])
    return weights[0], weights[1], weights[2], float(weights[3][0])


def fit_classes(given: Vectors, classes: Vectors, weights: Vectors) -> tuple[Vectors, Vectors]:
    """Fit a net with one hidden layer for several exclusive classes, as ``fit_net`` does.

    ``classes`` has a row of zeros and a one for each text, ``weights`` how often it is drawn. Both layers have their
    constants in the last row.
    """
    chance = np.random.default_rng(0)
    layers = [
        np.vstack([chance.normal(0, (2 / size) ** 0.5, (size, width)), np.zeros(width)]).astype(np.float32)
        for size, width in ((given.shape[1], CLASSES_HIDDEN), (CLASSES_HIDDEN, classes.shape[1]))
    ]
    # Constants do not decay.
    decays = [np.append(np.full(len(each) - 1, CLASSES_DECAY), 0)[:, None] for each in layers]
    adam = Adam(layers, decays, CLASSES_STEPS)
    share = weights / weights.sum()
    for _ in range(CLASSES_STEPS):
        rows = chance.choice(len(given), ROWS, p=share)
        x = given[rows] * (chance.random((ROWS, given.shape[1])) >= CLASSES_DROPPED) / (1 - CLASSES_DROPPED)
        x = _with_ones(x.astype(np.float32))
        inner = x @ layers[0]
        active = _with_ones(np.maximum(inner, 0))
        odds = active @ layers[1]
        odds = np.exp(odds - odds.max(axis=1, keepdims=True))
        error = (odds / odds.sum(axis=1, keepdims=True) - classes[rows]) / ROWS
        adam.step([x.T @ (error @ layers[1][:-1].T * (inner > 0)), active.T @ error])
    return layers[0], layers[1]


def _with_ones(rows: Vectors) -> Vectors:
    return np.hstack([rows, np.ones((len(rows), 1), np.float32)])


class Remembering:
    """An encoder with a cache of these texts, which ``save`` writes to ``file`` for the next run.

    Texts of one length are encoded together, which is faster.
    """

    def __init__(self, encoder: Encoder, texts: Iterable[str], file: Path | None = None) -> None:
        self.encoder, self.file = encoder, file
        is_saved = file is not None and file.exists()
        self.known: dict[str, Read] = pickle.loads(file.read_bytes()) if file and is_saved else {}
        self._read(texts)

    def _read(self, texts: Iterable[str]) -> None:
        order = sorted(set(texts) - self.known.keys(), key=len)
        for at in range(0, len(order), READ):
            part = order[at : at + READ]
            self.known |= zip(part, self.encoder.states(part), strict=True)

    def states(self, texts: Sequence[str]) -> list[Read]:
        self._read(texts)
        return [self.known[text] for text in texts]

    def save(self) -> None:
        if self.file is not None:
            self.file.write_bytes(pickle.dumps(self.known))


def together(nets: Sequence[Net]) -> dict[str, Vectors]:
    return {name: np.stack(parts) for name, parts in zip(NAMES, zip(*nets, strict=True), strict=True)}
