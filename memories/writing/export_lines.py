"""Conversion of memories to lines of an export file and back (docs/exchange.md). Derived fields are left out."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from memories.judging.secret_filter import find_personal, find_secret
from memories.models import Memory, Review, Scope
from memories.models.memory import RevisionAction
from memories.writing.drafts import CLEANERS, LABEL_LENGTH, UNSTORABLE, Draft, clean_fields
from memoryhub.errors import Invalid, SecretRefused, Sensitive
from memoryhub.localization import grouped
from workspaces.models import Agent, User, Workspace

PLAIN = ("content", "summary", "key", "category", "tags", "importance", "pinned", "scope", "source_type")
SOURCE = ("source_chat_id", "source_message_id", "source_excerpt", "source_details")
# fmt: off
DATES = (
    "expires_at", "valid_from", "valid_to", "created_at", "updated_at", "edited_at", "imported_at",
    "last_accessed_at", "deleted_at",
)
# fmt: on
_MOMENTS = ("expires_at", "valid_from", "valid_to", "edited_at", "imported_at")  # fields of a draft
ID_LENGTH = 32
DETAILS_LENGTH = 10_000  # characters of source details, as JSON
REVISIONS = 5_000
SOURCES = 100

Find = Callable[[str], User | None]  # look up a person by the user name in the file


@dataclass(frozen=True)
class PastRevision:
    action: str
    at: datetime
    by: User | None = None
    before: Mapping[str, Any] | None = None
    imported: bool = True


@dataclass(frozen=True)
class Past:
    """The ids, times and history of an imported memory. Missing values default to those of a new memory."""

    public_id: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None
    last_accessed_at: datetime | None = None
    deleted_at: datetime | None = None
    review: str = ""
    may_replace: str = ""  # a public id
    replaces: tuple[str, ...] = ()  # public ids
    sources: tuple[str, ...] = ()  # public ids
    revisions: tuple[PastRevision, ...] = ()


def memory_line(memory: Memory) -> dict[str, Any]:
    """Return a memory, with its relations prefetched, as the JSON object for a line of an export."""
    line: dict[str, Any] = {"type": "memory", "id": memory.public_id, "workspace": memory.workspace.public_id}
    line |= {name: getattr(memory, name) for name in (*PLAIN, *SOURCE)}
    line |= {name: _written(getattr(memory, name)) for name in DATES}
    for name in ("owner", "author", "edited_by", "imported_by"):
        person = getattr(memory, name)
        line[name] = person.get_username() if person else None
    line["agent"] = memory.agent.public_id if memory.agent else None
    line["review"] = memory.review
    line["sources"] = [source.source_id for source in memory.sources.all()]
    line["may_replace"] = memory.may_replace.public_id if memory.may_replace else None
    line["replaces"] = [older.public_id for older in memory.replaces.all() if older.pk < memory.pk]
    line["revisions"] = [
        {
            "action": revision.action,
            "by": revision.by.get_username() if revision.by else None,
            "at": _written(revision.at),
            "before": revision.before,
            "imported": revision.imported,
        }
        for revision in sorted(memory.revisions.all(), key=lambda revision: revision.pk)
    ]
    return line


@dataclass(frozen=True)
class ReadMemory:
    """A parsed and validated line of an export, with names and ids as in the file. The draft has no workspace yet."""

    draft: Draft
    past: Past
    workspace: str
    author: str
    edited_by: str
    imported_by: str
    agent: str
    revisers: tuple[str, ...]


def read_memory(line: Mapping[str, Any]) -> ReadMemory:
    """Parse and validate a line of an export. Raises Invalid for a wrong field, or SecretRefused for a credential."""
    values = {name: line[name] for name in CLEANERS if name in line and name not in _MOMENTS}
    named = frozenset(name for name in CLEANERS if name in line)
    values |= {name: read_moment(name, line.get(name)) for name in _MOMENTS}
    scope = line.get("scope", Scope.WORKSPACE)
    nowhere = Workspace()
    draft = Draft(
        **({"content": None} | values),  # cleaned below
        workspace=nowhere,
        author=User() if scope == Scope.USER else None,
        scope=scope if isinstance(scope, str) else "",
        agent=Agent(workspace=nowhere) if scope == Scope.AGENT else None,
        source_type=_short("source_type", line.get("source_type", "import"), LABEL_LENGTH),
        source_chat_id=_short("source_chat_id", line.get("source_chat_id", ""), ID_LENGTH),
        source_message_id=_short("source_message_id", line.get("source_message_id", ""), ID_LENGTH),
        source_excerpt=_text("source_excerpt", line.get("source_excerpt", "")),
        source_details=_details(line.get("source_details")),
        named=named,
    )
    revisions = line.get("revisions") or []
    if not isinstance(revisions, list) or len(revisions) > REVISIONS:
        raise Invalid(fields={"revisions": _("must be a list of at most %s") % grouped(REVISIONS)})
    past = Past(
        public_id=_text("id", line.get("id", "")),
        review=_review(line),
        sources=_ids(line, "sources"),
        may_replace=_text("may_replace", line.get("may_replace") or ""),
        replaces=_ids(line, "replaces"),
        revisions=tuple(_revision(revision) for revision in revisions),
        **{name: read_moment(name, line.get(name)) for name in DATES if name not in values},
    )
    return ReadMemory(
        draft.cleaned(),
        past,
        workspace=_text("workspace", line.get("workspace", "")),
        author=_name("author", line.get("author")),
        edited_by=_name("edited_by", line.get("edited_by")),
        imported_by=_name("imported_by", line.get("imported_by")),
        agent=_text("agent", line.get("agent") or ""),
        revisers=tuple(_name("revisions.by", revision.get("by")) for revision in revisions),
    )


def draft_of(
    read: ReadMemory,
    *,
    workspace: Workspace,
    importer: User,
    person: Find,
    agent: Agent | None,
    now: datetime,
) -> tuple[Draft, Past]:
    """Return the draft and history with which to store a parsed memory in this workspace.

    A personal memory always goes to the importer. An author without an account is named in the source details. Words of
    anyone but the importer are marked as imported.
    """
    draft = read.draft
    author = person(read.author) if read.author else None
    details = dict(draft.source_details)
    if read.author and author is None:
        details["author"] = read.author
    draft = replace(
        draft,
        workspace=workspace,
        author=importer if draft.scope == Scope.USER else author,
        edited_by=person(read.edited_by) if read.edited_by else None,
        agent=agent,
        source_details=details,
    )
    marks = import_marks(
        draft.written_by, importer, draft.imported_at, lambda: person(read.imported_by), now=now
    )
    draft = replace(draft, **marks)
    revisions = tuple(
        # Marked as imported, unless it is the importer's own and has no mark in the file.
        replace(revision, by=who, imported=revision.imported or who != importer)
        for revision, name in zip(read.past.revisions, read.revisers, strict=True)
        for who in [person(name) if name else None]
    )
    return draft, replace(read.past, revisions=revisions)


def import_marks(
    written_by: User | None,
    importer: User,
    imported_at: datetime | None,
    imported_by: Callable[[], User | None],
    *,
    now: datetime,
) -> dict[str, Any]:
    """Return the fields ``imported_by`` and ``imported_at`` of an imported row.

    Both are None if the importer wrote the words and the file has no mark. Only an administrator's file is trusted to
    name another importer.
    """
    if imported_at is None and written_by == importer:
        return {"imported_by": None, "imported_at": None}
    is_kept = imported_at is not None and importer.is_superuser
    return {
        "imported_by": imported_by() if is_kept else importer,
        "imported_at": min(imported_at, now) if imported_at else now,
    }


def _revision(revision: Any) -> PastRevision:
    if not isinstance(revision, dict) or revision.get("action") not in RevisionAction.values:
        raise Invalid(fields={"revisions": _("each must be an object with a known action")})
    at = read_moment("revisions.at", revision.get("at"))
    if at is None:
        raise Invalid(fields={"revisions.at": _("is required")})
    before = revision.get("before") or {}
    if not isinstance(before, dict) or not set(before) <= {*CLEANERS, "source_excerpt", "key_went_to"}:
        raise Invalid(fields={"revisions.before": _("must be an object of a memory's fields")})
    moments = {name: read_moment(name, before[name]) for name in _MOMENTS if name in before}
    fields = {name: value for name, value in before.items() if name in CLEANERS}
    clean_fields(fields | moments, personal=True)
    _short("revisions.before.key_went_to", before.get("key_went_to", ""), ID_LENGTH)
    refuse_hidden_secrets("revisions.before", before.get("source_excerpt", ""))
    return PastRevision(
        revision["action"],
        at,
        before=storable("revisions.before", before),
        imported=revision.get("imported") is True,
    )


def read_moment(name: str, value: Any) -> datetime | None:
    """Parse an ISO 8601 date and time with a time zone. None stays None. Raises Invalid for any other value."""
    if value is None:
        return None
    # A date that does not exist, or overflows in UTC, is refused below like every invalid value.
    with suppress(ValueError, OverflowError):
        moment = parse_datetime(value) if isinstance(value, str) else None
        if moment is not None and moment.tzinfo is not None:
            return moment.astimezone(UTC)
    raise Invalid(fields={name: _("must be a date and time with a time zone, or null")})


def storable(name: str, value: Any) -> Any:
    """Return a JSON value unchanged. Raises Invalid if the database cannot store it."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    except (ValueError, RecursionError):
        raise Invalid(fields={name: _("must be plain JSON")}) from None
    if UNSTORABLE.search(text) or "\\u0000" in text:
        raise Invalid(fields={name: _("has a character that cannot be stored")})
    return value


