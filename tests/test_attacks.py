"""Attacks on every route at once: forged requests, unknown fields, misleading headers and paths."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from chat.models import Chat, Message
from memories.models import Memory
from tests.api import type_password_again
from tests.digests import digests_of
from tests.factories import make_workspace
from tests.routes import FORM, ROWS, Row
from tests.world import EachRow, World
from workspaces.models import Agent, ApiKey, Membership, User, Workspace

UNSAFE = [row for row in ROWS if row.method != "GET" and not row.in_threads]
FORMS = [row for row in UNSAFE if not row.is_api]
VISITED = frozenset({"last_login", "last_used_at", "last_accessed_at"})  # changed by a mere visit
READING_PAGES = [row for row in ROWS if row.method == "GET" and not row.is_api and not row.in_threads]


def client_of(person: User, row: Row, **options: Any) -> Client:
    client = Client(raise_request_exception=False, **options)
    client.force_login(person)
    if row.fresh:
        type_password_again(client)
    return client


def send(client: Client, row: Row, url: str, data: Mapping[str, Any], **extra: Any) -> Any:
    if row.upload:
        return client.post(url, {**data, "file": SimpleUploadedFile("list.txt", b"Cats purr")}, **extra)
    if row.is_api and row.method != "GET":
        return client.generic(row.method, url, json.dumps(data), content_type="application/json", **extra)
    if row.method == "GET":
        return client.get(url, **extra)
    return client.post(url, urlencode(data, doseq=True), content_type=FORM, **extra)


def stored() -> dict[str, str | None]:
    tables = (User, Workspace, Membership, Chat, Message, Memory, Agent, ApiKey)
    return digests_of(*tables, without=VISITED)


def columns(table: Any) -> list[str]:
    return [field.attname for field in table._meta.concrete_fields if field.attname not in VISITED]


def test_forged_requests_change_nothing(each_row: EachRow) -> None:
    for row, world in each_row(UNSAFE):
        client = client_of(world.cast.owner, row, enforce_csrf_checks=True)
        before = stored()
        no_session_counts = len(set(row.statuses)) == 1
        refused = row.statuses[0] if no_session_counts else 403
        assert send(client, row, world.address(row), world.data(row)).status_code == refused, row
        assert stored() == before, row


def test_form_fields_that_nobody_offered_do_nothing(each_row: EachRow) -> None:
    for row, world in each_row(FORMS):
        editor, stranger = world.cast.editor, world.cast.stranger
        elsewhere = make_workspace(owner=stranger, name="Sam's")
        forged = {
            "is_staff": "on",
            "is_superuser": "on",
            "is_active": "",
            "user_permissions": "1",
            "groups": "1",
            "owner": str(stranger.pk),
            "owner_id": str(stranger.pk),
            "author": str(stranger.pk),
            "created_by": str(stranger.pk),
            "user": str(stranger.pk),
            "workspace": str(elsewhere.pk),
            "workspace_id": elsewhere.public_id,
            "default_of": str(editor.pk),
            "public_id": "mem_000000000000000000000000",
            "id": "1",
            "pk": "1",
            "source_type": "user",
            "deleted_at": "2020-01-01",
            "key_hash": "0" * 64,
            "review_state": "",
        }
        powers = User.objects.order_by("pk").values_list(
            "pk", "is_staff", "is_superuser", "is_active", "public_id"
        )
        before, roles = (
            list(powers),
            dict(Membership.objects.filter(user=editor).values_list("workspace", "role")),
        )
        answer = send(client_of(editor, row), row, world.address(row), {**forged, **world.data(row)})
        assert answer.status_code < 500, row
        assert list(powers)[: len(before)] == before, row
        now = dict(Membership.objects.filter(user=editor).values_list("workspace", "role"))
        assert {pk: role for pk, role in now.items() if pk in roles and role != roles[pk]} == {}, row
        for table in (Memory, Chat, Agent):
            assert not table.objects.filter(workspace=elsewhere).exists(), row  # type: ignore[attr-defined]
            assert not table.objects.filter(public_id=forged["public_id"]).exists(), row  # type: ignore[attr-defined]
        assert not Memory.objects.filter(author=stranger).exists(), row


LYING_HEADERS: list[dict[str, str]] = [
    {"X-Original-URL": "/admin/", "X-Rewrite-URL": "/admin/"},
    {"X-HTTP-Method-Override": "DELETE", "X-Method-Override": "DELETE", "X-HTTP-Method": "DELETE"},
    {"X-Forwarded-User": "olive", "Remote-User": "olive", "X-Remote-User": "olive", "X-Auth-User": "olive"},
    {"X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1", "Forwarded": "for=127.0.0.1"},
    {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https", "X-Forwarded-Port": "443"},
    {"Authorization": "Basic b2xpdmU6b2xpdmU="},
    {"Authorization": "Bearer mhk_" + "A" * 40},
    {"Accept": "*/*;q=9,\x01", "Accept-Language": "x" * 5000},
    {"HX-Request": "true", "HX-Current-URL": "https://evil.example/", "HX-Target": "<script>"},
]


ALONE = [row for row in READING_PAGES if row.route in ("", "profile/", "workspaces/<str:ws_id>/settings/")]


def test_no_header_that_lies_opens_anything(world: World) -> None:
    """Headers are sent one at a time, as one could mask another. All together: tests/test_access_matrix.py."""
    for row in ALONE:
        for person in (world.cast.stranger, None):
            client = Client(raise_request_exception=False)
            if person is not None:
                client.force_login(person)
            usual = client.get(world.address(row))  # the first visit creates the user's own workspace
            before = stored()
            for headers in LYING_HEADERS:
                answer = client.get(world.address(row), headers=headers)
                where = answer.headers.get("Location", "")
                assert answer.status_code == usual.status_code, headers
                assert where.startswith("/") or not where, row
                assert not where.startswith("//"), row
                assert b"March 15" not in getattr(answer, "content", b""), row
            assert stored() == before, row


def test_a_host_that_is_not_ours_is_refused(world: World) -> None:
    for host in ["evil.example", "localhost:80@evil.example", "local host", "localhost\x01", ""]:
        for path in ("/", "/accounts/login/", "/chat/api/workspaces", "/static/css/tokens.css"):
            answer = Client(raise_request_exception=False).get(path, headers={"host": host} if host else {})
            if host:
                assert answer.status_code == 400 or path.startswith("/static/"), host
            assert b"evil.example" not in getattr(answer, "content", b""), host


PATHS = [
    "//evil.example/{ws}",
    "/./workspaces/{ws}/settings/",
    "/workspaces/{ws}/settings/..;/",
    "/workspaces/{ws}/%2e%2e/{ws}/settings/",
    "/workspaces/{ws}%2fsettings/",
    "/workspaces/{ws}/settings/%00",
    "/workspaces//{ws}//settings/",
    "/WORKSPACES/{ws}/settings/",
    "/workspaces/{ws}/settings",
    "/workspaces/{ws};jsessionid=1/settings/",
    "/workspaces/{ws}\\settings/",
    "/static/../memoryhub/settings/process.py",
    "/static/%2e%2e/memoryhub/settings/process.py",
    "/static/..%5cmemoryhub%5curls.py",
    "/media/../../etc/passwd",
    "/.env",
    "/.git/config",
    "/var/secret-key",
]


def test_paths_that_lie_lead_nowhere(world: World) -> None:
    for path in PATHS:
        address = path.replace("{ws}", world.ids["ws_id"])
        for person in (world.cast.stranger, None):
            client = Client(raise_request_exception=False)
            if person is not None:
                client.force_login(person)
            answer = client.get(address)
            where = answer.headers.get("Location", "")
            assert answer.status_code in {301, 302, 400, 404}, path
            assert not where.startswith(("//", "http", "\\")), path
            assert b"SECRET_KEY" not in getattr(answer, "content", b""), path
