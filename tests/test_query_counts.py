"""Every page, list and record costs the same queries for a few rows as for many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.models import Chat, Message
from memories.gate import edit_memory
from memories.models import Memory, Receipt
from memories.recall import Recall, Recalled
from memories.receipts import store_receipt
from tests.conftest import Cast
from tests.factories import make_agent, make_chat, make_memory, make_message, make_user, make_workspace
from workspaces.models import Membership, Role

API = "/chat/api"


class House:
    """One workspace in which everything that is listed somewhere grows."""

    def __init__(self, cast: Cast) -> None:
        self.cast, self.size = cast, 0
        self.chat: Chat = make_chat(cast.owner, cast.workspace)
        self.memory: Memory = make_memory("The house is blue", cast.owner, cast.workspace)
        self.agent = make_agent(cast.owner, cast.workspace)
        self.answer: Message = make_message(self.chat, "It is blue", role="assistant")

    def grow(self, number: int) -> None:
        cast, workspace = self.cast, self.cast.workspace
        for at in range(self.size, self.size + number):
            member = make_user(f"member{at}")
            Membership.objects.create(workspace=workspace, user=member, role=Role.EDITOR)
            make_workspace(owner=cast.owner, name=f"Workspace {at}")
            make_message(make_chat(member, workspace, title=f"Blue chat {at}"), "Blue")
            make_message(self.chat, f"Blue question {at}", author=member)
            newer = make_memory(f"House number {at} is blue", member, workspace, now=timezone.now())
            Memory.objects.filter(pk=newer.pk).update(may_replace=self.memory)
            make_agent(member, workspace, name=f"Blue {at}")
            edit_memory(self.memory, by=member, now=timezone.now(), tags=[f"tag {at}"])
        self.size += number
        found = Recall(
            [Recalled(memory, 0.8, {"meaning": 0.8}) for memory in Memory.objects.all()[: self.size]]
        )
        verdicts = [(number % 2 == 0, "") for number in range(len(found.items))]
        people = {"workspace": workspace, "user": cast.owner}
        self.receipt: Receipt = store_receipt(self.answer.public_id, found, verdicts, **people, threshold=0.3)


def get(path: str) -> Callable[[Client, dict[str, Any]], Any]:
    return lambda client, ids: client.get(path.format(**ids))


def post(path: str, body: dict[str, Any]) -> Callable[[Client, dict[str, Any]], Any]:
    return lambda client, ids: client.post(path.format(**ids), body, content_type="application/json")


CALLS = {
    "home": get("/workspaces/{ws}/"),
    "chat": get("/chats/{chat}/"),
    "transcript": get("/chats/{chat}/transcript/"),
    "chat list": get("/workspaces/{ws}/chats/list/"),
    "workspaces": get("/workspaces/"),
    "workspace settings": get("/workspaces/{ws}/settings/"),
    "assistants": get("/workspaces/{ws}/agents/"),
    "assistant": get("/workspaces/{ws}/agents/{agent}/"),
    "profile": get("/profile/"),
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
    "api messages": get(f"{API}/{{chat}}/messages"),
    "api memories": get(f"{API}/workspaces/{{ws}}/memories"),
    "api revisions": get(f"{API}/workspaces/{{ws}}/memories/{{mem}}/revisions"),
    "api receipt": get(f"{API}/{{chat}}/messages/{{msg}}/receipt"),
    "api recall": post(f"{API}/workspaces/{{ws}}/recall", {"query": "blue house", "limit": 20}),
    "admin": get("/admin/"),
    "admin memories": get("/admin/memories/memory/"),
    "admin memory": get("/admin/memories/memory/{memory_pk}/change/"),
    "admin receipts": get("/admin/memories/receipt/"),
    "admin receipt": get("/admin/memories/receipt/{receipt_pk}/change/"),
    "admin workspaces": get("/admin/workspaces/workspace/"),
    "admin assistants": get("/admin/workspaces/agent/"),
    "admin people": get("/admin/workspaces/user/"),
    "admin chats": get("/admin/chat/chat/"),
    "admin messages": get("/admin/chat/message/"),
}


def test_everything_costs_the_same_for_few_rows_and_for_many(cast: Cast) -> None:
    cast.owner.is_staff = cast.owner.is_superuser = True
    cast.owner.save()
    client = Client()
    client.force_login(cast.owner)
    house = House(cast)

    def queries() -> dict[str, int]:
        ids = {
            "ws": cast.workspace.public_id,
            "chat": house.chat.public_id,
            "mem": house.memory.public_id,
            "msg": house.answer.public_id,
            "agent": house.agent.public_id,
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
    queries()  # what a first request makes, such as a session's workspace
    few = queries()
    house.grow(9)
    many = queries()
    # Recall asks once more where an arm has to look further; never once a row.
    assert many.pop("api recall") <= few.pop("api recall") + 2
    assert many == few
