"""What is sent of chats and messages, as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from chat.models import MESSAGE_LENGTH, TITLE_LENGTH, ChatMark
from chat.models.steps import Mode
from chat.turns.answer_sources import MOST_CHOSEN
from memories.api.serializers import Confirmable
from memories.models.memory import CATEGORY_LENGTH, CONTENT_LENGTH
from workspaces.api.fields import Body, Choice, Flag, Text

MODES = [mode.value for mode in Mode]


class ChatChanges(Body):
    example: dict[str, Any] = {"title": "Plans"}
    title = Text(max_length=TITLE_LENGTH, required=False)
    agent_id = Text(
        max_length=32,
        allow_null=True,
        required=False,
        help_text="The assistant of the workspace that answers; null: none in particular.",
    )
    connection_id = Text(
        max_length=40,
        allow_null=True,
        required=False,
        help_text="The connection whose model answers; null: what the workspace has chosen; built-in: the "
        "configured one.",
    )
    memory_enabled = Flag(allow_null=True, required=False, help_text="null: each person's own default.")
    is_private = Flag(required=False, help_text="true: only you see it. Its creator's to say.")
    use_personal_memories = Flag(
        required=False,
        help_text="For you alone: true lets your personal memories be used in your turns here though others read them.",
    )


class MarkBody(Body):
    example: dict[str, Any] = {"mark": "pinned"}
    mark = Choice(["", *ChatMark.Kind.values], help_text="pinned, archived, or empty for neither.")


class ChatBody(ChatChanges):
    example: dict[str, Any] = {"title": "Deadlines", "memory_enabled": True}
    title = Text(max_length=TITLE_LENGTH, allow_blank=True, required=False)
    workspace_id = Text(max_length=32, required=False, help_text="Left out: your own workspace.")
    is_temporary = Flag(required=False, help_text="true: nothing is recalled, extracted or kept.")


class MessageBody(Body):
    example: dict[str, Any] = {"content": "When is the deadline?", "stream": False}
    content = Text(max_length=MESSAGE_LENGTH)
    memory_enabled = Flag(required=False, help_text="For this turn only. Left out: what the chat says.")
    stream = Flag(default=True, help_text="false: wait, and answer 201 with the whole turn.")
    documents = serializers.ListField(
        child=Text(max_length=32),
        max_length=MOST_CHOSEN,
        allow_null=True,
        required=False,
        help_text="Ids of the documents that the answer may draw on; `[]`: none. Left out or null: all of the "
        "workspace, where they matter to the question.",
    )
    mode = Choice(
        MODES,
        default=Mode.CHAT.value,
        help_text="deep_think: a plan before the answer and a check against memory after it; research: a run in the "
        "background whose report is the answer; each if the model can.",
    )


class EditBody(MessageBody):
    mode = Choice(
        MODES,
        required=False,
        help_text="How to answer. Left out: as the message was answered before.",
    )


class RetryBody(Body):
    example = {"stream": False}
    stream = Flag(default=True, help_text="false: wait, and answer 201 with the whole turn.")


class ChatMemoryBody(Confirmable):
    """``messageId`` is written as in the dashboard's API that this one follows."""

    example = {"content": "The project deadline is March 15, 2026"}
    at_least_one_of = ("messageId", "content")
    messageId = Text(max_length=32, required=False, help_text="The message to remember.")
    content = Text(max_length=CONTENT_LENGTH, required=False, help_text="Left out: the message's own text.")
    category = Text(max_length=CATEGORY_LENGTH, allow_null=True, allow_blank=True, required=False)
    synthesize = Flag(default=False, help_text="true: the model rewrites the text into one statement.")
