"""The pages of assistants."""

from django.urls import reverse
from django.utils import timezone

from tests.conftest import Cast
from tests.factories import make_agent
from tests.signing_in import signed_in
from workspaces.actions.workspaces import archive_agent
from workspaces.models import Agent


def url(name: str, *args: object) -> str:
    return reverse(f"workspaces:{name}", args=args)


def test_an_editor_makes_one_and_finds_it_in_the_list(cast: Cast) -> None:
    page = url("agents", cast.workspace.public_id)
    client = signed_in(cast.editor)
    assert "make the first one below" in client.get(page).content.decode()
    data = {"name": "Planner", "description": "Plans", "instructions": "Plan in weeks."}
    html = client.post(page, data, follow=True).content.decode()
    made = Agent.objects.get()
    assert "“Planner” is ready to chat." in html
    assert f"?agent={made.public_id}" in html
    assert (
        f'href="{url("agents", cast.workspace.public_id)}"'
        in client.get(url("settings", cast.workspace.public_id)).content.decode()
    )


def test_its_page_is_a_form_for_editors_and_text_for_viewers(cast: Cast) -> None:
    agent = make_agent(cast.owner, cast.workspace, name="<b>Bold</b>", instructions="Say <i>this</i>.")
    page = url("agent", cast.workspace.public_id, agent.public_id)
    read = signed_in(cast.viewer).get(page).content.decode()
    assert "Say &lt;i&gt;this&lt;/i&gt;." in read
    assert "<b>Bold</b>" not in read
    assert "<textarea" not in read
    client = signed_in(cast.editor)
    assert "<textarea" in client.get(page).content.decode()
    assert client.post(page, {"name": "", "instructions": "New"}).status_code == 422
    assert client.post(page, {"name": "Bold", "instructions": "New"}).status_code == 302
    agent.refresh_from_db()
    assert (agent.name, agent.instructions) == ("Bold", "New")


def test_archiving_can_be_undone_from_its_notice(cast: Cast) -> None:
    agent = make_agent(cast.owner, cast.workspace, name="Planner")
    client = signed_in(cast.editor)
    place = (cast.workspace.public_id, agent.public_id)
    html = client.post(url("archive_agent", *place), follow=True).content.decode()
    assert f'hx-post="{url("restore_agent", *place)}"' in html
    assert "1 archived" in html
    undone = client.post(url("restore_agent", *place), headers={"hx-request": "true"})
    assert undone["HX-Refresh"] == "true"
    assert not Agent.objects.get().is_archived
    agent.refresh_from_db()
    archive_agent(agent, by=cast.owner, now=timezone.now())
    assert (
        "“Planner” has been restored."
        in client.post(url("restore_agent", *place), follow=True).content.decode()
    )
    viewed = signed_in(cast.viewer).get(url("agents", cast.workspace.public_id)).content.decode()
    assert url("archive_agent", *place) not in viewed and "Planner" in viewed
