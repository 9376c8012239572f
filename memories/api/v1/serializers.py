"""Serializers of the organisation memory API (/api/v1), whose fields have camelCase names."""

from typing import Any

from django.utils.translation import gettext_lazy as later
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memories.api.serializers import (
    EDITED_BY,
    HOLDS_FROM,
    HOLDS_TO,
    IMPORTED_BY,
    OF_AGENT,
    REPLACED,
    REPLACED_BY,
    VALID_FROM,
    VALID_TO,
    Dedupe,
    MemoryFields,
    QuestionBody,
    SharedChanges,
    recalling_agent,
)
from memories.models import Memory, Scope, SourceType
from memories.models.memory import CATEGORY_LENGTH, CONTENT_LENGTH, KEY_LENGTH
from memories.writing.drafts import FORM, LABEL_LENGTH, MOST_SOURCES, TAG_LENGTH, TYPES, sources_of
from workspaces.api.fields import Body, Choice, Moment, Text, WholeNumber
from workspaces.api.paging import PageQuery
from workspaces.api.schema import ID
from workspaces.api.serializers import PersonJson

LOWEST, HIGHEST = 1, 10  # of importance in this API; stored as 0 to 1
SCOPES = {"global": Scope.USER, "project": Scope.WORKSPACE, "agent": Scope.AGENT}
SCOPE_WORDS = list(SCOPES)
SOURCES = {"manual": SourceType.USER, "auto": SourceType.AUTO_CHAT}  # other labels are stored unchanged
MOST_AT_ONCE = 100
CATEGORY = "fact"  # default of a new memory


def importance_inside(whole: int) -> float:
    """Convert an importance of the API, 1 to 10, to a stored one, 0 to 1."""
    return (whole - LOWEST) / (HIGHEST - LOWEST)


def importance_outside(fraction: float) -> int:
    """Convert a stored importance, 0 to 1, to one of the API, 1 to 10. Halves are rounded up."""
    return int(LOWEST + fraction * (HIGHEST - LOWEST) + 0.5)


class SourceJson(serializers.Serializer[Any]):
    example = {"type": "message", "id": f"msg_{ID}"}
    type = serializers.ChoiceField(choices=[*TYPES.values(), "other"])
    id = serializers.CharField()


class OrganisationMemoryJson(MemoryFields):
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
    value = serializers.CharField(source="content")
    importance = serializers.SerializerMethodField(help_text="1 to 10.")
    expiresAt = Moment(source="expires_at", allow_null=True)
    validFrom = Moment(source="valid_from", allow_null=True, help_text=VALID_FROM)
    validTo = Moment(source="valid_to", allow_null=True, help_text=VALID_TO)
    replacedBy = serializers.CharField(source="replaced_by.public_id", allow_null=True, help_text=REPLACED_BY)
    source = serializers.SerializerMethodField(  # type: ignore[assignment]  # the name is the API's
        help_text="manual, auto, or another label."
    )
    sources = serializers.SerializerMethodField(
        help_text="The chats and messages it comes from. Their ids open them to those who may see them, nobody else."
    )
    scope = serializers.SerializerMethodField()
    agentId = serializers.CharField(
        source="agent.public_id", allow_null=True, help_text="For scope agent; else null."
    )
    workspaceId = serializers.CharField(
        source="workspace.public_id", help_text="For scope global: your own workspace, where it is kept."
    )
    editedBy = PersonJson(source="edited_by", allow_null=True, help_text=EDITED_BY)
    importedBy = PersonJson(source="imported_by", allow_null=True, help_text=IMPORTED_BY)
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
    """Response of a save: the memory, and whether it existed already."""

    duplicate = serializers.BooleanField(
        help_text="True: nothing was stored, this is the one that said it already."
    )


class OrganisationRecalledJson(OrganisationMemoryJson):
    """A recalled memory with its score."""

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
    """The query parameter ``workspace_id``, which every route accepts."""

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
    """A source of a memory in a request: ``{"id": "msg_…"}``. Clients may repeat the ``type`` from a response."""

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


class OrganisationMemoryChanges(SharedChanges):
    """Fields of a memory that a client may write."""

    example: dict[str, Any] = {"value": "The project deadline is April 1, 2026"}
    key = Text(
        max_length=KEY_LENGTH, allow_null=True, required=False, help_text="By which saves find it again."
    )
    value = Text(source="content", max_length=CONTENT_LENGTH, required=False)
    summary = Text(max_length=CONTENT_LENGTH, allow_null=True, required=False)
    category = Text(max_length=CATEGORY_LENGTH, required=False)
    importance = WholeNumber(min_value=LOWEST, max_value=HIGHEST, required=False)
    expiresAt = Moment(
        source="expires_at",
        allow_null=True,
        required=False,
        help_text="null: never. Wins over `expires_at`, which is taken as well.",
    )
    validFrom = Moment(source="valid_from", allow_null=True, required=False, help_text=HOLDS_FROM)
    validTo = Moment(source="valid_to", allow_null=True, required=False, help_text=HOLDS_TO)
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

    def validate_importance(self, whole: int) -> float:
        return importance_inside(whole)


class OrganisationMemoryUpdate(OrganisationMemoryChanges):
    """Request body for changing a stored memory."""

    replacedBy = Text(
        source="replaced_by", max_length=32, allow_null=True, required=False, help_text=REPLACED
    )


class OrganisationMemoryBody(OrganisationMemoryChanges, Dedupe):
    example = {"key": "deadline", "value": "The project deadline is March 15, 2026", "importance": 7}
    value = Text(source="content", max_length=CONTENT_LENGTH)
    category = Text(
        max_length=CATEGORY_LENGTH, required=False, help_text=f"{CATEGORY}, for a new memory, if left out."
    )
    scope = Choice(
        SCOPE_WORDS,
        default="project",
        help_text="project: everybody in the workspace. global: yours alone, in every workspace. agent: everybody, in "
        "chats with the assistant of `agentId`.",
    )
    agentId = Text(source="agent_id", max_length=32, allow_null=True, required=False, help_text=OF_AGENT)
    source = Text(  # type: ignore[assignment]  # the name is the API's
        source="source_type",
        max_length=LABEL_LENGTH,
        default="manual",
        help_text="manual; auto (made without a person: may make room for others); or a label of your own.",
    )

    def validate_scope(self, word: str) -> str:
        return SCOPES[word]

    def validate_source(self, label: str) -> str:
        return SOURCES.get(label.lower(), label)


# Maps the field names in errors of the memory writer to the field names in requests.
NAMES = {
    field.source: name
    for body in (OrganisationMemoryBody, OrganisationMemoryUpdate)
    for name, field in body().fields.items()
}


class OrganisationRecallBody(QuestionBody):
    agentId = recalling_agent(source="agent_id")


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
        """Remove repeated ids and keep the order."""
        return list(dict.fromkeys(ids))
