"""Serializers for memories, their history, recall, search and receipts."""

from typing import Any

from rest_framework import serializers

from memories.models import Memory, Scope
from memories.models.memory import CATEGORY_LENGTH, CONTENT_LENGTH, KEY_LENGTH, RevisionAction
from memories.models.recall import Strength
from memories.recalling.ranking import RANKINGS
from memories.recalling.workspace_search import LIMIT as SEARCH_LIMIT
from memories.recalling.workspace_search import TYPES
from memories.writing.drafts import TAG_LENGTH, TAGS
from memoryhub.llm.registry import get_embedder
from workspaces.api.fields import Body, Choice, Flag, Moment, Number, Text, WholeNumber, Words
from workspaces.api.schema import ID
from workspaces.api.serializers import PersonJson

QUERY_LENGTH = 32_000
MAX_OFFSET = 10_000


class TextOrNull(serializers.CharField):
    """A text that is null in the response if it is empty."""

    def to_representation(self, value: str) -> str | None:  # type: ignore[override]
        return value or None


class RestsOnJson(serializers.Serializer[Any]):
    example = {"speaker": "document", "id": f"doc_{ID}"}
    speaker = serializers.CharField(
        help_text="Who said it: model, assistant, memory, document, artifact, chat, tool, web, run, program or import."
    )
    id = serializers.CharField(
        allow_null=True, help_text="The id of the document or other thing, if it has one."
    )


EDITED_BY = "Who last changed another's words or category, else null."
IMPORTED_BY = "Who imported them; null also once that person has left."
VALID_FROM = "From when on it holds; null: unknown."
VALID_TO = "Until when it holds or held; null: unknown."
REPLACED_BY = "The id of the newer memory that holds instead, or null."


class AuthorJson(serializers.Serializer[Any]):
    """Author fields, which have the same names in both REST APIs."""

    author = PersonJson(
        source="written_by",
        allow_null=True,
        help_text="Who wrote the words: the author of the message they come from, or the last person who changed them.",
    )
    imported = serializers.BooleanField(
        source="is_imported",
        read_only=True,
        help_text="Whether somebody imported these words under another person's name: they need not be that person's.",
    )


class WrittenJson(AuthorJson):
    edited_by = PersonJson(allow_null=True, help_text=EDITED_BY)
    imported_by = PersonJson(allow_null=True, read_only=True, help_text=IMPORTED_BY)


class MemoryFields(AuthorJson):
    """Fields of a memory that have the same names in both REST APIs."""

    id = serializers.CharField(source="public_id")
    summary = serializers.CharField(max_length=CONTENT_LENGTH, allow_null=True)
    category = serializers.CharField(max_length=CATEGORY_LENGTH, allow_null=True)
    key = serializers.CharField(max_length=KEY_LENGTH, allow_null=True)
    tags = serializers.ListField(child=serializers.CharField())
    pinned = serializers.BooleanField()


class MemoryJson(MemoryFields, WrittenJson):
    example = {
        "id": f"mem_{ID}",
        "content": "The project deadline is March 15, 2026",
        "category": "fact",
        "tags": ["project"],
        "source_type": "user",
    }
    content = serializers.CharField(max_length=CONTENT_LENGTH)
    importance = serializers.FloatField(help_text="0 to 1.")
    expires_at = Moment(allow_null=True)
    valid_from = Moment(allow_null=True, help_text=VALID_FROM)
    valid_to = Moment(allow_null=True, help_text=VALID_TO)
    replaced_by = serializers.CharField(
        source="replaced_by.public_id", allow_null=True, help_text=REPLACED_BY
    )
    scope = serializers.ChoiceField(choices=Scope.values)
    agent_id = serializers.CharField(
        source="agent.public_id",
        allow_null=True,
        help_text="For scope agent: the assistant in whose chats it is recalled. Else null.",
    )
    source_type = serializers.CharField(
        help_text="user, model, auto_chat, auto_deep_think, auto_research, auto_compaction, import, or other."
    )
    source_chat_id = TextOrNull(read_only=True, allow_null=True)
    source_message_id = TextOrNull(read_only=True, allow_null=True)
    rests_on = RestsOnJson(
        allow_null=True,
        read_only=True,
        help_text="What it was taken from, where that is not a person's own words; such a memory waited for review.",
    )
    workspace_id = serializers.CharField(source="workspace.public_id")
    may_replace = serializers.CharField(
        source="possibly_replaced.public_id",
        read_only=True,
        allow_null=True,
        help_text="The id of an older memory that says nearly the same with another value, or null.",
    )
    searchable = serializers.SerializerMethodField(
        help_text="True once it can be found by meaning, not only by words."
    )
    created_at = Moment()
    updated_at = Moment()
    last_accessed_at = Moment(allow_null=True)

    def get_searchable(self, memory: Memory) -> bool:
        by_meaning: bool = memory.searchable  # type: ignore[attr-defined]  # annotated
        return by_meaning and get_embedder() is not None


