"""Drafts of memories: their fields, the rules for each field (docs/api.md), and the check for credentials."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import permutations
from typing import Any

from django.db.models import Q
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later

from memories.judging.duplicates import normalise
from memories.judging.extraction.speaker import Source
from memories.judging.secret_filter import find_secret, find_secrets, find_sensitive
from memories.judging.secret_filter.values import is_technical
from memories.judging.stated_period import read_validity
from memories.models import Memory, MemorySource, Scope, SourceType
from memories.models.memory import (
    CATEGORY_LENGTH,
    CONTENT_LENGTH,
    KEY_LENGTH,
    MemoryQuerySet,
    RevisionAction,
    is_automatic,
    place_of,
)
from memoryhub.errors import Invalid, SecretRefused, Sensitive
from memoryhub.ids import LENGTH
from memoryhub.llm.base import Speaker
from memoryhub.localization import grouped
from workspaces.models import Agent, User, Workspace

# Sources of memories: the public ids of chats and messages. Callers' ids are never looked up, and an id opens a chat
# only for people who may open it anyway.

MOST_SOURCES = 20
TYPES = {"chat": "chat", "msg": "message"}  # by the prefix of the id
FORM = re.compile(rf"({'|'.join(TYPES)})_[A-Za-z0-9]{{{LENGTH}}}")


def clean_sources(ids: Sequence[str]) -> list[str]:
    """Return the ids without repetitions. Raises Invalid for more than MOST_SOURCES, or not of chats or messages."""
    if len(ids) > MOST_SOURCES:
        raise Invalid(fields={"sources": _("may have at most %s entries") % MOST_SOURCES})
    for each in ids:
        if not isinstance(each, str) or not FORM.fullmatch(each):
            raise Invalid(fields={"sources": _("must be ids of chats (chat_…) or messages (msg_…)")})
    return list(dict.fromkeys(ids))


def add_sources(memory: Memory, ids: Iterable[str]) -> None:
    """Add cleaned source ids to a new memory. Call this in the transaction that creates it."""
    MemorySource.objects.bulk_create(MemorySource(memory=memory, source_id=each) for each in ids)


def sources_of(memory: Memory) -> list[dict[str, str]]:
    """Return ``{type, id}`` of each source: where the memory was extracted, then those that API callers named."""
    own = [memory.source_chat_id, memory.source_message_id]
    source_ids = [source.source_id for source in memory.sources.all()]
    ids = dict.fromkeys(each for each in [*own, *source_ids] if each)
    return [{"type": TYPES.get(each.split("_")[0], "other"), "id": each} for each in ids]


def from_source(memories: MemoryQuerySet, source_id: str) -> MemoryQuerySet:
    named = Q(pk__in=MemorySource.objects.filter(source_id=source_id).values("memory"))
    return memories.filter(named | Q(source_chat_id=source_id) | Q(source_message_id=source_id))


TAG_LENGTH = 50
TAGS = 20
LABEL_LENGTH = 50
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # Postgres stores neither


def clean_text(value: Any, limit: int) -> str:
    if not isinstance(value, str):
        raise ValueError(_("must be text"))
    if UNSTORABLE.search(value):
        raise ValueError(_("has a character that cannot be stored (NUL or half of a surrogate pair)"))
    text = value.strip()
    if len(text) > limit:
        numbers = grouped(limit), grouped(len(text))
        raise ValueError(_("may have at most %s characters and has %s") % numbers)
    return text


def _content(value: Any) -> str:
    text = clean_text(value, CONTENT_LENGTH)
    if not text:
        raise ValueError(_("is required: 1 to %s characters") % grouped(CONTENT_LENGTH))
    return text


def _label(limit: int) -> Any:
    return lambda value: None if value is None else clean_text(value, limit) or None


def _tags(value: Any) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError(_("must be a list of short texts"))
    tags = [clean_text(tag, TAG_LENGTH) for tag in value]
    tags = list(dict.fromkeys(tag for tag in tags if tag))
    if len(tags) > TAGS:
        raise ValueError(_("may have at most %s entries") % TAGS)
    return tags


def _importance(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(_("must be a number from 0 to 1"))
    if not 0 <= value <= 1:
        raise ValueError(_("must be from 0 to 1"))
    return float(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(_("must be true or false"))
    return value


def _moment(value: Any) -> datetime | None:
    if value is None:
        return None
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise ValueError(_("must be a date and time with a time zone, or empty"))
    return value


CLEANERS: dict[str, Any] = {
    "content": _content,
    "summary": _label(CONTENT_LENGTH),
    "key": _label(KEY_LENGTH),
    "category": _label(CATEGORY_LENGTH),
    "tags": _tags,
    "importance": _importance,
    "pinned": _flag,
    "expires_at": _moment,
    "valid_from": _moment,
    "valid_to": _moment,
}


def check_validity(valid_from: datetime | None, valid_to: datetime | None) -> None:
    if valid_from is not None and valid_to is not None and valid_to < valid_from:
        raise Invalid(fields={"valid_to": _("must not be before it begins to hold")})


TEXTS = ("content", "summary", "key", "category", "tags")
PIECE_LENGTH = 120  # characters of a field that are checked together with another field
_DIGIT = re.compile("[0-9]")


def texts_of(values: Mapping[str, Any], beside: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the texts to check, as (field name, text): the fields, and combinations of two, also with ``beside``."""
    texts = [(name, values[name]) for name in ("content", "summary", "key", "category") if values.get(name)]
    if values.get("tags"):
        texts.append(("tags", "\n".join(values["tags"])))
    every = {**beside, **values}
    if every.get("key") and every.get("content") and values.keys() & {"key", "content"}:
        texts.append(("content", f"{every['key']}={every['content']}"))
    pieces = [(name, text) for name in TEXTS for text in _pieces(name, every.get(name))]
    for name in TEXTS:
        pairs = [
            (label, value)
            for (other, label), (own, value) in permutations(pieces, 2)
            if own == name and (own in values or other in values)
            if own != other or _DIGIT.search(label + value)  # tags without digits form no statement
        ]
        if pairs:
            joined = (each for label, value in pairs for each in _joined(label, value, name))
            texts.append((name, "\n.\n".join(joined)))
    return texts


