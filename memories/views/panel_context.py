"""Queries and forms of the memory panel, with paging, filters, and search by meaning and by words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time
from typing import Any

from django import forms
from django.db.models import Exists, OuterRef, Prefetch, Q, Subquery, prefetch_related_objects
from django.db.models.functions import Lower
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memories.access import live_in, own_elsewhere
from memories.models import Memory, Revision, Scope
from memories.models.memory import (
    CATEGORY_LENGTH,
    CONTENT_LENGTH,
    MAY_REPLACE,
    MEMORY,
    MemoryQuerySet,
    RevisionAction,
)
from memories.recalling.recall import find_listed
from memories.writing import review
from memories.writing.changing import version_of
from memoryhub.database.replicas import read
from memoryhub.errors import Invalid, Sensitive
from memoryhub.llm.base import Speaker
from memoryhub.llm.registry import embedder_is_local, get_embedder
from workspaces.access import get_workspace, workspaces_of
from workspaces.data_policy import DataPolicy
from workspaces.index.embedding import searchable
from workspaces.models import Agent, Artifact, Document, Role, User, Workspace
from workspaces.views import PageRequest

PAGE_SIZE = 8  # cards; more are loaded on scrolling
PROPOSALS_SHOWN = 20
MOST_WORDS = 8  # of a search; each word scans the workspace's rows
MOST_ASSISTANTS = 200  # in the filter, archived ones included
# The columns that a card shows. The joined tables have ninety, and each one takes time for every row.
# fmt: off
ON_CARD = (
    "public_id", "workspace__public_id", "workspace__local_only", "owner", "content", "scope", "category",
    "pinned", "source_type", "source_chat_id", "source_message_id", "source_details", "created_at",
    "author__username", "author__first_name", "author__last_name", "edited_at", "imported_at",
    "imported_by__username", "imported_by__first_name", "imported_by__last_name", "edited_by__username",
    "edited_by__first_name", "edited_by__last_name", "agent__name", "may_replace__public_id",
    "may_replace__content", "may_replace__deleted_at", "may_replace__expires_at", "may_replace__replaced_by",
    "valid_from", "valid_to", "replaced_by", "deleted_at",
)
# fmt: on


@dataclass(frozen=True)
class PanelFilters:
    """Filters of the panel. ``pinned``: only pinned memories. ``review``: only those that may replace an older one."""

    q: str = ""
    category: str = ""
    source: str = ""
    pinned: bool = False
    review: bool = False
    whose: str = ""  # a scope, or the id of the assistant in whose chats it is recalled
    forgotten: bool = False  # used on the Memory page only

    def __bool__(self) -> bool:
        return bool(self.q.strip()) or self.narrows

    @property
    def narrows(self) -> bool:
        """Return whether a filter other than the search text is set."""
        return any((self.category, self.source, self.pinned, self.review, self.whose, self.forgotten))


@dataclass(frozen=True)
class PanelPage:
    """A page of memories. ``next`` is the id of its last memory if another page follows, else ""."""

    memories: list[Memory]
    next: str = ""


def workspace_context(
    request: PageRequest, ws_id: str, need: Role = Role.VIEWER
) -> tuple[Workspace, dict[str, Any]]:
    """Return the workspace, and the context of its memory pages. Raises Forbidden for a role below ``need``."""
    workspace = get_workspace(request.user, ws_id, need=need)
    return workspace, {"workspace": workspace, "can_write": Role(workspace.role).allows(Role.EDITOR)}


def changed_notice(request: PageRequest, workspace: Workspace, text: str, undo_url: str = "") -> HttpResponse:
    """Return a notice with Undo, and trigger ``memories:changed``, on which fragments with memories reload."""
    context = {"workspace": workspace, "text": text, "undo_url": undo_url, "memory": True}
    response = render(request, "partials/toast_oob.html", context)
    response["HX-Trigger"] = "memories:changed"
    return response


def for_cards(memories: MemoryQuerySet) -> MemoryQuerySet:
    """Order memories newest first, and load only the columns that cards show."""
    beside = ("workspace", "author", "edited_by", "imported_by", "agent", "may_replace")
    shown = memories.select_related(*beside).only(*ON_CARD)
    return shown.annotate(has_vector=searchable(MEMORY)).order_by("-created_at", "-id")


def on_cards(memories: list[Memory]) -> list[Memory]:
    """Set ``files``, ``origins`` (sources) and ``is_searchable`` on memories from ``for_cards``. Two queries."""
    no_embedder, is_local = get_embedder() is None, embedder_is_local()
    for memory in memories:
        by_words_for_good = no_embedder or (memory.workspace.local_only and not is_local)
        memory.is_searchable = by_words_for_good or memory.has_vector  # type: ignore[attr-defined]
    files, origins = Prefetch("assets", to_attr="files"), Prefetch("sources", to_attr="origins")
    prefetch_related_objects(memories, files, origins)
    return memories


def search_panel(
    workspace: Workspace,
    user: User,
    filters: PanelFilters,
    *,
    before: str = "",
    size: int = PAGE_SIZE,
    by_meaning: bool = True,
) -> PanelPage:
    """Return a page of the workspace's live memories and the user's personal ones from other workspaces, newest first.

    Results of recall come first, best first; memories that contain every word follow. Five queries and one recall.
    """
    best = _by_meaning(workspace, user, filters) if by_meaning else []

    def ask() -> PanelPage:
        last = _last(before, workspace, user)
        if before and last is None:
            return PanelPage([])
        candidates: list[Memory] = []
        for memories in (live_in(workspace, user), own_elsewhere(workspace, user)):
            rows = filtered(memories, filters).exclude(pk__in=best)
            rows = rows.after(*last) if last else rows
            candidates += for_cards(rows)[: size + 1]
        candidates.sort(key=lambda memory: (memory.created_at, memory.pk), reverse=True)
        shown = candidates[:size]
        more = shown[-1].public_id if len(candidates) > size else ""
        if best and not before:
            shown = _ranked(best, filters, user) + shown
        return PanelPage(on_cards(shown), more)

    return read(user.pk, ask)


def search_forgotten(
    workspace: Workspace, user: User, filters: PanelFilters, *, before: str = "", size: int = PAGE_SIZE
) -> PanelPage:
    """Return a page of the deleted memories that the user may restore, last deleted first.

    Editors may restore all memories of the workspace, and everybody their own personal ones. Memories that were not
    deleted by a person are left out: those hidden as a credential, merged, or evicted at the limit.
    """
    here = Q(workspace=workspace) if Role(workspace.role).allows(Role.EDITOR) else Q(pk=None)
    gone = Memory.objects.visible_to(user).filter(here | Q(owner=user), deleted_at__isnull=False, review="")
    changes = Revision.objects.filter(memory=OuterRef("pk")).order_by("-pk").values("action")
    gone = gone.annotate(gone_by=Subquery(changes[:1])).filter(gone_by=RevisionAction.DELETE)
    forgettable = Memory.objects.forgettable_by(user).filter(pk=OuterRef("pk"))
    gone = gone.annotate(may_forget=Exists(forgettable))
    rows = filtered(gone, filters)
    if before:
        last = gone.filter(public_id=before).values_list("deleted_at", "pk").first()
        if last is None:
            return PanelPage([])
        rows = rows.after(*last, column="deleted_at")
    memories = list(for_cards(rows).order_by("-deleted_at", "-id")[: size + 1])
    return PanelPage(on_cards(memories[:size]), memories[size - 1].public_id if len(memories) > size else "")


def _by_meaning(workspace: Workspace, user: User, filters: PanelFilters) -> list[int]:
    """Return the keys of the memories that recall finds, best first; none for fewer than two letters or digits."""
    if sum(map(str.isalnum, filters.q)) < 2:
        return []
    matches = find_listed(filters.q, workspace, user, policy=DataPolicy.here(workspace), now=timezone.now())
    return [item.memory.pk for item in matches]


def _ranked(best: list[int], filters: PanelFilters, user: User) -> list[Memory]:
    """Return the memories with the primary keys ``best``, in that order, that pass the filters other than the text."""
    named = Memory.objects.visible_to(user).live().filter(pk__in=best)
    by_id = {memory.pk: memory for memory in for_cards(filtered(named, replace(filters, q="")))}
    return [by_id[pk] for pk in best if pk in by_id]


def _last(before: str, workspace: Workspace, user: User) -> tuple[datetime, int] | None:
    """Return the creation time and primary key of the previous page's last memory, if it exists."""
    if not before:
        return None
    named = Memory.objects.visible_to(user).filter(public_id=before)
    here = named.filter(Q(workspace=workspace) | Q(owner=user))
    return here.values_list("created_at", "pk").first()


