"""Personal connections, the choice of a workspace and of a chat, and the connections in the admin."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from chat.models import Chat
from tests.api import type_password_again
from tests.conftest import Cast
from tests.factories import make_chat, make_connection, make_user
from tests.fakes.openai_server import Answer, Call, ScriptedOpenAI
from tests.signing_in import signed_in
from workspaces.models import AuditEvent
from workspaces.models.language_models import Connection

pytestmark = pytest.mark.django_db
KEY = "sk-very-secret-0123456789"
FORM = {
    "name": "Mine",
    "base_url": "https://api.example.org/v1",
    "model": "m",
    "api_key": KEY,
    "context_tokens": "8000",
}


@pytest.fixture(autouse=True)
def people_may(settings: Settings) -> None:
    settings.PEOPLE_MAY_CONNECT = True


def admin_client() -> Client:
    return signed_in(make_user(is_staff=True, is_superuser=True))


def text(response: Any) -> str:
    return " ".join(response.content.decode().split())


def test_a_person_stores_one_and_never_sees_the_key_again(cast: Cast) -> None:
    person = signed_in(cast.editor)
    prices = {"price_in": "0.15", "price_out": "0.6"}
    page = text(person.post("/connections/", {**FORM, **prices, "act": "keep"}, follow=True))
    made = Connection.objects.get()
    assert (made.price_in, made.price_cached, made.price_out) == (Decimal("0.15"), None, Decimal("0.6"))
    assert (made.owner, made.api_key, made.has_tools, made.can_extract) == (cast.editor, KEY, True, True)
    assert "“Mine” has been saved" in page and "with a key" in page and KEY not in page
    form = text(person.get(f"/connections/{made.public_id}/"))
    assert KEY not in form and "Leave it empty to keep the one that is stored" in form


def test_a_change_without_a_key_keeps_it(cast: Cast) -> None:
    mine = make_connection(cast.editor, api_key=KEY)
    url = f"/connections/{mine.public_id}/"
    assert signed_in(cast.editor).post(url, {**FORM, "api_key": "", "name": "Renamed"}).status_code == 302
    mine.refresh_from_db()
    assert (mine.name, mine.api_key) == ("Renamed", KEY)
    moved = signed_in(cast.editor).post(url, {**FORM, "api_key": "", "base_url": "https://other.example/v1"})
    assert moved.status_code == 422 and "Enter the key again" in text(moved)


def test_the_shared_ones_are_named_and_no_more(cast: Cast) -> None:
    shared = make_connection(name="House", base_url="http://10.0.0.7/v1")
    page = text(signed_in(cast.viewer).get("/connections/"))
    assert "House" in page and "10.0.0.7" not in page
    person = signed_in(cast.viewer)
    assert person.get(f"/connections/{shared.public_id}/").status_code == 403
    assert person.post(f"/connections/{shared.public_id}/test/").status_code == 403


def test_where_people_may_have_none_theirs_can_still_be_deleted(cast: Cast, settings: Settings) -> None:
    mine = make_connection(cast.editor, name="Old one")
    settings.PEOPLE_MAY_CONNECT = False
    page = text(signed_in(cast.editor).get("/connections/"))
    assert "Ask one of them if you need another" in page and "Old one" in page
    assert "Connect by address" not in page
    for act in ("keep", "test", "models", "connect"):
        assert signed_in(cast.editor).post("/connections/", {**FORM, "act": act}).status_code == 422
    signed_in(cast.editor).post(f"/connections/{mine.public_id}/delete/")
    assert not Connection.objects.exists()


def test_the_test_button_says_what_works(
    cast: Cast, settings: Settings, scripted_openai: ScriptedOpenAI
) -> None:
    settings.PEOPLE_MAY_CONNECT_INTERNAL = True
    mine = make_connection(
        cast.owner, base_url=scripted_openai.base_url, api_key=scripted_openai.api_key, model="scripted-model"
    )
    scripted_openai.script(Answer("ready"), Answer("It is noon."), Answer("A fact."))
    url = f"/connections/{mine.public_id}/test/"
    report = text(signed_in(cast.owner).post(url, headers={"hx-request": "true"}))
    assert "Answers stream." in report and "It did not call the tool." in report
    assert "“Can call tools” is on, but did not work: turn it off." in report
    Connection.objects.update(has_tools=False)
    scripted_openai.script(
        Answer("ready"), Answer(calls=[Call("get_time", {"city": "Rome"})]), Answer("A fact.")
    )
    page = text(signed_in(cast.owner).post(url))
    assert "<html" in page, "without htmx a page of its own"
    assert "“Can call tools” is off, but would work." in page


def test_an_owner_chooses_for_the_workspace(cast: Cast) -> None:
    shared = make_connection(name="House")
    url = f"/workspaces/{cast.workspace.public_id}/model/"
    signed_in(cast.owner).post(url, {"connection": shared.public_id})
    cast.workspace.refresh_from_db()
    assert cast.workspace.connection == shared
    assert "“House” answers here" in text(
        signed_in(cast.viewer).get(f"/workspaces/{cast.workspace.public_id}/settings/")
    )
    event = AuditEvent.objects.get(verb="workspace_changed")
    assert event.details == {"fields": ["connection"]}


def test_a_choice_left_out_changes_nothing(cast: Cast) -> None:
    """Another owner's connection is not on the list, so nothing is checked for them."""
    mine = make_connection(cast.owner)
    cast.workspace.connection, cast.workspace.local_only = mine, True
    cast.workspace.save()
    signed_in(cast.owner).post(f"/workspaces/{cast.workspace.public_id}/model/", {})
    cast.workspace.refresh_from_db()
    assert (cast.workspace.connection, cast.workspace.local_only) == (mine, True)


