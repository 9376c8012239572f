"""Every route against owner, editor, viewer, stranger and an anonymous visitor. A route without a row fails."""

import json
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.test import Client
from django.utils import timezone

from tests.access_docs import PATH, PEOPLE, written
from tests.api import type_password_again
from tests.conftest import Cast
from tests.factories import make_key_text, make_workspace
from tests.fakes.pseudo_language import stored_translations
from tests.routes import API_ROWS, FORM, LOGIN, NO_KEYS, ROWS, Row, Status, known_routes
from tests.workspaces.index.test_distribution_key import faults_of_statements, recorded
from tests.world import EachRow, World
from workspaces.accounts.keys import verify_key
from workspaces.models import ApiKey, KeyScope, User


def test_every_route_has_a_row() -> None:
    proved = {(row.method, row.route) for row in ROWS}
    routes = {route for _, route in proved}
    missing = [
        f"{method} /{route}"
        for method, route in known_routes()
        if (route not in routes if method == "*" else (method, route) not in proved)
    ]
    assert missing == []


def test_every_row_has_a_route() -> None:
    known = {route for _, route in known_routes()}
    assert [str(row) for row in ROWS if row.route not in known] == []


def test_the_table_in_the_docs_says_the_same() -> None:
    assert PATH.read_text() == written(), "docs/access.md is stale: make docs"


# Headers that a proxy may set and that anyone may forge: they grant no access.
LIES = {
    "X-Original-URL": "/admin/",
    "X-HTTP-Method-Override": "DELETE",
    "X-Forwarded-User": "olive",
    "Remote-User": "olive",
    "X-Auth-User": "olive",
    "X-Forwarded-For": "127.0.0.1",
    "X-Forwarded-Host": "evil.example",
}


def cookies_of(person: User | None, *, fresh: bool) -> SimpleCookie:
    """Return the cookies of a new session, for all requests of a person: signing in takes as long as a page."""
    client = Client()
    if person is not None:
        client.force_login(person)
        if fresh:
            type_password_again(client)
    return client.cookies


def ask(row: Row, url: str, data: dict[str, Any], cookies: SimpleCookie, **headers: str) -> Status:
    client = Client(raise_request_exception=False, headers=headers)
    client.cookies = SimpleCookie({name: morsel.value for name, morsel in cookies.items()})
    if row.upload:
        file = SimpleUploadedFile("list.txt", b"Cats purr")
        response: Any = client.post(url, {**data, "file": file})
    elif row.is_api and row.method != "GET":
        response = client.generic(row.method, url, json.dumps(data), content_type="application/json")
    elif row.method == "GET":
        response = client.get(url)
    else:
        response = client.post(url, urlencode(data, doseq=True), content_type=FORM)
    status = response.status_code
    went_to_login = status == 302 and response["Location"].startswith("/accounts/login/")
    return LOGIN if went_to_login else status


def people_of(cast: Cast) -> list[User | None]:
    return [cast.owner, cast.editor, cast.viewer, cast.stranger, None]


def rows_for(who: str) -> list[Row]:
    """Return the rows of this person; an editor's where owner, editor and viewer do not all get the same answer.

    Routes that read from other threads need committed rows: tests/test_access_of_streams.py.
    """
    rows = [row for row in ROWS if not row.in_threads]
    return [row for row in rows if len(set(row.statuses[:3])) > 1] if who == "editor" else rows


@pytest.mark.parametrize("who", PEOPLE)
def test_who_may(who: str, each_row: EachRow, world: World, pseudo_language: str) -> None:
    """Everyone asks in another language, and no translated word is stored, as others read what is stored.

    The stranger and the anonymous visitor send forged headers as well. The owner's statements name the keys of large
    tables.
    """
    number = PEOPLE.index(who)
    headers = {"Accept-Language": pseudo_language} | (LIES if who in ("stranger", "nobody") else {})
    person, wrong = people_of(world.cast)[number], []
    cookies = {fresh: cookies_of(person, fresh=fresh) for fresh in (False, True)}
    with recorded() as statements, stored_translations() as stored:
        for row, each in each_row(rows_for(who)):
            status = ask(row, each.address(row), each.data(row), cookies[bool(row.fresh)], **headers)
            if status != row.statuses[number] or stored:
                wrong.append((str(row), status, row.statuses[number], stored.copy()))
                stored.clear()
    assert wrong == []
    assert who != "owner" or faults_of_statements(statements, world) == []


@pytest.fixture(scope="module")
def key_texts(made_world: World) -> dict[str, str]:
    """Create a key of each kind, all by the owner of the shared workspace."""
    owner, workspace = made_world.cast.owner, made_world.cast.workspace
    texts = {
        "read key": make_key_text(owner, workspace, scope=KeyScope.READ),
        "write key": make_key_text(owner, workspace),
        "key of another workspace": make_key_text(owner, make_workspace(owner=owner, name="Other")),
        "expired key": make_key_text(owner, workspace),
        "revoked key": make_key_text(owner, workspace),
    }
    now = timezone.now()
    for name, field in (("expired key", "expires_at"), ("revoked key", "revoked_at")):
        ApiKey.objects.filter(pk=verify_key(texts[name], now=now).pk).update(**{field: now})
    return texts


def ask_by_token(row: Row, world: World, text: str) -> int:
    """Send a row's request with this key or token, roll back, and return the status."""
    body = {} if row.method == "GET" else {"data": json.dumps(world.data(row))}
    client = Client(raise_request_exception=False, headers={"authorization": f"Bearer {text}"})
    with transaction.atomic():
        address = world.address(row)
        if row.upload:
            file = SimpleUploadedFile("list.txt", b"Cats purr")
            response: Any = client.post(address, {**world.data(row), "file": file})
        else:
            response = client.generic(row.method, address, content_type="application/json", **body)
        transaction.set_rollback(True)
    return int(response.status_code)


def test_which_keys_may(world: World, key_texts: dict[str, str]) -> None:
    """Routes without keys are tried with the write key only. Tokens: tests/test_access_of_tokens.py."""
    wrong = []
    for row in API_ROWS:
        for kind, right in zip(key_texts, row.keys, strict=True):
            if row.keys == NO_KEYS and kind != "write key":
                continue
            if (status := ask_by_token(row, world, key_texts[kind])) != right:
                wrong.append((str(row), kind, status, right))
    assert wrong == []


def test_the_admin_is_for_staff(world: World) -> None:
    cast = world.cast
    for person in (cast.owner, cast.stranger):
        client = Client()
        client.force_login(person)
        assert client.get("/admin/")["Location"].startswith("/admin/login/")
    cast.owner.is_staff = cast.owner.is_superuser = True
    cast.owner.save()
    client = Client()
    client.force_login(cast.owner)
    assert client.get("/admin/").status_code == 200


def test_a_browser_that_is_not_signed_in_sees_the_login_page(world: World) -> None:
    for row in API_ROWS:
        if row.method == "GET":
            response = Client().get(world.url(row), headers={"accept": "text/html,*/*;q=0.8"})
            assert response.status_code == 302, row
            assert response["Location"].startswith("/accounts/login/?next=/"), row
