"""Forgetting several memories for good in the admin: the password, a page that asks, and a sentence of what went."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import DELETION
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils import timezone

from memories.forgetting import forget_memories
from memories.models import Memory
from memoryhub.admin import AT_ONCE, LeanAdmin, counted
from workspaces.accounts import ask_for_password
from workspaces.models import User


class ForgetForGood(LeanAdmin):
    """Adds the action. Unlike the others it cannot be undone, so it is not done by one click."""

    @admin.action(description="Forget for good", permissions=["delete"])
    def forget_for_good(self, request: HttpRequest, queryset: QuerySet[Memory]) -> TemplateResponse | None:
        ask_for_password(request)
        rows = list(queryset.select_related("workspace")[: AT_ONCE + 1])
        if len(rows) > AT_ONCE:
            text = f"More than {AT_ONCE:,} memories at once: nothing was done. Narrow the list down."
            self.message_user(request, text, messages.ERROR)
            return None
        if request.POST.get("confirmed") != "yes":
            return self._ask(request, rows)
        self.note(request, rows, DELETION, "Forgotten for good")
        report = forget_memories(rows, by=cast("User", request.user), now=timezone.now())
        number = report.removed["memories"]
        rest = ", ".join(f"{each:,} {name}" for name, each in report.lines if name != "memories")
        text = f"{counted(number, 'memory', 'memories')} forgotten for good. With them went {rest or 'nothing else'}."
        self.message_user(request, text, messages.SUCCESS)
        return None

    def _ask(self, request: HttpRequest, rows: list[Memory]) -> TemplateResponse:
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "title": f"Forget {counted(len(rows), 'memory', 'memories')} for good?",
            "opts": self.opts,
            "memories": rows[:20],
            "more": max(0, len(rows) - 20),
            "keys": [row.pk for row in rows],
            "checkbox": ACTION_CHECKBOX_NAME,
        }
        return TemplateResponse(request, "admin/memories/memory/forget_for_good.html", context)
