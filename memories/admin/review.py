"""Approving and rejecting several proposals in the admin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from memories import review
from memories.models import Memory, Review
from memoryhub.admin import LeanAdmin, action, counted
from memoryhub.errors import DomainError
from workspaces.models import User

Sentences = Iterator[tuple[str, int]]


class ReviewActions(LeanAdmin):
    @action("Approve proposals", "change", asks="They are listed, counted and recalled from now on.")
    def approve(self, request: HttpRequest, rows: QuerySet[Memory]) -> Sentences:
        yield from self._decide(request, rows, review.approve, "approved")

    @action("Reject proposals", "change", asks="They are not stored, and the same is not proposed again.")
    def reject(self, request: HttpRequest, rows: QuerySet[Memory]) -> Sentences:
        yield from self._decide(request, rows, review.reject, "rejected")

    def _decide(
        self, request: HttpRequest, rows: QuerySet[Memory], decide: Callable[..., Any], done: str
    ) -> Sentences:
        """One decision a row; a refused row stops none of the others and is named."""
        waiting = rows.exclude(review=Review.NONE).select_related("workspace", "owner")
        others, decided, refused = rows.filter(review=Review.NONE).count(), 0, []
        for memory in waiting:
            try:
                decide(memory, by=cast("User", request.user), now=timezone.now())
                decided += 1
            except DomainError as error:
                refused.append(f"{memory.public_id}: {error.message}")
        rest = f", {counted(others, 'was', 'were')} no proposal" if others else ""
        yield f"{counted(decided, 'proposal', 'proposals')} {done}{rest}.", messages.SUCCESS
        if refused:
            yield f"{counted(len(refused), 'was', 'were')} refused. {' '.join(refused[:5])}", messages.WARNING
