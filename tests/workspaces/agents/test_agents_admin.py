"""Assistants in the admin: viewed, archived and restored."""

from __future__ import annotations

import pytest
from django.test import Client

from memories.models import Scope
from tests.admin_pages import run_action
from tests.conftest import Cast
from tests.factories import make_agent, make_chat, make_memory, make_user, make_workspace
from workspaces.models import Agent

LIST = "/admin/workspaces/agent/"


@pytest.fixture
def admin(db: None) -> Client:
    client = Client()
    client.force_login(make_user("root", is_staff=True, is_superuser=True))
    return client


def act(admin: Client, action: str, *agents: Agent) -> str:
    return run_action(admin, LIST, action, *agents).content.decode()


def test_found_by_the_id_of_it_its_maker_or_its_workspace(cast: Cast, admin: Client) -> None:
    agent = make_agent(cast.editor, cast.workspace, name="<b>Planner</b>", instructions="Plan in weeks.")
    make_agent(cast.owner, make_workspace(owner=cast.owner, name="Other"), name="Elsewhere")
    for text in (agent.public_id, cast.editor.public_id, cast.workspace.public_id):
        html = admin.get(LIST, {"q": text}).content.decode()
        assert "&lt;b&gt;Planner" in html and "Elsewhere" not in html
    assert "Plan in weeks." in admin.get(f"{LIST}{agent.pk}/change/").content.decode()
    assert admin.get(f"{LIST}add/").status_code == 403
    assert admin.post(f"{LIST}{agent.pk}/delete/", {"post": "yes"}).status_code == 403


def test_archived_and_restored_by_staff_who_are_no_members(cast: Cast, admin: Client) -> None:
    agents = [make_agent(cast.editor, cast.workspace, name=name) for name in ("Planner", "Writer")]
    assert "2 assistants archived." in act(admin, "archive", *agents)
    assert not Agent.objects.in_use().exists()
    assert "Planner" in admin.get(LIST, {"state": "archived"}).content.decode()
    assert "1 assistant restored." in act(admin, "restore", agents[0])
    make_agent(cast.editor, cast.workspace, name="writer")
    assert "has this name" in act(admin, "restore", agents[1])
    assert set(Agent.objects.in_use().values_list("name", flat=True)) == {"Planner", "writer"}


def test_memories_and_chats_say_whose_they_are(cast: Cast, admin: Client) -> None:
    agent = make_agent(cast.editor, cast.workspace, name="Planner")
    memory = make_memory("It is blue", cast.editor, cast.workspace, scope=Scope.AGENT, agent=agent)
    html = admin.get(f"/admin/memories/memory/{memory.pk}/change/").content.decode()
    assert "Planner" in html and "an assistant&#x27;s" in html
    chat = make_chat(cast.editor, cast.workspace, agent=agent)
    assert "Planner" in admin.get(f"/admin/chat/chat/{chat.pk}/change/").content.decode()
