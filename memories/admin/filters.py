"""Filters of the list of memories. Each uses an index or reads the newest rows first."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from memories.models import Extraction, Review, SourceType
from memories.models.extraction import ExtractionStatus
from memories.models.memory import CATEGORIES, MAY_REPLACE, MEMORY
from workspaces.admin.filters import AutocompleteFilter, ChoiceFilter
from workspaces.index.embedding import active_model
from workspaces.models.index import has_vector

Rows = QuerySet[Any]


class AuthorFilter(AutocompleteFilter):
    parameter_name = "author"


class StateFilter(ChoiceFilter):
    parameter_name = "state"
    default = "live"
    offered = [
        ("live", "In use"),
        ("pending", "Waits for review"),
        ("deleted", "Forgotten"),
        ("rejected", "Rejected"),
        ("expired", "Expired"),
        ("over", "No longer holds"),
        ("every", "Everything"),
    ]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        now = timezone.now()
        match self.chosen():
            case "deleted":
                return queryset.filter(deleted_at__isnull=False, review=Review.NONE)
            case "pending":
                return queryset.filter(review=Review.PENDING)
            case "rejected":
                return queryset.filter(review=Review.REJECTED)
            case "expired":
                return queryset.filter(deleted_at=None, expires_at__lte=now)
            case "over":
                return queryset.filter(deleted_at=None, valid_to__lte=now)
            case "every":
                return queryset
        return queryset.filter(deleted_at=None).filter(Q(expires_at=None) | Q(expires_at__gt=now))


class SourceFilter(ChoiceFilter):
    parameter_name = "source"
    column = "source_type"
    offered = [("", "All"), *SourceType.choices, ("other", "A caller's own label")]
    rules = {"other": ~Q(source_type__in=SourceType.values)}


class CategoryFilter(ChoiceFilter):
    """A filter by the built-in categories, because listing the stored ones would read every row."""

    parameter_name = "category"
    _usual = [(category, category.capitalize()) for category in CATEGORIES]
    offered = [("", "All"), *_usual, ("other", "Another"), ("none", "None")]
    rules = {
        "other": Q(category__isnull=False) & ~Q(category__in=CATEGORIES),
        "none": Q(category=None),
    }


class VectorFilter(ChoiceFilter):
    """A filter by vectors of the current embedding model. Vectors of an earlier model do not count."""

    parameter_name = "vector"
    offered = [("", "All"), ("with", "Searchable by meaning"), ("without", "Not yet"), ("failed", "Failed")]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        chosen = self.chosen()
        if chosen == "failed":
            return queryset.filter(embedding_failed_at__isnull=False)
        if not chosen:
            return queryset
        vectors = has_vector(MEMORY, active_model() or "")
        return queryset.filter(vectors if chosen == "with" else ~vectors)


class RecalledFilter(ChoiceFilter):
    """A filter for memories that recall has not returned for long.

    It has no index, which would make each recall more expensive.
    """

    parameter_name = "recalled"
    offered = [
        ("", "All"),
        ("never-30", "Never, in 30 days and more"),
        ("never-90", "Never, in 90 days and more"),
        ("stale-90", "Once, but not in 90 days"),
    ]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        return unrecalled(queryset, self.chosen(), timezone.now())


def unrecalled(rows: Rows, which: str, now: datetime) -> Rows:
    """Filter ``rows`` by a choice of RecalledFilter."""
    match which:
        case "never-30" | "never-90":
            days = int(which.removeprefix("never-"))
            return rows.filter(last_accessed_at=None, created_at__lt=now - timedelta(days=days))
        case "stale-90":
            # The first condition follows from the second, and can use an index.
            long_ago = now - timedelta(days=90)
            return rows.filter(created_at__lt=long_ago, last_accessed_at__lt=long_ago)
    return rows


class ReviewFilter(ChoiceFilter):
    parameter_name = "review"
    offered = [
        ("", "All"),
        ("replaces", "May replace an older one"),
        ("extraction-failed", "From a chat with a failed extraction"),
        ("pinned", "Pinned"),
    ]
    _failed = Extraction.objects.filter(status=ExtractionStatus.FAILED).values("chat_id")
    rules = {
        "replaces": MAY_REPLACE,
        "extraction-failed": Q(source_chat_id__in=_failed) & ~Q(source_chat_id=""),
        "pinned": Q(pinned=True),
    }


def may_read_personal(user: Any) -> bool:
    return bool(user.has_perm("memories.read_personal_memory"))


def readable(rows: QuerySet[Any], user: Any) -> QuerySet[Any]:
    """Filter to memories that this member of staff may read. The caller has checked that they may open the list."""
    return rows if may_read_personal(user) else rows.filter(owner=None)
