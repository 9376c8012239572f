"""Third-party programs against a live server, each run as its users run it. ``make programs`` installs them."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator

from chat.programs.mcp_tools import TOOLS
from chat.views.connect import models
from tests.conftest import Cast
from tests.factories import make_document, make_key_text, make_memory
from tests.fakes.openai_server import Answer, Call, ScriptedOpenAI

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS, PYTHON = ROOT / "tests" / "programs", ROOT / ".venv-programs" / "bin"
NODE = shutil.which("node") or ""
# Binary media types for the generator, which reads no type from the answer.
FILES = {"*/*": "application/octet-stream", "application/x-ndjson": "application/octet-stream"}
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.programs]
in_node = pytest.mark.skipif(
    not NODE or not (SCRIPTS / "node_modules" / "openai").exists(),
    reason="node or its packages are not there: make programs",
)
in_python = pytest.mark.skipif(
    not (PYTHON / "llm").exists(), reason="the Python programs are not there: make programs"
)


@pytest.fixture
def env(door: str, people: Cast, tmp_path: Path) -> dict[str, str]:
    """Return the environment of a program: the address, a key, and a home folder of its own."""
    key = make_key_text(people.editor, people.workspace)
    return {"DOOR": door, "KEY": key, "HOME": str(tmp_path), "PATH": os.environ["PATH"], "NO_PROXY": "*"}


def run(env: Mapping[str, str], *command: str | Path, cwd: Path = SCRIPTS) -> str:
    done = subprocess.run([*map(str, command)], env=env, cwd=cwd, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def deadline(people: Cast, scripted_model: ScriptedOpenAI) -> str:
    scripted_model.respond = lambda request: (
        Answer(calls=[Call("look")]) if request.tool_names else Answer("On ", "March 15.")
    )
    return make_memory("The deadline of Apollo is March 15", people.owner, people.workspace).public_id


@in_node
def test_openais_library_in_javascript(env: dict[str, str], deadline: str) -> None:
    said = json.loads(run(env, NODE, "openai.mjs"))
    assert "scripted-model" in said["models"] and "Shared/scripted-model" in said["models"]
    assert said["whole"] == said["streamed"] == said["response"] == "On March 15."
    assert said["memory"] == said["used"] == [deadline]
    assert said["tool"] == "look" and said["dimensions"] >= 384
    assert said["refused"] == [404, "model_not_found"]


@in_node
def test_the_protocols_library_in_javascript(env: dict[str, str]) -> None:
    said = json.loads(run(env, NODE, "mcp.mjs"))
    assert set(said["tools"]) == set(TOOLS)
    assert said["found"] == ["Eddie's cat is called Tilly"] and said["read"] == said["found"][0]
    assert said["prompt"] and said["gone"]


@in_node
def test_the_inspector_calls_every_tool_and_reads_every_resource(env: dict[str, str], people: Cast) -> None:
    """Run a process for each call, some at once: starting takes half a second."""
    kept = make_memory("The deadline of Apollo is March 15", people.owner, people.workspace)
    gone = make_memory("The harbour opens at dawn", people.editor, people.workspace)
    document = make_document(people.editor, people.workspace)

    def ask(method: str, *more: str) -> Any:
        inspector = SCRIPTS / "node_modules" / ".bin" / "mcp-inspector"
        where = ("--transport", "http", "--header", f"Authorization: Bearer {env['KEY']}")
        return json.loads(
            run(env, NODE, inspector, "--cli", f"{env['DOOR']}/mcp", *where, "--method", method, *more)
        )

    arguments: dict[str, list[str]] = {
        "save_memory": ["content=Eddie's cat is called Tilly"],
        "recall_memory": ["query=When is the deadline of Apollo?"],
        "list_memories": ["limit=5"],
        "forget_memory": [f"memory_id={gone.public_id}"],
        "search_workspace": ["query=deadline"],
        "read_document": [f"id={document.public_id}"],
    }
    tools = ask("tools/list", "--strict")["tools"]
    assert {tool["name"] for tool in tools} == set(TOOLS)
    calls = [
        (
            "tools/call",
            "--tool-name",
            name,
            *(part for each in arguments[name] for part in ("--tool-arg", each)),
        )
        for name in TOOLS
    ]
    uris = [each["uri"] for each in ask("resources/list")["resources"]]
    assert any(kept.public_id in uri for uri in uris)
    calls += [("resources/read", "--uri", uri) for uri in uris if gone.public_id not in uri]
    calls += [("resources/templates/list",), ("prompts/list",)]
    calls += [("prompts/get", "--prompt-name", "introduce_workspace")]
    with ThreadPoolExecutor(4) as pool:
        answers = dict(zip(calls, pool.map(lambda call: ask(*call), calls), strict=True))
    for call, answer in answers.items():
        assert answer and not answer.get("isError"), (call, answer)
        if call[0] == "tools/call":
            assert answer["structuredContent"], call


@in_python
def test_llm_with_the_lines_of_the_page(env: dict[str, str], deadline: str, tmp_path: Path) -> None:
    [program] = [each for each in models(env["DOOR"], env["KEY"]) if each.name == "llm"]
    (tmp_path / "extra-openai-models.yaml").write_text(program.lines)
    env = env | {"LLM_USER_PATH": str(tmp_path)}
    run(env, PYTHON / "llm", "keys", "set", "memoryhub", "--value", env["KEY"])
    said = run(env, PYTHON / "llm", "-m", "memoryhub", "When is the deadline of Apollo?")
    assert said.strip() == "On March 15."


@in_python
def test_langchain(env: dict[str, str], deadline: str) -> None:
    said = json.loads(run(env, PYTHON / "python", "langchain_chat.py"))
    assert said == {"whole": "On March 15.", "streamed": "On March 15."}


@in_python
def test_anthropics_library(env: dict[str, str], deadline: str, scripted_model: ScriptedOpenAI) -> None:
    scripted_model.respond = lambda request: (
        Answer("Wait.", calls=[Call("look", {"at": 1})]) if request.tool_names else Answer("On ", "March 15.")
    )
    said = json.loads(run(env, PYTHON / "python", "anthropic_client.py"))
    assert "scripted-model" in said["models"] and said["model"] == "scripted-model"
    assert said["whole"] == said["streamed"] == said["last"] == "On March 15."
    assert said["memory"] == said["streamed_memory"] == [deadline]
    assert said["stops"] == ["end_turn", "end_turn", "tool_use"] and said["usage"] == [9, 3, 3]
    assert said["call"] == ["look", {"at": 1}, {"at": 1}]
    assert said["events"][0] == "message_start" and said["events"][-1] == "message_stop"
    assert said["counted"] > 10
    assert said["refused"] == [
        ["NotFoundError", "not_found_error"],
        ["BadRequestError", "invalid_request_error"],
        ["AuthenticationError", "authentication_error"],
    ]


@in_python
def test_a_client_that_a_generator_made_of_the_schema(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "openapi.json").write_text(
        json.dumps(SchemaGenerator().get_schema(request=None, public=True))
    )
    (tmp_path / "settings.json").write_text(json.dumps({"content_type_overrides": FILES}))
    made = run(
        env | {"PATH": f"{PYTHON}:{env['PATH']}"},
        PYTHON / "openapi-python-client",
        *("generate", "--path", "openapi.json", "--output-path", "made", "--meta", "none"),
        *("--config", "settings.json"),
        cwd=tmp_path,
    )
    assert "WARNING" not in made and "ERROR" not in made, made
    said = json.loads(run(env | {"PYTHONPATH": str(tmp_path)}, PYTHON / "python", "generated.py"))
    assert said["found"] == [said["saved"]] and said["listed"] == ["Eddie's cat is called Tilly"]
    assert said["year"] == timezone.now().year
