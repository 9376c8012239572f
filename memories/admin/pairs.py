"""Memories that stand beside each other: one that may replace another, and texts that say the same."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.paginator import Page, Paginator
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from memories.admin.choosing import chosen_workspace, may_choose, picker, picker_media
from memories.admin.private import readable
from memories.models import Memory
from memoryhub.counting import EXACT_COUNT_UP_TO
from workspaces.admin_kit.base import BoundedPaginator, LeanAdmin

PER_PAGE = 20
UPDATES, EQUAL = "updates", "equal"
Words = list[tuple[str, bool]]


@dataclass(frozen=True)
class Pair:
    """Two memories, and their words with whether the other has them."""

    older: Memory
    newer: Memory
    older_words: Words
    newer_words: Words


def possible_updates(user: Any, workspace_id: int | None) -> QuerySet[Memory]:
    """The newer ones that are linked to an older one, newest first."""
    rows = readable(Memory.objects.live().filter(may_replace__isnull=False), user)
    rows = rows if workspace_id is None else rows.filter(workspace=workspace_id)
    return rows.order_by("-created_at", "-id")


def with_older(rows: QuerySet[Memory]) -> list[Pair]:
    """One query."""
    people = ("workspace", "author", "may_replace", "may_replace__author")
    heavy = ("search", "source_excerpt", "source_details")
    rows = rows.select_related(*people).defer(*heavy, *(f"may_replace__{name}" for name in heavy))
    return [pair(newer.may_replace, newer) for newer in rows if newer.may_replace is not None]


def equal_texts(workspace_id: int | None) -> list[dict[str, Any]]:
    """The first ``EXACT_COUNT_UP_TO`` texts that stand in a workspace more than once, by the index ``memory_equal``.

    Whose they are is not in that index: ``copies`` asks.
    """
    rows = Memory.objects.order_by().filter(deleted_at=None)
    rows = rows if workspace_id is None else rows.filter(workspace=workspace_id)
    found = rows.values("workspace", "content_hash").annotate(number=Count("*")).filter(number__gt=1)
    return [dict(group) for group in found.order_by("workspace", "content_hash")[:EXACT_COUNT_UP_TO]]


def copies(groups: Sequence[dict[str, Any]], user: Any) -> list[Pair]:
    """The first of each text beside every later one of the same place. One query."""
    if not groups:
        return []
    these = Q()
    for group in groups:
        these |= Q(workspace=group["workspace"], content_hash=group["content_hash"])
    rows = readable(Memory.objects.live().filter(these), user).select_related("workspace", "author")
    rows = rows.defer("search", "source_excerpt", "source_details")

    def same(memory: Memory) -> tuple[int, int, str]:
        return memory.workspace_id, memory.place, memory.content_hash

    found = sorted(rows, key=lambda memory: (same(memory), memory.created_at, memory.pk))
    pairs = []
    for _, alike in groupby(found, key=same):
        first, *later = alike
        pairs += [pair(first, newer) for newer in later]
    return pairs


def pair(older: Memory, newer: Memory) -> Pair:
    before, after = older.content.split(), newer.content.split()
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    kept_before: set[int] = set()
    kept_after: set[int] = set()
    for block in matcher.get_matching_blocks():
        kept_before |= set(range(block.a, block.a + block.size))
        kept_after |= set(range(block.b, block.b + block.size))
    return Pair(older, newer, _marked(before, kept_before), _marked(after, kept_after))


def _marked(words: list[str], kept: set[int]) -> Words:
    """The words in runs, each with whether the other text lacks it."""
    runs = groupby(enumerate(words), key=lambda each: each[0] not in kept)
    return [(" ".join(word for _, word in run), changed) for changed, run in runs]


class Pairs(LeanAdmin):
    """Adds the page that shows them side by side. Deciding is an action of the list, which asks first."""

    def get_urls(self) -> list[URLPattern]:
        page = path("pairs/", self.admin_site.admin_view(self.pairs_view), name="memories_memory_pairs")
        return [page, *super().get_urls()]

    def pairs_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        kind = EQUAL if request.GET.get("kind") == EQUAL else UPDATES
        workspace = chosen_workspace(request)
        within = workspace.pk if workspace else None
        page: Page[Any]
        if kind == EQUAL:
            page = Paginator(equal_texts(within), PER_PAGE).get_page(request.GET.get("p"))
            pairs = copies(list(page.object_list), request.user)
        else:
            rows = possible_updates(request.user, within)
            page = BoundedPaginator(rows, PER_PAGE).get_page(request.GET.get("p"))
            pairs = with_older(page.object_list)  # type: ignore[arg-type]
        context = {
            **self.admin_site.each_context(request),
            "title": "Side by side",
            "opts": self.opts,
            "kind": kind,
            "pairs": pairs,
            "page": page,
            "workspace": workspace,
            "picker": picker(workspace) if may_choose(request) else "",
            "media": picker_media(),
            "may_forget": self.has_delete_permission(request),
            "may_change": self.has_change_permission(request),
            "list": reverse("admin:memories_memory_changelist"),
        }
        return TemplateResponse(request, "admin/memories/memory/pairs.html", context)