class SavedMemoryJson(MemoryJson):
    """Response of a save: the memory, and whether it existed already."""

    duplicate = serializers.BooleanField(
        help_text="True: nothing was stored, this is the one that said it already."
    )


class RestoredMemoryJson(MemoryJson):
    """Response of a restore: the memory, and its former key if another memory has that key now."""

    lost_key = serializers.CharField(
        allow_null=True, help_text="The key it had, which another memory has by now; null: it has its own."
    )


class RecalledJson(MemoryJson):
    """A recalled memory with its score."""

    score = serializers.FloatField()
    score_parts = serializers.DictField(
        child=serializers.FloatField(), help_text="What the score is the sum of."
    )


class RecallJson(serializers.Serializer[Any]):
    memories = RecalledJson(many=True)
    ranking = serializers.ChoiceField(choices=RANKINGS)
    degraded = serializers.BooleanField(
        help_text="True: the search by meaning failed, these were found by words."
    )
    degraded_reason = serializers.CharField(allow_null=True)


class ProfileJson(serializers.Serializer[Any]):
    you = MemoryJson(many=True, help_text="About you.")
    workspace = MemoryJson(many=True, help_text="About the workspace; nobody's personal memories.")
    hidden = MemoryJson(many=True, help_text="Those you hid, of this workspace and your own.")
    in_chats = serializers.BooleanField(help_text="Whether models get it in your chats.")


class ProfileLineBody(Body):
    example = {"hidden": True}
    hidden = Flag()


class PassagePlaceJson(serializers.Serializer[Any]):
    example = {"page": 3, "heading": "Notice", "characters": [4210, 4630]}
    page = serializers.IntegerField(min_value=1, allow_null=True)
    heading = serializers.CharField()
    characters = serializers.ListField(
        child=serializers.IntegerField(min_value=0),
        min_length=2,
        max_length=2,
        help_text="From and to, of the document's text.",
    )


class FoundJson(WrittenJson):
    example = {"id": f"mem_{ID}", "text": "The project deadline is March 15, 2026"}
    type = serializers.ChoiceField(choices=TYPES)
    id = serializers.CharField()
    text = serializers.CharField(
        help_text="Of a document the passage that was found; of a long artifact or message the part that fits."
    )
    score = serializers.FloatField(help_text="Higher is better; comparable within one answer only.")
    created_at = Moment()
    title = serializers.CharField(
        help_text="Of a document, an artifact or a message's chat; empty otherwise."
    )
    chat_id = TextOrNull(read_only=True, allow_null=True, help_text="Of a message; null otherwise.")
    place = PassagePlaceJson(allow_null=True, help_text="Where in a document it stands.")


class SearchJson(serializers.Serializer[Any]):
    results = FoundJson(many=True)


class RevisionJson(serializers.Serializer[Any]):
    example = {"action": "edit", "before": {"content": "The project deadline is March 8, 2026"}}
    action = serializers.ChoiceField(choices=RevisionAction.choices)
    by = PersonJson(allow_null=True, help_text="null: the system.")
    imported = serializers.BooleanField(
        read_only=True, help_text="Whether somebody else imported it: that person need not have done this."
    )
    before = serializers.DictField(
        help_text="The old values of the fields that were changed. Beside a key that went to another memory "
        "`key_went_to`, the id of that one; of `also_said` the other wording."
    )
    at = Moment()


class ReceiptItemJson(serializers.Serializer[Any]):
    example = {"content": "The project deadline is March 15, 2026", "used": True, "reason": ""}
    memory_id = serializers.CharField(source="memory.public_id")
    position = serializers.IntegerField(min_value=0)
    content = serializers.CharField(help_text="As it read at that moment.")
    imported = serializers.BooleanField(
        source="memory.is_imported",
        read_only=True,
        help_text="Whether somebody imported the memory under another person's name.",
    )
    score = serializers.FloatField()
    score_parts = serializers.DictField(child=serializers.FloatField())
    strength = serializers.ChoiceField(
        choices=Strength.choices,
        allow_blank=True,
        required=False,
        help_text="How sure it was that it was wanted; empty when it was not, or where the embedder does not tell.",
    )
    reasons = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="Why it was found, in plain words for people, the most telling first.",
    )
    used = serializers.BooleanField(help_text="Whether the model saw it.")
    reason = serializers.CharField(help_text="Why it was left out; empty when it was used.")
    in_profile = serializers.BooleanField(
        required=False, help_text="Whether it was given as a line of the profile, whatever the question was."
    )
    not_relevant = serializers.BooleanField(help_text="A person said it had nothing to do with the question.")