def choices(workspace: Workspace, user: User) -> tuple[list[str], list[str]]:
    """Return the categories and source types in use, as choices for the filters. One query."""
    pairs = set(live_in(workspace, user).order_by().values_list("category", "source_type").distinct())
    return sorted({category for category, _ in pairs if category}), sorted({source for _, source in pairs})


def assistants(workspace: Workspace) -> list[Agent]:
    """Return the assistants that are not archived or have memories, by name."""
    has_memories = Exists(Memory.objects.filter(agent=OuterRef("pk"), deleted_at=None))
    agents = workspace.agents.filter(Q(archived_at=None) | has_memories).order_by(Lower("name"), "pk")
    return list(agents.defer("instructions")[:MOST_ASSISTANTS])


# Labels of the sources of proposals (``Draft.with_source``). A person's own words need no review.
SPEAKER_LABELS = {
    Speaker.IMPORT: _("Imported"),
    Speaker.MODEL: _("Model"),
    Speaker.ASSISTANT: _("Assistant"),
    Speaker.MEMORY: _("Memory"),
    Speaker.DOCUMENT: _("Document"),
    Speaker.ARTIFACT: _("Artifact"),
    Speaker.CHAT: _("Chat"),
    Speaker.TOOL: _("Tools"),
    Speaker.WEB: _("Web page"),
    Speaker.RUN: _("Run"),
    Speaker.PROGRAM: _("Programs"),
}


