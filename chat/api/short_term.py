"""The running summary of a chat, over REST."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chat.access import get_chat
from chat.models import SUMMARY_LENGTH, ShortTermMemory
from chat.prompting.other_chats import live_memory
from chat.prompting.short_term import set_summary
from workspaces.api.base import ApiView
from workspaces.api.fields import Body, Moment, Text
from workspaces.api.schema import documented_under
from workspaces.api.serializers import PersonJson
from workspaces.models import Role

documented = documented_under("chats")


class ShortTermJson(serializers.Serializer[Any]):
    example = {"summary": "Plans a walk in the hills on May 1 with Anna; the train is still open."}
    summary = serializers.CharField(help_text="Empty: there is none, or it has expired.")
    summarised_by = PersonJson(allow_null=True, help_text="Who wrote it; null: the model, or nobody.")
    summarised_at = Moment(allow_null=True)
    expires_at = Moment(allow_null=True, help_text="When it is over; every turn with memory on puts it off.")


class ShortTermChanges(Body):
    example = {"summary": "Plans a walk in the hills on May 1 with Anna; the train is still open."}
    summary = Text(max_length=SUMMARY_LENGTH, allow_blank=True, help_text="Empty: takes it away.")


class ShortTermView(ApiView):
    @documented("short_term_get", ShortTermJson)
    def get(self, request: Request, chat_id: str) -> Response:
        """Read the running summary of a chat.

        What the chat is about right now. The model keeps it up to date if it can call tools, and other recent chats are
        told about it.
        """
        found = live_memory(get_chat(self.person, chat_id), self.person, now=timezone.now())
        return Response(ShortTermJson(found or ShortTermMemory()).data)

    @documented("short_term_update", ShortTermJson, body=ShortTermChanges, errors=[409])
    def patch(self, request: Request, chat_id: str) -> Response:
        """Write the running summary of a chat.

        Replaces the current summary. 409 in a temporary chat, which keeps nothing.
        """
        chat = get_chat(self.person, chat_id, need=Role.EDITOR)
        body = self.body(ShortTermChanges)
        row = set_summary(chat, body["summary"], by=self.person, now=timezone.now())
        return Response(ShortTermJson(row).data)
