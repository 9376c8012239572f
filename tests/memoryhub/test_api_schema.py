"""The OpenAPI schema: complete, valid, and shown on a page without external files."""

import re
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator

from memoryhub.http.middleware import STRICT
from tests.api import openapi_schema
from tests.factories import make_user
from tests.routes import known_routes

NO_KEYS = "/chat/api/account"  # no key may read this either
OWNERS_READ = "/clearings"  # the count is only for owners, who may clear
READING_POSTS = ("/recall", "/search")  # they change nothing, so every role may use them


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return openapi_schema()


def operations(schema: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (method.upper(), path): operation
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    }


def test_the_schema_is_valid_and_without_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("spectacular", "--validate", "--fail-on-warn", "--format", "openapi-json")
    assert '"openapi": "3.1.0"' in capsys.readouterr().out


def test_every_route_is_in_the_schema(schema: dict[str, Any]) -> None:
    routes = {
        (method, "/" + re.sub(r"<\w+:(\w+)>", r"{\1}", route))
        for method, route in known_routes()
        if route.startswith(("chat/api/", "api/v1/")) and route not in ("chat/api/", "api/v1/")
    }
    assert set(operations(schema)) == routes


def test_every_operation_says_what_can_go_wrong(schema: dict[str, Any]) -> None:
    for (method, path), operation in operations(schema).items():
        codes = set(operation["responses"])
        assert "401" in codes, (method, path)
        assert ("404" in codes) or "{" not in path, (method, path)
        is_odd = path.endswith(READING_POSTS) or OWNERS_READ in path or path == NO_KEYS
        assert ("403" in codes) == (method != "GET") or is_odd, (method, path)
        if "requestBody" in operation:
            assert {"400", "413", "415", "422"} <= codes, (method, path)
        assert operation["summary"], (method, path)
        assert operation["tags"], (method, path)


def test_every_body_and_every_answer_has_an_example(schema: dict[str, Any]) -> None:
    for place, operation in operations(schema).items():
        bodies = [operation["requestBody"]] if "requestBody" in operation else []
        for part in [*bodies, *operation["responses"].values()]:
            for content in part.get("content", {}).values():
                assert content.get("examples"), place


def test_every_example_is_as_its_schema_says(schema: dict[str, Any]) -> None:
    for place, operation in operations(schema).items():
        bodies = [operation["requestBody"]] if "requestBody" in operation else []
        for part in [*bodies, *operation["responses"].values()]:
            for kind, content in part.get("content", {}).items():
                if kind != "application/json":
                    continue
                checker = Draft202012Validator({**content["schema"], "components": schema["components"]})
                for example in content["examples"].values():
                    errors = [error.message for error in checker.iter_errors(example["value"])]
                    assert not errors, place


def test_what_goes_wrong_follows_from_what_a_route_is(schema: dict[str, Any]) -> None:
    found = operations(schema)
    chats = found["POST", "/chat/api/chats"]  # creates once, in a workspace that may not be theirs
    assert {*chats["responses"]} == {"201", "400", "401", "403", "404", "409", "413", "415", "422"}
    forget = found["POST", "/chat/api/workspaces/{workspace_id}/memories/{memory_id}/forget"]
    assert {*forget["responses"]} == {"200", "401", "403", "404", "429"}
    assert forget["security"] == [{"session": []}]
    assert "`reauthenticate`" in forget["description"]
    assert "`session_only`" in forget["description"]


def test_docstrings_are_summary_and_description(schema: dict[str, Any]) -> None:
    found = operations(schema)["GET", "/chat/api/workspaces/{workspace_id}/agents"]
    assert found["summary"] == "List the assistants of a workspace"
    assert found["description"] == "Oldest first; `state` chooses those in use or the archived ones."


def test_bodies_allow_no_unknown_fields(schema: dict[str, Any]) -> None:
    for place, operation in operations(schema).items():
        if "requestBody" in operation:
            for content in operation["requestBody"]["content"].values():
                name = content["schema"]["$ref"].split("/")[-1]
                assert schema["components"]["schemas"][name]["additionalProperties"] is False, place


@pytest.mark.django_db
def test_the_docs_page_brings_its_own_files_under_the_policy() -> None:
    client = Client()
    client.force_login(make_user())
    page = client.get("/api/docs/")
    assert page.status_code == 200
    assert page["Content-Security-Policy"] == STRICT
    assets = re.findall(r'<(?:script|link)[^>]+(?:src|href)="([^"]+)"', page.content.decode())
    assert len(assets) > 3
    for asset in assets:
        assert asset.startswith("/static/"), asset


@pytest.mark.django_db
def test_the_schema_is_served() -> None:
    client = Client()
    client.force_login(make_user())
    served = client.get("/api/schema/?format=json")
    assert served.status_code == 200
    assert served["Content-Type"] == "application/vnd.oai.openapi+json; charset=utf-8"
    assert served.json()["openapi"] == "3.1.0"
    assert client.get("/api/schema/").content.startswith(b"openapi: 3.1.0")


@pytest.mark.django_db
def test_the_schema_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any signed-in user may request it repeatedly, in languages that do not exist."""
    client = Client()
    client.force_login(make_user())
    first = client.get("/api/schema/").content
    monkeypatch.setattr(SchemaGenerator, "get_schema", None)
    assert client.get("/api/schema/").content == first
    assert client.get("/api/schema/?lang=xx").content == first
