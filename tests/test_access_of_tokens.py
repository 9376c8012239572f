"""OAuth access tokens against every route and every tool that accepts one.

A token has the rights of its user in its workspace, limited by its scope, and none after either ends.
"""

import json
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from chat.programs.mcp_tools import TOOLS
from tests.factories import make_token_text, make_workspace
from tests.routes import API_ROWS, NO_KEYS, Row
from tests.test_access_matrix import ask_by_token
from tests.world import EachRow, World
from workspaces.accounts.keys import hashed
from workspaces.models import ApiKey, KeyScope, Membership, OAuthToken, Role, User

ROWS = [row for row in API_ROWS if row.keys != NO_KEYS]
DOORS = ("/mcp", "/v1", "/api/v1")
OVER = ("expired", "revoked", "of a closed account")


def token_of(text: str) -> OAuthToken:
    return OAuthToken.objects.select_related("key").get(token_hash=hashed(text))


@pytest.fixture(scope="module")
def tokens(made_world: World) -> dict[str, str]:
    cast, now = made_world.cast, timezone.now()
    workspace = cast.workspace
    demoted, leaver, closed = (User.objects.create(username=name) for name in ("demoted", "leaver", "closed"))
    for person in (demoted, leaver, closed):
        Membership.objects.create(workspace=workspace, user=person, role=Role.EDITOR)
    User.objects.update(memory_default=True)
    texts = {
        "viewer": make_token_text(cast.viewer, workspace, scope=KeyScope.READ),
        "editor": make_token_text(cast.editor, workspace),
        "viewer who was an editor": make_token_text(demoted, workspace),
        "stranger": make_token_text(cast.stranger, make_workspace(owner=cast.stranger)),
        "of another workspace": make_token_text(cast.owner, make_workspace(owner=cast.owner, name="Third")),
        "narrowed": make_token_text(cast.owner, workspace),
        "leaver": make_token_text(leaver, workspace),
        **{f"for {door}": make_token_text(cast.owner, workspace, resource=door) for door in DOORS},
        "expired": make_token_text(cast.owner, workspace),
        "revoked": make_token_text(cast.owner, workspace),
        "of a closed account": make_token_text(closed, workspace),
    }
    Membership.objects.filter(user=demoted).update(role=Role.VIEWER)
    Membership.objects.filter(user=leaver).delete()
    User.objects.filter(pk=closed.pk).update(is_active=False)
    OAuthToken.objects.filter(pk=token_of(texts["narrowed"]).pk).update(scope=KeyScope.READ)
    OAuthToken.objects.filter(pk=token_of(texts["expired"]).pk).update(expires_at=now)
    ApiKey.objects.filter(pk=token_of(texts["revoked"]).key_id).update(revoked_at=now)
    return texts


def expected(row: Row) -> dict[str, Any]:
    """Return what a key of the same scope may (``row.keys``), limited to its user's session (``row.statuses``)."""
    read, write, elsewhere = row.keys[:3]
    _owner, editor, viewer, stranger = row.statuses[:4]

    def least(key: Any, person: Any) -> Any:
        return key if row.keys_alone or key >= 400 else person

    gone = 404 if row.keys_alone and write == 200 else least(write, stranger)
    path = f"/{row.route}"
    return {
        "viewer": least(read, viewer),
        "editor": least(write, editor),
        "viewer who was an editor": least(write, viewer),
        "stranger": least(elsewhere, stranger),
        "of another workspace": elsewhere,
        "narrowed": read,
        "leaver": gone,
        **{f"for {door}": write if path == door or path.startswith(f"{door}/") else 401 for door in DOORS},
        **dict.fromkeys(OVER, 401),
    }


def test_where_no_key_is_taken_no_token_is(each_row: EachRow, tokens: dict[str, str]) -> None:
    """Only the token with most rights elsewhere is tried."""
    for row, world in each_row([row for row in API_ROWS if row.keys == NO_KEYS]):
        assert ask_by_token(row, world, tokens["editor"]) == 401, row


def test_what_each_token_may(each_row: EachRow, tokens: dict[str, str]) -> None:
    for row, world in each_row(ROWS):
        got = {name: ask_by_token(row, world, text) for name, text in tokens.items()}
        assert got == expected(row), row


# Tools

READERS = {"viewer", "editor", "viewer who was an editor", "narrowed", "for /mcp"}
WRITERS = {"editor", "for /mcp"}
ELSEWHERE = {"stranger", "of another workspace"}
SHARED = "deadline is March 15"  # a memory of the world
CALLS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "save_memory": ({"content": "Penguins cannot fly"}, WRITERS | ELSEWHERE),
    "recall_memory": ({"query": "When is the deadline?"}, READERS | ELSEWHERE),
    "list_memories": ({}, READERS | ELSEWHERE),
    "forget_memory": ({"memory_id": "{mem_id}"}, WRITERS),
    "search_workspace": ({"query": "When is the deadline?"}, READERS | ELSEWHERE),
    "read_document": ({"id": "{doc_id}"}, READERS),
}
OTHERS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "resources/list": ({}, READERS | ELSEWHERE),
    "resources/read": ({"uri": "memory://{mem_id}"}, READERS),
    "prompts/get": ({"name": "introduce_workspace"}, READERS | ELSEWHERE),
}
ASKED = {
    name: ("tools/call", {"name": name, "arguments": given}, may) for name, (given, may) in CALLS.items()
}
ASKED |= {method: (method, params, may) for method, (params, may) in OTHERS.items()}
PROTOCOL = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}


def test_every_tool_is_asked_for() -> None:
    assert set(CALLS) == set(TOOLS)


def test_what_each_token_may_over_mcp(world: World, tokens: dict[str, str]) -> None:
    for name in ASKED:
        method, params, may = ASKED[name]
        filled = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        for place, public_id in world.ids.items():
            filled = filled.replace(f"{{{place}}}", public_id)
        done, seen = set(), set()
        for who, text in tokens.items():
            client = Client(headers={"authorization": f"Bearer {text}"} | PROTOCOL)
            with transaction.atomic():
                answer = client.post("/mcp", filled, content_type="application/json")
                transaction.set_rollback(True)
            is_in = who not in {*OVER, "for /v1", "for /api/v1"}
            assert (answer.status_code == 401) is not is_in, (who, answer.content)
            said = answer.json() if is_in else {}
            if "result" in said and not said["result"].get("isError"):
                done.add(who)
            if SHARED in answer.content.decode():
                seen.add(who)
        assert done == may, name
        assert seen <= READERS, name
