"""How a model is run in this process: onnxruntime, on few threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memoryhub.llm.errors import EmbedderNotInstalled

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


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