@dataclass(frozen=True)
class Proposal:
    """A memory that waits for review. ``source`` names what its text is based on, with its title where readable."""

    memory: Memory
    source: str


def proposals(workspace: Workspace, user: User) -> list[Proposal]:
    """Return the oldest proposals, at most PROPOSALS_SHOWN. At most three queries."""
    waiting = list(review.proposals(workspace, user)[:PROPOSALS_SHOWN])
    named = [memory.rests_on or {} for memory in waiting]
    titles: dict[str, str] = {}
    for model, speaker in ((Document, Speaker.DOCUMENT), (Artifact, Speaker.ARTIFACT)):
        ids = {each["id"] for each in named if each.get("speaker") == speaker}
        if ids:
            rows = model.objects.visible_to(user).live().filter(public_id__in=ids)
            titles.update(rows.values_list("public_id", "title"))
    return [Proposal(memory, _source_of(each, titles)) for memory, each in zip(waiting, named, strict=True)]


def _source_of(named: dict[str, str], titles: dict[str, str]) -> str:
    label = SPEAKER_LABELS.get(Speaker(named["speaker"])) if named else None
    title = titles.get(named.get("id", ""))
    return f"{label}: {title}" if title else str(label or "")


def is_shared(workspace: Workspace) -> bool:
    """Return whether the workspace has several members, so that authors should be shown."""
    return workspace.memberships.count() > 1


def filtered(memories: MemoryQuerySet, filters: PanelFilters) -> MemoryQuerySet:
    """Return the memories that match the panel's filters.

    Each of the first MOST_WORDS words of the search text must occur in a text field or tag, or equal the id; further
    words are ignored. ``filters.review`` keeps only memories that may replace another one.
    """
    for word in filters.q.split()[:MOST_WORDS]:
        memories = memories.filter(
            Q(content__icontains=word)
            | Q(summary__icontains=word)
            | Q(key__icontains=word)
            | Q(category__icontains=word)
            | Q(tags__icontains=word)
            | Q(public_id=word)
        )
    whose = "scope" if filters.whose in Scope.values else "agent__public_id"
    columns = {"category": filters.category, "source_type": filters.source, "pinned": filters.pinned}
    columns[whose] = filters.whose
    memories = memories.filter(**{name: value for name, value in columns.items() if value})
    return memories.filter(MAY_REPLACE) if filters.review else memories


class MemoryForm(forms.Form):
    content = forms.CharField(
        label=_("What to remember"),
        max_length=CONTENT_LENGTH,
        error_messages={
            "max_length": _("This is too long: %(show_value)d characters, at most %(limit_value)d.")
        },
        widget=forms.Textarea(attrs={"rows": 3, "placeholder": _("One statement, such as: I am vegetarian")}),
    )
    category = forms.CharField(
        label=_("Category"),
        max_length=CATEGORY_LENGTH,
        required=False,
        widget=forms.TextInput(attrs={"list": "usual-categories", "autocomplete": "off"}),
    )

    asks: str | None = None  # the error of a sensitive number that is stored only after confirmation

    @property
    def confirmed(self) -> bool:
        """Return whether the person pressed “Save anyway”. Only that button sends ``confirm``."""
        return self.data.get("confirm") == "true"

    @property
    def texts(self) -> dict[str, Any]:
        return {"content": self.cleaned_data["content"], "category": self.cleaned_data["category"] or None}

    def add_domain_errors(self, error: Invalid) -> None:
        """Add the gate's errors to the fields. For a personal number, set ``asks`` instead, to ask for confirmation."""
        if isinstance(error, Sensitive):
            self.asks = next(iter(error.fields.values()), "")
            return
        message, fields = error.message, error.fields
        named = {name: text for name, text in fields.items() if name in self.fields}
        if not named:
            self.add_error("content", message)
        for name, text in named.items():
            self.add_error(name, message if len(named) == 1 else f"{message} {text}")


