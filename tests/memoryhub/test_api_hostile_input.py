"""Hostile input to the API is refused with a reason: never a 500, and nothing is stored."""

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from chat.models import Chat, Message
from memories.models import Memory, Revision
from tests.api import error_of, type_password_again
from tests.digests import digests_of
from tests.routes import API_ROWS, PAGE_ROWS, Row
from tests.world import EachRow, World
from workspaces.models import Membership, Workspace

# Endpoints for keys only have their own form of errors: tests/chat/programs.
WITH_BODY = [row for row in API_ROWS if row.data and not row.upload and not row.keys_alone]
UPLOADS = [row for row in API_ROWS if row.upload]
UNREADABLE = {
    "cut off": b'{"content": "a"',
    "nothing but a brace": b"{",
    "not a number": b'{"content": NaN}',
    "infinity": b'{"content": Infinity}',
    "not utf-8": b'{"content": "\xff\xfe"}',
    "two documents": b"{} {}",
    "single quotes": b"{'content': 'a'}",
    "a number of 5,000 digits": b'{"content": ' + b"9" * 5000 + b"}",
    "deep": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
}
WRONG_VALUES = [
    "\0",
    "a\0b",
    "\ud800",
    "a\udfffb",
    5,
    -1,
    1.5,
    10**300,
    True,
    [],
    ["\0"],
    {},
    {"$ne": 1},
    [[[]]],
]
NO_IDS = ("mem_%00", "x" * 2000, "%00", "%ff", "..%2f..", "%F0%9F%98%80", "' OR 1=1 --")
NO_VALUES = ("a\0b", "\ud800", "9" * 100, "-1", "%é[]", "x" * 5000)
NOT_OBJECTS = {"list": b"[]", "string": b'"content"', "number": b"5", "null": b"null", "true": b"true"}


def first_of_each_reader(rows: list[Row]) -> set[str]:
    """Return the first reading route of each combination of ids: others read the same ids by the same code."""
    first: dict[tuple[bool, frozenset[str]], str] = {}
    for row in rows:
        if row.method == "GET" and "<" in row.route:
            first.setdefault((row.is_api, frozenset(re.findall(r"<(.+?)>", row.route))), row.route)
    return set(first.values())


READERS = first_of_each_reader([*API_ROWS, *PAGE_ROWS])


def wrong_ids(row: Row) -> tuple[str, ...]:
    """Return all wrong ids for the first route that reads them, one for every other."""
    return NO_IDS if row.method == "GET" and row.route in READERS else NO_IDS[:1]


def signed_in(world: World, row: Row) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(world.cast.owner)
    if row.fresh:
        type_password_again(client)
    return client


def sender(world: World, row: Row) -> Callable[..., Any]:
    """Return a function that sends bodies to a row's address, in one session of the owner."""
    client, address = signed_in(world, row), world.address(row)

    def send(body: bytes, content_type: str = "application/json") -> Any:
        return client.generic(row.method, address, body, content_type=content_type)

    return send


def stored() -> dict[str, str | None]:
    return digests_of(Workspace, Membership, Chat, Message, Memory, Revision)


def test_what_is_no_request_is_refused(each_row: EachRow) -> None:
    """A body that is no JSON and an unknown field at every route; all kinds once for each parser in the next test."""
    for row, world in each_row(WITH_BODY):
        before, send = stored(), sender(world, row)
        assert_malformed(send, "cut off")
        assert_unknown(send, world, row, "is_staff")
        assert stored() == before, row


@pytest.mark.parametrize("beginning", ["chat/api/", "api/v1/"])
def test_every_kind_of_no_request_is_refused(world: World, beginning: str) -> None:
    row = next(row for row in WITH_BODY if row.route.startswith(beginning) and row.method == "POST")
    before, send = stored(), sender(world, row)
    for name in UNREADABLE:
        assert_malformed(send, name)
    for name in NOT_OBJECTS:
        assert_no_object(send, name)
    for field in ("pk", "workspace", "__class__", "is_staff", "", "a\0b", "\ud800", "x" * 5000):
        assert_unknown(send, world, row, field)
    for content_type in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ):
        assert_no_json(send, content_type)
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0
    refused = send(json.dumps({"content": "x" * limit}).encode())
    assert (refused.status_code, error_of(refused)["code"]) == (413, "too_large")
    assert stored() == before


def assert_malformed(send: Callable[..., Any], name: str) -> None:
    refused = send(UNREADABLE[name])
    assert (refused.status_code, error_of(refused)["code"]) == (400, "malformed"), name


