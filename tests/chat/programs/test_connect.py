"""The page on which a program is connected, and the configuration that it shows."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest
import yaml
from django.test import Client

from chat.views.connect import models, tools
from tests.api import type_password_again
from tests.conftest import Cast
from tests.factories import make_key_text, make_memory
from tests.fakes.openai_server import Answer, ScriptedOpenAI
from workspaces.accounts.keys import SHAPE
from workspaces.models import ApiKey

FORM = {"name": "Laptop", "scope": "write", "expires_at": "90"}


@pytest.mark.django_db
def test_a_new_key_stands_in_every_line_and_is_shown_once(cast: Cast) -> None:
    client = Client()
    client.force_login(cast.editor)
    sent: Any = FORM | {"workspace": cast.workspace.public_id}
    assert "/accounts/reauthenticate/" in client.post("/connect/", sent)["Location"]
    assert not ApiKey.objects.exists()
    type_password_again(client)
    page = client.post("/connect/", sent)
    [key] = set(SHAPE.findall(page.content.decode()))
    assert len(re.findall(re.escape(key), page.content.decode())) > 9 and "no-store" in page["Cache-Control"]
    later = client.get("/connect/").content.decode()
    assert key not in later and "http://testserver/mcp" in later and "Automatic memory is off" in later
    assert client.post("/connect/", sent).status_code == 422, (
        "the name is taken: the form sent twice makes one"
    )
    assert ApiKey.objects.count() == 1


def test_the_lines_are_what_the_programs_read() -> None:
    lines = {str(each.name): each.lines for each in (*models("http://h", "mh_k"), *tools("http://h", "mh_k"))}
    for name in ("Claude Desktop", "Cursor", "VS Code"):
        assert "mh_k" in str(json.loads(lines[name]))
    assert lines["Without a key: programs that can sign in"] == "http://h/mcp"
    librechat = yaml.safe_load(lines["LibreChat"])
    assert librechat["version"] and librechat["endpoints"]["custom"][0]["baseURL"] == "http://h/v1"
    assert yaml.safe_load(lines["llm"])[0]["api_base"] == "http://h/v1"


def test_claude_desktop_starts_a_proxy() -> None:
    """No argument contains a space, which breaks on Windows; http needs the flag that allows it."""
    for scheme in ("http", "https"):
        lines = {str(each.name): each.lines for each in tools(f"{scheme}://h", "mh_k")}
        server = json.loads(lines["Claude Desktop"])["mcpServers"]["memoryhub"]
        assert not any(" " in argument or "mh_k" in argument for argument in server["args"])
        assert server["env"] == {"MEMORYHUB_HEADER": "Bearer mh_k"}
        assert "Authorization:${MEMORYHUB_HEADER}" in server["args"]
        assert ("--allow-http" in server["args"]) == (scheme == "http")
        assert "--scope user" in lines["Claude Code"]


@pytest.mark.django_db(transaction=True)
def test_the_lines_for_python_run_as_they_are(
    door: str, people: Cast, scripted_model: ScriptedOpenAI
) -> None:
    make_memory("Eddie knows about cats, you and me", people.editor, people.workspace)
    scripted_model.respond = lambda request: Answer("You know about cats.")
    lines = next(each.lines for each in models(door, make_key_text(people.editor, people.workspace)))
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr) == ("You know about cats.\n", "")
