"""The memories of a workspace, over REST."""

from __future__ import annotations

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from memories.access import get_memory
from memories.api import examples
from memories.api.queries import LIVE_IN, memory_json, memory_response
from memories.api.saving import change_memory, delete_memory, save_once, saved_response
from memories.api.serializers import (
    FoundJson,
    MemoryBody,
    MemoryChanges,
    MemoryJson,
    RecallBody,
    RecallJson,
    RestoredMemoryJson,
    RevisionJson,
    SavedMemoryJson,
    SearchBody,
    SearchJson,
)
from memories.models import Memory
from memories.recalling.recall import recall
from memories.recalling.search import search_workspace
from memories.writing import gate
from workspaces.access import get_workspace
from workspaces.agents.agents import choose_agent
from workspaces.audit import note_bulk_read
from workspaces.leaving_machine import Reach
from workspaces.models import Role
from workspaces.rest.docs import (
    answer_example,
    documented,
    page_of,
    request_example,
)
from workspaces.rest.etags import ETAG, IF_MATCH
from workspaces.rest.idempotency import ONCE
from workspaces.rest.keys import KeyedView
from workspaces.rest.paging import PageQuery


class MemoryList(KeyedView):
    @documented(
        "List the memories of a workspace",
        tag="memories",
        operation="memories_list",
        answers={200: page_of(MemoryJson, "Memory")},
        query=PageQuery,
        errors=[404, 429],
        description="Newest first. Inserts and deletes while you page repeat and skip nothing.",
        examples=[answer_example("A page", examples.PAGE)],
    )
    def get(self, request: Request, workspace_id: str) -> Response:
        workspace = get_workspace(self.person, workspace_id)
        answer = self.page(
            LIVE_IN.of(workspace=workspace.pk, user=self.person.pk, now=timezone.now()),
            memory_json,
            descending=True,
            list_name=f"memories of {workspace.public_id}",
        )
        note_bulk_read(len(answer.data["items"]), by=self.person, workspace=workspace)
        return answer

    @documented(
        "Save a memory",
        tag="memories",
        operation="memories_create",
        answers={201: SavedMemoryJson, 200: SavedMemoryJson},
        headers=[*ONCE, ETAG],
        body=MemoryBody,
        errors=[404, 429],
        writes=True,
        description="201 with the new memory. 200 with the existing one when it says nearly the same "
        "(`duplicate: true`) or has the same key (updated in place). 422 with code `secret`: a credential; with code "
        "`sensitive`: a personal number, stored when the same comes with `confirm: true`.",
        examples=[
            request_example(
                "A fact", {"content": "Quarterly review meets every Thursday", "category": "fact"}
            ),
            answer_example("Saved", {**examples.MEMORY, "duplicate": False}, code=201),
            answer_example("Known already", {**examples.MEMORY, "duplicate": True}),
            examples.SECRET,
            examples.SENSITIVE,
        ],
    )
    def post(self, request: Request, workspace_id: str) -> Response:
        workspace = get_workspace(self.person, workspace_id, need=Role.EDITOR)
        body = self.body(MemoryBody)
        dedupe, agent_id = body.pop("dedupe"), body.pop("agent_id", None)
        agent = choose_agent(workspace, agent_id) if agent_id is not None else None
        draft = gate.Draft(workspace=workspace, author=self.person, agent=agent, **body, named={*body})
        now = timezone.now()
        saved = save_once(self, lambda: gate.save_memory(draft, by=self.person, now=now, dedupe=dedupe))
        return saved_response(saved)


class WorkspaceMemoryView(KeyedView):
    """One memory, found inside its workspace."""

    def memory(
        self, workspace_id: str, memory_id: str, need: Role = Role.VIEWER, *, include_deleted: bool = False
    ) -> Memory:
        return get_memory(
            self.person,
            memory_id,
            workspace=get_workspace(self.person, workspace_id),
            need=need,
            include_deleted=include_deleted,
        )


