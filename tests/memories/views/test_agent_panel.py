"""The scope of a memory in the panel: on its card, in the form, and as a filter."""

from typing import Any

import pytest
from django.utils import timezone

from memories.models import Memory, Scope
from tests.conftest import Cast
from tests.factories import make_agent, make_memory, make_workspace
from tests.signing_in import signed_in
from workspaces.access import default_workspace
from workspaces.actions.workspaces import archive_agent
from workspaces.models import Agent, User

TEXT = "The newsletter goes out on Tuesdays"


@pytest.fixture
def planner(cast: Cast) -> Agent:
    return make_agent(cast.owner, cast.workspace, name="<b>Planner</b>")


def panel(cast: Cast, by: User, **query: str) -> str:
    response = signed_in(by).get(f"/workspaces/{cast.workspace.public_id}/memories/", query)
    assert response.status_code == 200
    return response.content.decode()


def add(cast: Cast, **fields: str) -> Any:
    data = {f"new-{name}": value for name, value in fields.items()}
    return signed_in(cast.editor).post(f"/workspaces/{cast.workspace.public_id}/memories/add/", data)


def test_a_card_says_whose_it_is_to_every_member(cast: Cast, planner: Agent) -> None:
    make_memory(TEXT, cast.editor, cast.workspace, scope=Scope.AGENT, agent=planner)
    html = panel(cast, cast.viewer)
    assert "Only with &lt;b&gt;Planner" in html and "<b>Planner" not in html
    home = default_workspace(cast.viewer)
    make_memory("I read it late", cast.viewer, scope=Scope.USER)
    own = signed_in(cast.viewer).get(f"/workspaces/{home.public_id}/memories/").content.decode()
    assert "Only you" in own


def test_the_filter_narrows_to_one_assistant(cast: Cast, planner: Agent) -> None:
    make_memory(TEXT, cast.editor, cast.workspace, scope=Scope.AGENT, agent=planner)
    make_memory("Readers like it", cast.editor, cast.workspace)
    archive_agent(planner, by=cast.owner, now=timezone.now())
    assert f'<option value="{planner.public_id}">Chats with' in panel(cast, cast.viewer)
    for whose, texts in (
        (planner.public_id, {TEXT}),
        ("workspace", {"Readers like it"}),
        ("", {TEXT, "Readers like it"}),
        ("agent_x", set()),
        ("' OR 1=1", set()),
    ):
        html = panel(cast, cast.viewer, part="list", whose=whose)
        assert {text for text in (TEXT, "Readers like it") if text in html} == texts
    assert "Nothing matches" in panel(cast, cast.viewer, part="list", whose="user")


def test_one_is_added_for_everyone_for_oneself_or_for_an_assistant(cast: Cast, planner: Agent) -> None:
    assert add(cast, content="Readers like it").status_code == 200
    assert add(cast, content=TEXT, whose=planner.public_id).status_code == 200
    answer = add(cast, content="I read it late", whose="user").content.decode()
    assert "only for you, in your personal workspace." in answer
    stored = {memory.content: memory for memory in Memory.objects.select_related("agent", "owner")}
    assert stored["Readers like it"].scope == Scope.WORKSPACE
    assert (stored[TEXT].scope, stored[TEXT].agent) == (Scope.AGENT, planner)
    mine = stored["I read it late"]
    assert (mine.scope, mine.owner, mine.workspace) == (
        Scope.USER,
        cast.editor,
        default_workspace(cast.editor),
    )


@pytest.mark.parametrize("kind", ["of another workspace", "archived", "nonsense"])
def test_who_cannot_be_chosen_is_refused_at_the_field(cast: Cast, planner: Agent, kind: str) -> None:
    other = make_agent(cast.editor, make_workspace(owner=cast.editor, name="Other"))
    if kind == "archived":
        archive_agent(planner, by=cast.owner, now=timezone.now())
    whose = {
        "of another workspace": other.public_id,
        "archived": planner.public_id,
        "nonsense": "everybody",
    }[kind]
    refused = add(cast, content=TEXT, whose=whose)
    assert refused.status_code == 422
    assert "id_new-whose_error1" in refused.content.decode()
    assert not Memory.objects.exists()
