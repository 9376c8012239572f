"""REST endpoints for forgetting memories permanently, and for copies of forgotten texts."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api.views import WorkspaceMemoryView
from memories.forgetting.forget import (
    Report,
    forget_memories,
    forget_noted,
    get_noted,
    keep_noted,
    noted,
    require_right,
)
from memories.models import CopyKind, Memory
from workspaces.access import get_workspace
from workspaces.api.authentication import KeyedView
from workspaces.api.schema import documented_under, page_of
from workspaces.models import Role

documented = documented_under("memories")


class RecallCheckJson(serializers.Serializer[Any]):
    example = {"found": 0, "others": 2}
    found = serializers.IntegerField(help_text="Memories that still say the same: somebody else saved them.")
    others = serializers.IntegerField(help_text="Memories about something else that share words with it.")


class ReportJson(serializers.Serializer[Any]):
    example = {"removed": {"memories": 1, "memory_embeddings": 1, "memory_words": 9, "revisions": 2}}
    removed = serializers.DictField(child=serializers.IntegerField(), help_text="Rows by kind.")
    tombstones = serializers.IntegerField(help_text="Keyed hashes that keep it from being noticed again.")
    recall = RecallCheckJson(help_text="What a recall of the same words brings afterwards.")


def report_json(report: Report) -> dict[str, Any]:
    return {
        "removed": {name.replace(" ", "_"): number for name, number in report.removed.most_common()},
        "tombstones": report.tombstones,
        "recall": {"found": report.found, "others": report.others},
    }


class MemoryForget(WorkspaceMemoryView):
    session_only = True

    @documented("memories_forget", ReportJson, fresh=True)
    def post(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        """Forget a memory for good.

        Its author or an owner of the workspace may do this, even once the memory is deleted. Removes its text, vectors,
        words, history, files, and quotes of it in receipts and other memories, as far as they are yours to forget. A
        keyed hash stays so that nothing saves it again by itself. Only what was removed is counted. This cannot be
        undone.
        """
        memory = self.memory(workspace_id, memory_id, Role.EDITOR, include_deleted=True)
        require_right(memory, self.person)
        self.require_fresh_password()
        return Response(report_json(forget_memories([memory], by=self.person, now=timezone.now())))


class CopiesJson(serializers.Serializer[Any]):
    example = {"copies": {"excerpt": 1, "revision": 2}}
    memory_id = serializers.CharField()
    copies = serializers.DictField(child=serializers.IntegerField(), help_text=", ".join(CopyKind.values))


def _copies_json(memory: Memory) -> dict[str, Any]:
    kinds = [copy.kind for copy in memory.kept_copies.all()]
    return {"memory_id": memory.public_id, "copies": {kind: kinds.count(kind) for kind in sorted(set(kinds))}}


class CopyList(KeyedView):
    @documented("copies_list", page_of(CopiesJson))
    def get(self, request: Request, workspace_id: str) -> Response:
        """List copies of forgotten texts.

        Memories you may forget that still quote a text somebody else forgot for good: in their `excerpt`, in a
        `revision` of their history, or in an `item` of a receipt. `memory` means that a deleted memory has that text as
        its content.
        """
        workspace = get_workspace(self.person, workspace_id)
        name = f"copies of {workspace.public_id}"
        return self.page(noted(workspace, self.person), _copies_json, list_name=name)


class CopyView(KeyedView):
    session_only = True

    def memory(self, workspace_id: str, memory_id: str) -> Memory:
        workspace = get_workspace(self.person, workspace_id, need=Role.EDITOR)
        return get_noted(self.person, memory_id, workspace=workspace)


class CopyForget(CopyView):
    @documented("copies_forget", ReportJson, fresh=True)
    def post(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        """Forget the copies in a memory for good.

        The memory itself stays, unless it is deleted and its content is the forgotten text. This cannot be undone.
        """
        memory = self.memory(workspace_id, memory_id)
        self.require_fresh_password()
        return Response(report_json(forget_noted(memory, by=self.person, now=timezone.now())))


class CopyKeep(CopyView):
    @documented("copies_keep")
    def post(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        """Keep the copies in a memory.

        They stay and are no longer listed.
        """
        keep_noted(self.memory(workspace_id, memory_id))
        return Response(status=status.HTTP_204_NO_CONTENT)
