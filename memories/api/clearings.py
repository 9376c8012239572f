"""REST endpoints for clearing all memories of a scope."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memories.forgetting import clear
from memories.models import Clearing, ClearingStatus, Scope
from workspaces.access import get_workspace
from workspaces.api.authentication import KeyedView
from workspaces.api.fields import Body, Choice, Flag, Text
from workspaces.api.schema import ID, documented_under

documented = documented_under("memories")
WHICH = (
    "workspace: the shared ones; agent: those of an assistant; user: your personal ones, in all workspaces."
)


class ScopeQuery(serializers.Serializer[Any]):
    scope = Choice(Scope.values, default=Scope.WORKSPACE, help_text=WHICH)
    agent_id = Text(max_length=32, required=False, help_text="The assistant, with the scope agent.")


class ClearingBody(ScopeQuery, Body):
    example = {"scope": "workspace", "for_good": False}
    for_good = Flag(default=False, help_text="true: for good, which needs your password again.")


class CountJson(serializers.Serializer[Any]):
    example = {"count": 12, "for_good": 15}
    count = serializers.IntegerField(help_text="Memories that a clearing would delete.")
    for_good = serializers.IntegerField(help_text="The same for good: deleted and proposed ones too.")


class ClearingJson(serializers.Serializer[Any]):
    example = {"id": f"clr_{ID}", "status": "cleared", "total": 12, "done": 12}
    id = serializers.CharField()
    scope = serializers.ChoiceField(choices=Scope.choices)
    for_good = serializers.BooleanField()
    status = serializers.ChoiceField(choices=ClearingStatus.choices)
    total = serializers.IntegerField(help_text="Memories that the step at work began with.")
    done = serializers.IntegerField(help_text="Of these, so many are cleared or brought back.")
    left_out = serializers.IntegerField(help_text="So many stay as they are: refused by today's rules.")
    started_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


def clearing_json(clearing: Clearing) -> dict[str, Any]:
    return {
        "id": clearing.public_id,
        "scope": clearing.scope,
        "for_good": clearing.for_good,
        "status": clearing.status,
        "total": clearing.total,
        "done": clearing.done,
        "left_out": clearing.left_out,
        "started_at": clearing.started_at,
        "finished_at": clearing.finished_at,
    }


class ClearingList(KeyedView):
    session_only = True

    @documented("clearings_count", CountJson, query=ScopeQuery)
    def get(self, request: Request, workspace_id: str) -> Response:
        """Count the memories that a clearing would delete.

        Only owners may count a workspace's or an assistant's memories; everybody may count their own personal ones.
        """
        asked = self.query(ScopeQuery)
        workspace, agent = clear.scope_of(self.person, workspace_id, asked["scope"], asked.get("agent_id"))
        live, whole = clear.count_in(workspace, asked["scope"], agent, by=self.person)
        return Response({"count": live, "for_good": whole})

    @documented("clearings_create", {202: ClearingJson}, body=ClearingBody, errors=[409])
    def post(self, request: Request, workspace_id: str) -> Response:
        """Clear a scope of its memories.

        Only owners may clear a workspace's or an assistant's memories; everybody may clear their own. It runs in the
        background; request its progress by its id. It stops if you lose the right to do it. Memories saved after it
        began stay. `for_good` also removes deleted memories and proposals and cannot be undone; it needs your password
        again. 409 with code `clearing` while another clearing of the scope is running.
        """
        body = self.body(ClearingBody)
        workspace, agent = clear.scope_of(self.person, workspace_id, body["scope"], body.get("agent_id"))
        if body["for_good"]:
            self.require_fresh_password()
        started = clear.begin(
            workspace, body["scope"], agent, by=self.person, for_good=body["for_good"], now=timezone.now()
        )
        return Response(clearing_json(started), status=202)


class ClearingView(KeyedView):
    session_only = True

    def clearing(self, workspace_id: str, clearing_id: str) -> Clearing:
        return clear.get_clearing(self.person, get_workspace(self.person, workspace_id), clearing_id)


class ClearingDetail(ClearingView):
    @documented("clearings_get", ClearingJson)
    def get(self, request: Request, workspace_id: str, clearing_id: str) -> Response:
        """Look at the progress of a clearing."""
        return Response(clearing_json(self.clearing(workspace_id, clearing_id)))


class ClearingUndo(ClearingView):
    @documented("clearings_undo", {202: ClearingJson}, errors=[409])
    def post(self, request: Request, workspace_id: str, clearing_id: str) -> Response:
        """Undo a clearing.

        Restores in the background what it deleted, except what was restored, forgotten or refused since. 409 with code
        `clearing` if it was for good or is still running.
        """
        return Response(
            clearing_json(clear.undo(self.clearing(workspace_id, clearing_id), by=self.person)), status=202
        )
