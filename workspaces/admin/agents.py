"""Assistants, to look at and to archive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from workspaces.admin.acting import acting_owner
from workspaces.admin_kit.base import ReadOnlyAdmin, action, counted, offer_undo
from workspaces.admin_kit.filters import ChoiceFilter
from workspaces.agents import agents
from workspaces.models import Agent


class InUseFilter(ChoiceFilter):
    parameter_name = "state"
    offered = [("", "All"), ("in_use", "In use"), ("archived", "Archived")]
    rules = {"in_use": Q(archived_at=None), "archived": Q(archived_at__isnull=False)}


@admin.register(Agent)
class AgentAdmin(ReadOnlyAdmin):
    """Assistants of all workspaces with their instructions, and archiving those that should not be chosen."""

    many = "assistants"
    list_display = ("name", "workspace", "created_by", "created_at", "archived_at")
    list_select_related = ("workspace", "created_by")
    list_filter = (InUseFilter,)
    ids = {"agent": "public_id", "usr": "created_by__public_id", "ws": "workspace__public_id"}
    search_help_text = "The id of an assistant (agent_), of its maker (usr_) or of a workspace (ws_)."
    fields = (
        "name",
        "public_id",
        "workspace",
        "description",
        "instructions",
        "created_by",
        "created_at",
        "updated_at",
        "archived_at",
    )
    actions = ("archive", "restore")

    def for_list(self, rows: QuerySet[Agent]) -> QuerySet[Any]:
        return rows.defer("instructions", "description")

    @action(
        "Archive (no new chats with it)",
        "change",
        asks="Nobody can begin a chat with them. Chats that are there, and their memories, stay.",
    )
    def archive(self, request: HttpRequest, rows: QuerySet[Agent]) -> Iterator[tuple[str, int]]:
        found = list(rows.in_use().select_related("workspace"))  # type: ignore[attr-defined]
        for agent in found:
            agents.archive_agent(agent, by=acting_owner(agent.workspace, request), now=timezone.now())
        offer_undo(self, request, "restore", [agent.pk for agent in found])
        yield f"{counted(len(found), 'assistant', 'assistants')} archived.", messages.SUCCESS

    @action("Restore", "change", asks="Chats can be begun with them again.")
    def restore(self, request: HttpRequest, rows: QuerySet[Agent]) -> Iterator[tuple[str, int]]:
        found = list(rows.exclude(archived_at=None).select_related("workspace"))
        for agent in found:
            agents.restore_agent(agent, by=acting_owner(agent.workspace, request), now=timezone.now())
        offer_undo(self, request, "archive", [agent.pk for agent in found])
        yield f"{counted(len(found), 'assistant', 'assistants')} restored.", messages.SUCCESS