def test_a_chats_menu_and_choice(cast: Cast) -> None:
    shared, mine, _others = (
        make_connection(name="House"),
        make_connection(cast.editor, name="Mine"),
        make_connection(cast.owner, name="Hers"),
    )
    chat = make_chat(cast.editor, cast.workspace)
    url = f"/chats/{chat.public_id}/model/"
    person = signed_in(cast.editor)
    menu = text(person.get(url))
    assert "House" in menu and "Mine" in menu and "Hers" not in menu and "Built-in model" in menu
    answer = text(person.post(url, {"connection": mine.public_id}))
    assert 'id="talking-to"' in answer and "Mine" in answer
    assert answer.count('hx-swap-oob="true"') == 2
    chat.refresh_from_db()
    assert chat.connection == mine
    theirs = text(signed_in(cast.owner).get(f"/chats/{chat.public_id}/"))
    assert (
        "belongs to someone else and answers only them. “Built-in model” answers." in theirs
        and "Mine" not in theirs
    )
    assert person.post(url, {"connection": _others.public_id}).status_code == 422
    person.post(url, {"connection": ""})
    chat.refresh_from_db()
    assert chat.connection is None
    assert shared.public_id in menu


@pytest.mark.django_db(transaction=True)
def test_a_new_chat_begins_with_the_model_that_was_chosen(
    cast: Cast, scripted_openai: ScriptedOpenAI, eventually: Any
) -> None:
    shared = make_connection(
        base_url=scripted_openai.base_url,
        api_key=scripted_openai.api_key,
        model="scripted-model",
        name="House",
    )
    ws, person = cast.workspace.public_id, signed_in(cast.editor)
    page = text(person.get(f"/workspaces/{ws}/", {"connection": shared.public_id}))
    assert f'name="connection" value="{shared.public_id}"' in page and "House" in page
    person.post(f"/workspaces/{ws}/chats/", {"content": "Hello", "connection": shared.public_id})
    chat = Chat.objects.get()
    assert chat.connection == shared
    eventually(lambda: chat.messages.filter(status="done", model="scripted-model").exists())


def test_the_admin_makes_changes_and_deletes_the_shared_ones(cast: Cast) -> None:
    staff, mine = admin_client(), make_connection(cast.owner, name="Somebody's own")
    type_password_again(staff)
    listed = "/admin/workspaces/connection/"
    blank = text(staff.get(f"{listed}add/"))
    assert 'name="api_key"' in blank and "What it can do" in blank
    assert all(word not in blank for word in ("About it", "Without a key", "the stored one"))
    made = staff.post(
        f"{listed}add/", {**FORM, "name": "House", "base_url": "http://10.0.0.7/v1", "is_local": "on"}
    )
    assert made.status_code == 302, made.context["errors"]
    shared = Connection.objects.get(owner=None)
    assert (shared.api_key, shared.is_local, shared.has_tools) == (KEY, True, False)
    page = text(staff.get(listed))
    assert "House" in page and "Somebody&#x27;s own" not in page
    change = f"{listed}{shared.pk}/change/"
    form = text(staff.get(change))
    assert KEY not in form and "About it" in form and "Without a key" in form
    assert staff.get(f"{listed}{mine.pk}/change/").status_code == 302, "not there for the admin"
    staff.post(change, {**FORM, "name": "Home", "api_key": "", "base_url": "http://10.0.0.7/v1"})
    shared.refresh_from_db()
    assert (shared.name, shared.api_key, shared.is_local) == ("Home", KEY, False)
    refused = staff.post(change, {**FORM, "api_key": "", "base_url": "https://evil.example/v1"})
    assert refused.status_code == 200 and "Enter the key again" in text(refused)
    staff.post(change, {**FORM, "api_key": "", "base_url": "http://10.0.0.7/v1", "forget_key": "on"})
    shared.refresh_from_db()
    assert not shared.has_key
    staff.post(f"{listed}{shared.pk}/delete/", {"post": "yes"})
    assert not Connection.objects.filter(owner=None).exists()
    verbs = set(AuditEvent.objects.values_list("verb", flat=True))
    assert {"connection_made", "connection_changed", "connection_deleted"} <= verbs
    assert all(KEY not in str(event.details) for event in AuditEvent.objects.all())


def test_a_shared_one_is_changed_by_who_shows_who_they_are(cast: Cast) -> None:
    staff, shared = admin_client(), make_connection(api_key=KEY)
    change = f"/admin/workspaces/connection/{shared.pk}/change/"
    there = {**FORM, "base_url": "https://elsewhere.example.org/v1", "api_key": "another-key"}
    assert staff.post(change, there)["Location"] == f"/accounts/reauthenticate/?next={change}"
    assert "another-key" not in str(dict(staff.session)), "what was typed is not kept"
    assert "Nothing was saved yet" in text(staff.get(change))
    before, _ = shared.base_url, shared.refresh_from_db()
    assert (shared.base_url, shared.api_key) == (before, KEY)
    type_password_again(staff)
    assert staff.post(change, there).status_code == 302
    shared.refresh_from_db()
    assert (shared.base_url, shared.api_key) == ("https://elsewhere.example.org/v1", "another-key")