def refuse_hidden_secrets(name: str, value: Any) -> None:
    """Raise SecretRefused or Sensitive for a credential or personal number in a JSON value, alone or with its key."""
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        label, part = waiting.pop()
        if isinstance(part, dict):
            waiting += part.items()
        elif isinstance(part, list):
            waiting += [(label, each) for each in part]
        elif isinstance(part, str):
            for text in (part, f"{label}={part}") if label else (part,):
                if find_secret(text):
                    raise SecretRefused(fields={name: _("looks like a credential")})
                if find_personal(text):
                    raise Sensitive(fields={name: _("looks like a personal number")})


def _details(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict) or len(json.dumps(storable("source_details", value))) > DETAILS_LENGTH:
        message = _("must be an object of at most %s characters") % grouped(DETAILS_LENGTH)
        raise Invalid(fields={"source_details": message})
    refuse_hidden_secrets("source_details", value)
    return dict(value)


def _review(line: Mapping[str, Any]) -> str:
    review = line.get("review", Review.NONE)
    if review not in Review.values or (review and line.get("deleted_at") is None):
        raise Invalid(fields={"review": _("must be a known review state, and needs deleted_at")})
    return str(review)


def _ids(line: Mapping[str, Any], name: str) -> tuple[str, ...]:
    ids = line.get(name) or []
    if not isinstance(ids, list) or len(ids) > SOURCES:
        raise Invalid(fields={name: _("must be a list of at most %s ids") % SOURCES})
    return tuple(dict.fromkeys(_short(name, each, ID_LENGTH) for each in ids))


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or UNSTORABLE.search(value):
        raise Invalid(fields={name: _("must be text")})
    return value


def _short(name: str, value: Any, limit: int) -> str:
    text = _text(name, value)
    if len(text) > limit:
        raise Invalid(fields={name: _("may have at most %s characters") % limit})
    return text


def _name(name: str, value: Any) -> str:
    return "" if value is None else _short(name, value, 150)


def _written(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).isoformat() if moment else None
