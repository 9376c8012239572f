"""The page of all memories: its list by user, and bulk changes."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories.models import Memory
from memories.models.memory import RevisionAction
from memories.writing import gate
from tests.conftest import Cast
from tests.factories import make_agent, make_memory
from tests.memories.views.test_pages import signed_in
from workspaces.models import User

pytestmark = pytest.mark.django_db


def page(user: User, cast: Cast, **query: str) -> str:
    return (
        signed_in(user).get(reverse("memories:all", args=[cast.workspace.public_id]), query).content.decode()
    )


def change(client: Client, cast: Cast, act: str, *memories: Memory, **more: str) -> Any:
    sent = {"act": act, "memory": [memory.public_id for memory in memories], **more}
    return client.post(reverse("memories:all_change", args=[cast.workspace.public_id]), sent)


def test_it_lists_all_that_one_may_see_and_narrows_by_whose_it_is(cast: Cast) -> None:
    chef = make_agent(cast.owner, cast.workspace, name="Chef")
    make_memory("The ferry leaves at nine", cast.owner, cast.workspace, category="plan")
    make_memory("My shoes are size 44", cast.editor, scope="user")
    make_memory("Soups need salt", cast.owner, cast.workspace, agent=chef, scope="agent")
    make_memory("Elsewhere it rains", cast.stranger)
    texts = ["The ferry leaves at nine", "My shoes are size 44", "Soups need salt", "Elsewhere it rains"]

    def listed(user: User, **query: str) -> list[str]:
        html = page(user, cast, **query)
        return [text for text in texts if text in html]

    assert listed(cast.editor) == texts[:3]
    assert listed(cast.owner) == [texts[0], texts[2]]
    assert [listed(cast.editor, whose=whose) for whose in ("user", "workspace", "agent")] == [
        [texts[1]],
        [texts[0]],
        [texts[2]],
    ]
    assert listed(cast.editor, q="when does the boat go") == [texts[0]], "by meaning"
    assert listed(cast.editor, category="plan") == [texts[0]]
    assert listed(cast.editor, whose="nonsense") == texts[:3]


def test_search_everything_finds_the_same_memories(cast: Cast) -> None:
    texts = {
        "Our cat is called Miso.",
        "The ferry leaves at nine.",
        "I am vegetarian.",
        "My sister lives in Oslo.",
    }
    for text in texts:
        make_memory(text, cast.owner, cast.workspace)
    search = reverse("chat:search", args=[cast.workspace.public_id])
    found = set[str]()
    for q in ("pet name", "boat", "diet", "siblings", "taxes"):
        results = signed_in(cast.owner).get(search, {"q": q}).context["results"]
        on_the_page = page(cast.owner, cast, q=q)
        assert {each.found.text for each in results} == {text for text in texts if text in on_the_page}, q
        found |= {each.found.text for each in results}
    assert found == texts


def test_who_may_only_read_changes_what_is_their_own_alone(cast: Cast) -> None:
    shared = make_memory("The ferry leaves at nine", cast.owner, cast.workspace)
    own = make_memory("My shoes are size 44", cast.viewer, scope="user")
    html = page(cast.viewer, cast)
    assert re.findall(r'name="memory"\s+value="(\w+)"', html) == [own.public_id]
    client = signed_in(cast.viewer)
    assert change(client, cast, "forget", shared).status_code == 403
    assert change(client, cast, "forget", own).status_code == 200
    assert set(Memory.objects.live()) == {shared}
    assert change(signed_in(cast.stranger), cast, "forget", shared).status_code == 404
    assert change(client, cast, "explode", own).status_code == 422


def test_many_are_changed_at_once_and_what_is_forgotten_comes_back(cast: Cast) -> None:
    first, second, third = (make_memory(f"Fact {number}.", cast.owner, cast.workspace) for number in range(3))
    client = signed_in(cast.editor)
    assert "2 memories changed." in change(client, cast, "pin", first, second, first).content.decode()
    assert Memory.objects.filter(pinned=True).count() == 2
    change(client, cast, "unpin", second)
    change(client, cast, "category", first, third, category=" plan ")
    assert set(Memory.objects.filter(category="plan")) == {first, third}
    gone = change(client, cast, "forget", first, third)
    assert gone["HX-Trigger"] == "memories:changed"
    assert "2 memories forgotten." in gone.content.decode()
    assert set(Memory.objects.live()) == {second}
    undo = re.search(r'hx-post="([^"]+act=restore[^"]+)"', gone.content.decode())
    assert undo is not None
    assert client.post(undo[1].replace("&amp;", "&")).status_code == 200
    assert Memory.objects.live().count() == 3
    assert "0 memories changed." in change(client, cast, "pin").content.decode()


def test_the_forgotten_are_listed_to_those_who_may_restore_them(cast: Cast) -> None:
    memory = make_memory("The Wi-Fi is Kestrel-5", cast.owner, cast.workspace)
    make_memory("The kiosk closes at six", cast.owner, cast.workspace)
    gate.delete_memory(memory, by=cast.owner, now=timezone.now())
    hidden = make_memory("The key to the shed is Magpie-7", cast.owner, cast.workspace)
    gate.delete_memory(hidden, by=None, now=timezone.now(), action=RevisionAction.HIDE)
    html = page(cast.owner, cast, forgotten="on")
    assert "Kestrel-5" in html and "kiosk" not in html and "Magpie-7" not in html
    for_good = reverse("memories:forget", args=[cast.workspace.public_id, memory.public_id])
    assert for_good in html and for_good not in page(cast.editor, cast, forgotten="on")
    assert "Kestrel-5" not in page(cast.viewer, cast, forgotten="on")
    change = reverse("memories:all_change", args=[cast.workspace.public_id])
    restored = signed_in(cast.editor).post(change, {"act": "restore", "memory": memory.public_id})
    assert "1 memory restored." in restored.content.decode()
    assert "Kestrel-5" in page(cast.owner, cast)
