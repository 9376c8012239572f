"""Connecting a model by its address on the page: permissions, scope, requests to its server, and results."""

import re
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from tests.api import type_password_again
from tests.conftest import Cast
from tests.factories import make_connection, make_user
from tests.fakes.openai_server import Answer, Call, ScriptedOpenAI
from tests.rollback import rolled_back
from tests.signing_in import signed_in
from workspaces.access import default_workspace
from workspaces.models import AuditEvent, User
from workspaces.models.language_models import Connection

pytestmark = pytest.mark.django_db
PAGE = "/connections/"
HTMX = {"hx-request": "true"}
ABLE = (Answer("ready"), Answer(calls=[Call("get_time", {"city": "Rome"})]), Answer('{"fact": "Moved."}'))
FAR = {
    "base_url": "https://models.example.org/v1",
    "model": "m",
    "api_key": "sk-far",
    "context_tokens": "8000",
}


@pytest.fixture
def admin() -> User:
    return make_user("ada", is_staff=True, is_superuser=True)


def text(response: Any) -> str:
    return " ".join(response.content.decode().split())


def form(server: ScriptedOpenAI, **more: str) -> dict[str, str]:
    there = {"base_url": server.base_url, "model": server.model, "api_key": server.api_key}
    return {"preset": "other", "context_tokens": "8000", **there, **more}


def test_an_administrator_connects_one_for_everybody(scripted_openai: ScriptedOpenAI, admin: User) -> None:
    page, home = signed_in(admin), default_workspace(admin)
    page.get("/", follow=True)  # the workspace visited last
    scripted_openai.script(*ABLE)
    done = page.post(PAGE, form(scripted_openai), headers=HTMX)
    assert (done.status_code, done["HX-Redirect"]) == (200, f"/workspaces/{home.public_id}/")
    made = Connection.objects.get()
    assert (made.is_shared, made.is_local, made.name) == (True, True, scripted_openai.model)
    assert (made.has_tools, made.can_extract, made.api_key) == (True, True, scripted_openai.api_key)
    home.refresh_from_db()
    assert home.connection == made
    assert AuditEvent.objects.get(verb="connection_made").details["shared"] is True
    scripted_openai.script(Answer("ready"), Answer("noon"), Answer("no JSON"))
    again = page.post(PAGE, form(scripted_openai, name="Small"), follow=True)
    assert "is connected. Choose it beside the title" in text(again), "what is chosen is not replaced"
    small = Connection.objects.get(name="Small")
    assert (small.has_tools, small.can_extract) == (False, False), "as it was tried"


def test_what_does_not_answer_is_kept_only_by_who_says_so(
    scripted_openai: ScriptedOpenAI, admin: User
) -> None:
    page, wrong = signed_in(admin), form(scripted_openai, api_key="sk-wrong")
    refused = page.post(PAGE, wrong, headers=HTMX)
    assert refused.status_code == 200, "htmx would put another one among the notices"
    assert "does not answer" in text(refused) and "Save anyway" in text(refused)
    assert "sk-wrong" not in text(refused) and not Connection.objects.exists()
    tested = page.post(PAGE, form(scripted_openai, act="test"))
    assert "Answers stream." in text(tested) and "turn it off" not in text(tested)
    assert not Connection.objects.exists()
    asked = len(scripted_openai.requests)
    kept = page.post(PAGE, {**wrong, "act": "keep"}, headers=HTMX)
    assert kept["HX-Redirect"] == PAGE and Connection.objects.get().api_key == "sk-wrong"
    assert len(scripted_openai.requests) == asked


def test_a_server_lists_its_models(scripted_openai: ScriptedOpenAI, admin: User) -> None:
    page, asks = signed_in(admin), form(scripted_openai, act="models", model="")
    listed = text(page.post(PAGE, asks, headers=HTMX))
    assert f'<option value="{scripted_openai.model}">' in listed and "It has one model" in listed
    assert "No list of models" in text(page.post(PAGE, {**asks, "api_key": "sk-wrong"}, headers=HTMX))
    for nowhere in ("", "http://[", "ftp://127.0.0.1/", "http://127.0.0.1:9/v1", "x" * 600):
        found = page.post(PAGE, {**asks, "base_url": nowhere})
        assert found.status_code == 422 and "field__error" in text(found), nowhere
    assert not Connection.objects.exists()