READ_BY_ADMINISTRATORS = _("Administrators of this MemoryHub can also read it.")


class WhoseField(forms.ChoiceField):
    """Choice of who sees a memory. Without a choice, everyone in the workspace does."""

    def clean(self, value: Any) -> Any:
        return super().clean(value or Scope.WORKSPACE)


class AddForm(MemoryForm):
    """Form for a new memory, with a choice of who sees it."""

    whose = WhoseField(label=_("Visible to"), help_text=READ_BY_ADMINISTRATORS)

    def __init__(self, *args: Any, agents: Iterable[Agent], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs | {"prefix": "new"})
        self.agents = {agent.public_id: agent for agent in agents}
        self.fields["whose"].choices = [  # type: ignore[attr-defined]
            (Scope.WORKSPACE, _("Everyone in this workspace")),
            (Scope.USER, _("Only me, in every workspace")),
            *((key, _("Chats with %(name)s") % {"name": agent.name}) for key, agent in self.agents.items()),
        ]

    @property
    def draft_fields(self) -> dict[str, Any]:
        """Return fields for ``Draft``."""
        whose = self.cleaned_data["whose"]
        agent = self.agents.get(whose)
        scope = Scope.AGENT if agent else whose
        return self.texts | {"scope": scope, "agent": agent, "confirmed": self.confirmed}


def possible_readers(memory: Memory, user: User) -> list[Workspace]:
    """Return the workspaces to whose members the author may show this memory. A shared one stays in its workspace."""
    if memory.scope == Scope.AGENT or memory.author_id != user.pk:
        return []
    if memory.owner_id is None:
        return [memory.workspace]
    writable = [each for each in workspaces_of(user) if Role(each.role).allows(Role.EDITOR)]
    return [each for each in writable if each.local_only or not memory.workspace.local_only]


def _day(label: Any) -> forms.DateField:
    return forms.DateField(
        label=label, required=False, widget=forms.DateInput(format="%Y-%m-%d", attrs={"type": "date"})
    )


class EditForm(MemoryForm):
    """Form for a stored memory, with days in UTC. ``whose`` is the scope ``user`` or the public id of a workspace."""

    whose = forms.ChoiceField(label=_("Visible to"), help_text=READ_BY_ADMINISTRATORS)
    valid_from = _day(_("Holds from"))
    valid_to = _day(_("Until"))
    version = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, readers: Iterable[Workspace] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not readers or (self.is_bound and self.add_prefix("whose") not in self.data):
            del self.fields["whose"]
            return
        self.fields["whose"].choices = [  # type: ignore[attr-defined]
            (Scope.USER, _("Only me, in every workspace")),
            *((each.public_id, _("Everyone in %(name)s") % {"name": each.name}) for each in readers),
        ]

    @classmethod
    def of(cls, memory: Memory, *, by: User, **kwargs: Any) -> EditForm:
        initial = {
            "whose": Scope.USER if memory.owner_id else memory.workspace.public_id,
            "content": memory.content,
            "category": memory.category or "",
            "valid_from": memory.valid_from and memory.valid_from.astimezone(UTC).date(),
            "valid_to": memory.valid_to and memory.valid_to.astimezone(UTC).date(),
            "version": version_of(memory),
        }
        readers = possible_readers(memory, by)
        return cls(initial=initial, prefix=memory.public_id, readers=readers, **kwargs)

    def clean(self) -> dict[str, Any]:
        begin, end = self.cleaned_data.get("valid_from"), self.cleaned_data.get("valid_to")
        if begin and end and end < begin:
            self.add_error("valid_to", _("Must not be before the day from which it holds."))
        return self.cleaned_data

    @property
    def changes(self) -> dict[str, Any]:
        """Return the changes for ``gate.edit_memory``, without unchanged days, whose time of day stays."""
        values = self.texts
        for name, at in (("valid_from", time.min), ("valid_to", time.max)):
            if name in self.changed_data and self.add_prefix(name) in self.data:
                day = self.cleaned_data[name]
                values[name] = datetime.combine(day, at, UTC) if day else None
        return values

    @property
    def seen(self) -> set[str] | None:
        version = self.cleaned_data["version"]
        return {version} if version else None

    def over(self, newer: Memory, by: User) -> EditForm:
        """Return a form with the same input that, when saved, overwrites the ``newer`` version of the memory."""
        return type(self).of(
            newer, by=by, data={**dict(self.data.items()), self.add_prefix("version"): version_of(newer)}
        )
