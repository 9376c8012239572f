"""Reading replies. The library builds its objects from any JSON without looking, so this looks."""

from __future__ import annotations

from typing import Any

from memoryhub.llm.errors import ContentFiltered, EmbedderBadReply, ModelBadReply, ModelCut

EMPTY = "The model gave an empty answer."


class StreamedAnswer:
    """What was read of one streamed answer so far."""

    def __init__(self) -> None:
        self.has_begun = False
        self.has_text = False
        self.finish_reason: str | None = None

    def read(self, chunk: Any) -> str:
        """The text of one chunk."""
        self.has_begun = True
        choices = getattr(chunk, "choices", None)
        if not isinstance(choices, list):
            raise ModelBadReply(detail=f"a chunk without choices: {str(chunk)[:100]}")
        if not choices:  # usage figures, or Azure's filter results
            return ""
        delta = getattr(choices[0], "delta", None)
        text = getattr(delta, "content", None) or ""
        if not isinstance(text, str):
            raise ModelBadReply(detail=f"content is {type(text).__name__}")
        if getattr(delta, "refusal", None):
            raise ContentFiltered(detail=str(getattr(delta, "refusal", "")))
        self.finish_reason = getattr(choices[0], "finish_reason", None) or self.finish_reason
        self.has_text = self.has_text or bool(text)
        return text

    def finish(self) -> str:
        """Why the answer ended, once the stream has."""
        if not self.has_begun:
            raise ModelBadReply(detail="the reply was no stream of events")
        if self.finish_reason is None:
            raise ModelCut(detail="the stream ended without a finish_reason")
        _check_end(self.finish_reason, self.has_text)
        return self.finish_reason


def _check_end(finish_reason: str | None, has_text: bool) -> None:
    if finish_reason == "content_filter":
        raise ContentFiltered()
    if not has_text:
        raise ModelBadReply(EMPTY, detail=f"no text, finish_reason {finish_reason}")


def whole_text(reply: Any) -> str:
    try:
        choice = reply.choices[0]
        text, refusal = choice.message.content or "", getattr(choice.message, "refusal", None)
    except (AttributeError, TypeError, IndexError) as error:
        raise ModelBadReply(detail=f"no chat completion: {str(reply)[:200]}") from error
    if not isinstance(text, str):
        raise ModelBadReply(detail=f"content is {type(text).__name__}")
    if refusal:
        raise ContentFiltered(detail=str(refusal))
    _check_end(choice.finish_reason, bool(text))
    return text


def vectors_in_order(reply: Any, count: int) -> list[list[float]]:
    """Vectors in the order of the texts, which the server may not keep."""
    try:
        by_index = {item.index: item.embedding for item in reply.data}
        returned = len(reply.data)
    except (AttributeError, TypeError) as error:
        raise EmbedderBadReply(detail=f"no embeddings: {str(reply)[:200]}") from error
    if returned != count or set(by_index) != set(range(count)):
        raise EmbedderBadReply(detail=f"{returned} vectors for {count} texts, or numbered wrongly")
    return [by_index[index] for index in range(count)]
