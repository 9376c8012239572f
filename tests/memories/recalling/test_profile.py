"""The profile: its memories, on the page and over REST, and the effects of hiding, editing and deleting."""

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memories.models import Memory, Scope
from memories.recalling.overview import LINES
from memories.recalling.profile import profile_of
from memories.writing.gate import delete_memory, edit_memory
from memoryhub.errors import NotFound
from tests.api import Api
from tests.conftest import Cast
from tests.factories import HERE, make_memory, make_workspace
from workspaces.access import default_workspace
from workspaces.models import User, Workspace

pytestmark = pytest.mark.django_db
SHARED, SAID, OWN = "The bakery opens at seven", "I am allergic to nuts", "I dream of a small boat"
OTHERS = "Eddie is afraid of geese"


@pytest.fixture(autouse=True)
def memories(cast: Cast) -> None:
    make_memory(SHARED, cast.owner, cast.workspace)
    make_memory(SAID, cast.owner, cast.workspace, category="preference")
    make_memory(OWN, cast.owner, scope=Scope.USER)
    make_memory(OTHERS, cast.editor, scope=Scope.USER)


def lines(workspace: Workspace, user: User, **policy: bool) -> tuple[set[str], set[str]]:
    found = profile_of(workspace, user, policy=replace(HERE, **policy), now=timezone.now())
    return {memory.content for memory in found.you}, {memory.content for memory in found.here}


def get(person: User, workspace: Workspace) -> Any:
    client = Client()
    client.force_login(person)
    return client.get(f"/workspaces/{workspace.public_id}/profile/")


def post(person: User, workspace: Workspace, act: str = "", **data: Any) -> Any:
    client = Client()
    client.force_login(person)
    return client.post(f"/workspaces/{workspace.public_id}/profile/{act}", data)


def test_each_reads_what_is_theirs_and_nobodys_personal_memories(cast: Cast) -> None:
    assert lines(cast.workspace, cast.owner) == ({SAID, OWN}, {SHARED})
    assert lines(cast.workspace, cast.editor) == ({OTHERS}, {SHARED, SAID})
    assert lines(cast.workspace, cast.viewer) == (set(), {SHARED, SAID})
    with pytest.raises(NotFound):
        lines(cast.workspace, cast.stranger)
    for person, own in ((cast.owner, OWN), (cast.editor, OTHERS), (cast.viewer, "")):
        html = get(person, cast.workspace).content.decode()
        assert [text in html for text in (OWN, OTHERS)] == [own == OWN, own == OTHERS]
    assert get(cast.stranger, cast.workspace).status_code == 404


def test_personal_memories_in_ones_own_workspace_are_hidden_from_its_members(cast: Cast) -> None:
    home = default_workspace(cast.owner)
    home.memberships.create(user=cast.editor, role="editor")
    assert lines(home, cast.editor) == ({OTHERS}, set())
    assert lines(home, cast.owner) == ({OWN}, set())


def test_the_policy_leaves_out_personal_lines_and_those_that_stay_on_this_machine(cast: Cast) -> None:
    assert lines(cast.workspace, cast.owner, personal=False) == ({SAID}, {SHARED})
    Workspace.objects.filter(default_of=cast.owner).update(local_only=True)
    assert lines(cast.workspace, cast.owner, leaves=True) == ({SAID}, {SHARED})


def test_a_line_changes_with_its_memory_and_goes_with_it_at_once(cast: Cast) -> None:
    said, shared = Memory.objects.get(content=SAID), Memory.objects.get(content=SHARED)
    edit_memory(said, by=cast.owner, now=timezone.now(), content="I am allergic to eggs")
    delete_memory(shared, by=cast.owner, now=timezone.now())
    assert lines(cast.workspace, cast.owner) == ({"I am allergic to eggs", OWN}, set())
    html = get(cast.owner, cast.workspace).content.decode()
    assert "I am allergic to eggs" in html
    assert SAID not in html and SHARED not in html


def test_a_hidden_line_is_hidden_for_that_person_alone_until_it_is_shown_again(cast: Cast) -> None:
    shared = Memory.objects.get(content=SHARED)
    answer = post(cast.viewer, cast.workspace, "hide/", memory=shared.public_id)
    assert answer.headers["HX-Trigger"] == "memories:changed"
    assert lines(cast.workspace, cast.viewer) == (set(), {SAID})
    assert lines(cast.workspace, cast.editor) == ({OTHERS}, {SHARED, SAID})
    assert "1 hidden line" in get(cast.viewer, cast.workspace).content.decode()
    post(cast.viewer, cast.workspace, f"hide/?memory={shared.public_id}&hidden=off")
    assert lines(cast.workspace, cast.viewer) == (set(), {SHARED, SAID})


def test_nothing_of_others_or_of_another_workspace_is_hidden(cast: Cast) -> None:
    other = make_memory("The ferry has a café", cast.owner, make_workspace(owner=cast.owner))
    theirs = Memory.objects.get(content=OTHERS)
    for memory in (other, theirs):
        assert post(cast.owner, cast.workspace, "hide/", memory=memory.public_id).status_code == 404
    assert not Memory.objects.exclude(hidden_from_profile_of=None).exists()


def test_adding_saves_a_personal_memory_that_stays_in_the_profile(cast: Cast) -> None:
    assert post(cast.viewer, cast.workspace, content="I collect stamps").status_code == 302
    added = Memory.objects.get(content="I collect stamps")
    assert (added.owner, added.pinned) == (cast.viewer, True)
    assert lines(cast.workspace, cast.viewer)[0] == {"I collect stamps"}
    refused = post(cast.viewer, cast.workspace, content="My password is hunter2-Xk29!qw")
    assert refused.status_code == 422
    assert not Memory.objects.filter(content__contains="hunter2").exists()


def test_the_switch_is_off_until_its_person_turns_it_on(cast: Cast) -> None:
    assert not cast.owner.profile_in_chats
    for on in (True, False):
        post(cast.owner, cast.workspace, "use/", **({"profile": "on"} if on else {}))
        cast.owner.refresh_from_db()
        assert cast.owner.profile_in_chats is on


def test_a_profile_is_short_and_has_the_lines_of_a_category_together(cast: Cast) -> None:
    for number in range(LINES):
        for category in ("fact", "decision"):
            make_memory(f"Shelf {number} is a {category}", cast.owner, cast.workspace, category=category)
    found = profile_of(cast.workspace, cast.viewer, policy=HERE, now=timezone.now()).here
    categories = [memory.category for memory in found]
    assert len(found) == LINES
    assert len([at for at in range(1, LINES) if categories[at] != categories[at - 1]]) == 3


def test_over_rest(cast: Cast) -> None:
    def profile() -> dict[str, Any]:
        found: dict[str, Any] = Api(cast.owner).get(f"workspaces/{cast.workspace.public_id}/profile").json()
        return found | {
            name: [memory["content"] for memory in found[name]] for name in ("you", "workspace", "hidden")
        }

    assert profile() == {"you": [OWN, SAID], "workspace": [SHARED], "hidden": [], "in_chats": False}
    shared = Memory.objects.get(content=SHARED)
    line = f"workspaces/{cast.workspace.public_id}/profile/lines/{shared.public_id}"
    assert Api(cast.owner).raw("PUT", line, '{"hidden": true}').status_code == 204
    assert (profile()["workspace"], profile()["hidden"]) == ([], [SHARED])
    refused = Api(cast.owner).raw("PUT", line, "{}")
    assert (refused.status_code, list(refused.json()["error"]["fields"])) == (422, ["hidden"])
