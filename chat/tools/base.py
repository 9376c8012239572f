"""Base of the tools: definition, arguments, result, and reading long texts in parts."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from chat.chats.personal_memories import workspace_for_saving
from chat.models import Chat, Message, ToolOutcome
from chat.prompting.prompt_text import escape
from chat.prompting.provenance import Shown
from memories.judging.extraction.speaker import Provenance
from memoryhub.errors import NotFound
from memoryhub.llm.base import Speaker, Tool
from memoryhub.llm.errors import ModelNotLocal
from workspaces.access import personal_place
from workspaces.data_policy import Caller, is_local_elsewhere
from workspaces.models import Artifact, Document, Workspace

MOST_ARGUMENTS = 20_000  # characters per call


class ToolTrouble(Exception):
    """A failed tool call. The message lets the model correct it, and never quotes stored text."""

    def __init__(self, message: str, outcome: str = ToolOutcome.ERROR) -> None:
        super().__init__(message)
        self.outcome = outcome


@dataclass(frozen=True)
class InChat:
    """The chat, question and answer in which the model calls a tool."""

    chat: Chat
    question: Message
    answer: Message


@dataclass(frozen=True)
class ToolCaller(Caller):
    """The user and context of a tool call.

    ``turn`` is None if the conversation is not stored, as with API clients. ``call`` is a key that stays the same if
    another worker repeats the call. ``provenance`` loads the sources that the model was shown; None if only the client
    knows them. ``alone`` and ``stays_here``: the call is part of a run that only this user may read, or that may have
    read local-only text.
    """

    turn: InChat | None = None
    call: str = ""
    provenance: Callable[[], Provenance] | None = None
    alone: bool = False
    stays_here: bool = False

    def home(self, *, own_words: bool = False) -> tuple[Workspace, bool]:
        """Return where to store what the model creates, and whether it is personal.

        ``own_words``: a person stated it in the chat, so personal data in the answer does not matter. Raises Conflict
        if no workspace allows it.
        """
        if self.turn is not None:
            answer = None if own_words else self.turn.answer
            return workspace_for_saving(self.turn.chat, self.person, answer=answer)
        if self.alone:
            return personal_place(self.person, said_in=self.workspace, stays_here=self.stays_here), True
        return self.workspace, False

    def may_draw_on(self, document_id: str) -> bool:
        """Return whether the answer may use this document. A question that names documents excludes all others."""
        only = self.turn.question.only_documents if self.turn else None
        return only is None or document_id in only


@dataclass(frozen=True)
class Result:
    """The result of a tool call. ``text`` is for the model.

    ``output``: text from which memories are extracted later. ``noted``: ids and numbers that are stored with the call's
    arguments. ``personal``: the text includes personal data other than memories. ``stays_here``: it includes local-only
    text of another workspace. ``shown``: the parts of documents, artifacts and other chats that it quotes.
    """

    text: str
    outcome: str
    memory_ids: tuple[str, ...] = ()
    count: int = 0
    output: str = ""
    noted: Mapping[str, object] = field(default_factory=dict)
    personal: bool = False
    stays_here: bool = False
    shown: tuple[Shown, ...] = ()


class Arguments(BaseModel):
    """Base class of the arguments that a model writes for a tool. Unknown arguments are ignored.

    Numbers may be strings. Null counts as missing, and so does "" for an optional field, except in the fields of
    ``nullable``.
    """

    nullable: ClassVar[frozenset[str]] = frozenset()

    model_config = ConfigDict(frozen=True, str_strip_whitespace=True)

    @model_validator(mode="before")
    @classmethod
    def _said(cls, payload: dict[str, Any]) -> dict[str, Any]:
        needed = {name for name, field in cls.model_fields.items() if field.is_required()}
        return {
            name: value
            for name, value in payload.items()
            if name in cls.nullable or (value is not None and (value != "" or name in needed))
        }


def at_most(longest: int) -> StringConstraints:
    return StringConstraints(min_length=1, max_length=longest)


def within(low: float, high: float) -> tuple[Any, ...]:
    """Return the annotations of a number field that replaces numbers outside a range by the nearest in it."""
    nearest = AfterValidator(lambda number: min(max(number, low), high))
    return nearest, Field(json_schema_extra={"minimum": low, "maximum": high})


A = TypeVar("A", bound=Arguments)


@dataclass(frozen=True)
class ChatTool(Generic[A]):
    """A tool that a chat's model can call. ``speaker`` is the author of the result.

    ``kept``: names of the arguments that are stored with the call, never the text of a memory. ``is_aside``: the tool
    only stores something, so if the model also wrote text in the same reply, the answer is complete.
    """

    name: str
    description: str
    takes: type[A]
    act: Callable[[ToolCaller, A], Result]
    speaker: Speaker
    kept: frozenset[str] = frozenset()
    is_aside: bool = False

    @cached_property
    def tool(self) -> Tool:
        return Tool(self.name, self.description, schema_of(self.takes))


@cache  # pydantic needs milliseconds per schema
def schema_of(takes: type[Arguments]) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments, as sent to the model."""
    whole = takes.model_json_schema()
    plain = {name: _plain(field) for name, field in whole["properties"].items()}
    needed = {"required": whole["required"]} if "required" in whole else {}
    return {"type": "object", "properties": plain, **needed}


