"""Queries of the memory panel: filtered memories in pages, newest first, and search by meaning and by words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Exists, OuterRef, Prefetch, Q, prefetch_related_objects
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext_lazy as later

from memories.models import Memory, Scope
from memories.models.memory import MAY_REPLACE, MEMORY, MemoryQuerySet
from memories.recalling.recall import MAX_LIMIT, recall
from memories.recalling.relevance import is_shown
from memories.usage import live_in, own_elsewhere
from memories.writing import review
from memoryhub.database.replicas import read
from memoryhub.llm.base import Speaker
from memoryhub.llm.registry import embedder_is_local, get_embedder
from workspaces.index.embedding import searchable
from workspaces.models import Agent, Artifact, Document, User, Workspace
from workspaces.policy import Reach

PAGE_SIZE = 8  # cards; more are loaded on scrolling
PROPOSALS_SHOWN = 20
MOST_WORDS = 8  # of a search; each word scans the workspace's rows
MOST_ASSISTANTS = 200  # in the filter, archived ones included
# The columns that a card shows. The joined tables have ninety, and each one takes time for every row.
ON_CARD = (
    "public_id",
    "workspace__public_id",
    "workspace__local_only",
    "owner",
    "content",
    "scope",
    "category",
    "pinned",
    "source_type",
    "source_chat_id",
    "source_message_id",
    "source_details",
    "created_at",
    "author__username",
    "author__first_name",
    "author__last_name",
    "edited_at",
    "imported_at",
    "imported_by__username",
    "imported_by__first_name",
    "imported_by__last_name",
    "edited_by__username",
    "edited_by__first_name",
    "edited_by__last_name",
    "agent__name",
    "may_replace__public_id",
    "may_replace__content",
    "may_replace__deleted_at",
    "may_replace__expires_at",
    "may_replace__replaced_by",
    "valid_from",
    "valid_to",
    "replaced_by",
)


@dataclass(frozen=True)
class PanelFilters:
    """Filters of the panel. ``pinned`` and ``review`` select pinned memories and those that may replace an older."""

    q: str = ""
    category: str = ""
    source: str = ""
    pinned: bool = False
    review: bool = False
    whose: str = ""  # a scope, or the id of the assistant in whose chats it is recalled

    def __bool__(self) -> bool:
        return any((self.q.strip(), self.category, self.source, self.pinned, self.review, self.whose))


@dataclass(frozen=True)
class PanelPage:
    """A page of memories. ``next`` is the id of its last memory if more follow, else empty."""

    memories: list[Memory]
    next: str = ""


def for_cards(memories: MemoryQuerySet) -> MemoryQuerySet:
    """Order memories newest first and load only the columns that cards show."""
    beside = ("workspace", "author", "edited_by", "imported_by", "agent", "may_replace")
    shown = memories.select_related(*beside).only(*ON_CARD)
    return shown.annotate(has_vector=searchable(MEMORY)).order_by("-created_at", "-id")


def on_cards(memories: list[Memory]) -> list[Memory]:
    """Add ``files``, ``origins`` and ``is_searchable`` to memories of ``for_cards``. Two queries.

    ``is_searchable`` is true if the memory has a vector of the current embedder, or if it cannot be embedded.
    """
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
    """Return a page of the workspace's live memories and the user's own from elsewhere, newest first.

    With a search, the results of recall come first, best first, and then memories that contain every word. At most five
    queries and one recall.
    """
    best = _by_meaning(workspace, user, filters) if by_meaning else []

    def ask() -> PanelPage:
        last = _last(before, workspace, user)
        if before and last is None:
            return PanelPage([])
        found: list[Memory] = []
        for memories in (live_in(workspace, user), own_elsewhere(workspace, user)):
            rows = _after(last, filtered(memories, filters).exclude(pk__in=best))
            found += for_cards(rows)[: size + 1]
        found.sort(key=lambda memory: (memory.created_at, memory.pk), reverse=True)
        shown = found[:size]
        more = shown[-1].public_id if len(found) > size else ""
        if best and not before:
            shown = _ranked(best, filters, user) + shown
        return PanelPage(on_cards(shown), more)

    return read(user.pk, ask)


def _by_meaning(workspace: Workspace, user: User, filters: PanelFilters) -> list[int]:
    """Return the keys of the memories that recall finds, best first; none for fewer than two letters or digits."""
    if sum(map(str.isalnum, filters.q)) < 2:
        return []
    reach, now = Reach.here(workspace), timezone.now()
    found = recall(filters.q, workspace, user, limit=MAX_LIMIT, reach=reach, now=now, noted=False)
    return [item.memory.pk for item in found.items if found.degraded or is_shown(item.score, item.relevance)]


def _ranked(best: list[int], filters: PanelFilters, user: User) -> list[Memory]:
    """Return the memories with the keys ``best``, in that order, that pass the filters other than the search."""
    named = Memory.objects.visible_to(user).live().filter(pk__in=best)
    by_id = {memory.pk: memory for memory in for_cards(filtered(named, replace(filters, q="")))}
    return [by_id[pk] for pk in best if pk in by_id]


def _last(before: str, workspace: Workspace, user: User) -> tuple[datetime, int] | None:
    """Return the creation time and key of the memory with the id ``before``, or None if there is none."""
    if not before:
        return None
    named = Memory.objects.visible_to(user).filter(public_id=before)
    here = named.filter(Q(workspace=workspace) | Q(owner=user))
    return here.values_list("created_at", "pk").first()


def _after(last: tuple[datetime, int] | None, memories: MemoryQuerySet) -> MemoryQuerySet:
    if last is None:
        return memories
    return memories.filter(Q(created_at__lt=last[0]) | Q(created_at=last[0], pk__lt=last[1]))


def choices(workspace: Workspace, user: User) -> tuple[list[str], list[str]]:
    """Return the categories and source types in use, for the filters. One query."""
    pairs = set(live_in(workspace, user).order_by().values_list("category", "source_type").distinct())
    return sorted({category for category, _ in pairs if category}), sorted({source for _, source in pairs})


def assistants(workspace: Workspace) -> list[Agent]:
    """Return the assistants that are in use or have memories, by name."""
    kept = Exists(Memory.objects.filter(agent=OuterRef("pk"), deleted_at=None))
    found = workspace.agents.filter(Q(archived_at=None) | kept).order_by(Lower("name"), "pk")
    return list(found.defer("instructions")[:MOST_ASSISTANTS])


# Labels of the sources of proposals (``Draft.resting_on``). A person's own words need no review.
SPEAKER_LABELS = {
    Speaker.IMPORT: later("Imported"),
    Speaker.MODEL: later("Model"),
    Speaker.ASSISTANT: later("Assistant"),
    Speaker.MEMORY: later("Memory"),
    Speaker.DOCUMENT: later("Document"),
    Speaker.ARTIFACT: later("Artifact"),
    Speaker.CHAT: later("Chat"),
    Speaker.TOOL: later("Tools"),
    Speaker.WEB: later("Web page"),
    Speaker.RUN: later("Run"),
    Speaker.PROGRAM: later("Programs"),
}


@dataclass(frozen=True)
class Proposal:
    """A memory that waits for review.

    ``source`` labels the origin of its words, with the title of a document or artifact that this user may read.
    """

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
    """Return whether the workspace has more than one member, so that authors are worth showing."""
    return workspace.memberships.count() > 1


def filtered(memories: MemoryQuerySet, filters: PanelFilters) -> MemoryQuerySet:
    """Filter memories by the panel's filters. Every word of the search must occur in a text field or be the id."""
    for word in filters.q.split()[:MOST_WORDS]:
        memories = memories.filter(
            Q(content__icontains=word)
            | Q(summary__icontains=word)
            | Q(key__icontains=word)
            | Q(category__icontains=word)
            | Q(tags__icontains=word)
            | Q(public_id=word)
        )
    if filters.category:
        memories = memories.filter(category=filters.category)
    if filters.source:
        memories = memories.filter(source_type=filters.source)
    if filters.whose in Scope.values:
        memories = memories.filter(scope=filters.whose)
    elif filters.whose:
        memories = memories.filter(agent__public_id=filters.whose)
    if filters.pinned:
        memories = memories.filter(pinned=True)
    if filters.review:
        memories = memories.filter(MAY_REPLACE)
    return memories
