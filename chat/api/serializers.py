"""Serializers of chats, messages and the parts of an answer, and of request bodies."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from chat.answer_steps import count_of, outcome_of, step_line
from chat.chats.personal_memories import personal_in
from chat.chats.services import usage_of
from chat.chats.tags_and_pins import mark_of
from chat.models import MESSAGE_LENGTH, TITLE_LENGTH, Chat, ChatMark, Message, MessageStatus, ToolCall
from chat.models.answer_steps import Mode, Step, StepKind
from chat.turns.sources import MOST_CHOSEN
from memories.access import vetoed
from memories.api.serializers import Confirmable, MemoryJson, ReceiptJson, SavedMemoryJson
from memories.models.memory import CATEGORY_LENGTH, CONTENT_LENGTH
from memoryhub.localization import translated
from workspaces.api.fields import Body, Choice, Flag, Moment, Text
from workspaces.api.schema import ID
from workspaces.api.serializers import PersonJson, shown_id
from workspaces.api.spending import BillJson, bill_json
from workspaces.models import User
from workspaces.spending.usage_records import Bill

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
    """Body of a request that saves a memory. ``messageId`` is camel case for compatibility with the dashboard's API."""

    example = {"content": "The project deadline is March 15, 2026"}
    at_least_one_of = ("messageId", "content")
    messageId = Text(max_length=32, required=False, help_text="The message to remember.")
    content = Text(max_length=CONTENT_LENGTH, required=False, help_text="Left out: the message's own text.")
    category = Text(max_length=CATEGORY_LENGTH, allow_null=True, allow_blank=True, required=False)
    synthesize = Flag(default=False, help_text="true: the model rewrites the text into one statement.")


class MessageErrorJson(serializers.Serializer[Any]):
    example = {"code": "unreachable"}
    code = serializers.CharField()
    message = serializers.CharField()


class ToolCallJson(serializers.Serializer[Any]):
    """A tool call."""

    example = {
        "id": f"call_{ID}",
        "name": "x_recall_memory",
        "arguments": {"query": "deadline"},
        "outcome": "found",
    }
    id = serializers.CharField(source="public_id")
    name = serializers.CharField()
    arguments = serializers.JSONField(
        help_text="Those kept with the chat; the text of a memory is never among them."
    )
    status = serializers.RegexField(r"^(running|done|failed)$", help_text="running, done or failed.")
    outcome = serializers.SerializerMethodField(
        help_text="saved, duplicate, found, noted, or why it failed: refused, denied, timeout, error. "
        "null while it runs."
    )
    count = serializers.SerializerMethodField(help_text="How much it found, as far as you may see it.")
    memory_ids = serializers.SerializerMethodField(
        help_text="The memories it saved or found, as far as you may see them and they are not forgotten."
    )
    started_at = Moment()
    finished_at = Moment(allow_null=True)

    def get_outcome(self, call: ToolCall) -> str | None:
        return call.outcome or None

    def get_count(self, call: ToolCall) -> int:
        return count_of(call)

    def get_memory_ids(self, call: ToolCall) -> list[str]:
        return [memory.public_id for memory in call.memories]


class FindingJson(serializers.Serializer[Any]):
    example = {"quote": "Your project deadline is March 15, 2026.", "agrees": True}
    quote = serializers.CharField(
        help_text="Words of the answer; empty where the model did not quote exactly."
    )
    memory_id = serializers.CharField()
    agrees = serializers.BooleanField()