def _pieces(name: str, value: Any) -> list[str]:
    return list(value or ()) if name == "tags" else [value] if value else []


def _joined(label: str, value: str, name: str) -> Iterator[str]:
    """Yield two fields joined, such as "password" and "hunter2", to find a credential that is split between them.

    ``name`` is the field of ``value``. The form "label: value" is left out if ``value`` is a sentence or a label.
    """
    label, value = label[-PIECE_LENGTH:], value[:PIECE_LENGTH]
    yield f"{label} {value}"
    first, *more = value.split(maxsplit=1)
    plain = first.rstrip(".,;:!?").replace("'", "").replace("-", "").isalpha()
    if name in ("content", "summary"):
        is_value = not (more and plain)
    else:
        is_value = any(char.isdigit() for char in value) and not is_technical(value)
    if is_value:
        yield f"{label}: {value}"


EXCERPT_LENGTH = 6000
# The name of each kind of personal number that the filter finds.
PERSONAL = {
    "card": later("a card number"),
    "cvv": later("a card's security code"),
    "pin": later("a PIN or an access code"),
    "iban": later("an account number"),
    "national_id": later("an identity card number"),
    "passport": later("a passport number"),
    "recovery_code": later("a recovery code"),
    "wallet_key": later("a wallet key"),
    "too_many_numbers": later("a list of personal numbers"),
}


