"""A page of the memory panel: filtered, searched by words as they are typed, newest first."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Case, Exists, OuterRef, Prefetch, Q, Value, When
from django.db.models.functions import Lower

from memories.embedding import searchable
from memories.models import Memory, Scope
from memories.models.memory import MemoryQuerySet
from memories.panel import live_in
from memoryhub.llm.registry import embedder_is_local, get_embedder
from workspaces.models import Agent, User, Workspace

PAGE_SIZE = 25
MOST_WORDS = 8  # of a search; each is a scan of the workspace's rows
MOST_ASSISTANTS = 200  # to choose from: all in use, and so many archived ones
# All that a card shows: each column more is work for every row, and four tables have ninety of them.
ON_CARD = (
    "public_id",
    "workspace",
    "content",
    "scope",
    "category",
    "pinned",
    "source_type",
    "source_chat_id",
    "source_message_id",
    "created_at",
    "author__username",
    "agent__name",
    "may_replace__content",
    "may_replace__deleted_at",
)


@dataclass(frozen=True)
class PanelFilters:
    """What the panel's form says. ``pinned`` and ``review`` (may replace an older one) narrow when true."""

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
    """``next``: the memory after which more follow, empty at the end."""

    memories: list[Memory]
    next: str = ""


def search_panel(workspace: Workspace, user: User, filters: PanelFilters, *, before: str = "") -> PanelPage:
    """Live memories of the workspace that hold every word of the search somewhere. Two queries at most.

    Each memory carries ``is_searchable``: whether the current embedder's vector is there (always true without one).
    """
    found = filtered(live_in(workspace, user), filters)
    if before:
        last = (
            Memory.objects.visible_to(user)
            .filter(public_id=before, workspace=workspace)
            .values_list("created_at", "pk")
            .first()
        )
        if last is None:
            return PanelPage([])
        found = found.filter(Q(created_at__lt=last[0]) | Q(created_at=last[0], pk__lt=last[1]))
    memories = list(for_cards(found)[: PAGE_SIZE + 1])
    more = memories[PAGE_SIZE - 1].public_id if len(memories) > PAGE_SIZE else ""
    return PanelPage(memories[:PAGE_SIZE], more)


def for_cards(memories: MemoryQuerySet) -> MemoryQuerySet:
    """Newest first, with what a card shows and no more; its assets are ``files``, its sources ``origins``."""
    shown = memories.select_related("author", "agent", "may_replace").only(*ON_CARD)
    return with_searchable(shown.order_by("-created_at", "-id")).prefetch_related(
        Prefetch("assets", to_attr="files"), Prefetch("sources", to_attr="origins")
    )


def with_searchable(memories: MemoryQuerySet) -> MemoryQuerySet:
    if get_embedder() is None:
        return memories.annotate(is_searchable=Value(True))
    if embedder_is_local():
        return memories.annotate(is_searchable=searchable())
    by_words = When(workspace__local_only=True, then=Value(True))  # found by its words, for good
    return memories.annotate(is_searchable=Case(by_words, default=searchable()))


def choices(workspace: Workspace, user: User) -> tuple[list[str], list[str]]:
    """The categories and source types in use, for the filters."""
    live = live_in(workspace, user).order_by()
    categories = live.exclude(category=None).values_list("category", flat=True).distinct()
    return sorted(filter(None, categories)), sorted(live.values_list("source_type", flat=True).distinct())


def assistants(workspace: Workspace) -> list[Agent]:
    """Those for which something may be remembered or is, by name."""
    kept = Exists(Memory.objects.filter(agent=OuterRef("pk"), deleted_at=None))
    found = workspace.agents.filter(Q(archived_at=None) | kept).order_by(Lower("name"), "pk")
    return list(found.defer("instructions")[:MOST_ASSISTANTS])


def is_shared(workspace: Workspace) -> bool:
    """Whether an author is worth naming: more than one person is in."""
    return workspace.memberships.count() > 1


def filtered(memories: MemoryQuerySet, filters: PanelFilters) -> MemoryQuerySet:
    """Those that hold every word of the search somewhere, and pass the other filters."""
    for word in filters.q.split()[:MOST_WORDS]:
        memories = memories.filter(
            Q(content__icontains=word)
            | Q(summary__icontains=word)
            | Q(key__icontains=word)
            | Q(category__icontains=word)
            | Q(tags__icontains=word)
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
        memories = memories.filter(may_replace__isnull=False, may_replace__deleted_at=None)
    return memories
