"""The JSON of organisation memory: the fields of a memory under the names that its callers know."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as later
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memories.api.serializers import Confirmable, QuestionBody, recalling_agent
from memories.models import Memory, Scope, SourceType
from memories.models.memory import CATEGORY_LENGTH, CONTENT_LENGTH, KEY_LENGTH
from memories.writing.field_rules import LABEL_LENGTH, TAG_LENGTH, TAGS
from memories.writing.sources import FORM, MOST_SOURCES, TYPES, sources_of
from workspaces.api.serializers import PersonJson
from workspaces.rest.docs import ID
from workspaces.rest.fields import Body, Choice, Flag, Moment, Text, WholeNumber, Words
from workspaces.rest.paging import PageQuery

LOWEST, HIGHEST = 1, 10  # of importance here; 0 and 1 inside
SCOPES = {"global": Scope.USER, "project": Scope.WORKSPACE, "agent": Scope.AGENT}
SCOPE_WORDS = list(SCOPES)
SOURCES = {"manual": SourceType.USER, "auto": SourceType.AUTO_CHAT}  # other labels are kept as they are
NAMES = {
    "value": "content",
    "source": "source_type",
    "expiresAt": "expires_at",
    "agentId": "agent_id",
}  # ours to the field's
MOST_AT_ONCE = 100
CATEGORY = "fact"  # unless the caller says another


def importance_inside(whole: int) -> float:
    """1..10 as 0..1."""
    return (whole - LOWEST) / (HIGHEST - LOWEST)


def importance_outside(fraction: float) -> int:
    """0..1 as 1..10, to the nearest; halves go up."""
    return int(LOWEST + fraction * (HIGHEST - LOWEST) + 0.5)


def field_values(body: dict[str, Any]) -> dict[str, Any]:
    """What a request says, by the names and in the units that the gate takes."""
    given = {NAMES.get(name, name): value for name, value in body.items()}
    if "importance" in given:
        given["importance"] = importance_inside(given["importance"])
    if "scope" in given:
        given["scope"] = SCOPES[given["scope"]]
    if "source_type" in given:
        given["source_type"] = SOURCES.get(given["source_type"].lower(), given["source_type"])
    return given


class SourceJson(serializers.Serializer[Any]):
    example = {"type": "message", "id": f"msg_{ID}"}
    type = serializers.ChoiceField(choices=[*TYPES.values(), "other"])
    id = serializers.CharField()


class OrganisationMemoryJson(serializers.Serializer[Any]):
    example = {
        "id": f"mem_{ID}",
        "key": "deadline",
        "value": "The project deadline is March 15, 2026",
        "category": "fact",
        "tags": ["project"],
        "importance": 7,
        "source": "manual",
        "scope": "project",
    }
    id = serializers.CharField(source="public_id")
    key = serializers.CharField(max_length=KEY_LENGTH, allow_null=True)
    value = serializers.CharField(source="content")
    summary = serializers.CharField(max_length=CONTENT_LENGTH, allow_null=True)
    category = serializers.CharField(max_length=CATEGORY_LENGTH, allow_null=True)
    tags = serializers.ListField(child=serializers.CharField())
    importance = serializers.SerializerMethodField(help_text="1 to 10.")
    pinned = serializers.BooleanField()
    expiresAt = Moment(source="expires_at", allow_null=True)
    source = serializers.SerializerMethodField(  # type: ignore[assignment]  # the name is the API's
        help_text="manual, auto, or another label."
    )
    sources = serializers.SerializerMethodField(
        help_text="The chats and messages it comes from. Their ids open them to those who may see them, nobody else."
    )
    scope = serializers.SerializerMethodField()
    agentId = serializers.CharField(
        source="agent.public_id", default=None, allow_null=True, help_text="For scope agent; else null."
    )
    workspaceId = serializers.CharField(
        source="workspace.public_id", help_text="For scope global: your own workspace, where it is kept."
    )
    author = PersonJson(
        source="written_by",
        allow_null=True,
        help_text="Who wrote the words: the author of the message they come from, or the last person who changed them.",
    )
    editedBy = PersonJson(
        source="edited_by",
        allow_null=True,
        help_text="Who last changed another's words or category, else null.",
    )
    imported = serializers.BooleanField(
        source="is_imported",
        help_text="Whether somebody imported these words under another person's name: they need not be that person's.",
    )
    importedBy = PersonJson(
        source="imported_by",
        allow_null=True,
        help_text="Who imported them; null also once that person has left.",
    )
    createdAt = Moment(source="created_at")
    updatedAt = Moment(source="updated_at")

    def get_importance(self, memory: Memory) -> int:
        return importance_outside(memory.importance)

    def get_source(self, memory: Memory) -> str:
        known = {inside.value: outside for outside, inside in SOURCES.items()}
        return known.get(memory.source_type, memory.source_type)

    @extend_schema_field(SourceJson(many=True))
    def get_sources(self, memory: Memory) -> list[dict[str, str]]:
        return sources_of(memory)

    @extend_schema_field(serializers.ChoiceField(choices=SCOPE_WORDS))
    def get_scope(self, memory: Memory) -> str:
        return {inside.value: outside for outside, inside in SCOPES.items()}[memory.scope]


class OrganisationSavedJson(OrganisationMemoryJson):
    """For the schema: a memory and whether it was there already."""

    duplicate = serializers.BooleanField(
        help_text="True: nothing was stored, this is the one that said it already."
    )


class OrganisationRecalledJson(OrganisationMemoryJson):
    """For the schema: a memory with its score."""

    score = serializers.FloatField(help_text="`ts_rank_cd`; 0 where only a part of a word matched.")


class OrganisationRecallJson(serializers.Serializer[Any]):
    memories = OrganisationRecalledJson(many=True)


class OrganisationDeletedJson(serializers.Serializer[Any]):
    example = {"deleted": [f"mem_{ID}"], "missing": ["mem_2bNw8RzB5mYw1RsX9vLcHn7K"]}
    deleted = serializers.ListField(child=serializers.CharField())
    missing = serializers.ListField(
        child=serializers.CharField(), help_text="Not there (any more), or not yours to see."
    )


class PlaceQuery(serializers.Serializer[Any]):
    """``?workspace_id=`` of every route."""

    workspace_id = Text(
        required=False,
        max_length=32,
        help_text="Left out: your own workspace, or with an API key the key's, which is the only one it opens.",
    )


class MemoryQuery(PageQuery, PlaceQuery):
    scope = Choice(SCOPE_WORDS, required=False, help_text="Only these.")
    agentId = Text(required=False, max_length=32, help_text="Only those of this assistant of the workspace.")
    category = Text(required=False, max_length=CATEGORY_LENGTH, help_text="Only this category.")
    tag = Text(required=False, max_length=TAG_LENGTH, help_text="Only with this tag.")
    key = Text(required=False, max_length=KEY_LENGTH, help_text="Only of this key.")
    source_id = Text(required=False, max_length=32, help_text="Only from this chat or message.")


@extend_schema_field(
    {
        "type": "object",
        "properties": {"id": {"type": "string", "pattern": f"^{FORM.pattern}$"}},
        "required": ["id"],
        "additionalProperties": False,
    }
)
class Source(serializers.Field[str, Any, Any, Any]):
    """``{"id": "msg_…"}``, or with its type beside it as answers have it."""

    default_error_messages = {
        "invalid": later('Must look like {{"id": "msg_…"}}, with the id of a chat or a message.')
    }

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, dict) or not data.keys() <= {"id", "type"}:
            self.fail("invalid")
        source_id = data.get("id")
        if not isinstance(source_id, str) or not (form := FORM.fullmatch(source_id)):
            self.fail("invalid")
        if data.get("type", TYPES[form[1]]) != TYPES[form[1]]:
            self.fail("invalid")
        return source_id


class OrganisationMemoryChanges(Confirmable):
    """What a client may change."""

    example: dict[str, Any] = {"value": "The project deadline is April 1, 2026"}
    key = Text(
        max_length=KEY_LENGTH, allow_null=True, required=False, help_text="By which saves find it again."
    )
    value = Text(max_length=CONTENT_LENGTH, required=False)
    summary = Text(max_length=CONTENT_LENGTH, allow_null=True, required=False)
    category = Text(max_length=CATEGORY_LENGTH, required=False)
    tags = Words(word_length=TAG_LENGTH, max_length=TAGS, required=False)
    importance = WholeNumber(min_value=LOWEST, max_value=HIGHEST, required=False)
    pinned = Flag(required=False)
    expires_at = Moment(allow_null=True, required=False, help_text="Taken as well; `expiresAt` wins over it.")
    expiresAt = Moment(allow_null=True, required=False, help_text="null: never.")
    sources = serializers.ListField(
        child=Source(),
        max_length=MOST_SOURCES,
        required=False,
        help_text="In place of those given before. What a memory was noticed in stays.",
        error_messages={
            "not_a_list": later("Must be a list of sources."),
            "max_length": later("Must have at most {max_length} entries."),
        },
    )


class OrganisationMemoryBody(OrganisationMemoryChanges):
    example = {"key": "deadline", "value": "The project deadline is March 15, 2026", "importance": 7}
    value = Text(max_length=CONTENT_LENGTH)
    category = Text(
        max_length=CATEGORY_LENGTH, required=False, help_text=f"{CATEGORY}, for a new memory, if left out."
    )
    scope = Choice(
        SCOPE_WORDS,
        default="project",
        help_text="project: everybody in the workspace. global: yours alone, in every workspace. agent: everybody, in "
        "chats with the assistant of `agentId`.",
    )
    agentId = Text(
        max_length=32,
        allow_null=True,
        required=False,
        help_text="An assistant of the workspace, for scope agent.",
    )
    source = Text(  # type: ignore[assignment]  # the name is the API's
        max_length=LABEL_LENGTH,
        default="manual",
        help_text="manual; auto (made without a person: may make room for others); or a label of your own.",
    )
    dedupe = Choice(
        ["key", "create"],
        default="key",
        help_text="key (default): a memory of the same key, scope and workspace is updated and keeps what is left out. "
        "A near-duplicate is not stored again. create: always a new one, and the key moves to it.",
    )


class OrganisationRecallBody(QuestionBody):
    agentId = recalling_agent()


class OrganisationDeleteBody(Body):
    example = {"ids": [f"mem_{ID}", "mem_2bNw8RzB5mYw1RsX9vLcHn7K"]}
    ids = serializers.ListField(
        child=Text(max_length=32),
        min_length=1,
        max_length=MOST_AT_ONCE,
        error_messages={
            "not_a_list": later("Must be a list of ids."),
            "empty": later("Must not be empty."),
            "min_length": later("Must not be empty."),
            "max_length": later("Must have at most {max_length} entries."),
        },
    )

    def validate_ids(self, ids: list[str]) -> list[str]:
        """Each once."""
        return list(dict.fromkeys(ids))
