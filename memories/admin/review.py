"""Approving and rejecting several proposals in the admin, and taking either back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from memories.models import Memory, Review
from memories.writing import review
from memoryhub.errors import DomainError
from workspaces.admin_kit.base import (
    LeanAdmin,
    action,
    counted,
    offer_undo,
)
from workspaces.models import User

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
        """One decision for each of the ``wanted`` rows; a refused row stops none of the others and is named."""
        others, decided, refused = rows.count() - wanted.count(), [], []
        for memory in wanted.select_related("workspace", "owner"):
            try:
                decide(memory, by=cast("User", request.user), now=timezone.now())
                decided.append(memory.pk)
            except DomainError as error:
                refused.append(f"{memory.public_id}: {error.message}")
        if decide is not review.reconsider:
            offer_undo(self, request, "reconsider", decided)
        rest = f", {counted(others, 'was', 'were')} no proposal" if others else ""
        yield f"{counted(len(decided), 'proposal', 'proposals')} {done}{rest}.", messages.SUCCESS
        if refused:
            yield f"{counted(len(refused), 'was', 'were')} refused. {' '.join(refused[:5])}", messages.WARNING


def _open(rows: QuerySet[Memory]) -> QuerySet[Memory]:
    return rows.exclude(review=Review.NONE)
