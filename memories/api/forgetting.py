"""REST endpoints for forgetting memories permanently, for copies of forgotten texts, and for clearing a scope."""

from typing import Any

from django.utils import timezone
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api.views import WorkspaceMemoryView
from memories.forgetting import clear, for_good
from memories.models import Clearing, ClearingStatus, CopyKind, Memory, Scope
from workspaces.access import get_workspace
from workspaces.api.base import KeyedView
from workspaces.api.fields import Body, Choice, Flag, Moment, Text
from workspaces.api.schema import ID, documented_under, page_of
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


def report_json(report: for_good.Report) -> dict[str, Any]:
    return {
        "removed": {name.replace(" ", "_"): number for name, number in report.removed.most_common()},
        "tombstones": report.tombstones,
        "recall": {"found": report.found, "others": report.others},
    }


class MemoryForget(WorkspaceMemoryView):
    session_only = True

    @documented("memories_forget", ReportJson, fresh=True)
    def post(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        """Forget a memory permanently.

        Its author or an owner of the workspace may do this, even if the memory is deleted. Removes its text, vectors,
        indexed words, history and files. Quotes of it in receipts and other memories are removed where you have the
        right to forget them. Only a keyed hash of the text stays, so that no program saves it again. The response
        counts what was removed. This cannot be undone.
        """
        memory = self.memory(workspace_id, memory_id, Role.EDITOR, include_deleted=True)
        for_good.require_right(memory, self.person)
        self.require_fresh_password()
        return Response(report_json(for_good.forget_memories([memory], by=self.person, now=timezone.now())))


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

        Lists memories that you may forget and that still contain a text which somebody else has forgotten permanently.
        `copies` counts where: in the `excerpt`, in a `revision` of the history, or in an `item` of a receipt. `memory`
        means that the content of a deleted memory is that text.
        """
        workspace = get_workspace(self.person, workspace_id)
        name = f"copies of {workspace.public_id}"
        return self.page(for_good.with_noted_copies(workspace, self.person), _copies_json, list_name=name)


class CopyView(KeyedView):
    session_only = True

    def memory(self, workspace_id: str, memory_id: str) -> Memory:
        workspace = get_workspace(self.person, workspace_id, need=Role.EDITOR)
        return for_good.get_noted(self.person, memory_id, workspace=workspace)


class CopyForget(CopyView):
    @documented("copies_forget", ReportJson, fresh=True)
    def post(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        """Forget the copies in a memory permanently.

        The memory itself stays, unless it is deleted and its content is the forgotten text. This cannot be undone.
        """
        memory = self.memory(workspace_id, memory_id)
        self.require_fresh_password()
        return Response(report_json(for_good.forget_noted(memory, by=self.person, now=timezone.now())))


class CopyKeep(CopyView):
    @documented("copies_keep")
    def post(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        """Keep the copies of forgotten texts in a memory.

        The memory stays as it is and is no longer listed.
        """
        for_good.keep_noted(self.memory(workspace_id, memory_id))
        return Response(status=status.HTTP_204_NO_CONTENT)


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
    id = serializers.CharField(source="public_id")
    scope = serializers.ChoiceField(choices=Scope.choices)
    for_good = serializers.BooleanField()
    status = serializers.ChoiceField(choices=ClearingStatus.choices)
    total = serializers.IntegerField(help_text="Memories that the step at work began with.")
    done = serializers.IntegerField(help_text="Of these, so many are cleared or brought back.")
    left_out = serializers.IntegerField(help_text="So many stay as they are: refused by today's rules.")
    started_at = Moment()
    finished_at = Moment(allow_null=True)


class ClearingList(KeyedView):
    session_only = True

    @documented("clearings_count", CountJson, query=ScopeQuery)
    def get(self, request: Request, workspace_id: str) -> Response:
        """Count the memories that a clearing would delete.

        Only owners may count a workspace's or an assistant's memories; everybody may count their own personal ones.
        """
        query = self.query(ScopeQuery)
        workspace, agent = clear.scope_of(self.person, workspace_id, query["scope"], query.get("agent_id"))
        live, whole = clear.count_in(workspace, query["scope"], agent, by=self.person)
        return Response({"count": live, "for_good": whole})

    @documented("clearings_create", {202: ClearingJson}, body=ClearingBody, errors=[409])
    def post(self, request: Request, workspace_id: str) -> Response:
        """Clear a scope of its memories.

        Only owners may clear a workspace's or an assistant's memories; everybody may clear their own. The clearing runs
        in the background, and stops if you lose the right to it. Memories saved after it began stay. `for_good` also
        removes deleted memories and proposals, cannot be undone and requires your password again. 409 with code
        `clearing` while another clearing of the scope is running.
        """
        body = self.body(ClearingBody)
        workspace, agent = clear.scope_of(self.person, workspace_id, body["scope"], body.get("agent_id"))
        if body["for_good"]:
            self.require_fresh_password()
        started = clear.begin(
            workspace, body["scope"], agent, by=self.person, for_good=body["for_good"], now=timezone.now()
        )
        return Response(ClearingJson(started).data, status=202)


class ClearingView(KeyedView):
    session_only = True

    def clearing(self, workspace_id: str, clearing_id: str) -> Clearing:
        return clear.get_clearing(self.person, get_workspace(self.person, workspace_id), clearing_id)


class ClearingDetail(ClearingView):
    @documented("clearings_get", ClearingJson)
    def get(self, request: Request, workspace_id: str, clearing_id: str) -> Response:
        """Get the progress of a clearing."""
        return Response(ClearingJson(self.clearing(workspace_id, clearing_id)).data)


class ClearingUndo(ClearingView):
    @documented("clearings_undo", {202: ClearingJson}, errors=[409])
    def post(self, request: Request, workspace_id: str, clearing_id: str) -> Response:
        """Undo a clearing.

        Restores the deleted memories in the background, without those that were restored or forgotten since or may no
        longer be stored. 409 with code `clearing` if the clearing was permanent or is still running.
        """
        undone = clear.undo(self.clearing(workspace_id, clearing_id), by=self.person)
        return Response(ClearingJson(undone).data, status=202)
