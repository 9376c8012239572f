"""The scope “agent” over REST: `/chat/api` with `agent_id`, `/api/v1` with `agentId`."""

from typing import Any

import pytest
from django.utils import timezone

from memories.models import Memory, Scope
from tests.api import V1, Api, error_of
from tests.conftest import Cast
from tests.factories import make_agent, make_key_text, make_memory, make_workspace
from workspaces.actions.workspaces import archive_agent
from workspaces.models import Agent, KeyScope

TEXT = "The newsletter goes out on Tuesdays"


@pytest.fixture
def planner(cast: Cast) -> Agent:
    return make_agent(cast.owner, cast.workspace, name="Planner")


@pytest.fixture
def program(cast: Cast) -> Api:
    return Api(base=V1, key=make_key_text(cast.editor, cast.workspace))


def path(cast: Cast, what: str) -> str:
    return f"workspaces/{cast.workspace.public_id}/{what}"


def test_saved_listed_and_recalled_by_its_members(cast: Cast, planner: Agent) -> None:
    make_memory("The newsletter has 900 readers", cast.editor, cast.workspace)
    body = {"content": TEXT, "scope": "agent", "agent_id": planner.public_id}
    saved = Api(cast.editor).post(path(cast, "memories"), body)
    assert saved.status_code == 201
    assert (saved.json()["scope"], saved.json()["agent_id"]) == ("agent", planner.public_id)
    assert Api(cast.editor).post(path(cast, "memories"), body).json()["duplicate"] is True
    viewer = Api(cast.viewer)
    listed = viewer.get(path(cast, "memories")).json()["items"]
    assert [(item["scope"], item["agent_id"]) for item in listed] == [
        ("agent", planner.public_id),
        ("workspace", None),
    ]
    asked = {"query": "newsletter on tuesdays"}
    for more, texts in (
        ({}, {"The newsletter has 900 readers"}),
        ({"agent_id": None}, {"The newsletter has 900 readers"}),
        ({"agent_id": planner.public_id}, {"The newsletter has 900 readers", TEXT}),
    ):
        found = viewer.post(path(cast, "recall"), asked | more).json()["memories"]
        assert {item["content"] for item in found} == texts
    one = path(cast, f"memories/{saved.json()['id']}")
    assert viewer.get(one).json()["agent_id"] == planner.public_id
    assert viewer.patch(one, {"pinned": True}).status_code == 403
    assert Api(cast.editor).patch(one, {"pinned": True}).json()["agent_id"] == planner.public_id
    assert Api(cast.stranger).get(one).status_code == 404


def test_memory_for_a_wrong_assistant_is_refused_at_the_field(
    cast: Cast, planner: Agent, program: Api
) -> None:
    other = make_agent(cast.editor, make_workspace(owner=cast.editor, name="Other"))
    archived = archive_agent(make_agent(cast.owner, cast.workspace), by=cast.owner, now=timezone.now())
    cases: dict[str, tuple[str | None, str | int | None]] = {
        "none": ("agent", None),
        "of another workspace": ("agent", other.public_id),
        "archived": ("agent", archived.public_id),
        "no scope": (None, planner.public_id),
        "personal": ("user", planner.public_id),
        "number": ("agent", 5),
    }
    words = {"user": "global", "agent": "agent"}
    for kind, (scope, wrong) in cases.items():
        body = {"content": TEXT, "agent_id": wrong} | ({"scope": scope} if scope else {})
        refused = Api(cast.editor).post(path(cast, "memories"), body)
        assert (refused.status_code, list(error_of(refused)["fields"])) == (422, ["agent_id"]), kind
        body = {"value": TEXT, "agentId": wrong} | ({"scope": words[scope]} if scope else {})
        refused = program.post("memories", body)
        assert (refused.status_code, list(error_of(refused)["fields"])) == (422, ["agentId"]), kind
    assert not Memory.objects.exists()


def test_a_program_saves_filters_and_recalls(cast: Cast, planner: Agent, program: Api) -> None:
    other = make_agent(cast.owner, cast.workspace)
    for agent in (planner, other):
        body = {"key": "newsletter", "value": TEXT, "scope": "agent", "agentId": agent.public_id}
        assert program.post("memories", body).status_code == 201
    make_memory("The newsletter bores me", cast.editor, scope=Scope.USER)
    again = {"key": "newsletter", "value": "It goes out on Fridays", "scope": "agent"}
    updated = program.post("memories", again | {"agentId": planner.public_id})
    assert (updated.status_code, updated.json()["agentId"]) == (200, planner.public_id)

    def values(**query: Any) -> list[tuple[str, str | None]]:
        items = program.get("memories", **query).json()["items"]
        return [(item["value"], item["agentId"]) for item in items]

    assert len(values()) == 3
    assert values(agentId=planner.public_id) == [("It goes out on Fridays", planner.public_id)]
    assert values(scope="agent") == [
        (TEXT, other.public_id),
        ("It goes out on Fridays", planner.public_id),
    ]
    assert values(scope="global") == [("The newsletter bores me", None)]
    assert values(scope="project") == values(scope="global", agentId=planner.public_id) == []
    asked = {"query": "newsletter fridays"}
    found = program.post("memories/recall", asked | {"agentId": planner.public_id}).json()["memories"]
    assert [(item["value"], item["scope"]) for item in found] == [
        ("It goes out on Fridays", "agent"),
        ("The newsletter bores me", "global"),
    ]
    alone = program.post("memories/recall", asked).json()["memories"]
    assert [item["value"] for item in alone] == ["The newsletter bores me"]


def test_looking_takes_an_archived_one_but_none_of_another_workspace(
    cast: Cast, planner: Agent, program: Api
) -> None:
    make_memory(TEXT, cast.editor, cast.workspace, scope=Scope.AGENT, agent=planner)
    archive_agent(planner, by=cast.owner, now=timezone.now())
    asked = {"query": "newsletter"}
    assert (
        len(program.post("memories/recall", asked | {"agentId": planner.public_id}).json()["memories"]) == 1
    )
    assert len(program.get("memories", agentId=planner.public_id).json()["items"]) == 1
    other = make_agent(cast.editor, make_workspace(owner=cast.editor, name="Other"))
    for refused in (
        program.post("memories/recall", asked | {"agentId": other.public_id}),
        program.get("memories", agentId=other.public_id),
        program.get("memories", agentId="agent_x"),
    ):
        assert (refused.status_code, list(error_of(refused)["fields"])) == (422, ["agentId"])
    refused = Api(cast.editor).post(path(cast, "recall"), asked | {"agent_id": other.public_id})
    assert (refused.status_code, list(error_of(refused)["fields"])) == (422, ["agent_id"])


def test_a_program_finds_the_assistants_and_changes_none(cast: Cast, planner: Agent) -> None:
    archived = make_agent(cast.owner, cast.workspace)
    archive_agent(archived, by=cast.owner, now=timezone.now())
    make_agent(cast.owner, make_workspace(owner=cast.owner, name="Other"))
    program = Api(base=V1, key=make_key_text(cast.viewer, cast.workspace, scope=KeyScope.READ))
    items = program.get("agents").json()["items"]
    assert [item["name"] for item in items] == ["Planner"]
    assert items[0]["workspaceId"] == cast.workspace.public_id
    assert program.get(f"agents/{planner.public_id}").json() == items[0]
    assert program.get(f"agents/{archived.public_id}").json()["archivedAt"] is not None
    assert program.patch(f"agents/{planner.public_id}", {"name": "Mine"}).status_code in {403, 405}
    assert program.get("agents/agent_x").status_code == 404
