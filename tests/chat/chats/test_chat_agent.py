"""The assistant of a chat: chosen at the start or later, over REST and on the page."""

from django.utils import timezone

from chat.models import Chat
from tests.api import Api, error_of
from tests.conftest import Cast
from tests.factories import make_agent, make_chat, make_workspace
from tests.signing_in import signed_in
from workspaces.actions.workspaces import archive_agent


def test_a_chat_is_begun_with_one_and_goes_over_to_none(cast: Cast) -> None:
    agent = make_agent(cast.owner, cast.workspace)
    api = Api(cast.editor)
    body = {"workspace_id": cast.workspace.public_id, "agent_id": agent.public_id}
    chat = api.post("chats", body).json()
    assert chat["agent_id"] == agent.public_id
    listed = api.get("chats", workspace_id=cast.workspace.public_id).json()["items"]
    assert [item["agent_id"] for item in listed] == [agent.public_id]
    assert api.patch(f"chats/{chat['id']}", {"title": "Plans"}).json()["agent_id"] == agent.public_id
    assert api.patch(f"chats/{chat['id']}", {"agent_id": None}).json()["agent_id"] is None
    other = make_agent(cast.owner, cast.workspace)
    changed = api.patch(f"chats/{chat['id']}", {"agent_id": other.public_id})
    assert changed.json()["agent_id"] == other.public_id


def test_who_cannot_be_chosen_is_refused_at_the_field(cast: Cast) -> None:
    elsewhere = make_agent(cast.owner, make_workspace(owner=cast.owner, name="Other"))
    archived = make_agent(cast.owner, cast.workspace)
    archive_agent(archived, by=cast.owner, now=timezone.now())
    api, chat = Api(cast.owner), make_chat(cast.owner, cast.workspace, title="Before")
    for wrong in (elsewhere.public_id, archived.public_id, "agent_x", 5):
        for refused in (
            api.post("chats", {"workspace_id": cast.workspace.public_id, "agent_id": wrong}),
            api.patch(f"chats/{chat.public_id}", {"title": "After", "agent_id": wrong}),
        ):
            assert refused.status_code == 422, wrong
            assert list(error_of(refused)["fields"]) == ["agent_id"], wrong
    assert list(Chat.objects.values_list("title", "agent")) == [("Before", None)]


def test_a_chat_goes_on_with_an_archived_one(cast: Cast) -> None:
    agent = make_agent(cast.owner, cast.workspace, name="Planner")
    chat = make_chat(cast.owner, cast.workspace, agent=agent)
    archive_agent(agent, by=cast.owner, now=timezone.now())
    assert Api(cast.owner).get(f"chats/{chat.public_id}").json()["agent_id"] == agent.public_id
    html = signed_in(cast.owner).get(f"/chats/{chat.public_id}/").content.decode()
    assert "Planner (archived)" in html


def test_the_first_message_begins_the_chat_with_the_one_chosen(cast: Cast) -> None:
    agent = make_agent(cast.owner, cast.workspace, name="Planner")
    client, page = signed_in(cast.editor), f"/workspaces/{cast.workspace.public_id}/chats/"
    assert client.post(page, {"content": "Hello", "agent": agent.public_id}).status_code == 302
    chat = Chat.objects.get()
    assert chat.agent == agent
    html = client.get(f"/chats/{chat.public_id}/").content.decode()
    assert '<span class="talking-to__agent" dir="auto">Planner</span>' in html
    assert client.post(page, {"content": "Hello", "agent": "agent_x"}).status_code == 422
    archive_agent(agent, by=cast.owner, now=timezone.now())
    refused = client.post(page, {"content": "Hello", "agent": agent.public_id})
    assert (refused.status_code, Chat.objects.count()) == (422, 1)
    assert "“Planner” is archived." in refused.content.decode()


def test_choosing_later_says_so_above_the_conversation(cast: Cast) -> None:
    agent = make_agent(cast.owner, cast.workspace, name="<i>Planner</i>")
    chat = make_chat(cast.owner, cast.workspace)
    client, page = signed_in(cast.editor), f"/chats/{chat.public_id}/agent/"
    html = client.post(page, {"agent": agent.public_id}).content.decode()
    assert 'id="talking-to"' in html and 'hx-swap-oob="true"' in html
    assert "&lt;i&gt;Planner&lt;/i&gt;" in html and "<i>Planner" not in html
    chat.refresh_from_db()
    assert chat.agent == agent
    assert "talking-to__agent" not in client.post(page, {"agent": ""}).content.decode()
    chat.refresh_from_db()
    assert chat.agent is None