class StepJson(serializers.Serializer[Any]):
    """A step of an answer."""

    example = {"id": f"step_{ID}", "kind": "check", "outcome": "agrees", "line": "Checked against 1 memory"}
    id = serializers.CharField(source="public_id")
    kind = serializers.RegexField(
        rf"^({'|'.join(StepKind.values)})$",
        help_text="plan or check of thinking, thought of a model that shows what it thinks, research, or reading: the "
        "message waited for its files, and `line` says which of them were not read.",
    )
    status = serializers.RegexField(r"^(running|done|failed)$", help_text="running, done or failed.")
    outcome = serializers.SerializerMethodField(
        help_text="planned; thought; agrees, differs, nothing (to compare with) or off (memory is); read; or why "
        "it failed: stopped, timeout, error. null while it runs."
    )
    line = serializers.SerializerMethodField(help_text="What came of it, for people.")
    text = serializers.CharField(help_text="The plan, or the correction that the check added to the answer.")
    findings = serializers.SerializerMethodField(
        help_text="What memories say of the answer, as far as you may see them and they are not forgotten."
    )
    memory_ids = serializers.SerializerMethodField(help_text="The memories compared with, as far as you may.")
    started_at = Moment()
    finished_at = Moment(allow_null=True)

    def get_outcome(self, step: Step) -> str | None:
        return outcome_of(step) or None

    def get_line(self, step: Step) -> str:
        return step_line(step)

    def get_memory_ids(self, step: Step) -> list[str]:
        return [memory.public_id for memory in step.memories]

    @extend_schema_field(FindingJson(many=True))
    def get_findings(self, step: Step) -> list[dict[str, Any]]:
        seen = self.get_memory_ids(step)
        return [finding for finding in step.findings if finding.get("memory_id") in seen]


class AnswerSourceJson(serializers.Serializer[Any]):
    example = {"number": 1, "document_id": f"doc_{ID}", "title": "Lease.pdf", "page": 3, "passage": 12}
    number = serializers.IntegerField(help_text="By which the answer cites it: `[1]`.")
    document_id = serializers.CharField(source="document.public_id")
    title = serializers.CharField(source="document.title")
    page = serializers.IntegerField(help_text="0 where the document has none.")
    heading = serializers.CharField()
    passage = serializers.IntegerField(
        source="passage_number",
        allow_null=True,
        help_text="Its number in the document, from 0; null: the document has changed there.",
    )
    score = serializers.FloatField()


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
    """A chat with the fields that depend on the reader, such as ``mark``, and with the usage of its answers."""

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
    """A message."""

    # The context must have ``receipts`` (the recalled memories), which is keyed by message id, and ``calls``, ``steps``
    # and ``sources``, which are keyed by the message's primary key.

    example: dict[str, Any] = {
        "id": f"msg_{ID}",
        "role": "assistant",
        "content": "Your project deadline is March 15, 2026.",
        "status": "done",
        "reply_to": "msg_9dLp2TzB8mYw1RsX9vLcHn1B",
        "model": "large-2",
    }
    id = serializers.CharField(source="public_id")
    # Not a ChoiceField: the schema names enums after their field, and the enum "role" is already that of members.
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
        receipt = self.context["receipts"].get(message.public_id)
        return ReceiptJson(receipt).data if receipt else None

    @extend_schema_field(AnswerSourceJson(many=True))
    def get_sources(self, message: Message) -> Any:
        return AnswerSourceJson(self.context["sources"].get(message.pk, []), many=True).data

    @extend_schema_field(ToolCallJson(many=True))
    def get_tool_calls(self, message: Message) -> Any:
        return ToolCallJson(self.context["calls"].get(message.pk, []), many=True).data

    @extend_schema_field(StepJson(many=True))
    def get_steps(self, message: Message) -> Any:
        return StepJson(self.context["steps"].get(message.pk, []), many=True).data


class TurnJson(serializers.Serializer[Any]):
    example = {"message": {"role": "user", "content": "When is the deadline?", "tool_calls": [], "steps": []}}
    message = MessageJson()
    answer = MessageJson()


class EventJson(serializers.Serializer[Any]):
    """A server-sent event of a chat turn."""

    event = serializers.ChoiceField(
        choices=["message", "token", "tool", "step", "restart", "receipt", "done", "error"]
    )
    data = serializers.CharField(help_text="JSON on one line.")  # type: ignore[assignment]  # SSE's word


class ChatMemoriesJson(serializers.Serializer[Any]):
    memories = MemoryJson(many=True)


class RememberedJson(SavedMemoryJson):
    """A saved memory, and whether the model rewrote its text."""

    synthesized = serializers.BooleanField(help_text="True: the model rewrote the text into this statement.")


class ProposalJson(serializers.Serializer[Any]):
    example = {"content": "The project deadline is March 15, 2026.", "synthesized": True}
    content = serializers.CharField(help_text="A statement to edit and to remember.")
    synthesized = serializers.BooleanField(help_text="True: the model wrote it.")
