"""Asking again in other words, and earlier versions of a conversation, over REST."""

from __future__ import annotations

from django.http import StreamingHttpResponse
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from chat.access import get_message
from chat.api import examples
from chat.api.serializers import EditBody, MessageJson
from chat.api.turns import load, messages_json, turn_once
from chat.api.views import MESSAGE_PAGE, TURN_ANSWERS, MessageView
from chat.turns.retry import edit_message
from chat.turns.versions import bring_back
from workspaces.models import Role
from workspaces.rest.docs import (
    answer_example,
    documented,
    page_example,
    request_example,
)
from workspaces.rest.idempotency import ONCE
from workspaces.rest.paging import PageQuery, paged

SET_ASIDE = {"superseded_by": "msg_9dLp2TzB8mYw1RsX9vLcHn1B", "superseded_at": "2026-03-07T10:32:00.000000Z"}
EARLIER = {**examples.MESSAGE, **SET_ASIDE, "id": "msg_4kQx2TzB8mYw1RsX9vLcHn8G"}


class MessageEdit(MessageView):
    @documented(
        "Edit a message and send it again",
        tag="messages",
        operation="messages_edit",
        answers=TURN_ANSWERS,
        headers=ONCE,
        body=EditBody,
        errors=[404, 409],
        writes=True,
        description="One turn in the place of the message, which is one you wrote. As it was, with all that followed "
        "it, it becomes an earlier version of the new message. Memories that came of it stay.",
        examples=[
            request_example("In other words", {"content": "When is the deadline?", "stream": False}),
            answer_example("The turn", examples.TURN, code=201),
        ],
    )
    def post(self, request: Request, chat_id: str, message_id: str) -> Response | StreamingHttpResponse:
        chat, message = get_message(self.person, chat_id, message_id, need=Role.EDITOR)
        body = self.body(EditBody)
        stream = body.pop("stream")
        return turn_once(
            self,
            lambda: edit_message(message, **body, by=self.person, now=timezone.now()),
            chat=chat,
            stream=stream,
        )


class MessageVersions(MessageView):
    @documented(
        "List the earlier versions of a message",
        tag="messages",
        operation="messages_versions",
        answers={200: MESSAGE_PAGE},
        query=PageQuery,
        errors=[404],
        description="Oldest first: of a question each version with all that followed it then, of an answer each "
        "answer alone. Messages of one version have the same `superseded_at`.",
        examples=[page_example(EARLIER)],
    )
    def get(self, request: Request, chat_id: str, message_id: str) -> Response:
        message = self.message(chat_id, message_id, Role.VIEWER)
        page = paged(
            request,
            message.supersedes.select_related("author", "reply_to", "superseded_by"),
            keys=["id"],
            descending=False,
            list_name=f"versions of {message.public_id}",
            shape=lambda rows: messages_json(rows, self.person),
        )
        return Response(page)


class MessageRestore(MessageView):
    @documented(
        "Bring an earlier version back",
        tag="messages",
        operation="messages_restore",
        answers={200: MessageJson},
        errors=[404, 409],
        writes=True,
        description="Any message of the version; you get its first one. What stands in its place becomes an earlier "
        "version in turn. 409 while an answer is being written, for an answer from whose successor the conversation "
        "went on, and for a version of a version: bring that one back first.",
        examples=[answer_example("Its first message", examples.MESSAGE)],
    )
    def post(self, request: Request, chat_id: str, message_id: str) -> Response:
        message = self.message(chat_id, message_id)
        first = bring_back(message, by=self.person, now=timezone.now())
        return Response(messages_json([load(first)], self.person)[0])