def assert_no_object(send: Callable[..., Any], name: str) -> None:
    refused = send(NOT_OBJECTS[name])
    assert refused.status_code == 422, name
    assert list(error_of(refused)["fields"]) == ["body"], name


def assert_no_json(send: Callable[..., Any], content_type: str) -> None:
    refused = send(b"content=a", content_type)
    assert (refused.status_code, error_of(refused)["code"]) == (415, "media_type"), content_type


def assert_unknown(send: Callable[..., Any], world: World, row: Row, field: str) -> None:
    refused = send(json.dumps({**world.data(row), field: 1}).encode())
    assert refused.status_code == 422, field
    assert "There is no such field here" in error_of(refused)["message"], field


def test_uploads_without_a_file_are_refused(each_row: EachRow) -> None:
    for row, world in each_row(UPLOADS):
        before, send = stored(), sender(world, row)
        form = "multipart/form-data; boundary=x"
        part = b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\nno file, only text\r\n--x--\r\n'
        for body, content_type, status in (
            (b'{"file": "Cats purr"}', "application/json", 415),
            (b"file=Cats", "application/x-www-form-urlencoded", 415),
            (b"Cats purr", "multipart/form-data", 400),
            (b"--x--", form, 422),
            (part, form, 422),
            (part.replace(b"--x--", b"").replace(b"file", b"is_staff"), form, 422),
        ):
            assert send(body, content_type).status_code == status, (body, content_type)
        assert stored() == before, row


def test_wrong_values_of_every_field_are_refused_by_name(each_row: EachRow) -> None:
    """All values at the first route with a field of this name, one of each kind at the others."""
    for row, world in each_row(WITH_BODY):
        before, send = stored(), sender(world, row)
        for field, right in row.data.items():
            first = next(each for each in WITH_BODY if field in each.data)
            for value in WRONG_VALUES if row is first else ("a\0b", {"$ne": 1}):
                if type(value) is type(right) and not isinstance(value, str):
                    continue
                refused = send(json.dumps({**world.data(row), field: value}).encode())
                assert refused.status_code == 422, (field, value)
                assert error_of(refused)["fields"].keys() == {field}, value
        assert stored() == before, row


def test_ids_that_cannot_be_ids_are_not_found(each_row: EachRow) -> None:
    for row, world in each_row([row for row in API_ROWS if "<" in row.route]):
        client = Client(raise_request_exception=False)
        client.force_login(world.cast.owner)
        for wrong in wrong_ids(row):
            broken = World(world.cast, dict.fromkeys(world.ids, wrong), {}, {})
            url = broken.url(Row(row.method, row.route, row.statuses))
            response = client.generic(
                row.method, url, json.dumps(world.data(row)), content_type="application/json"
            )
            assert response.status_code == (401 if row.keys_alone else 404), wrong


def test_hostile_queries_are_never_a_server_error(each_row: EachRow) -> None:
    for row, world in each_row([row for row in API_ROWS if row.method == "GET"]):
        client = Client(raise_request_exception=False)
        client.force_login(world.cast.owner)
        names = ("limit", "cursor", "workspace_id", "format", "lang", "scope", "category", "tag", "key")
        query = query_of(names, API_ROWS.index(row))
        assert client.get(f"{world.url(row)}?{query}").status_code < 500, query


def test_hostile_addresses_of_pages_are_never_a_server_error(each_row: EachRow) -> None:
    for row, world in each_row(PAGE_ROWS):
        client = Client(raise_request_exception=False)
        client.force_login(world.cast.owner)
        reads = row.method == "GET"
        send = client.get if reads else client.post
        for wrong in wrong_ids(row) if "<" in row.route else ():
            broken = World(world.cast, dict.fromkeys(world.ids, wrong), {}, {})
            assert send(broken.url(Row(row.method, row.route, row.statuses))).status_code == 404, wrong
        names = ("q", "before", "category", "source", "at", "as", "after", "page")
        query = query_of(names, PAGE_ROWS.index(row))
        assert send(f"{world.url(row)}?{query}").status_code < 500, query


def query_of(names: tuple[str, ...], turn: int) -> str:
    """Return one of the six queries in which each name has another invalid value than its neighbours.

    Six routes in a row try every value of every name.
    """
    values = [NO_VALUES[(turn + n) % len(NO_VALUES)] for n in range(len(names))]
    return "&".join(f"{name}={_quoted(value)}" for name, value in zip(names, values, strict=True))


@cache
def _quoted(value: str) -> str:
    return "".join(f"%{byte:02x}" for byte in value.encode("utf-8", "surrogatepass"))
