"""What a caller wants remembered, and what no text of it may hold."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as later

from memories.judging.duplicates import normalise
from memories.judging.extraction.provenance import Source
from memories.judging.secret_filter import find_personal, find_secret
from memories.judging.validity import read_validity
from memories.models import Memory, Scope, SourceType
from memories.models.memory import CONTENT_LENGTH, RevisionAction, is_automatic, place_of
from memories.writing.field_rules import CLEANERS, LABEL_LENGTH, UNSTORABLE, check_validity, clean_text
from memories.writing.sources import clean_sources
from memories.writing.together import TEXTS, texts_of
from memoryhub.errors import Invalid, SecretRefused, Sensitive
from memoryhub.llm.base import Speaker
from workspaces.models import Agent, User, Workspace

EXCERPT_LENGTH = 6000
# What a number of somebody's own looks like, by the kind that the filter says.
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
    """A memory that is not one yet. ``author`` is the person behind it; personal scope makes it theirs alone, or
    ``owned_by``'s, who keeps another's words. ``edited_by`` changed these words at ``edited_at``; ``imported_by``
    imported them under another person's name at ``imported_at``.

    ``agent`` is the assistant in whose chats it is recalled, and comes with the scope of that name.
    """

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
    sources: Sequence[str] = ()  # more chats and messages that it comes from, by public id
    for_review: bool = False  # it waits for a person with the right to write
    was_in_use: bool = False  # elsewhere: it comes as it was, and waits for nobody
    confirmed: bool = False  # its person was asked about a number of their own, and wants it stored
    owned_by: User | None = None
    edited_by: User | None = None
    edited_at: datetime | None = None
    imported_by: User | None = None
    imported_at: datetime | None = None
    named: Collection[str] | None = None  # the fields its caller gave; None: those unlike a new memory's

    @property
    def workspace_id(self) -> int:
        return self.workspace.pk

    @property
    def changes(self) -> dict[str, Any]:
        """Return the fields of a cleaned draft that change a stored memory; fields left out are kept."""
        values = {name: getattr(self, name) for name in CLEANERS}
        unlike = {name for name, value in values.items() if value != _UNSAID.get(name)}
        named = {*(unlike if self.named is None else self.named), "content", "key"}
        return {name: value for name, value in values.items() if name in named}

    @cached_property
    def place(self) -> int:
        """Where the memory will be looked for; see ``Memory.place``."""
        owner, agent = self.owner, self.agent
        return place_of(
            self.workspace.pk, owner_id=owner.pk if owner else None, agent_id=agent.pk if agent else None
        )

    @cached_property
    def content_hash(self) -> str:
        return content_hash(self.content)

    @property
    def owner(self) -> User | None:
        """Whose alone it will be."""
        return (self.owned_by or self.author) if self.scope == Scope.USER else None

    @property
    def written_by(self) -> User | None:
        """Whose words they are; see ``Memory.written_by``."""
        return self.author if self.edited_at is None else self.edited_by

    def dated(self, said_at: datetime) -> Draft:
        """The draft, from when and until when it holds as its text says, unless its caller says so."""
        if self.valid_from is not None or self.valid_to is not None or self._says_when:
            return self
        return replace(self, **read_validity(self.content, said_at)._asdict())

    @property
    def _says_when(self) -> bool:
        """Whether its caller named a bound, if only to say that there is none."""
        return self.named is not None and not {"valid_from", "valid_to"}.isdisjoint(self.named)

    def is_over(self, at: datetime) -> bool:
        return self.valid_to is not None and self.valid_to <= at

    def to_review(self) -> Draft:
        return replace(self, for_review=True)

    def resting_on(self, source: Source) -> Draft:
        """The draft as it is where these are a person's own words; else for review, naming the source."""
        if source.speaker is Speaker.PERSON:
            return self
        named = {"rests_on": {"speaker": str(source.speaker), "id": source.id}}
        return replace(self, for_review=True, source_details={**self.source_details, **named})

    @property
    def is_automatic(self) -> bool:
        """Proposed by a model or noticed in a conversation; see ``Memory.is_automatic``."""
        return is_automatic(self.source_type)

    @property
    def may_be_sensitive(self) -> bool:
        """Whether it may hold a number of somebody's own: if a person said so of this very text."""
        return self.confirmed and not self.is_automatic and self.source_type != SourceType.IMPORT

    @cached_property
    def waits_for_review(self) -> bool:
        """``for_review``, or made by a model where the workspace reviews that; one's own is never its business."""
        reviewed = self.workspace.reviews_proposals and self.scope != Scope.USER
        return not self.was_in_use and (self.for_review or (self.is_automatic and reviewed))

    def cleaned(self) -> Draft:
        """The draft, every field stripped and checked.

        Raises Invalid, naming each wrong field, SecretRefused, or Sensitive unless its person confirmed it.
        """
        source_type = _origin(clean_text("source_type", self.source_type, LABEL_LENGTH)) or SourceType.USER
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
        if source_type not in SourceType.values and (found := find_secret(source_type)):
            raise SecretRefused(fields={"source_type": _("looks like a credential")}, kind=found.kind)
        check_validity(values["valid_from"], values["valid_to"])
        excerpt = UNSTORABLE.sub("", self.source_excerpt)[:EXCERPT_LENGTH]
        values["sources"] = clean_sources(self.sources)
        return replace(self, **values, source_type=source_type, source_excerpt=without_secrets(excerpt))


