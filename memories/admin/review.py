"""Admin actions that approve or reject several proposals, and undo these decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest

from memories.models import Memory, Review
from memories.writing import review
from workspaces.admin.base import LeanAdmin, action, counted, offer_undo, one_by_one, with_rest

Sentences = Iterator[tuple[str, int]]


class ReviewActions(LeanAdmin):
    @action("Approve proposals", "change", asks="They are listed, counted and recalled from now on.")
    def approve(self, request: HttpRequest, rows: QuerySet[Memory]) -> Sentences:
        yield from self._decide(request, rows, _open(rows), review.approve, "approved")

    @action("Reject proposals", "change", asks="They are not stored, and the same is not proposed again.")
    def reject(self, request: HttpRequest, rows: QuerySet[Memory]) -> Sentences:
        yield from self._decide(request, rows, _open(rows), review.reject, "rejected")

    @action(
        "Put back to review",
        "change",
        asks="What was decided about them is taken back: they are out of use and wait for review again.",
    )
    def reconsider(self, request: HttpRequest, rows: QuerySet[Memory]) -> Sentences:
        decided = review.decided(rows)
        yield from self._decide(request, rows, decided, review.reconsider, "put back to review")

    def _decide(
        self,
        request: HttpRequest,
        rows: QuerySet[Memory],
        wanted: QuerySet[Memory],
        decide: Callable[..., Any],
        done: str,
    ) -> Sentences:
        others = rows.count() - wanted.count()
        decided, refused = one_by_one(wanted.select_related("workspace", "owner"), decide, request)
        if decide is not review.reconsider:
            offer_undo(self, request, "reconsider", decided)
        sentence = f"{counted(len(decided), 'proposal', 'proposals')} {done}"
        yield with_rest(sentence, others, "no proposal"), messages.SUCCESS
        yield from refused


def _open(rows: QuerySet[Memory]) -> QuerySet[Memory]:
    return rows.exclude(review=Review.NONE)
