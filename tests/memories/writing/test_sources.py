"""Sources of memories: set by callers and by chats, usable as filters, and no access to the chat."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from memories.models import Memory, MemorySource
from memories.writing.drafts import MOST_SOURCES
from memoryhub.ids import new_id
from tests.api import V1, Api, error_of
from tests.conftest import Cast
from tests.factories import make_chat, make_key_text, make_memory, make_message
from workspaces.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(cast: Cast) -> Api:
    """The editor's API key for the shared workspace."""
    return Api(base=V1, key=make_key_text(cast.editor, cast.workspace))


def ids_of(memory: Any) -> list[str]:
    return [source["id"] for source in memory["sources"]]


def given(*ids: str) -> list[dict[str, str]]:
    return [{"id": each} for each in ids]


def test_sources_are_kept_changed_and_told(api: Api) -> None:
    chat, message, other = new_id("chat"), new_id("msg"), new_id("msg")
    saved = api.post("memories", {"value": "Cats purr", "sources": given(message, chat, message)})
    assert saved.status_code == 201
    memory = saved.json()
    assert memory["sources"] == [{"type": "message", "id": message}, {"type": "chat", "id": chat}]
    path = f"memories/{memory['id']}"
    assert api.get(path).json() == api.get("memories").json()["items"][0]
    assert api.get(path).json()["sources"] == memory["sources"]
    sent_back = api.patch(path, {"sources": memory["sources"]})
    assert (sent_back.status_code, sent_back["ETag"]) == (200, saved["ETag"])  # nothing changed
    changed = api.patch(path, {"sources": given(other)})
    assert ids_of(changed.json()) == [other] and changed["ETag"] != saved["ETag"]
    assert changed["ETag"] == api.get(path)["ETag"]
    assert ids_of(api.patch(path, {"value": "Cats purr loudly"}).json()) == [other]
    assert ids_of(api.patch(path, {"sources": []}).json()) == []
    assert not MemorySource.objects.exists()


def test_a_stale_editor_changes_no_sources(api: Api) -> None:
    saved = api.post("memories", {"value": "Cats purr", "sources": given(new_id("msg"))})
    path = f"{V1}/memories/{saved.json()['id']}"
    api.patch(f"memories/{saved.json()['id']}", {"value": "Cats purr loudly"})
    refused = api.client.patch(
        path, {"sources": []}, content_type="application/json", headers={"if-match": saved["ETag"]}
    )
    assert refused.status_code == 409 and MemorySource.objects.count() == 1


def test_a_save_of_the_same_key_says_the_new_source(api: Api) -> None:
    first, second = new_id("msg"), new_id("msg")
    api.post("memories", {"value": "The deadline is March 15", "key": "deadline", "sources": given(first)})
    again = api.post("memories", {"value": "It moved to May 2", "key": "deadline", "sources": given(second)})
    assert ids_of(again.json()) == [second]
    kept = api.post("memories", {"value": "It moved to May 3", "key": "deadline"})
    assert ids_of(kept.json()) == [second]


def test_what_it_was_noticed_in_comes_first_and_stays(api: Api, cast: Cast) -> None:
    chat, message, more = new_id("chat"), new_id("msg"), new_id("chat")
    memory = make_memory(
        "Cats purr", cast.editor, cast.workspace, source_chat_id=chat, source_message_id=message
    )
    path = f"memories/{memory.public_id}"
    assert ids_of(api.get(path).json()) == [chat, message]
    assert ids_of(api.patch(path, {"sources": given(more, chat)}).json()) == [chat, message, more]
    assert ids_of(api.patch(path, {"sources": []}).json()) == [chat, message]


def test_wrong_sources_are_refused(api: Api) -> None:
    for sources in (
        "msg_1",
        {"id": "msg_1"},
        ["msg_" + "a" * 24],
        [{"id": "msg_1"}],
        [{"id": "mem_" + "a" * 24}],
        [{"id": "msg_" + "a" * 24 + "\n"}],
        [{"id": "msg_" + "a" * 23 + "\0"}],
        [{"id": 5}],
        [{}],
        [{"id": "msg_" + "a" * 24, "type": "chat"}],
        [{"id": "msg_" + "a" * 24, "url": "https://example.org"}],
        [{"id": "msg_" + "a" * 24}] * (MOST_SOURCES + 1),
        None,
    ):
        for refused in (
            api.post("memories", {"value": "Cats purr", "sources": sources}),
            api.patch("memories/" + new_id("mem"), {"sources": sources}),
        ):
            assert refused.status_code in {404, 422}
        refused = api.post("memories", {"value": "Cats purr", "sources": sources})
        assert refused.status_code == 422
        assert all(name.startswith("sources") for name in error_of(refused)["fields"])
        assert not Memory.objects.exists()


