"""Responses for a turn (a user's message and its answer): JSON when it is finished, or server-sent events before."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from asgiref.sync import async_to_sync, sync_to_async
from django.http import StreamingHttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework import status
from rest_framework.response import Response

from chat.access import get_message
from chat.answer_steps import calls_of, steps_of
from chat.api.serializers import MessageJson
from chat.live_answers import show_abandoned
from chat.models import Chat, Message, MessageStatus
from chat.turns.services import Turn
from chat.turns.sources import sources_for_reader
from chat.turns.stream import follow_for
from memories.recalling.recall import receipts_for
from memoryhub.database.queries import release_connection
from memoryhub.errors import NotFound
from workspaces.api.base import ApiView
from workspaces.api.idempotency import Note, StillRunning
from workspaces.models import User
from workspaces.views.event_streams import EventStream, StreamSlot


def messages_json(messages: list[Message], user: User) -> list[Any]:
    """Return messages as JSON, with the receipts, tool calls, steps and sources that this user may see.

    An answer whose process died is shown as interrupted. At most seven queries, and one for each such answer.
    """
    show_abandoned(messages, now=timezone.now())
    receipts = receipts_for([message.public_id for message in messages], user)
    keys = [message.pk for message in messages]
    context = {"receipts": receipts, "calls": calls_of(keys, user), "steps": steps_of(messages, user)}
    context["sources"] = sources_for_reader(keys, user)
    return list(MessageJson(messages, many=True, context=context).data)


def turn_once(
    view: ApiView, begin: Callable[[], Turn], *, chat: Chat, stream: bool
) -> Response | StreamingHttpResponse:
    """Start a turn by calling ``begin``, and return its response, as server-sent events with ``stream``.

    If the request repeats an ``Idempotency-Key``, the response is for the turn that the first request started.
    """
    slot = StreamSlot(view.person) if stream else None  # may refuse the request, so it comes first

    def reload(note: Note) -> Message:
        answer = get_message(view.person, chat.public_id, note["answer"])[1]
        if slot is None and answer.status == MessageStatus.STREAMING:
            raise StillRunning
        return answer

    answer = view.once(
        lambda: begin().answer, keep=lambda answer: {"answer": answer.public_id}, reload=reload
    )
    return turn_response(answer, view.person, slot=slot)


def turn_response(
    answer: Message, user: User, *, slot: StreamSlot | None
) -> Response | StreamingHttpResponse:
    """Return the response for a turn that has begun: events if a stream ``slot`` is given, else a 201 when it is
    finished.

    The answer is written even if the client disconnects.
    """
    if slot is not None:
        return EventStream(_events(answer, user), slot=slot)
    question, chat_id = answer.reply_to, answer.chat.public_id
    release_connection()
    async_to_sync(_wait)(answer.public_id, chat_id, user)
    # Checks access again, since the member may have been removed.
    answer = get_message(user, chat_id, answer.public_id)[1]
    answer.reply_to = question
    return Response(_turn_json(answer, user), status=status.HTTP_201_CREATED)


def _turn_json(answer: Message, user: User) -> dict[str, Any]:
    assert answer.reply_to is not None, "an answer replies to a message"
    message_json, answer_json = messages_json([answer.reply_to, answer], user)
    return {"message": message_json, "answer": answer_json}


def load(answer: Message) -> Message:
    """Return the answer as it is stored now. Raises NotFound if it was deleted while it was being written."""
    rows = Message.objects.select_related("author", "imported_by", "reply_to", "chat")
    stored = rows.filter(pk=answer.pk).first()
    if stored is None:
        raise NotFound(_("This answer no longer exists."))
    return stored


async def _wait(answer_id: str, chat_id: str, user: User) -> None:
    async with aclosing(follow_for(user, chat_id, answer_id)) as events:
        async for event in events:
            if event.kind in {"done", "error"}:
                return


async def _events(answer: Message, user: User) -> AsyncGenerator[str, None]:
    yield _sse("message", await _reading(_begun_json)(answer, user))
    async with aclosing(follow_for(user, answer.chat.public_id, answer.public_id)) as events:
        async for event in events:
            if event.kind != "done":
                yield _sse(event.kind, event.data)
            if event.kind == "error":
                return
    done = await _reading(_final)(answer, user)
    if done["receipt"]:
        yield _sse("receipt", done["receipt"])
    yield _sse("done", done)


def _begun_json(answer: Message, user: User) -> dict[str, Any]:
    """Return the JSON for the first event of a stream: the message and the answer so far.

    For the first attempt this takes no query: its tool calls, steps and receipt follow as events.
    """
    is_first = answer.status == MessageStatus.STREAMING and answer.attempt == 1
    if not is_first or answer.is_abandoned(timezone.now()):
        return _turn_json(answer, user)
    nothing: dict[str, Any] = {"receipts": {}, "calls": {}, "steps": {}, "sources": {}}
    message_json, answer_json = MessageJson([answer.reply_to, answer], many=True, context=nothing).data
    return {"message": message_json, "answer": answer_json}


def _final(answer: Message, user: User) -> Any:
    return messages_json([get_message(user, answer.chat.public_id, answer.public_id)[1]], user)[0]


def _reading(function: Any) -> Any:
    """Wrap a function that reads the database, so that it runs in a thread and releases its connection afterwards."""

    def read(*args: Any) -> Any:
        try:
            return function(*args)
        finally:
            release_connection()

    return sync_to_async(read)


def _sse(event: str, data: object) -> str:
    """Return one server-sent event. Its JSON is ASCII, so it is valid even with half of a surrogate pair."""
    return f"event: {event}\ndata: {json.dumps(data)}\n\n"
