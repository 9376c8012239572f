"""Asking again in other words, and earlier versions of a conversation, over REST."""

from __future__ import annotations

from django.http import StreamingHttpResponse
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from chat.access import get_message
from chat.api.serializers import EditBody, MessageJson
from chat.api.turns import load, messages_json, turn_once
from chat.api.views import MESSAGE_PAGE, TURN_ANSWERS, MessageView
from chat.turns.retry import edit_message
from chat.turns.versions import bring_back
from workspaces.models import Role
from workspaces.rest.docs import documented_under
from workspaces.rest.idempotency import ONCE

documented = documented_under("messages")


class MessageEdit(MessageView):
    @documented("messages_edit", TURN_ANSWERS, body=EditBody, headers=ONCE)
    def post(self, request: Request, chat_id: str, message_id: str) -> Response | StreamingHttpResponse:
        """Edit a message and send it again.

        One turn in the place of the message, which is one you wrote. As it was, with all that followed it, it becomes
        an earlier version of the new message. Memories that came of it stay.
        """
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
    @documented("messages_versions", MESSAGE_PAGE)
    def get(self, request: Request, chat_id: str, message_id: str) -> Response:
        """List the earlier versions of a message.

        Oldest first: of a question each version with all that followed it then, of an answer each answer alone.
        Messages of one version have the same `superseded_at`.
        """
        message = self.message(chat_id, message_id, Role.VIEWER)
        return self.page(
            message.supersedes.select_related("author", "reply_to", "superseded_by"),
            keys=["id"],
            list_name=f"versions of {message.public_id}",
            shape=lambda rows: messages_json(rows, self.person),
        )


class MessageRestore(MessageView):
    @documented("messages_restore", MessageJson, errors=[409])
    def post(self, request: Request, chat_id: str, message_id: str) -> Response:
        """Bring an earlier version back.

        Any message of the version; you get its first one. What stands in its place becomes an earlier version in turn.
        409 while an answer is being written, for an answer from whose successor the conversation went on, and for a
        version of a version: bring that one back first.
        """
        message = self.message(chat_id, message_id)
        first = bring_back(message, by=self.person, now=timezone.now())
        return Response(messages_json([load(first)], self.person)[0])