def read_arguments(takes: type[A], text: str) -> A:
    """Return the validated arguments. Raises ToolTrouble naming every error."""
    if len(text) > MOST_ARGUMENTS:
        raise ToolTrouble(f"the arguments may have at most {MOST_ARGUMENTS:,} characters")
    try:
        payload = json.loads(text or "{}")
    except (ValueError, RecursionError):
        raise ToolTrouble("the arguments are not valid JSON; send one JSON object") from None
    if not isinstance(payload, dict):
        raise ToolTrouble("the arguments must be one JSON object")
    try:
        return takes.model_validate(payload)
    except ValidationError as error:
        wrong = [f"{detail['loc'][0]} {_sentence(detail)}" for detail in error.errors()]
        raise ToolTrouble("; ".join(wrong)) from None


def _plain(field: dict[str, Any]) -> dict[str, Any]:
    """Return a field's schema without titles, defaults and bounds, whose every word costs tokens in every turn."""
    of_type: dict[str, Any] = next((kind for kind in field.pop("anyOf", ()) if kind["type"] != "null"), {})
    return {
        name: value
        for name, value in {**of_type, **field}.items()
        if name not in {"title", "default", "minLength", "maxLength", "minimum", "maximum"}
    }


def _sentence(error: ErrorDetails) -> str:
    if error["type"] == "string_too_long":
        return f"may have at most {error['ctx']['max_length']:,} characters, and has {len(error['input'].strip()):,}"
    if error["type"] == "literal_error":
        return f"must be one of {error['ctx']['expected']}"
    if error["type"].startswith("date"):
        return "must be a day, such as 2026-03-15"
    return _SENTENCES.get(error["type"], "must be a number")


_SENTENCES = {
    "missing": "is required",
    "string_type": "must be text",
    "string_too_short": "must not be blank",
    "string_unicode": "must be text",
    "int_from_float": "must be a whole number",
    "list_type": "must be a list",
}


READ_AT_ONCE = 6000  # characters


Owned = TypeVar("Owned", Document, Artifact)


class ToRead(Arguments):
    id: Annotated[str, at_most(40)]
    start: Annotated[int, *within(0, 10**9)] = Field(0, alias="from")


def require_within_policy(caller: ToolCaller, resource: Owned) -> Owned:
    """Return the document or artifact ``resource`` if the caller may read it.

    Raises NotFound if it belongs to another workspace, or is personal and other people read the chat; ModelNotLocal if
    it is local-only and the model is remote.
    """
    is_shared = resource.owner_id is None
    if not (resource.workspace_id == caller.workspace.pk if is_shared else caller.policy.personal):
        raise NotFound
    if caller.policy.leaves and (caller.workspace.local_only or resource.workspace.local_only):
        raise ModelNotLocal
    return resource


def portion(caller: ToolCaller, resource: Owned, title: str, text: str, shown: Shown, *, of: int) -> Result:
    """Return one part of a long text, and from which position to continue. ``of`` is the length of the whole text."""
    start = shown.begins
    if not text:
        return Result("There is no text from there on.", ToolOutcome.FOUND)
    ends = start + len(text)
    go_on = f"\n(go on from {ends} of {of})" if ends < of else ""
    lines = "\n".join(map(escape, text.splitlines()))
    output = f"# {title}, characters {start} to {ends}\n{lines}{go_on}"
    return Result(
        output,
        ToolOutcome.FOUND,
        count=1,
        personal=resource.is_personal,
        stays_here=is_local_elsewhere(resource, caller.workspace),
        shown=(shown,),
    )