def clean_fields(values: Mapping[str, Any], *, personal: bool) -> dict[str, Any]:
    """The given fields of a memory, stripped and checked. Raises Invalid with every wrong field, or as
    ``refuse_delicate`` does.
    """
    cleaned, wrong = {}, {}
    for name, value in values.items():
        try:
            cleaned[name] = CLEANERS[name](name, value)
        except ValueError as error:
            wrong[name] = str(error)
    if wrong:
        raise Invalid(fields=wrong)
    refuse_delicate(cleaned, personal=personal)
    return cleaned


def refuse_delicate(
    values: Mapping[str, Any], beside: Mapping[str, Any] | None = None, *, personal: bool
) -> None:
    """Raises SecretRefused naming the field; the text itself goes nowhere. ``personal``: then, for a number of
    somebody's own, Sensitive naming what it looks like, never the number.

    ``beside``: other fields of the same memory, looked at for what they make together with these alone.
    """
    texts = texts_of(values, beside or {})
    for name, text in texts:
        if found := find_secret(text):
            raise SecretRefused(fields={name: _looks_like(name, _("a credential"))}, kind=found.kind)
    for name, text in texts if personal else ():
        if found := find_personal(text):
            raise Sensitive(fields={name: _looks_like(name, PERSONAL[found.kind])}, kind=found.kind)


def _looks_like(name: str, thing: str | Promise) -> str:
    return (_("look like %s") if name == "tags" else _("looks like %s")) % thing


def kind_in(memory: Memory) -> str:
    """The kind of credential that one of its fields holds by today's rules, or nothing.

    Or the kind of a number of somebody's own, where no person wrote, edited or restored the memory.
    """
    values = {name: getattr(memory, name) for name in TEXTS}
    try:
        refuse_delicate(values, personal=memory.is_automatic)
    except Sensitive as refused:
        acts = (RevisionAction.EDIT, RevisionAction.RESTORE)
        wanted = memory.revisions.filter(action__in=acts, by__isnull=False, imported=False).exists()
        return "" if wanted else refused.kind
    except SecretRefused as refused:
        return refused.kind or "credential"
    return ""


def without_secrets(excerpt: str) -> str:
    """The lines of a source excerpt that hold no credential and no number of somebody's own; nothing at all if one
    spans lines.
    """
    kept = "\n".join(line for line in excerpt.splitlines() if not is_delicate(line))
    return "" if kept and is_delicate(kept) else kept


def is_delicate(text: str) -> bool:
    """Whether it holds a credential or a number of somebody's own: nothing keeps or shows it unasked."""
    return bool(find_secret(text) or find_personal(text))


def cut_at_word(text: str, limit: int = CONTENT_LENGTH) -> str:
    """Text taken from a message, cut at a word to ``limit`` characters."""
    text = UNSTORABLE.sub("", text).strip()
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    boundary = max(head.rfind(" "), head.rfind("\n"))
    return (head[:boundary] if boundary > limit // 2 else head).rstrip() + "…"


def content_hash(content: str) -> str:
    """Equal for texts that differ in case, width, white space or closing punctuation only."""
    return hashlib.sha256(normalise(content).encode()).hexdigest()


def _origin(label: str) -> str:
    """The label of a source; in whatever case a caller writes it, an automatic one is automatic."""
    small = label.lower()
    return small if small in SourceType.values or small.startswith("auto_") else label


_UNSAID: dict[str, Any] = {"tags": [], "importance": Draft.importance, "pinned": Draft.pinned}
