"""The JSON of chats and messages."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from chat.api.answer_parts import AnswerSourceJson, MessageErrorJson, StepJson, ToolCallJson
from chat.api.bodies import MODES
from chat.chats.chat_usage import usage_of
from chat.chats.marking import mark_of
from chat.chats.personal_memories import personal_in
from chat.models import Chat, ChatMark, Message, MessageStatus
from memories.api.serializers import MemoryJson, ReceiptJson, SavedMemoryJson
from memories.consent import vetoed
from memories.models import Receipt
from memoryhub.languages import translated
from workspaces.api.fields import Moment
from workspaces.api.schema import ID
from workspaces.api.serializers import PersonJson, shown_id
from workspaces.api.spending import BillJson, bill_json
from workspaces.models import User
from workspaces.spending.bill import Bill


class ChatJson(serializers.Serializer[Any]):
    example = {"id": f"chat_{ID}", "title": "Deadlines", "memory_enabled": True}
    id = serializers.CharField(source="public_id")
    workspace_id = serializers.CharField(source="workspace.public_id")
    title = serializers.CharField(help_text="Empty until it is named, by you or by its first message.")
    agent_id = serializers.CharField(
        source="agent.public_id",
        default=None,
        allow_null=True,
        help_text="The assistant that answers, or null.",
    )
    connection_id = serializers.SerializerMethodField(
        help_text="The connection whose model answers; null: what the workspace has chosen; built-in: the "
        "configured one."
    )
    memory_enabled = serializers.SerializerMethodField(
        help_text="The Memory chip: true, false, or null for each person's own default. Always false where the "
        "operator has switched automatic memory off."
    )
    is_private = serializers.BooleanField()
    is_temporary = serializers.BooleanField()
    created_by = PersonJson()
    imported = serializers.BooleanField(
        source="is_imported",
        read_only=True,
        help_text="Whether somebody else imported it under its creator's name.",
    )
    created_at = Moment()
    updated_at = Moment(source="active_at", help_text="When it was last written in.")

    def get_connection_id(self, chat: Chat) -> str | None:
        return shown_id(chat.connection)

    def get_memory_enabled(self, chat: Chat) -> bool | None:
        return False if vetoed() else chat.memory_enabled


class OneChatJson(ChatJson):
    """A chat as one of its readers stands in it."""

    read_by_others = serializers.BooleanField(
        read_only=True, help_text="Whether anybody but you may open it."
    )
    use_personal_memories = serializers.BooleanField(
        read_only=True,
        help_text="Whether your personal memories are used in your turns here: always where nobody else reads, else "
        "once you said so.",
    )
    mark = serializers.ChoiceField(
        ["", *ChatMark.Kind.values],
        read_only=True,
        help_text="pinned or archived in your own list of chats; empty: neither.",
    )
    usage = BillJson(
        read_only=True,
        help_text="What its answers took, those that were set aside and tried again among them.",
    )


def one_chat_json(chat: Chat, reader: User) -> dict[str, Any]:
    personal = personal_in(chat, reader)
    return {
        **ChatJson(chat).data,
        "read_by_others": personal.read_by_others,
        "use_personal_memories": personal.allowed,
        "mark": mark_of(chat, reader),
        "usage": bill_json(usage_of(chat)),
    }


class MatchJson(serializers.Serializer[Any]):
    example = {"text": "When is the deadline?", "highlights": [[12, 20]]}
    message_id = serializers.CharField()
    text = serializers.CharField(help_text="The part of the message around what was found.")
    highlights = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField(), min_length=2, max_length=2),
        help_text="Where in `text` what was found begins and ends, in characters.",
    )
    imported = serializers.BooleanField(
        source="is_imported", help_text="Whether somebody imported the message; it says who."
    )


class FoundChatJson(ChatJson):
    match = MatchJson(
        allow_null=True,
        read_only=True,
        help_text="Of a search: where it was said. null where only the title has it.",
    )


class MessageJson(serializers.Serializer[Any]):
    """Wants ``receipts``, by message id, and ``calls``, ``steps`` and ``sources``, by message key, in its context."""

    example: dict[str, Any] = {
        "id": f"msg_{ID}",
        "role": "assistant",
        "content": "Your project deadline is March 15, 2026.",
        "status": "done",
        "reply_to": "msg_9dLp2TzB8mYw1RsX9vLcHn1B",
        "model": "large-2",
    }
    id = serializers.CharField(source="public_id")
    # A pattern, since the schema names enums after their field, and "role" is a member's already.
    role = serializers.RegexField(r"^(user|assistant)$", help_text="user or assistant.")
    content = serializers.CharField()
    status = serializers.ChoiceField(choices=MessageStatus.choices)
    author = PersonJson(allow_null=True, help_text="null for answers.")
    imported = serializers.BooleanField(
        source="is_imported",
        read_only=True,
        help_text="Whether somebody imported these words under another person's name: they need not be that person's.",
    )
    imported_by = PersonJson(
        allow_null=True, read_only=True, help_text="Who imported them; null also once that person has left."
    )
    reply_to = serializers.SerializerMethodField(help_text="For answers: the id of the message answered.")
    model = serializers.CharField(help_text="For answers: the model that wrote it.")
    memory_enabled = serializers.BooleanField(help_text="Whether automatic memory was on in this turn.")
    error = serializers.SerializerMethodField(help_text="Why an answer failed, or null.")
    created_at = Moment()
    finished_at = Moment(allow_null=True)
    superseded_by = serializers.SerializerMethodField(
        help_text="For messages of an earlier version: the id of what took its place. Otherwise null."
    )
    superseded_at = Moment(allow_null=True, help_text="What was set aside at one time is one version.")
    receipt = serializers.SerializerMethodField(help_text="What the answer recalled, or null.")
    sources = serializers.SerializerMethodField(
        help_text="For answers: the passages of documents that the model was given, without those deleted since."
    )
    tool_calls = serializers.SerializerMethodField(
        help_text="For answers: what the model had done meanwhile."
    )
    documents = serializers.ListField(
        source="only_documents",
        child=serializers.CharField(),
        allow_null=True,
        help_text="For questions: the documents that it was to be answered from; null: all.",
    )
    mode = serializers.RegexField(rf"^({'|'.join(MODES)})$", help_text="How the answer was made.")
    usage = serializers.SerializerMethodField(
        help_text="For answers: what they took, with all their attempts and tools. null where nothing was counted."
    )
    steps = serializers.SerializerMethodField(
        help_text="For answers that were thought through: the plan, and the check against memory."
    )

    def get_reply_to(self, message: Message) -> str | None:
        return message.reply_to.public_id if message.reply_to else None

    def get_superseded_by(self, message: Message) -> str | None:
        return message.superseded_by.public_id if message.superseded_by else None

    @extend_schema_field(MessageErrorJson(allow_null=True))
    def get_error(self, message: Message) -> dict[str, str] | None:
        if not message.error_code and not message.error:
            return None
        return {"code": message.error_code, "message": translated(message.error)}

    @extend_schema_field(BillJson(allow_null=True))
    def get_usage(self, message: Message) -> dict[str, Any] | None:
        return bill_json(Bill.from_json(message.usage)) if message.usage else None

    @extend_schema_field(ReceiptJson(allow_null=True))
    def get_receipt(self, message: Message) -> Any:
        receipts: dict[str, Receipt] = self.context["receipts"]
        receipt = receipts.get(message.public_id)
        return ReceiptJson(receipt).data if receipt else None

    @extend_schema_field(AnswerSourceJson(many=True))
    def get_sources(self, message: Message) -> Any:
        return AnswerSourceJson(self.context["sources"].get(message.pk, []), many=True).data

    @extend_schema_field(ToolCallJson(many=True))
    def get_tool_calls(self, message: Message) -> Any:
        calls = self.context["calls"].get(message.pk, [])
        seen = {call.pk: [memory.public_id for memory in memories] for call, memories in calls}
        return ToolCallJson([call for call, _ in calls], many=True, context={"memories": seen}).data

    @extend_schema_field(StepJson(many=True))
    def get_steps(self, message: Message) -> Any:
        steps = self.context["steps"].get(message.pk, [])
        seen = {step.pk: [memory.public_id for memory in memories] for step, memories in steps}
        return StepJson([step for step, _ in steps], many=True, context={"memories": seen}).data


class TurnJson(serializers.Serializer[Any]):
    example = {"message": {"role": "user", "content": "When is the deadline?", "tool_calls": [], "steps": []}}
    message = MessageJson()
    answer = MessageJson()


class EventJson(serializers.Serializer[Any]):
    """For the schema: one server-sent event of a turn."""

    event = serializers.ChoiceField(
        choices=["message", "token", "tool", "step", "restart", "receipt", "done", "error"]
    )
    data = serializers.CharField(help_text="JSON on one line.")  # type: ignore[assignment]  # SSE's word


class ChatMemoriesJson(serializers.Serializer[Any]):
    memories = MemoryJson(many=True)


class RememberedJson(SavedMemoryJson):
    """For the schema: what was remembered, and how its text came about."""

    synthesized = serializers.BooleanField(help_text="True: the model rewrote the text into this statement.")


class ProposalJson(serializers.Serializer[Any]):
    example = {"content": "The project deadline is March 15, 2026.", "synthesized": True}
    content = serializers.CharField(help_text="A statement to edit and to remember.")
    synthesized = serializers.BooleanField(help_text="True: the model wrote it.")
