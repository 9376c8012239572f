"""Forgetting a chat for good, over REST."""

from __future__ import annotations

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from chat.access import get_chat
from chat.chats.actions import require_own
from chat.chats.forget_chat import forget_chat
from memories.api.forgetting import ReportJson, report_json
from workspaces.api.base import ApiView
from workspaces.api.fields import Body, Flag
from workspaces.api.schema import documented_under
from workspaces.models import Role

documented = documented_under("chats")


class ForgetChatBody(Body):
    example = {"memories": True}
    memories = Flag(default=False, help_text="true: also those that came from it and are yours to forget.")


class ChatForget(ApiView):
    @documented("chats_forget", ReportJson, body=ForgetChatBody, fresh=True)
    def post(self, request: Request, chat_id: str) -> Response:
        """Forget a chat for good.

        Its creator or an owner of the workspace may do this, even once the chat is deleted. Removes its messages and
        the notes about them. Memories that stay lose their excerpt and no longer say where they came from. This cannot
        be undone.
        """
        chat = get_chat(self.person, chat_id, need=Role.EDITOR, include_deleted=True)
        body = self.body(ForgetChatBody)
        require_own(chat, self.person)
        self.require_fresh_password()
        report = forget_chat(chat, by=self.person, now=timezone.now(), memories=body["memories"])
        return Response(report_json(report))
