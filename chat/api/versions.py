"""Asking again in other words, and earlier versions of a conversation, over REST."""

from __future__ import annotations

from django.http import StreamingHttpResponse
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from chat.access import get_message
from chat.api.bodies import EditBody
from chat.api.serializers import MessageJson
from chat.api.turns import load, messages_json, turn_once
from chat.api.views import MESSAGE_PAGE, TURN_ANSWERS, MessageView
from chat.turns.earlier_versions import bring_back
from chat.turns.retry import edit_message
from workspaces.api.idempotency import ONCE
from workspaces.api.schema import documented_under
from workspaces.models import Role

documented = documented_under("messages")


class MessageEdit(MessageView):
    @documented("messages_edit", TURN_ANSWERS, body=EditBody, headers=ONCE)
    def post(self, request: Request, chat_id: str, message_id: str) -> Response | StreamingHttpResponse:
        """Edit a message and send it again.

        Replaces a message that you wrote and begins a new turn. The old message and everything after it become an
        earlier version of the new one. Memories that came from them stay.
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

        Oldest first. For a question, each version includes everything that followed it at the time; for an answer, each
        version is that answer alone. Messages of the same version have the same `superseded_at`.
        """
        message = self.message(chat_id, message_id, Role.VIEWER)
        return self.page(
            message.supersedes.readable_by(self.person).select_related(
                "author", "imported_by", "reply_to", "superseded_by"
            ),
            keys=["id"],
            list_name=f"versions of {message.public_id}",
            shape=lambda rows: messages_json(rows, self.person),
        )


class MessageRestore(MessageView):
    @documented("messages_restore", MessageJson, errors=[409])
    def post(self, request: Request, chat_id: str, message_id: str) -> Response:
        """Bring an earlier version back.

        Name any message of the version; you get its first one. What stands in its place now becomes an earlier version.
        409 while an answer is being written, if the conversation went on from a later answer, and for a version inside
        another version: bring that one back first.
        """
        message = self.message(chat_id, message_id)
        first = bring_back(message, by=self.person, now=timezone.now())
        return Response(messages_json([load(first)], self.person)[0])