@dataclass(frozen=True)
class Draft:
    """The fields of a memory before it is stored. A personal one belongs to ``owned_by``, or else to the author."""

    content: str
    workspace: Workspace
    author: User | None
    category: str | None = None
    key: str | None = None
    summary: str | None = None
    tags: Sequence[str] = ()
    importance: float = 0.5
    pinned: bool = False
    expires_at: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    scope: str = Scope.WORKSPACE
    agent: Agent | None = None
    source_type: str = SourceType.USER
    source_chat_id: str = ""
    source_message_id: str = ""
    source_excerpt: str = ""
    source_details: Mapping[str, Any] = field(default_factory=dict)
    sources: Sequence[str] = ()  # public ids of further source chats and messages
    for_review: bool = False  # stored as a proposal, for an editor to approve
    was_in_use: bool = False  # imported from another installation where it was live, so it needs no review
    confirmed: bool = False  # the person confirmed that a personal number may be stored
    owned_by: User | None = None
    edited_by: User | None = None
    edited_at: datetime | None = None
    imported_by: User | None = None
    imported_at: datetime | None = None
    named: Collection[str] | None = None  # fields the caller gave; None: those unlike the defaults

    @cached_property
    def workspace_id(self) -> int:
        return self.workspace.pk

    @property
    def changes(self) -> dict[str, Any]:
        """Return the fields with which a cleaned draft updates a stored memory, by name. Other fields stay as stored.

        ``content`` and ``key`` are always included. The others are those in ``named`` or, if that is None, those that
        differ from the defaults.
        """
        values = {name: getattr(self, name) for name in CLEANERS}
        unlike = {name for name, value in values.items() if value != _UNSAID.get(name)}
        named = {*(unlike if self.named is None else self.named), "content", "key"}
        return {name: value for name, value in values.items() if name in named}

    @cached_property
    def place(self) -> int:
        owner_id, agent_id = (row.pk if row else None for row in (self.owner, self.agent))
        return place_of(self.workspace.pk, owner_id=owner_id, agent_id=agent_id)

    @cached_property
    def content_hash(self) -> str:
        return content_hash(self.content)

    @cached_property
    def owner(self) -> User | None:
        """Return the person to whom the memory will belong, or None if it will be shared."""
        return (self.owned_by or self.author) if self.scope == Scope.USER else None

    @cached_property
    def written_by(self) -> User | None:
        return self.author if self.edited_at is None else self.edited_by

    def dated(self, said_at: datetime) -> Draft:
        """Return the draft with the validity that its text, said at ``said_at``, states, unless the caller gave one."""
        is_named = self.named is not None and not {"valid_from", "valid_to"}.isdisjoint(self.named)
        if self.valid_from is not None or self.valid_to is not None or is_named:
            return self
        validity = read_validity(self.content, said_at)
        return replace(self, **validity._asdict()) if any(validity) else self

    def is_over(self, at: datetime) -> bool:
        return self.valid_to is not None and self.valid_to <= at

    def to_review(self) -> Draft:
        return replace(self, for_review=True)

    def with_source(self, source: Source) -> Draft:
        """Return the draft, marked for review with the source of its text unless that is a person's own words."""
        if source.speaker is Speaker.PERSON:
            return self
        named = {"rests_on": {"speaker": str(source.speaker), "id": source.id}}
        return replace(self, for_review=True, source_details={**self.source_details, **named})

    @cached_property
    def is_automatic(self) -> bool:
        return is_automatic(self.source_type)

    @property
    def may_be_sensitive(self) -> bool:
        """Return whether the draft may contain a personal number, because a person confirmed exactly this text."""
        return self.confirmed and not self.is_automatic and self.source_type != SourceType.IMPORT

    @cached_property
    def waits_for_review(self) -> bool:
        """Return whether the draft becomes a proposal: marked, or shared and automatic in a workspace with reviews."""
        reviewed = self.workspace.reviews_proposals and self.scope != Scope.USER
        return not self.was_in_use and (self.for_review or (self.is_automatic and reviewed))

    def cleaned(self) -> Draft:
        """Return the draft with every field stripped and validated.

        Raises Invalid naming each wrong field, SecretRefused for a credential, or Sensitive for an unconfirmed personal
        number.
        """
        source_type = _origin(clean_text(self.source_type, LABEL_LENGTH)) or SourceType.USER
        personal = not replace(self, source_type=source_type).may_be_sensitive
        values = clean_fields({name: getattr(self, name) for name in CLEANERS}, personal=personal)
        if self.scope not in Scope.values:
            raise Invalid(fields={"scope": _("must be one of %s") % ", ".join(Scope.values)})
        if self.scope == Scope.USER and self.owner is None:
            raise Invalid(fields={"scope": _("a personal memory needs a person")})
        if self.scope == Scope.AGENT and self.agent is None:
            raise Invalid(fields={"agent_id": _("is required when the scope is agent")})
        if self.scope != Scope.AGENT and self.agent is not None:
            raise Invalid(fields={"agent_id": _("is only allowed when the scope is agent")})
        if self.agent is not None and self.agent.workspace_id != self.workspace.pk:
            raise Invalid(fields={"agent_id": _("is not an assistant of this workspace")})
        if source_type not in SourceType.values and (finding := find_secret(source_type)):
            raise SecretRefused(fields={"source_type": _("looks like a credential")}, kind=finding.kind)
        check_validity(values["valid_from"], values["valid_to"])
        excerpt = UNSTORABLE.sub("", self.source_excerpt)[:EXCERPT_LENGTH]
        values["sources"] = clean_sources(self.sources)
        return replace(self, **values, source_type=source_type, source_excerpt=without_secrets(excerpt))