def test_memories_are_filtered_by_their_source(api: Api, cast: Cast) -> None:
    chat, message = new_id("chat"), new_id("msg")
    make_memory("From the chat", cast.owner, cast.workspace, source_chat_id=chat)
    make_memory("From the message", cast.owner, cast.workspace, source_message_id=message)
    make_memory("Of a person", cast.owner, source_chat_id=chat, scope="user")
    api.post("memories", {"value": "Given both", "sources": given(chat, message)})

    def found(source_id: str) -> set[str]:
        return {each["value"] for each in api.get("memories", source_id=source_id).json()["items"]}

    assert found(chat) == {"From the chat", "Given both"}
    assert found(message) == {"From the message", "Given both"}
    assert found(new_id("chat")) == set() == found("%")


def test_an_id_tells_nothing_of_a_chat(cast: Cast, api: Api) -> None:
    """The answer is the same for a missing chat, one's own and another person's private one."""
    hidden = make_chat(cast.owner, cast.workspace, is_private=True, title="Kumquat plans")
    message = make_message(hidden, "The kumquat is ripe")
    nowhere = (new_id("chat"), new_id("msg"))
    answers = []
    for value, ids in (("Cats purr", (hidden.public_id, message.public_id)), ("Dogs bark", nowhere)):
        saved = api.post("memories", {"value": value, "sources": given(*ids)})
        listed = api.get("memories", source_id=ids[0])
        answers.append((saved.status_code, listed.status_code, len(listed.json()["items"])))
        assert "umquat" not in saved.content.decode() + listed.content.decode()
    assert answers == [(201, 200, 1)] * 2


def card(user: User, memory: Memory) -> str:
    client = Client(headers={"HX-Request": "true"})
    client.force_login(user)
    address = reverse("memories:card", args=[memory.workspace.public_id, memory.public_id])
    return client.get(address).content.decode()


def test_the_card_names_the_chats_that_may_be_opened(api: Api, cast: Cast) -> None:
    shared = make_chat(cast.owner, cast.workspace, title="Tea <plans>")
    said = make_message(shared, "Cats purr")
    hidden = make_chat(cast.owner, cast.workspace, is_private=True, title="Kumquat plans")
    whispered = make_message(hidden, "psst")
    ids = (shared.public_id, said.public_id, hidden.public_id, whispered.public_id, new_id("chat"))
    saved = api.post("memories", {"value": "Cats purr", "sources": given(*ids)}).json()
    memory = Memory.objects.get(public_id=saved["id"])
    seen = card(cast.editor, memory)
    assert seen.count("Tea &lt;plans&gt;") == 2 and f"?at={said.public_id}#{said.public_id}" in seen
    assert "Kumquat" not in seen and hidden.public_id not in seen and whispered.public_id not in seen
    assert card(cast.owner, memory).count("Kumquat plans") == 2


def test_lists_recall_and_the_panel_cost_the_same_with_many_sources(api: Api, cast: Cast) -> None:
    client = Client(headers={"HX-Request": "true"})
    client.force_login(cast.editor)
    panel = reverse("memories:panel", args=[cast.workspace.public_id])
    chat = make_chat(cast.editor, cast.workspace)

    def grow(start: int, number: int) -> None:
        for at in range(start, start + number):
            sources = given(make_message(chat, "x").public_id, chat.public_id)
            body = {"value": f"Fact number {at} of the house", "sources": sources, "dedupe": "create"}
            assert api.post("memories", body).status_code == 201

    def costs() -> list[int]:
        counts = []
        for ask in (
            lambda: api.get("memories"),
            lambda: api.post("memories/recall", {"query": "house", "limit": 50}),
            lambda: client.get(panel),
        ):
            with CaptureQueriesContext(connection) as captured:
                assert ask().status_code == 200
            counts.append(len(captured))
        return counts

    grow(0, 3)
    costs()
    few = costs()
    grow(3, 6)
    many = costs()
    # Recall queries again if a candidate search has to look further, but never once per row.
    assert many.pop(1) <= few.pop(1) + 2
    assert many == few
