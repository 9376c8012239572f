"""Permanent deletion on pages, over REST and in the admin: the password first, a report after."""

import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from chat.models import Chat
from memories.models import Memory, Tombstone
from memories.recalling.recall import recall
from memories.tasks import embed_memories, extract_turn
from memories.writing.extraction_jobs import queue_extraction
from memories.writing.gate import delete_memory
from tests.admin_pages import run_action, said
from tests.api import Api, error_of, type_password_again
from tests.conftest import Cast
from tests.factories import HERE, PASSWORD, make_chat, make_memory, make_message
from tests.raw_search import places_with
from workspaces.actions.purging import KNOWN
from workspaces.models import AuditEvent, User, Workspace

TEXT = "The safe opens with <b>7-3-9</b>"
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fake_embedder")]


def signed_in(user: User, *, fresh: bool = True) -> Client:
    client = Client()
    client.force_login(user)
    if fresh:
        type_password_again(client)
    return client


@pytest.fixture
def memory(cast: Cast, fake_embedder: object) -> Memory:
    return make_memory(TEXT, cast.editor, cast.workspace)


def page(memory: Memory) -> str:
    return f"/workspaces/{memory.workspace.public_id}/memories/{memory.public_id}/forget/"


def test_the_password_is_asked_for_and_then_the_page_comes(cast: Cast, memory: Memory) -> None:
    client = signed_in(cast.editor, fresh=False)
    for ask in (client.get, client.post):
        response = ask(page(memory))
        assert response.status_code == 302
        assert response["Location"].startswith("/accounts/reauthenticate/?next=%2Fworkspaces%2F")
    assert Memory.objects.exists()
    response = client.post(response["Location"], {"password": PASSWORD}, follow=True)
    assert "Forgotten for good" in response.content.decode(), "the request that was held up is done at last"
    assert not Memory.objects.exists()


def test_the_page_says_what_goes_and_what_stays_and_then_what_went(cast: Cast, memory: Memory) -> None:
    client = signed_in(cast.editor)
    asked = client.get(page(memory)).content.decode()
    assert "The safe opens with &lt;b&gt;7-3-9&lt;/b&gt;" in asked
    assert "What goes" in asked
    assert "What stays" in asked
    done = client.post(page(memory)).content.decode()
    assert "It is no longer in the database." in done
    assert "Entries in the search index" in done
    assert "finds nothing that says it" in done
    assert TEXT not in done
    assert places_with(TEXT) == []
    assert client.get(page(memory)).status_code == 404
    event = AuditEvent.objects.get(verb="memory_forgotten")
    assert (event.by_name, event.target, event.details["count"]) == ("eddie", memory.public_id, 1)


def test_a_deleted_memory_is_forgotten_too(cast: Cast, memory: Memory) -> None:
    delete_memory(memory, by=cast.editor, now=memory.created_at)
    client = signed_in(cast.owner)
    assert TEXT.split("<")[0] in client.get(page(memory)).content.decode()
    client.post(page(memory))
    assert not Memory.objects.exists()


def test_cards_offer_it_to_those_who_may(cast: Cast, memory: Memory) -> None:
    other = make_memory("The kettle is green", cast.owner, cast.workspace)
    url = f"/workspaces/{cast.workspace.public_id}/memories/"
    for person, offered in ((cast.owner, 2), (cast.editor, 1), (cast.viewer, 0)):
        client = signed_in(person)
        assert "/forget/" not in client.get(url).content.decode(), "not in a menu of the first level"
        histories = [client.get(f"{url}{each.public_id}/history/") for each in (memory, other)]
        assert sum("/forget/" in each.content.decode() for each in histories) == offered
    client = signed_in(cast.editor)
    gone = client.post(f"{url}{memory.public_id}/delete/").content.decode()
    assert "Undo" in gone
    assert page(memory) in gone
    assert page(other) not in client.post(f"{url}{other.public_id}/delete/").content.decode()


# REST