class MemoryDetail(WorkspaceMemoryView):
    @documented(
        "Look at a memory",
        tag="memories",
        operation="memories_get",
        answers={200: MemoryJson},
        headers=[ETAG],
        errors=[404, 429],
        examples=[answer_example("A memory", examples.MEMORY)],
    )
    def get(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        return memory_response(self.memory(workspace_id, memory_id))

    @documented(
        "Change a memory",
        tag="memories",
        operation="memories_update",
        answers={200: MemoryJson},
        headers=[ETAG, IF_MATCH],
        body=MemoryChanges,
        errors=[404, 409, 429],
        writes=True,
        description="What is left out stays. New content is embedded anew. 409 when the key is taken, or code `stale`.",
        examples=[
            request_example("New content", {"content": "The project deadline is April 1, 2026"}),
            answer_example("Changed", examples.MEMORY),
            examples.SECRET,
            examples.SENSITIVE,
        ],
    )
    def patch(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        return change_memory(self, self.memory(workspace_id, memory_id, Role.EDITOR))

    @documented(
        "Delete a memory",
        tag="memories",
        operation="memories_delete",
        answers={204: None},
        headers=[IF_MATCH],
        errors=[404, 429],
        writes=True,
        description="Gone from every list, count and recall at once; `restore` brings it back.",
        session_only=True,
    )
    def delete(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        return delete_memory(self, self.memory(workspace_id, memory_id, Role.EDITOR))


class MemoryRestore(WorkspaceMemoryView):
    @documented(
        "Restore a deleted memory",
        tag="memories",
        operation="memories_restore",
        answers={200: RestoredMemoryJson},
        headers=[ETAG],
        errors=[404, 429],
        writes=True,
        description="Undo of a delete. Restoring a memory that is not deleted changes nothing. Where another has its "
        "key by now, it comes back without (`lost_key`).",
        examples=[answer_example("Restored", {**examples.MEMORY, "lost_key": None})],
    )
    def post(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        memory = self.memory(workspace_id, memory_id, Role.EDITOR, include_deleted=True)
        restored = gate.restore_memory(memory, by=self.person, now=timezone.now())
        return memory_response(restored, lost_key=None if restored.key == memory.key else memory.key)


class MemoryRevisions(WorkspaceMemoryView):
    @documented(
        "The history of a memory",
        tag="memories",
        operation="memories_revisions",
        answers={200: page_of(RevisionJson, "Revision")},
        query=PageQuery,
        errors=[404, 429],
        description="Who changed it, when, and what it said before. Newest first.",
        examples=[answer_example("A page", examples.REVISIONS)],
    )
    def get(self, request: Request, workspace_id: str, memory_id: str) -> Response:
        memory = self.memory(workspace_id, memory_id)
        return self.page(
            memory.revisions.select_related("by"),
            RevisionJson,
            keys=["at", "id"],
            descending=True,
            list_name=f"revisions of {memory.public_id}",
        )


class Recall(KeyedView):
    only_reads = True

    @documented(
        "Recall what matters to a query",
        tag="memories",
        operation="memories_recall",
        answers={200: RecallJson},
        body=RecallBody,
        errors=[404, 429],
        description="The ranked memories with their scores, your personal ones included. Those of an assistant only "
        "with its `agent_id`.",
        examples=[
            request_example("A question", {"query": "When is the deadline?", "limit": 5}),
            answer_example("Found", examples.RECALL),
        ],
    )
    def post(self, request: Request, workspace_id: str) -> Response:
        workspace = get_workspace(self.person, workspace_id)
        body = self.body(RecallBody)
        agent_id = body.pop("agent_id")
        agent = choose_agent(workspace, agent_id, or_archived=True) if agent_id is not None else None
        found = recall(
            workspace=workspace,
            user=self.person,
            agent=agent,
            reach=Reach.here(workspace),
            now=timezone.now(),
            **body,
        )
        answer = {
            "memories": [
                {**memory_json(item.memory), "score": item.score, "score_parts": item.parts}
                for item in found.items
            ],
            "ranking": found.ranking,
            "degraded": bool(found.degraded),
            "degraded_reason": found.degraded or None,
        }
        return Response(answer)


class Search(KeyedView):
    only_reads = True

    @documented(
        "Search a workspace",
        tag="memories",
        operation="workspaces_search",
        answers={200: SearchJson},
        body=SearchBody,
        errors=[404, 429],
        description="What matters to the query, best first, each with its type: memories today, your personal ones "
        "included. What is said in chats is not searched. The model's tool `x_workspace_search` finds the same, in a "
        "chat that others read without your personal ones unless you let them in there.",
        examples=[
            request_example("A search", {"query": "project deadline", "limit": 10}),
            answer_example("Found", examples.SEARCH),
        ],
    )
    def post(self, request: Request, workspace_id: str) -> Response:
        workspace = get_workspace(self.person, workspace_id)
        found = search_workspace(
            workspace=workspace,
            user=self.person,
            reach=Reach.here(workspace),
            now=timezone.now(),
            **self.body(SearchBody),
        )
        return Response({"results": FoundJson(found, many=True).data})
