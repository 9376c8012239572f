"""Every page, list and record costs the same number of queries for few rows as for many."""

from collections.abc import Callable
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import Schedule, Task
from django_q.tasks import async_task

from chat.models import AnswerSource, Chat, Message
from chat.models.imports import Import, ImportKind
from memories import topics
from memories.models import Asset, Extraction, Memory, MemoryNode, Receipt
from memories.models.extraction import Refusal
from memories.recalling.ranked_search import Recalled
from memories.recalling.recall import Recall, store_receipt
from memories.writing.gate import edit_memory
from tests.conftest import Cast
from tests.factories import (
    make_agent,
    make_chat,
    make_connection,
    make_key_text,
    make_memory,
    make_message,
    make_user,
    make_workspace,
)
from workspaces.models import Artifact, Document, EmbeddingModel, Membership, Role, User

API = "/chat/api"


class GrowingWorkspace:
    """A workspace in which everything that any page lists grows."""

    def __init__(self, cast: Cast) -> None:
        self.cast, self.size = cast, 0
        self.chat: Chat = make_chat(cast.owner, cast.workspace)
        self.memory: Memory = make_memory("The house is blue", cast.owner, cast.workspace)
        self.agent = make_agent(cast.owner, cast.workspace)
        self.node: MemoryNode | None = None
        self.answer: Message = make_message(self.chat, "It is blue", role="assistant")

    def grow(self, number: int) -> None:
        cast, workspace = self.cast, self.cast.workspace
        for at in range(self.size, self.size + number):
            member = make_user(f"member{at}")
            Membership.objects.create(workspace=workspace, user=member, role=Role.EDITOR)
            make_workspace(owner=cast.owner, name=f"Workspace {at}")
            make_message(make_chat(member, workspace, title=f"Blue chat {at}"), "Blue")
            make_message(self.chat, f"Blue question {at}", author=member)
            aside: dict[str, Any] = {"superseded_by": self.answer, "superseded_at": timezone.now()}
            make_message(self.chat, f"Blue answer {at}", role="assistant", **aside)
            newer = make_memory(f"House number {at} is blue", member, workspace, now=timezone.now())
            Memory.objects.filter(pk=newer.pk).update(may_replace=self.memory)
            make_agent(member, workspace, name=f"Blue {at}")
            make_connection(name=f"Blue {at}")
            edit_memory(self.memory, by=member, now=timezone.now(), tags=[f"tag {at}"])
            self.grow_nodes(at, newer)
            self.grow_records(at, member)
        self.size += number
        found = Recall(
            [Recalled(memory, 0.8, {"meaning": 0.8}) for memory in Memory.objects.all()[: self.size]]
        )
        verdicts = [(number % 2 == 0, "") for number in range(len(found.items))]
        people: dict[str, Any] = {"workspace": workspace, "user": cast.owner}
        self.receipt: Receipt = store_receipt(self.answer.public_id, found, verdicts, **people, threshold=0.3)

    def grow_nodes(self, at: int, memory: Memory) -> None:
        """Add a node with a memory, related to the first."""
        now, owner = timezone.now(), self.cast.owner
        node = topics.create_node(self.cast.workspace, name=f"Blue {at}", by=owner, now=now)
        self.node = self.node or node
        topics.link_memory(self.node, memory, now=now)
        topics.link_memory(node, memory, now=now)
        if node != self.node:
            topics.relate(self.node, node, "knows", now=now)

    def grow_records(self, at: int, member: User) -> None:
        """Add rows that the profile and the admin list."""
        now, workspace = timezone.now(), self.cast.workspace
        make_key_text(self.cast.owner, workspace)
        Import.objects.create(user=self.cast.owner, workspace=workspace, kind=ImportKind.STATEMENTS, size=1)
        model = {"name": "model", "dimension": 384, "state": "retired", "started_at": now, "cleaned_at": now}
        EmbeddingModel.objects.create(label=f"model {at}", **model)
        Asset.objects.create(memory=self.memory, name="a.txt", size=1, file_name=f"none-{at}")
        Extraction.objects.create(
            workspace=workspace,
            user=member,
            chat_id=self.chat.public_id,
            message_id=f"msg {at}",
            source_type="auto_chat",
            next_attempt_at=now,
        )
        Refusal.objects.create(workspace=workspace, day=now.date(), source_type="user", kind=f"kind {at}")
        sums = {"title": f"Sums {at}", "kind": "code", "content": "1", "gist": "1"}
        Artifact.objects.create(workspace=workspace, created_by=member, **sums)
        document = Document.objects.create(
            workspace=workspace, title=f"Blue {at}", file_name=f"none-{at}", size=1, sha256=f"{at}"
        )
        AnswerSource.objects.create(message=self.answer, document=document, number=at + 1, score=0.5)
        async_task("memories.tasks.sweep")
        Schedule.objects.create(name=f"schedule {at}", func="memories.tasks.sweep")
        for success in (True, False):
            job = {"name": f"job {at}", "func": "memories.tasks.sweep", "started": now, "stopped": now}
            Task.objects.create(id=f"{at} {success}", success=success, **job)


