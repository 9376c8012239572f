"""Forgetting several memories for good in the admin: a page that asks, the password, and a sentence of what went."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from memories.forgetting.forget import forget_memories
from memories.models import Memory
from workspaces.accounts.sign_in import ask_for_password
from workspaces.admin_kit.base import LeanAdmin, action, counted
from workspaces.models import User


class ForgetForGood(LeanAdmin):
    """Adds the action. Unlike the others it cannot be undone."""

    @action(
        "Forget for good",
        "delete",
        asks="Everything about these memories is erased permanently. "
        "A keyed hash stays, so that nothing notices them again by itself.",
        danger=True,
    )
    def forget_for_good(self, request: HttpRequest, rows: QuerySet[Memory]) -> Iterator[tuple[str, int]]:
        ask_for_password(request)
        by = cast("User", request.user)
        chosen = list(rows.select_related("workspace"))
        report = forget_memories(chosen, by=by, now=timezone.now(), among=self.get_queryset(request))
        number = report.removed["memories"]
        rest = ", ".join(
            f"{each:,} {name}" for name, each in report.removed.most_common() if name != "memories"
        )
        sentence = f"{counted(number, 'memory', 'memories')} forgotten for good."
        yield f"{sentence} With them went {rest}." if rest else sentence, messages.SUCCESS
