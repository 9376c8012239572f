"""Copies of what somebody else forgot for good, over REST."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api.forgetting import FRESH, REPORT, ReportJson, report_json
from memories.forgetting.copy_notes import (
    forget_noted,
    get_noted,
    keep_noted,
    noted,
)
from memories.models import CopyKind, Memory
from workspaces.access import get_workspace
from workspaces.accounts.sign_in import require_fresh_password
from workspaces.models import Role
from workspaces.rest.docs import answer_example, documented, page_of
from workspaces.rest.keys import KeyedView
from workspaces.rest.paging import PageQuery

EXAMPLE = {"memory_id": "mem_0Zt3kQx8Lr5Wm2Vb7Yc4Nd9H", "copies": {"excerpt": 1, "revision": 2}}


class CopiesJson(serializers.Serializer[Any]):
    memory_id = serializers.CharField()
    copies = serializers.DictField(child=serializers.IntegerField(), help_text=", ".join(CopyKind.values))


def _copies_json(memory: Memory) -> dict[str, Any]:
    kinds = [copy.kind for copy in memory.kept_copies.all()]
    return {"memory_id": memory.public_id, "copies": {kind: kinds.count(kind) for kind in sorted(set(kinds))}}


class CopyList(KeyedView):
    @documented(
        "List copies of what was forgotten",
        tag="memories",
        operation="copies_list",
        answers={200: page_of(CopiesJson, "Copies")},
        query=PageQuery,
        errors=[404, 429],
        description="Somebody forgot a text for good that memories of yours to forget quote still: in their `excerpt`, "
        "in a `revision` of their history, in an `item` of a receipt; `memory`: a deleted one says so itself.",
        examples=[answer_example("A page", {"items": [EXAMPLE], "next_cursor": None, "has_more": False})],
    )
    def get(self, request: Request, workspace_id: str) -> Response:
        workspace = get_workspace(self.person, workspace_id)
        name = f"copies of {workspace.public_id}"
        return self.page(noted(workspace, self.person), _copies_json, list_name=name)


class CopyView(KeyedView):
    session_only = True

    def memory(self, workspace_id: str, memory_id: str) -> Memory:
        workspace = get_workspace(self.person, workspace_id, need=Role.EDITOR)
        return get_noted(self.person, memory_id, workspace=workspace)


class CopyForget(CopyView):
    @documented(
        "Forget those copies for good",
        tag="memories",
        operation="copies_forget",
        answers={200: ReportJson},
        errors=[404, 429],
        writes=True,
        session_only=True,
        description=f"The memory stays, unless it is a deleted one that says so itself. {FRESH}",
        examples=[answer_example("Gone", {**REPORT, "removed": {"source_excerpts": 1}})],
    )
    def post(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        memory = self.memory(workspace_id, memory_id)
        require_fresh_password(request._request)
        return Response(report_json(forget_noted(memory, by=self.person, now=timezone.now())))


class CopyKeep(CopyView):
    @documented(
        "Keep those copies",
        tag="memories",
        operation="copies_keep",
        answers={204: None},
        errors=[404, 429],
        writes=True,
        session_only=True,
        description="They stay, and are listed here no more.",
    )
    def post(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        keep_noted(self.memory(workspace_id, memory_id))
        return Response(status=status.HTTP_204_NO_CONTENT)
