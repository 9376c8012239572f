"""Forgetting a memory for good, over REST."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api.views import WorkspaceMemoryView
from memories.forgetting.forget import Report, forget_memories, require_right
from workspaces.accounts.sign_in import require_fresh_password
from workspaces.models import Role
from workspaces.rest.docs import answer_example, documented

REPORT = {
    "removed": {"memories": 1, "memory_embeddings": 1, "memory_words": 9, "revisions": 2, "receipt_items": 3},
    "tombstones": 1,
    "recall": {"found": 0, "others": 2},
}
FRESH = (
    "Cannot be undone, so it needs a browser session whose person typed their password again in the last five minutes "
    "(`/accounts/reauthenticate/`): else 403 with code `reauthenticate`."
)


class RecallCheckJson(serializers.Serializer[Any]):
    found = serializers.IntegerField(help_text="Memories that still say the same: somebody else saved them.")
    others = serializers.IntegerField(help_text="Memories about something else that share words with it.")


class ReportJson(serializers.Serializer[Any]):
    removed = serializers.DictField(child=serializers.IntegerField(), help_text="Rows by kind.")
    tombstones = serializers.IntegerField(help_text="Keyed hashes that keep it from being noticed again.")
    recall = RecallCheckJson(help_text="What a recall of the same words brings afterwards.")


def report_json(report: Report) -> dict[str, Any]:
    return {
        "removed": {name.replace(" ", "_"): number for name, number in report.lines},
        "tombstones": report.tombstones,
        "recall": {"found": report.found, "others": report.others},
    }


class MemoryForget(WorkspaceMemoryView):
    session_only = True

    @documented(
        "Forget a memory for good",
        tag="memories",
        operation="memories_forget",
        answers={200: ReportJson},
        errors=[404, 429],
        writes=True,
        session_only=True,
        description="Its author or an owner of the workspace; of a deleted memory, too. Removes the text, vectors, "
        "words, history, files and what receipts and other memories quote of it, as far as that is yours to forget, "
        f"and leaves a keyed hash: nothing notices it again by itself. Nothing else is counted. {FRESH}",
        examples=[answer_example("Gone", REPORT)],
    )
    def post(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        memory = self.memory(workspace_id, memory_id, Role.EDITOR, include_deleted=True)
        require_right(memory, self.person)
        require_fresh_password(request._request)
        return Response(report_json(forget_memories([memory], by=self.person, now=timezone.now())))
