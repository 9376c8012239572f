"""The admin page of memories side by side: possible replacements, and equal texts."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.core.paginator import Page, Paginator
from django.db.models import Count, Q, QuerySet, Window
from django.db.models.functions import FirstValue, RowNumber
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString

from memories.admin.filters import readable
from memories.models import Memory
from memories.models.memory import MAY_REPLACE
from memoryhub.database.queries import EXACT_COUNT_UP_TO
from workspaces.admin.base import BoundedPaginator, LeanAdmin
from workspaces.admin.filters import WorkspaceFilter
from workspaces.models import Workspace


def chosen_workspace(request: HttpRequest) -> Workspace | None:
    """Return the workspace named in the URL, or None for all.

    None if the URL names none or an unknown one, or this person may not see workspaces.
    """
    asked = request.GET.get("workspace", "")
    if not (asked.isascii() and asked.isdigit() and len(asked) < 18 and may_choose(request)):
        return None
    return Workspace.objects.filter(pk=int(asked)).first()


def may_choose(request: HttpRequest) -> bool:
    return request.user.has_perm("workspaces.view_workspace")


def picker(workspace: Workspace | None) -> SafeString:
    """Return a search box over all workspaces as HTML. The page must include ``picker_media``."""
    widget = WorkspaceFilter.widget_of(Memory, admin.site)
    field = forms.ModelChoiceField(Workspace.objects.all(), required=False, widget=widget)
    chosen: Any = workspace.pk if workspace else ""
    return field.widget.render("workspace", str(chosen), {"id": "choose-workspace"})


def picker_media() -> forms.Media:
    return WorkspaceFilter.widget_of(Memory, admin.site).media


PER_PAGE = 20
UPDATES, EQUAL = "updates", "equal"
COMPARED_WORDS = 40_000  # product of the two texts' word counts; comparing takes a few milliseconds
Words = list[tuple[str, bool]]
Copy = tuple[int, str, int]  # workspace, content_hash, and number among the equal texts, from 1


@dataclass(frozen=True)
class Pair:
    """Two memories with their words, each marked if the other text lacks it."""

    older: Memory
    newer: Memory
    older_words: Words
    newer_words: Words


def possible_updates(user: Any, workspace_id: int | None) -> QuerySet[Memory]:
    """Return the memories that may replace an older one, newest first."""
    rows = readable(Memory.objects.live().filter(MAY_REPLACE), user)
    rows = rows if workspace_id is None else rows.filter(workspace=workspace_id)
    return rows.order_by("-created_at", "-id")


def with_older(rows: QuerySet[Memory]) -> list[Pair]:
    """Load each memory with the older one that it may replace. One query."""
    people = (
        "workspace",
        "author",
        "edited_by",
        "may_replace",
        "may_replace__author",
        "may_replace__edited_by",
    )
    heavy = ("search", "source_excerpt", "source_details")
    rows = rows.select_related(*people).defer(*heavy, *(f"may_replace__{name}" for name in heavy))
    return [pair(newer.may_replace, newer) for newer in rows if newer.may_replace is not None]


def equal_texts(workspace_id: int | None) -> list[Copy]:
    """Return the first ``EXACT_COUNT_UP_TO`` copies of texts stored in a workspace more than once.

    Uses the index ``memory_equal``, which does not contain the owner, so ``copies`` filters by scope and permission.
    """
    rows = Memory.objects.order_by().filter(deleted_at=None)
    rows = rows if workspace_id is None else rows.filter(workspace=workspace_id)
    found = rows.values_list("workspace", "content_hash").annotate(number=Count("*")).filter(number__gt=1)
    texts = found.order_by("workspace", "content_hash")[:EXACT_COUNT_UP_TO]
    every = ((workspace, text, at) for workspace, text, number in texts for at in range(2, number + 1))
    return list(islice(every, EXACT_COUNT_UP_TO))


def copies(wanted: Sequence[Copy], user: Any) -> list[Pair]:
    """Return these copies, each paired with the first memory of its scope that has the text. Two queries.

    Copies that this person may not read, or that are the first of another scope, are left out.
    """
    these = Q()
    for workspace, text in dict.fromkeys((workspace, text) for workspace, text, _ in wanted):
        these |= Q(workspace=workspace, content_hash=text)
    if not these:
        return []
    place, oldest = ("workspace", "content_hash", "owner", "agent"), ("created_at", "pk")
    rows = readable(Memory.objects.live().filter(these), user).order_by()
    counted = rows.annotate(
        at=Window(RowNumber(), partition_by=place[:2], order_by=[*place[2:], *oldest]),
        first=Window(FirstValue("pk"), partition_by=place, order_by=oldest),
    ).filter(at__lte=max(at for *_, at in wanted))
    these_ones = set(wanted)
    listed = counted.values_list("workspace", "content_hash", "at", "first", "pk")
    both = [(first, pk) for *copy, first, pk in listed if tuple(copy) in these_ones and first != pk]
    shown = Memory.objects.select_related("workspace", "author", "edited_by")
    memories = shown.defer("search", "source_excerpt", "source_details").in_bulk(
        {pk for two in both for pk in two}
    )
    return [pair(memories[first], memories[pk]) for first, pk in sorted(both)]


def pair(older: Memory, newer: Memory) -> Pair:
    """Return two memories with their differing words marked, or unmarked if the texts are too long to compare."""
    before, after = older.content.split(), newer.content.split()
    if len(before) * len(after) > COMPARED_WORDS:
        return Pair(older, newer, [(older.content, False)], [(newer.content, False)])
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    kept_before: set[int] = set()
    kept_after: set[int] = set()
    for block in matcher.get_matching_blocks():
        kept_before |= set(range(block.a, block.a + block.size))
        kept_after |= set(range(block.b, block.b + block.size))
    return Pair(older, newer, _marked(before, kept_before), _marked(after, kept_after))


def _marked(words: list[str], kept: set[int]) -> Words:
    """Return the words joined into runs, each with whether the other text lacks it."""
    runs = groupby(enumerate(words), key=lambda each: each[0] not in kept)
    return [(" ".join(word for _, word in run), changed) for changed, run in runs]


class Pairs(LeanAdmin):
    """A mixin with the page that shows memories side by side.

    Decisions on that page are actions of the list, which ask for confirmation.
    """

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
