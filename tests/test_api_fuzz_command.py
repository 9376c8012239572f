"""schemathesis as its own command: every route with its examples and generated requests, by key where one is accepted.

test_api_fuzz covers all routes, so the command tests every eighth here, and all by ``make fuzz``.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator
from pytest_django.live_server_helper import LiveServer

from tests.conftest import Cast
from tests.factories import make_key_text
from tests.fakes.openai_server import ScriptedOpenAI
from tests.test_api_fuzz import UPLOADS, session_of
from tests.world import World, make_world
from workspaces.api.exceptions import SessionAuthentication

EVERY = 1 if os.environ.get("FUZZ_EVERY_ROUTE") else 8
# Deletions get rows of their own, so that other routes find theirs.
DELETING = {
    "chats_delete": "chat_id",
    "chats_forget": "chat_id",
    "memories_delete": "memory_id",
    "memories_forget": "memory_id",
    "members_remove": "user_id",
    "workspaces_delete": "workspace_id",
}


def configuration(world: World, *, way: str) -> str:
    """Return schemathesis.toml with the authentication and the ids of existing rows."""
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
    """``make fuzz`` shows the command's own report and summary."""
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
    asked = [path for path, methods in schema["paths"].items() if takes_keys(methods) == (by == "key")]
    schema["paths"] = {path: schema["paths"][path] for path in asked[::EVERY]}
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