def test_rest_answers_with_the_report(cast: Cast, memory: Memory) -> None:
    path = f"workspaces/{cast.workspace.public_id}/memories/{memory.public_id}/forget"
    api = Api(cast.editor)
    refused = api.post(path)
    assert (refused.status_code, error_of(refused)["code"]) == (403, "reauthenticate")
    type_password_again(api.client)
    answer = api.post(path)
    assert answer.status_code == 200
    report = answer.json()
    assert report["removed"]["memories"] == report["removed"]["memory_embeddings"] == 1
    assert (report["tombstones"], report["recall"]) == (1, {"found": 0, "others": 0})
    assert api.post(path).status_code == 404


# Chats


def test_a_chat_goes_by_its_page(cast: Cast) -> None:
    chat = make_chat(cast.editor, cast.workspace, title=TEXT)
    make_message(chat, TEXT)
    make_memory(TEXT, cast.editor, cast.workspace, source_chat_id=chat.public_id)
    client, url = signed_in(cast.editor), f"/chats/{chat.public_id}/forget/"
    asked = client.get(url).content.decode()
    assert "1 message" in asked
    assert "Also 1 memory that came from it" in asked
    done = client.post(url, {"memories": "on"}).content.decode()
    assert "The chat is no longer in the database." in done
    assert "finds nothing that says it" in done
    assert places_with(TEXT) == []
    assert signed_in(cast.editor, fresh=False).get(url).status_code == 404
    row = make_chat(cast.editor, cast.workspace)
    listed = client.get(f"/chats/{row.public_id}/").content.decode()
    assert re.search(rf'href="/chats/{row.public_id}/".*?data-chat-menu=" deletable"', listed, re.S)
    assert "forget/" not in listed, "no row of the list offers what cannot be undone"
    deleted = client.post(f"/chats/{row.public_id}/delete/").content.decode()
    assert f"/chats/{row.public_id}/restore/" in deleted and f"/chats/{row.public_id}/forget/" in deleted


def test_a_chat_goes_by_rest(cast: Cast) -> None:
    chat = make_chat(cast.editor, cast.workspace)
    make_message(chat, TEXT)
    make_memory("The safe is green", cast.editor, cast.workspace, source_chat_id=chat.public_id)
    api, path = Api(cast.editor), f"chats/{chat.public_id}/forget"
    assert error_of(api.post(path))["code"] == "reauthenticate"
    type_password_again(api.client)
    assert error_of(api.post(path, {"memory": True}))["code"] == "invalid"
    report = api.post(path, {"memories": False}).json()
    assert (report["removed"]["chats"], report["tombstones"]) == (1, 0)
    assert Memory.objects.get().source_chat_id == ""
    assert not Chat.objects.exists()


# Workspaces and accounts


def test_a_workspace_goes_by_its_page(cast: Cast, memory: Memory) -> None:
    url = f"/workspaces/{cast.workspace.public_id}/delete/"
    late = signed_in(cast.owner, fresh=False)
    assert late.post(url, {"confirm": "Shared"})["Location"].startswith("/accounts/reauthenticate/")
    assert late.get(url)["Location"].endswith("/settings/")
    done = signed_in(cast.owner).post(url, {"confirm": "Shared"}).content.decode()
    assert "has been deleted with everything in it" in done
    assert "Entries in the search index" in done
    assert not Workspace.objects.filter(pk=cast.workspace.pk).exists()


def test_an_account_goes_by_its_page(cast: Cast) -> None:
    make_memory(TEXT, cast.editor)
    elsewhere, client = signed_in(cast.editor), signed_in(cast.editor)
    assert signed_in(cast.editor, fresh=False).get("/profile/delete/").status_code == 302
    asked = client.get("/profile/delete/").content.decode()
    assert "What you shared in “Shared”" in asked
    assert "“Personal” with all its chats and memories" in asked
    assert client.post("/profile/delete/", {"confirm": "olive"}).status_code == 422
    done = client.post("/profile/delete/", {"confirm": "eddie"}).content.decode()
    assert "Your account has been deleted" in done
    named = set(re.findall(r'<th scope="row">(.*?)</th>', done))
    assert {"Memories", "Workspaces"} <= named <= {*map(str, KNOWN.values()), "Other records about them"}
    assert places_with(TEXT) == []
    assert not User.objects.filter(username="eddie").exists()
    for session in (client, elsewhere):
        assert session.get("/profile/")["Location"].startswith("/accounts/login/")


