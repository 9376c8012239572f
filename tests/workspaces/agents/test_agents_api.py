"""Assistants over REST."""

from django.utils import timezone

from tests.api import Api
from tests.conftest import Cast
from tests.factories import make_agent
from workspaces.actions.workspaces import archive_agent


def agents_of(cast: Cast) -> str:
    return f"workspaces/{cast.workspace.public_id}/agents"


def test_made_changed_archived_and_restored(cast: Cast) -> None:
    api = Api(cast.editor)
    made = api.post(agents_of(cast), {"name": "Planner", "instructions": "Plan in weeks."})
    assert made.status_code == 201
    shown = made.json()
    assert (shown["name"], shown["description"], shown["instructions"]) == ("Planner", "", "Plan in weeks.")
    assert shown["workspace_id"] == cast.workspace.public_id
    assert shown["created_by"]["username"] == "eddie"
    one = f"agents/{shown['id']}"
    assert api.get(one).json() == shown
    changed = api.patch(one, {"instructions": ""}).json()
    assert (changed["name"], changed["instructions"]) == ("Planner", "")
    assert api.delete(one).status_code == 204
    assert api.get(one).json()["archived_at"].endswith("Z")
    assert api.post(f"{one}/restore").json()["archived_at"] is None


def test_those_in_use_and_the_archived_are_lists_of_their_own_in_pages(cast: Cast) -> None:
    made = [make_agent(cast.owner, cast.workspace, name=f"Number {number}") for number in range(5)]
    archive_agent(made[2], by=cast.owner, now=timezone.now())
    api = Api(cast.viewer)
    pages = api.pages(agents_of(cast), limit=2)
    names = [[agent["name"] for agent in page] for page in pages]
    assert names == [["Number 0", "Number 1"], ["Number 3", "Number 4"]]
    archived = api.get(agents_of(cast), state="archived").json()["items"]
    assert [agent["name"] for agent in archived] == ["Number 2"]
    cursor = api.get(agents_of(cast), limit=2).json()["next_cursor"]
    assert api.get(agents_of(cast), state="archived", cursor=cursor).status_code == 400
    assert api.get(agents_of(cast), state="all").status_code == 422
