"""Forgetting a memory for good, over REST."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api.views import WorkspaceMemoryView
from memories.forgetting.forget import Report, forget_memories, require_right
from workspaces.api.schema import documented_under
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
