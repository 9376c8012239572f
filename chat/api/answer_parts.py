"""The JSON of what stands beside an answer's text: why it failed, tool calls, steps, sources."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from chat.models import ToolCall
from chat.models.steps import Step, StepKind
from chat.modes.shown_steps import line_of as step_line
from chat.modes.shown_steps import outcome_of
from chat.tools.shown_calls import count_of
from workspaces.api.fields import Moment
from workspaces.api.schema import ID


class MessageErrorJson(serializers.Serializer[Any]):
    example = {"code": "unreachable"}
    code = serializers.CharField()
    message = serializers.CharField()


class ToolCallJson(serializers.Serializer[Any]):
    """Wants ``memories``, the ids that the reader may see by call, in its context."""

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
        seen: dict[int, list[str]] = self.context["memories"]
        return seen[call.pk]


class FindingJson(serializers.Serializer[Any]):
    example = {"quote": "Your project deadline is March 15, 2026.", "agrees": True}
    quote = serializers.CharField(
        help_text="Words of the answer; empty where the model did not quote exactly."
    )
    memory_id = serializers.CharField()
    agrees = serializers.BooleanField()


class StepJson(serializers.Serializer[Any]):
    """Wants ``memories``, the ids that the reader may see by step, in its context."""

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
        seen: dict[int, list[str]] = self.context["memories"]
        return seen[step.pk]

    @extend_schema_field(FindingJson(many=True))
    def get_findings(self, step: Step) -> list[dict[str, Any]]:
        seen = self.get_memory_ids(step)
        return [found for found in step.findings if found.get("memory_id") in seen]


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
