"""schemathesis makes requests from the OpenAPI schema, right ones and wrong ones, and checks every answer by it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, assume, given, settings
from pytest_django.live_server_helper import LiveServer
from schemathesis import GenerationMode
from schemathesis.core import NOT_SET
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.api import type_password_again
from tests.conftest import Cast
from tests.factories import make_key_text
from tests.fakes.openai_server import ScriptedOpenAI
from tests.fuzz_hooks import make_right
from tests.routes import API_ROWS, NO_KEYS, Row, World, make_world
from workspaces.rest import SessionAuthentication

TOKEN = "a" * 32
NO_ROUTE = ("chat/api/", "api/v1/")
UPLOADS = ("imports_create", "v1_assets_create")  # what bytes are a right file no schema can say
EXAMPLES = 5  # of each kind for each route: quick enough for every run
ROWS = [
    row for row in API_ROWS if row.route.startswith(("chat/api/", "api/v1/")) and row.route not in NO_ROUTE
]


@pytest.fixture(scope="module")
def schema() -> Any:
    return schemathesis.openapi.from_dict(SchemaGenerator().get_schema(request=None, public=True))


def operation_of(schema: Any, row: Row) -> Any:
    path = "/" + re.sub(r"<\w+:(\w+)>", r"{\1}", row.route)
    return schema[path][row.method]


def session_of(cast: Cast, *, fresh: bool) -> dict[str, str]:
    """The cookies of the owner's session."""
    client = Client()
    client.force_login(cast.owner)
    if fresh:
        type_password_again(client)
    return {name: morsel.value for name, morsel in client.cookies.items()} | {"csrftoken": TOKEN}


@pytest.mark.parametrize(
    ("row", "by"),
    [*((row, "session") for row in ROWS), *((row, "key") for row in ROWS if row.keys != NO_KEYS)],
    ids=str,
)
@pytest.mark.django_db(transaction=True)
def test_answers_are_as_the_schema_says(
    row: Row, by: str, schema: Any, live_server: LiveServer, cast: Cast, scripted_model: ScriptedOpenAI
) -> None:
    world = make_world(cast)
    if by == "session":
        cookies, headers = session_of(cast, fresh=row.fresh), {"X-CSRFToken": TOKEN}
    else:
        cookies, headers = {}, {"Authorization": f"Bearer {make_key_text(cast.owner, cast.workspace)}"}
    ids = world.ids | (world.deleted_ids if row.deleted else {})
    operation = operation_of(schema, row)
    names = [parameter.name for parameter in operation.path_parameters]
    unfit = [positive_data_acceptance] if operation.definition.raw["operationId"] in UPLOADS else []

    answered: list[int] = []

    def check(case: Any) -> None:
        # Spectacular calls a body optional where any one of two fields will do.
        assume(case.body is not NOT_SET or not row.route.endswith("/memory"))
        case.headers.pop("Authorization", None)  # a made-up one
        answer = case.call_and_validate(base_url=live_server.url, headers=headers, excluded_checks=unfit)
        answered.append(answer.status_code)

    def check_right(case: Any) -> None:
        make_right(case)
        check(case)

    profile = settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    there = {name: ids[name] for name in names}
    right = operation.as_strategy(GenerationMode.POSITIVE, path_parameters=there, cookies=cookies)
    unknown = operation.as_strategy(GenerationMode.POSITIVE, cookies=cookies)
    # Where nothing but the ids in the address could be wrong, those are.
    kept = {"path_parameters": there} if operation.body or operation.query else {}
    wrong = operation.as_strategy(GenerationMode.NEGATIVE, cookies=cookies, **kept)
    profile(given(case=right)(check_right))()
    profile(given(case=unknown)(check_right))()
    if row.data or operation.query or names:
        profile(given(case=wrong)(check))()
    assert answered, "no request was made"
    assert max(answered) < 500


# What the command finds by itself: the routes in the order of the schema, each with the schema's own examples and with
# made-up requests. What deletes gets things of its own, so that the others find theirs.
DELETING = {
    "chats_delete": "chat_id",
    "chats_forget": "chat_id",
    "memories_delete": "memory_id",
    "memories_forget": "memory_id",
    "members_remove": "user_id",
    "workspaces_delete": "workspace_id",
}


def configuration(world: World, *, way: str) -> str:
    """schemathesis.toml: who asks, and what is there to be asked for."""
    lines = ["[parameters]", *(f'"path.{name}" = "{value}"' for name, value in world.ids.items())]
    for operation, name in DELETING.items():
        spare = world.deleted_ids.get(name, "nothing")
        lines += [
            "[[operations]]",
            f'include-operation-id = "{operation}"',
            f'parameters = {{"path.{name}" = "{spare}"}}',
        ]
    for operation in UPLOADS:
        lines += ["[[operations]]", f'include-operation-id = "{operation}"']
        lines += ["checks.positive_data_acceptance.expected-statuses = [200, 201, 403, 404, 422]"]
    return "\n".join([*lines, way])


@pytest.mark.parametrize("by", ["session", "key"])
@pytest.mark.django_db(transaction=True)
def test_the_command_finds_nothing(
    by: str,
    live_server: LiveServer,
    cast: Cast,
    scripted_model: ScriptedOpenAI,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``pytest tests/test_api_fuzz.py -k command -s`` shows the command's own report and summary."""
    world = make_world(cast)
    monkeypatch.setattr(
        SessionAuthentication, "enforce_csrf", lambda self, request: None
    )  # has tests of its own
    if by == "session":
        way = f'[auth.openapi.session]\napi_key = "{session_of(cast, fresh=True)["sessionid"]}"'
    else:
        way = f'[auth.openapi.api_key]\nbearer = "{make_key_text(cast.owner, cast.workspace)}"'
    schema_file, settings_file = tmp_path / "openapi.json", tmp_path / "schemathesis.toml"
    schema = SchemaGenerator().get_schema(request=None, public=True)
    if by == "key":
        schema["paths"] = {path: methods for path, methods in schema["paths"].items() if takes_keys(methods)}
    schema_file.write_text(json.dumps(schema))
    settings_file.write_text(configuration(world, way=way))
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        "--no-color",
        "--config-file",
        str(settings_file),
    ]
    command += ["run", str(schema_file), "--url", live_server.url, "--checks", "all", "--seed", "1"]
    command += [
        "--phases",
        "examples,fuzzing",
        "--max-examples",
        "2",
        "--continue-on-failure",
        "--warnings",
        "off",
    ]
    hooks = {"SCHEMATHESIS_HOOKS": "tests.fuzz_hooks", "PYTHONPATH": str(Path(__file__).parent.parent)}
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | hooks, capture_output=True, text=True, timeout=300
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


def takes_keys(methods: dict[str, Any]) -> bool:
    return any({"api_key": []} in operation.get("security", []) for operation in methods.values())