def get(path: str) -> Callable[[Client, dict[str, Any]], Any]:
    return lambda client, ids: client.get(path.format(**ids))


def post(path: str, body: dict[str, Any]) -> Callable[[Client, dict[str, Any]], Any]:
    return lambda client, ids: client.post(path.format(**ids), body, content_type="application/json")


CALLS = {
    "home": get("/workspaces/{ws}/"),
    "chat": get("/chats/{chat}/"),
    "transcript": get("/chats/{chat}/transcript/"),
    "chat list": get("/workspaces/{ws}/chats/list/"),
    "chat list, search": get("/workspaces/{ws}/chats/list/?q=blue"),
    "versions": get("/chats/{chat}/messages/{msg}/versions/"),
    "workspaces": get("/workspaces/"),
    "workspace settings": get("/workspaces/{ws}/settings/"),
    "assistants": get("/workspaces/{ws}/agents/"),
    "assistant": get("/workspaces/{ws}/agents/{agent}/"),
    "models": get("/connections/"),
    "models to choose from": get("/chats/{chat}/model/"),
    "models for a new chat": get("/workspaces/{ws}/models/"),
    "api models": get(f"{API}/connections"),
    "profile": get("/profile/"),
    "documents": get("/workspaces/{ws}/documents/"),
    "api documents": get(f"{API}/workspaces/{{ws}}/documents"),
    "artifacts": get("/workspaces/{ws}/artifacts/"),
    "api artifacts": get(f"{API}/workspaces/{{ws}}/artifacts"),
    "activity": get("/workspaces/{ws}/activity/"),
    "nodes": get("/workspaces/{ws}/nodes/"),
    "node": get("/workspaces/{ws}/nodes/{node}/"),
    "panel": get("/workspaces/{ws}/memories/"),
    "panel, search": get("/workspaces/{ws}/memories/?q=blue&part=list"),
    "panel, to be decided": get("/workspaces/{ws}/memories/?review=on&part=list"),
    "badge": get("/workspaces/{ws}/memories/count/"),
    "history": get("/workspaces/{ws}/memories/{mem}/history/"),
    "receipt": get("/receipts/{msg}/"),
    "api workspaces": get(f"{API}/workspaces"),
    "api members": get(f"{API}/workspaces/{{ws}}/members"),
    "api agents": get(f"{API}/workspaces/{{ws}}/agents"),
    "api chats": get(f"{API}/chats?workspace_id={{ws}}"),
    "api chats, search": get(f"{API}/chats?q=blue"),
    "api versions": get(f"{API}/{{chat}}/messages/{{msg}}/versions"),
    "api messages": get(f"{API}/{{chat}}/messages"),
    "api memories": get(f"{API}/workspaces/{{ws}}/memories"),
    "api revisions": get(f"{API}/workspaces/{{ws}}/memories/{{mem}}/revisions"),
    "api receipt": get(f"{API}/{{chat}}/messages/{{msg}}/receipt"),
    "api recall": post(f"{API}/workspaces/{{ws}}/recall", {"query": "blue house", "limit": 20}),
    "api search": post(f"{API}/workspaces/{{ws}}/search", {"query": "blue house", "limit": 20}),
    "api imports": get(f"{API}/imports"),
    "v1 memories": get("/api/v1/memories?workspace_id={ws}"),
    "v1 recall": post("/api/v1/memories/recall?workspace_id={ws}", {"query": "blue house", "limit": 20}),
    "v1 assistants": get("/api/v1/agents?workspace_id={ws}"),
    "v1 files": get("/api/v1/memories/{mem}/assets?workspace_id={ws}"),
    "v1 nodes": get("/api/v1/memory-nodes?workspace_id={ws}"),
    "v1 node": get("/api/v1/memory-nodes/{node}?workspace_id={ws}"),
    "v1 memories of a node": get("/api/v1/memory-nodes/{node}/memories?workspace_id={ws}"),
    "v1 relations of a node": get("/api/v1/memory-nodes/{node}/relations?workspace_id={ws}"),
    "v1 neighbours of a node": get("/api/v1/memory-nodes/{node}/neighbours?workspace_id={ws}"),
    "admin": get("/admin/"),
    "admin memories": get("/admin/memories/memory/"),
    "admin memory": get("/admin/memories/memory/{memory_pk}/change/"),
    "admin receipts": get("/admin/memories/receipt/"),
    "admin receipt": get("/admin/memories/receipt/{receipt_pk}/change/"),
    "admin workspaces": get("/admin/workspaces/workspace/"),
    "admin workspace": get("/admin/workspaces/workspace/{workspace_pk}/change/"),
    "admin keys": get("/admin/workspaces/apikey/"),
    "admin audit log": get("/admin/workspaces/auditevent/"),
    "admin extractions": get("/admin/memories/extraction/"),
    "admin use of models": get("/admin/workspaces/modeluse/"),
    "admin refusals": get("/admin/memories/refusal/"),
    "admin embedding models": get("/admin/workspaces/embeddingmodel/"),
    "admin queued jobs": get("/admin/django_q/ormq/"),
    "admin finished jobs": get("/admin/django_q/success/"),
    "admin failed jobs": get("/admin/django_q/failure/"),
    "admin schedules": get("/admin/django_q/schedule/"),
    "admin assistants": get("/admin/workspaces/agent/"),
    "admin models": get("/admin/workspaces/connection/"),
    "admin people": get("/admin/workspaces/user/"),
    "admin person": get("/admin/workspaces/user/{user_pk}/change/"),
    "admin chats": get("/admin/chat/chat/"),
    "admin chat": get("/admin/chat/chat/{chat_pk}/change/"),
    "admin messages": get("/admin/chat/message/"),
}