def clean_fields(values: Mapping[str, Any], *, personal: bool) -> dict[str, Any]:
    """Return the given fields, stripped and validated. Raises Invalid for wrong ones, and as ``refuse_sensitive``."""
    cleaned, wrong = {}, {}
    for name, value in values.items():
        try:
            cleaned[name] = CLEANERS[name](value)
        except ValueError as error:
            wrong[name] = str(error)
    if wrong:
        raise Invalid(fields=wrong)
    refuse_sensitive(cleaned, personal=personal)
    return cleaned


def refuse_sensitive(
    values: Mapping[str, Any], beside: Mapping[str, Any] | None = None, *, personal: bool
) -> None:
    """Raise SecretRefused if a field holds a credential, or with ``personal`` Sensitive if one holds such a number.

    The errors name the field and the kind, but never contain the text. ``beside``: see ``texts_of``.
    """
    texts = texts_of(values, beside or {})
    findings = (find_sensitive if personal else find_secrets)([text for _name, text in texts])
    field_kinds = [(name, each.kind) for (name, _text), each in zip(texts, findings, strict=True) if each]
    for name, kind in field_kinds:
        if kind not in PERSONAL:
            raise SecretRefused(fields={name: _looks_like(name, _("a credential"))}, kind=kind)
    for name, kind in field_kinds:
        raise Sensitive(fields={name: _looks_like(name, PERSONAL[kind])}, kind=kind)


def _looks_like(name: str, thing: str | Promise) -> str:
    return (_("look like %s") if name == "tags" else _("looks like %s")) % thing


def kind_in(memory: Memory) -> str:
    """Return the kind of credential that the current rules find in a memory, or "".

    Personal numbers also count in an automatic memory that no person has edited or restored. At most one query.
    """
    values = {name: getattr(memory, name) for name in TEXTS}
    try:
        refuse_sensitive(values, personal=memory.is_automatic)
    except Sensitive as refused:
        acts = (RevisionAction.EDIT, RevisionAction.RESTORE)
        wanted = memory.revisions.filter(action__in=acts, by__isnull=False, imported=False).exists()
        return "" if wanted else refused.kind
    except SecretRefused as refused:
        return refused.kind or "credential"
    return ""


def without_secrets(excerpt: str) -> str:
    """Return the lines of an excerpt without a credential or personal number, or "" if one spans several lines."""
    lines = excerpt.splitlines()
    *findings, in_all = find_sensitive([*lines, "\n".join(lines)])
    if any(findings):
        safe_text = "\n".join(line for line, each in zip(lines, findings, strict=True) if not each)
        return "" if is_sensitive(safe_text) else safe_text
    return "" if in_all else "\n".join(lines)


def is_sensitive(text: str) -> bool:
    """Return whether a text contains a credential or a personal number."""
    return find_sensitive([text])[0] is not None


def cut_at_word(text: str, limit: int = CONTENT_LENGTH) -> str:
    """Return the text without characters that Postgres cannot store, cut at a word boundary to ``limit`` characters."""
    text = UNSTORABLE.sub("", text).strip()
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    boundary = max(head.rfind(" "), head.rfind("\n"))
    return (head[:boundary] if boundary > limit // 2 else head).rstrip() + "…"


def content_hash(content: str) -> str:
    """Return a hash of the text without case, character width, white space and closing punctuation."""
    return hashlib.sha256(normalise(content).encode()).hexdigest()


def _origin(label: str) -> str:
    """Return a source label as it is stored: in lower case if it is built-in or begins with "auto_", else unchanged."""
    small = label.lower()
    return small if small in SourceType.values or small.startswith("auto_") else label


_UNSAID: dict[str, Any] = {"tags": [], "importance": Draft.importance, "pinned": Draft.pinned}