class ReceiptJson(serializers.Serializer[Any]):
    example = {"message_id": f"msg_{ID}", "ranking": "hybrid"}
    message_id = serializers.CharField(max_length=32, help_text="The answer it belongs to.")
    ranking = serializers.CharField()
    threshold = serializers.FloatField()
    degraded = serializers.BooleanField(
        read_only=True, help_text="True: found by words, since the search by meaning failed."
    )
    degraded_reason = TextOrNull(source="degraded", read_only=True, allow_null=True)
    imported = serializers.BooleanField(
        read_only=True,
        help_text="True: somebody imported it, so what it says was recalled elsewhere, or nowhere.",
    )
    created_at = Moment()
    items = ReceiptItemJson(many=True, source="shown")


class Confirmable(Body):
    """Request body of a save, in which a person can confirm that a personal number may be stored."""

    confirm = Flag(
        source="confirmed",
        default=False,
        help_text="true: the person was asked (422 with code `sensitive`) and wants it stored all the same.",
    )


OF_AGENT = "An assistant of the workspace, for scope agent."
HOLDS_FROM = "From when on it holds."
HOLDS_TO = "Until when it holds. Left out: as the text says."
REPLACED = (
    "The id of the memory that holds instead; this one ends when that one begins, otherwise now. "
    "null: this one holds again."
)


class SharedChanges(Confirmable):
    """Writable fields of a memory that have the same names in both REST APIs."""

    tags = Words(word_length=TAG_LENGTH, max_length=TAGS, required=False)
    pinned = Flag(required=False)
    expires_at = Moment(allow_null=True, required=False, help_text="null: never.")


class MemoryChanges(SharedChanges):
    """Fields of a memory that a client may write. The server sets all others."""

    example = {"content": "The project deadline is April 1, 2026"}
    content = Text(max_length=CONTENT_LENGTH, required=False)
    category = Text(max_length=CATEGORY_LENGTH, allow_null=True, allow_blank=True, required=False)
    key = Text(max_length=KEY_LENGTH, allow_null=True, allow_blank=True, required=False)
    importance = Number(min_value=0, max_value=1, required=False)
    valid_from = Moment(allow_null=True, required=False, help_text=HOLDS_FROM)
    valid_to = Moment(allow_null=True, required=False, help_text=HOLDS_TO)


class MemoryUpdate(MemoryChanges):
    """Request body for changing a stored memory."""

    replaced_by = Text(max_length=32, allow_null=True, required=False, help_text=REPLACED)


class Dedupe(Body):
    """The request field ``dedupe``: what to do if a memory with the same key or meaning exists."""

    dedupe = Choice(
        ["key", "create"],
        default="key",
        help_text="key (default): a memory of the same key, scope and workspace is updated and keeps what is left out. "
        "A near-duplicate is not stored again. create: always a new one, and the key moves to it.",
    )


class MemoryBody(MemoryChanges, Dedupe):
    example = {"content": "Quarterly review meets every Thursday", "category": "fact"}
    content = Text(max_length=CONTENT_LENGTH)
    scope = Choice(
        Scope.values,
        required=False,
        help_text="workspace (default): all members. user: yours alone, in every workspace; "
        "it is kept in your own workspace. agent: all members, in chats with the assistant of `agent_id`.",
    )
    agent_id = Text(max_length=32, allow_null=True, required=False, help_text=OF_AGENT)


class QuestionBody(Body):
    example = {"query": "When is the deadline?", "limit": 5}
    query = Text(max_length=QUERY_LENGTH, allow_blank=True, help_text="Blank gives nothing.")
    limit = WholeNumber(default=5, help_text="At most 50 are given; below 1 gives nothing.")
    offset = WholeNumber(default=0, min_value=0, max_value=MAX_OFFSET)
    as_of = Moment(
        allow_null=True,
        default=None,
        help_text="What held then, as far as that is known, instead of what holds now.",
    )


def recalling_agent(**options: Any) -> Text:
    help_text = "As in a chat with this assistant of the workspace: what it remembers as well."
    return Text(max_length=32, allow_null=True, default=None, help_text=help_text, **options)


class RecallBody(QuestionBody):
    ranking = Choice(RANKINGS, default="hybrid")
    threshold = Number(allow_null=True, default=None, help_text="Drop what scores less.")
    agent_id = recalling_agent()


class SearchBody(Body):
    example = {"query": "project deadline", "limit": 10}
    query = Text(max_length=QUERY_LENGTH, allow_blank=True, help_text="Blank gives nothing.")
    limit = WholeNumber(default=SEARCH_LIMIT, help_text="At most 50 are given; below 1 gives nothing.")
    types = serializers.ListField(
        child=Choice(TYPES), default=list(TYPES), max_length=len(TYPES), help_text="Only these."
    )