def test_hostile_lists_are_names_and_nothing_else(
    scripted_openai: ScriptedOpenAI, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [
        '"><script>alert(1)</script>',
        "a\x00b",
        "",
        "y" * 300,
        *(f"model {number}" for number in range(900)),
    ]
    monkeypatch.setattr(
        scripted_openai, "_choose", lambda request: {"data": [{"id": name} for name in names]}
    )
    listed = signed_in(admin).post(PAGE, form(scripted_openai, act="models"), headers=HTMX).content.decode()
    assert "<script>alert" not in listed and "&lt;script&gt;alert(1)" in listed
    offered = listed.split("<datalist")[1].split("</datalist>")[0]
    assert offered.count("<option") == 500 and "y" * 300 not in offered


def test_nobody_connects_without_leave(
    scripted_openai: ScriptedOpenAI, cast: Cast, settings: Settings
) -> None:
    """No workspace role suffices, nor does staff without superuser rights; internal addresses need their own
    setting.
    """
    for person in (cast.owner, cast.stranger, make_user(is_staff=True)):
        shown = text(signed_in(person).get(PAGE))
        assert "Connect by address" not in shown and "Ask one of them" in shown, person
    for act in rolled_back(["", "test", "models", "keep"]):
        settings.PEOPLE_MAY_CONNECT, asks = False, form(scripted_openai, act=act, shared="on")
        for person in (cast.owner, make_user(is_staff=True)):
            assert signed_in(person).post(PAGE, asks).status_code == 422, (act, person)
        settings.PEOPLE_MAY_CONNECT = True
        for address in (scripted_openai.base_url, "http://169.254.169.254/v1", "http://localhost:11434/v1"):
            refused = signed_in(cast.owner).post(PAGE, {**asks, "base_url": address})
            assert refused.status_code == 422 and "field__error" in text(refused), act
        assert scripted_openai.requests == [] and not Connection.objects.exists(), act
        assert Client().post(PAGE, asks).status_code == 302, act


def test_for_whom_it_is(scripted_openai: ScriptedOpenAI, cast: Cast, admin: User, settings: Settings) -> None:
    """Only administrators connect for everyone, regardless of the form; and for themselves where people may."""
    signed_in(admin).post(PAGE, {**FAR, "act": "keep"})
    assert Connection.objects.get().is_shared, (
        "where people have none of their own, there is nothing to choose"
    )
    settings.PEOPLE_MAY_CONNECT = settings.PEOPLE_MAY_CONNECT_INTERNAL = True
    signed_in(cast.editor).post(
        PAGE, {**FAR, "act": "keep", "shared": "on", "is_local": "on", "name": "Mine"}
    )
    mine = Connection.objects.get(name="Mine")
    assert (mine.owner, mine.is_local) == (cast.editor, False)
    assert 'name="shared"' in text(signed_in(admin).get(PAGE))
    assert 'name="shared"' not in text(signed_in(cast.editor).get(PAGE))
    scripted_openai.script(*ABLE, *ABLE)
    signed_in(admin).post(PAGE, form(scripted_openai, name="Hers"))
    hers = Connection.objects.get(name="Hers")
    assert (hers.owner, hers.is_local) == (admin, False), "only what is everybody's may be local"
    signed_in(admin).post(PAGE, form(scripted_openai, name="Ours", shared="on"))
    assert Connection.objects.get(name="Ours").is_local


def test_it_answers_only_where_it_may(
    scripted_openai: ScriptedOpenAI, cast: Cast, settings: Settings
) -> None:
    settings.PEOPLE_MAY_CONNECT = settings.PEOPLE_MAY_CONNECT_INTERNAL = True
    place = f"/workspaces/{cast.workspace.public_id}/"
    for person, kept_here in ((cast.editor, False), (cast.owner, True)):
        cast.workspace.local_only = kept_here
        cast.workspace.save()
        page = signed_in(person)
        page.get(place)
        scripted_openai.script(*ABLE)
        done = page.post(PAGE, form(scripted_openai, name=person.username), follow=True)
        assert "Choose it beside the title of a chat" in text(done)
        cast.workspace.refresh_from_db()
        assert cast.workspace.connection is None


def test_what_is_asked_is_counted(scripted_openai: ScriptedOpenAI, admin: User, settings: Settings) -> None:
    settings.THROTTLES = {**settings.THROTTLES, "model tests": 1}
    page = signed_in(admin)
    page.post(PAGE, form(scripted_openai, act="models"))
    asked = len(scripted_openai.requests)
    for act in ("models", "test", "connect"):
        assert page.post(PAGE, form(scripted_openai, act=act)).status_code in {422, 429}
    assert len(scripted_openai.requests) == asked and not Connection.objects.exists()


def test_first_one_for_everybody_is_offered_as_the_default(
    scripted_openai: ScriptedOpenAI, admin: User
) -> None:
    page, home = signed_in(admin), default_workspace(admin)
    offered = re.compile(r'<input type="checkbox" name="is_default"[^>]* checked')
    assert offered.search(text(page.get(PAGE)))
    page.get("/", follow=True)
    scripted_openai.script(*ABLE)
    page.post(PAGE, form(scripted_openai, is_default="on"), headers=HTMX)
    made = Connection.objects.get()
    home.refresh_from_db()
    assert made.is_default and home.connection is None, "it follows the default"
    assert not offered.search(text(page.get(PAGE)))


def test_switch_of_the_default_asks_who_it_is(cast: Cast, admin: User) -> None:
    first, second = make_connection(is_default=True), make_connection(name="Second")
    address = f"{PAGE}{second.public_id}/switch/"
    for person in (cast.owner, cast.viewer, cast.stranger):
        assert signed_in(person).post(address, {"is_default": "on"}).status_code == 403
    page = signed_in(admin)
    assert "/accounts/reauthenticate/" in page.post(address, {"is_default": "on"})["Location"]
    type_password_again(page)
    page.post(address, {"is_default": "on"})
    assert Connection.objects.get(is_default=True) == second
    assert "Stop using it as the default" in text(page.get(PAGE))
    page.post(address, {"is_default": "off"})
    assert not Connection.objects.filter(is_default=True).exists() and first.pk


def test_a_shared_one_is_looked_after_on_the_page(cast: Cast, admin: User) -> None:
    shared, staff = make_connection(name="House", api_key="sk-kept"), signed_in(admin)
    here = f"{PAGE}{shared.public_id}/"
    change = {**FAR, "name": "Home", "base_url": shared.base_url, "api_key": "", "is_local": "on"}
    assert staff.get(here).status_code == 302 and staff.post(here, change).status_code == 302
    shared.refresh_from_db()
    assert shared.name == "House", "where everybody's words go is changed by who shows that it is them"
    type_password_again(staff)
    assert "Local: may answer" in text(staff.get(here)) and "sk-kept" not in text(staff.get(here))
    staff.post(here, change)
    shared.refresh_from_db()
    assert (shared.name, shared.is_local, shared.api_key) == ("Home", True, "sk-kept")
    moved = staff.post(here, {**change, "base_url": "https://evil.example/v1", "is_local": ""})
    assert moved.status_code == 422 and "Enter the key again" in text(moved)
    for person in (cast.owner, cast.stranger, make_user(is_staff=True)):
        for act in ("", "test/", "delete/"):
            assert signed_in(person).post(f"{here}{act}", change).status_code == 403
    staff.post(f"{here}delete/")
    assert not Connection.objects.exists()
