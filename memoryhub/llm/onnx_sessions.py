"""How a model is run in this process: onnxruntime, on few threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from memoryhub.llm.errors import EmbedderNotInstalled

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


# A text at a time wastes the core on short ones, and on long ones any more than two: docs/recall.md has the figures.
# Nor does more memory than this come to be kept by the runtime.
MOST_TEXTS = 8
MOST_PIECES = 256  # of a batch, with what its shorter texts are filled up with


def in_batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The places of texts of so many pieces, those of similar length together: filling up costs as much as text."""
    batch: list[int] = []
    for at in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) == MOST_TEXTS or lengths[at] * (len(batch) + 1) > MOST_PIECES):
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch


def open_session(model: bytes, threads: int) -> InferenceSession:
    """Raises EmbedderNotInstalled, where there is no memory for it, too."""
    import onnxruntime  # heavy; a process that never embeds must not pay for it

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Waiting threads must not burn the cores that the chat model and the database need.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # no memory for it; the library raises its own bare exceptions
        raise EmbedderNotInstalled(detail=str(error)) from error
