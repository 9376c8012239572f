"""Base of the tools: definition, arguments, result, and reading long texts in portions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
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

from chat.chats.personal_memories import home_of
from chat.models import Chat, Message, ToolOutcome
from chat.prompting.provenance import Shown
from chat.prompting.text import escape
from memories.judging.extraction.provenance import Provenance
from memoryhub.errors import NotFound
from memoryhub.llm.base import Speaker, Tool
from memoryhub.llm.errors import ModelNotLocal
from workspaces.access import personal_place
from workspaces.models import Artifact, Document, Workspace
from workspaces.policy import Caller, stays_elsewhere

MOST_ARGUMENTS = 20_000  # characters of one call


class ToolTrouble(Exception):
    """A call that cannot be done, in words that let the model do better. They never quote stored text."""

    def __init__(self, message: str, outcome: str = ToolOutcome.ERROR) -> None:
        super().__init__(message)
        self.outcome = outcome


@dataclass(frozen=True)
class InChat:
    """The answer and the question of a stored chat that a tool is called for."""

    chat: Chat
    question: Message
    answer: Message


@dataclass(frozen=True)
class ToolCaller(Caller):
    """The user and context of a call. ``turn``: None if the conversation is not stored, as with programs that keep it
    themselves. ``call``: a name for this call that stays the same when a dead worker's call is repeated.
    ``provenance`` loads all that the model was shown; None if only a program knows it. ``alone``: in a run that only
    this person reads. ``stays_here``: that run may have read text that never leaves this machine.
    """

    turn: InChat | None = None
    call: str = ""
    provenance: Callable[[], Provenance] | None = None
    alone: bool = False
    stays_here: bool = False

    def home(self, *, own_words: bool = False) -> tuple[Workspace, bool]:
        """Return where it lies what the model makes, and whether it is the person's alone. Conflict: nowhere.

        ``own_words``: a person said it plainly in the chat, so it rests on nothing else that the answer was shown.
        """
        if self.turn is not None:
            return home_of(self.turn.chat, self.person, rests_on=None if own_words else self.turn.answer)
        if self.alone:
            return personal_place(self.person, said_in=self.workspace, stays_here=self.stays_here), True
        return self.workspace, False

    def may_draw_on(self, document_id: str) -> bool:
        """Return whether the question leaves this document to its answer: one that names its documents leaves no
        other.
        """
        only = self.turn.question.only_documents if self.turn else None
        return only is None or document_id in only


@dataclass(frozen=True)
class Result:
    """``text`` is what the model reads. ``output`` is what may be mined for memories later; most have none. ``noted``
    stays with the call beside its arguments: ids and numbers for its readers. ``personal``: something of the person's
    own, beside memories, is in it. ``stays_here``: text of another workspace that never leaves this machine is.
    ``shown``: what of documents, artifacts and other chats it quotes.
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
    """The arguments that a model wrote for a tool. Numbers may come as text; null, and "" for an optional field, count
    as left out, except in the fields of ``nullable``; unknown arguments are passed over.
    """

    nullable: ClassVar[frozenset[str]] = frozenset()

    model_config = ConfigDict(frozen=True, str_strip_whitespace=True)

    @model_validator(mode="before")
    @classmethod
    def _said(cls, given: dict[str, Any]) -> dict[str, Any]:
        needed = {name for name, field in cls.model_fields.items() if field.is_required()}
        return {
            name: value
            for name, value in given.items()
            if name in cls.nullable or (value is not None and (value != "" or name in needed))
        }


def at_most(longest: int) -> StringConstraints:
    return StringConstraints(min_length=1, max_length=longest)


def within(low: float, high: float) -> tuple[Any, ...]:
    """Return the annotation of a number in a range. A value beyond it becomes the nearest allowed one, without another
    round.
    """
    nearest = AfterValidator(lambda number: min(max(number, low), high))
    return nearest, Field(json_schema_extra={"minimum": low, "maximum": high})


A = TypeVar("A", bound=Arguments)


@dataclass(frozen=True)
class ChatTool(Generic[A]):
    """``kept`` names the arguments that stay with the chat for its readers: never the text of a memory. ``is_aside``:
    an answer that was given in the same breath needs no more words when it is done. ``speaker``: who says what a call
    returns; beside that ``Result.memory_ids`` and ``Result.shown`` name single sources.
    """

    name: str
    description: str
    takes: type[A]
    act: Callable[[ToolCaller, A], Result]
    speaker: Speaker
    kept: frozenset[str] = frozenset()
    is_aside: bool = False

    @property
    def tool(self) -> Tool:
        return Tool(self.name, self.description, schema_of(self.takes))


@cache  # pydantic takes milliseconds for each
def schema_of(takes: type[Arguments]) -> dict[str, Any]:
    """Return the JSON schema of the arguments for the model."""
    whole = takes.model_json_schema()
    plain = {name: _plain(field) for name, field in whole["properties"].items()}
    needed = {"required": whole["required"]} if "required" in whole else {}
    return {"type": "object", "properties": plain, **needed}


def read_arguments(takes: type[A], text: str) -> A:
    """Return the arguments a model wrote, checked. Raises ToolTrouble naming everything that is wrong."""
    if len(text) > MOST_ARGUMENTS:
        raise ToolTrouble(f"the arguments may have at most {MOST_ARGUMENTS:,} characters")
    try:
        given = json.loads(text or "{}")
    except (ValueError, RecursionError):
        raise ToolTrouble("the arguments are not valid JSON; send one JSON object") from None
    if not isinstance(given, dict):
        raise ToolTrouble("the arguments must be one JSON object")
    try:
        return takes.model_validate(given)
    except ValidationError as error:
        wrong = [f"{found['loc'][0]} {_sentence(found)}" for found in error.errors()]
        raise ToolTrouble("; ".join(wrong)) from None


def _plain(field: dict[str, Any]) -> dict[str, Any]:
    """Return a field's schema without pydantic's extras and without bounds: those are checked on call, and every turn
    pays for every word.
    """
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


def require_in_reach(caller: ToolCaller, found: Owned) -> Owned:
    """NotFound for what is of another workspace, and for the person's own where others read along; ModelNotLocal for
    what never leaves this machine.
    """
    is_here = found.workspace_id == caller.workspace.pk if found.owner_id is None else caller.reach.personal
    if not is_here:
        raise NotFound
    if caller.reach.leaves and (caller.workspace.local_only or found.workspace.local_only):
        raise ModelNotLocal
    return found


def portion(caller: ToolCaller, found: Owned, title: str, text: str, shown: Shown, *, of: int) -> Result:
    """Return the text of what is ``shown`` of this one, which has so many characters, and where to go on."""
    start = shown.begins
    if not text:
        return Result("There is no text from there on.", ToolOutcome.FOUND)
    ends = start + len(text)
    go_on = f"\n(go on from {ends} of {of})" if ends < of else ""
    lines = "\n".join(map(escape, text.splitlines()))
    said = f"# {title}, characters {start} to {ends}\n{lines}{go_on}"
    return Result(
        said,
        ToolOutcome.FOUND,
        count=1,
        personal=found.is_personal,
        stays_here=stays_elsewhere(found, caller.workspace),
        shown=(shown,),
    )