def test_everything_costs_the_same_for_few_rows_and_for_many(cast: Cast) -> None:
    cast.owner.is_staff = cast.owner.is_superuser = True
    cast.owner.save()
    client = Client()
    client.force_login(cast.owner)
    house = GrowingWorkspace(cast)

    def queries() -> dict[str, int]:
        ids = {
            "ws": cast.workspace.public_id,
            "chat": house.chat.public_id,
            "mem": house.memory.public_id,
            "msg": house.answer.public_id,
            "agent": house.agent.public_id,
            "node": house.node.public_id if house.node else "",
            "workspace_pk": cast.workspace.pk,
            "chat_pk": house.chat.pk,
            "user_pk": cast.owner.pk,
            "memory_pk": house.memory.pk,
            "receipt_pk": house.receipt.pk,
        }
        counts = {}
        for name, call in CALLS.items():
            with CaptureQueriesContext(connection) as captured:
                response = call(client, ids)
            assert response.status_code == 200, f"{name}: {response.status_code}"
            counts[name] = len(captured)
        return counts

    house.grow(3)
    queries()  # a first request has extra queries, such as for the session's workspace
    few = queries()
    house.grow(27)
    many = queries()
    # Recall queries again if a candidate search has to look further, or to record the access of new rows; never once
    # per row.
    for name in ("api recall", "api search", "v1 recall"):
        assert many.pop(name) <= few.pop(name) + 2
    assert many == few