def test_an_account_goes_by_rest_with_its_report(cast: Cast, memory: Memory) -> None:
    said = "The attic smells of cedar"
    mine = make_memory(said, cast.editor)
    chat = make_chat(cast.editor, title=said)
    message = make_message(chat, f"{said}, I told her")
    make_memory("The attic is dry", cast.editor, source_chat_id=chat.public_id, source_excerpt=said)
    mined = {"chat_id": chat.public_id, "message_id": message.public_id, "source_type": "auto_chat"}
    job = queue_extraction(workspace=chat.workspace, user=cast.editor, **mined, now=mine.created_at)
    api, elsewhere = Api(cast.editor), signed_in(cast.editor)
    before = api.get("account").json()
    assert before["username"] == "eddie"
    assert [place["name"] for place in before["if_deleted"]["removed"]] == ["Personal"]
    assert [place["name"] for place in before["if_deleted"]["left"]] == ["Shared"]
    assert error_of(api.delete("account"))["code"] == "reauthenticate"
    assert User.objects.filter(username="eddie").exists()
    type_password_again(api.client)

    gone = api.delete("account")

    assert gone.status_code == 200
    removed = gone.json()["removed"]
    assert (removed["memories"], removed["chats"], removed["messages"], removed["users"]) == (2, 1, 1, 1)
    assert places_with(said) == places_with("The attic is dry") == []
    embed_memories(memory_ids=[mine.pk])  # jobs that were queued already
    extract_turn(extraction_id=job.pk)
    assert places_with(said) == []
    assert api.get("account").status_code == 401
    assert elsewhere.get("/profile/")["Location"].startswith("/accounts/login/")
    memory.refresh_from_db()
    assert (memory.content, memory.author) == (TEXT, None), "what was shared stays, without a name"
    found = recall("attic cedar", cast.workspace, cast.owner, policy=HERE, now=timezone.now()).items
    assert [item.memory.content for item in found if "attic" in item.memory.content] == []


def test_an_account_that_cannot_go_stays_signed_in(cast: Cast) -> None:
    api, elsewhere = Api(cast.owner), signed_in(cast.owner)
    type_password_again(api.client)
    assert error_of(api.delete("account"))["code"] == "last_owner"
    assert elsewhere.get("/profile/").status_code == 200


def test_the_only_owner_of_what_others_use_is_told_first(cast: Cast) -> None:
    client = signed_in(cast.owner)
    asked = client.get("/profile/delete/").content.decode()
    assert "you are its only owner" in asked
    assert "Delete my account for good" not in asked
    assert client.post("/profile/delete/", {"confirm": "olive"}).status_code == 422
    assert User.objects.filter(username="olive").exists()


# Admin

LIST = "/admin/memories/memory/"


def test_the_admin_forgets_several_after_asking(admin_client: Client, cast: Cast, memory: Memory) -> None:
    other = make_memory("The kettle is green", cast.owner, cast.workspace)
    late: Any = run_action(admin_client, LIST, "forget_for_good", memory, other)
    assert late.redirect_chain[0][0].startswith("/accounts/reauthenticate/")
    assert Memory.objects.count() == 2
    type_password_again(admin_client)
    done = said(run_action(admin_client, LIST, "forget_for_good", memory, other))
    assert done[0].startswith("2 memories forgotten for good. With them went ")
    assert not Memory.objects.exists()
    assert Tombstone.objects.count() == 2
    assert places_with(TEXT) == []
