"""Malformed requests: schemathesis against ``/v1``, broken JSON-RPC against ``/mcp``.

Some in the suite; ``make fuzz`` sends 2,000 (HOSTILE_REQUESTS).
"""

import json
import logging
import os
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.test import Client
from hypothesis import HealthCheck, Phase, given, settings
from mcp_types import INTERNAL_ERROR
from pytest_django.fixtures import Settings
from schemathesis import GenerationMode

from chat.programs.mcp_tools import TOOLS
from memories.models import Memory
from tests.conftest import Cast
from tests.factories import make_key_text, make_memory
from tests.fakes.openai_server import ScriptedOpenAI
from workspaces.models import User

REQUESTS = int(os.environ.get("HOSTILE_REQUESTS", "64"))  # half of them to each endpoint
TEXT = {"type": "string"}
PARTS = {"type": "array", "items": {"type": "object", "properties": {"type": TEXT, "text": TEXT}}}
MESSAGE = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {
        "role": {"enum": ["system", "developer", "user", "assistant", "tool", "function"]},
        "content": {"oneOf": [TEXT, PARTS, {"type": "null"}]},
        "name": TEXT,
        "tool_call_id": TEXT,
        "tool_calls": {"type": "array", "items": {"type": "object"}},
    },
}
MESSAGES = {"type": "array", "minItems": 1, "maxItems": 4, "items": MESSAGE}
BLOCK = {
    "type": "object",
    "required": ["type", "text"],
    "properties": {"type": {"enum": ["text"]}, "text": TEXT},
}
ANTHROPIC_MESSAGE = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {
        "role": {"enum": ["user", "assistant", "system"]},
        "content": {"oneOf": [TEXT, {"type": "array", "items": BLOCK}]},
    },
}
ANTHROPIC_MESSAGES = MESSAGES | {"items": ANTHROPIC_MESSAGE}
ANTHROPIC_TOOL = {
    "type": "object",
    "required": ["name", "input_schema"],
    "properties": {"name": TEXT, "type": {"enum": ["custom"]}, "input_schema": {"type": "object"}},
}
COMMON = {
    "model": {"enum": ["default", "scripted-model", "Shared/scripted-model"]},
    "stream": {"type": "boolean"},
    "metadata": {"type": "object", "additionalProperties": TEXT},
    "temperature": {"type": "number"},
    "tools": {"type": "array", "items": {"type": "object"}},
}
INPUT = {"oneOf": [TEXT, MESSAGES, {"type": "array", "items": TEXT}]}
BODIES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "/v1/chat/completions": (
        ["model", "messages"],
        COMMON | {"messages": MESSAGES, "seed": {"type": "integer"}},
    ),
    "/v1/responses": (["model", "input"], COMMON | {"input": INPUT, "instructions": TEXT}),
    "/v1/messages": (
        ["model", "messages", "max_tokens"],
        COMMON
        | {"messages": ANTHROPIC_MESSAGES, "max_tokens": {"type": "integer", "minimum": 1}, "system": TEXT}
        | {"tools": {"type": "array", "items": ANTHROPIC_TOOL}},
    ),
    "/v1/embeddings": (
        ["model", "input"],
        {"model": {"enum": ["default"]}, "input": INPUT, "dimensions": {"type": "integer"}},
    ),
}
EACH = -(-REQUESTS // 2 // len(BODIES) // 2)  # as many valid as invalid ones; rounded up
ODD: list[Any] = [None, True, 0, -1, 1e308, "", "\x00", "../..", "mem_x", [], [[]], {}, {"a": {}}]
ODD += ["x" * 9000]
METHODS = ["initialize", "ping", "tools/list", "resources/list", "resources/read", "prompts/get", "__init__"]
METHODS += ["notifications/cancelled", "completion/complete", "logging/setLevel", "subscriptions/listen"]


@pytest.fixture
def key(
    cast: Cast, scripted_model: ScriptedOpenAI, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Return a key of a user with memory turned on, something to find, and no rate limit."""
    monkeypatch.setattr(logging.getLogger("django.request"), "disabled", True)  # it warns for each refusal
    settings.KEY_RATE = 1_000_000
    settings.THROTTLES = settings.THROTTLES | {"turns": 1_000_000}
    User.objects.filter(pk=cast.editor.pk).update(memory_default=True)
    make_memory("The deadline of Apollo is March 15", cast.owner, cast.workspace)
    return make_key_text(cast.editor, cast.workspace)


def operation_of(path: str) -> Any:
    required, properties = BODIES[path]
    body = {"type": "object", "required": required, "properties": properties}
    operation = {
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {"200": {"description": "An answer"}},
    }
    info = {"title": "v1", "version": "1"}
    schema = schemathesis.openapi.from_dict(
        {"openapi": "3.1.0", "info": info, "paths": {path: {"post": operation}}}
    )
    schema.app = WSGIHandler()
    return schema[path]["POST"]


@pytest.mark.django_db
@pytest.mark.parametrize("path", BODIES)
def test_whatever_is_asked_is_answered_in_its_apis_form(path: str, key: str) -> None:
    codes: Counter[int] = Counter()

    def check(case: Any) -> None:
        answer = case.call(headers={"Authorization": f"Bearer {key}"})
        codes[answer.status_code] += 1
        for said in documents_of(answer):
            if answer.status_code >= 400 or said.get("error"):
                fields = {"message", "type"} | ({"param", "code"} if path != "/v1/messages" else set())
                assert set(said["error"]) == fields, said
        assert answer.status_code < 500, (answer.status_code, answer.content, case.body)

    send_hostile(operation_of(path), check)
    print(path, dict(codes))
    assert codes.total() >= 2 * EACH and codes[200] and codes[400]
    assert Memory.objects.count() == 1


def documents_of(answer: Any) -> list[Any]:
    """Return the answer as documents: itself, or the data of its events."""
    if not answer.headers["content-type"][0].startswith("text/event-stream"):
        return [json.loads(answer.content)]
    said = [line[6:] for line in answer.content.decode().split("\n") if line.startswith("data: ")]
    assert said, "a stream says something"
    return [json.loads(each) for each in said if each != "[DONE]"]


def send_hostile(operation: Any, check: Callable[[Any], None]) -> None:
    """Run on the test's connection, which stays open as with Django's test client."""
    profile = settings(
        max_examples=EACH,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    request_started.disconnect(close_old_connections)
    request_finished.disconnect(close_old_connections)
    try:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            profile(given(case=operation.as_strategy(mode))(check))()
    finally:
        request_started.connect(close_old_connections)
        request_finished.connect(close_old_connections)


@pytest.mark.django_db(transaction=True)
def test_messages_made_of_what_the_protocol_has_and_has_not_never_fail(key: str) -> None:
    """No request returns 500, and the rows stored are those that answers report as saved."""
    rng, client = random.Random(16), Client(headers={"authorization": f"Bearer {key}"})
    codes: Counter[int] = Counter()
    kinds: Counter[str] = Counter()
    for _ in range(REQUESTS // 2):
        sent = json.dumps(message_of(rng)).encode()
        sent = sent[: rng.randrange(len(sent) + 1)] if rng.random() < 0.05 else sent
        version = rng.choice([*["2025-06-18"] * 8, "2026-07-28", "1999-01-01", "\xff", ""])
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": version}
        answer = client.post("/mcp", sent, content_type="application/json", headers=headers)
        codes[answer.status_code] += 1
        kinds[kind_of(answer)] += 1
    print("/mcp", dict(codes), dict(kinds))
    assert set(codes) <= {200, 202, 400, 404, 406, 413}, codes
    assert codes[200] > REQUESTS // 8, "many must come past the door, or nothing behind it is tried"
    assert Memory.objects.count() == 1 + kinds["saved"]


def kind_of(answer: Any) -> str:
    """Return the outcome that a tool's answer reports, or "error" or "refused"."""
    if not answer.content:
        return "nothing"
    said = json.loads(answer.content)
    if not isinstance(said, dict) or "result" not in said:
        assert "error" in said and said["error"]["code"] != INTERNAL_ERROR, said
        return "error"
    result = said["result"]
    assert "The tool failed" not in answer.content.decode(), "what no tool foresaw, which is in the log"
    return (
        "refused" if result.get("isError") else result.get("structuredContent", {}).get("outcome", "result")
    )


def message_of(rng: random.Random) -> Any:
    """Return a mostly valid message around an invalid part, so that it reaches the tool."""
    if rng.random() < 0.1:
        return rng.choice(ODD)
    named = ["query", "content", "category", "memory_id", "id", "limit", "cursor", "offset", "types", "x"]
    arguments: Any = {rng.choice(named): rng.choice([*ODD, "cat"]) for _ in range(rng.randrange(5))}
    calls = {"name": rng.choice([*list(TOOLS) * 9, *ODD]), "arguments": rng.choice([*[arguments] * 30, *ODD])}
    reads = {rng.choice(["uri", "cursor", "name"]): rng.choice([*ODD, "memory://mem_x", "doc_\x00"])}
    method, params = rng.choice([*[("tools/call", calls)] * 2, (rng.choice(METHODS), reads)])
    message = {"jsonrpc": "2.0", "id": rng.choice([1, "a"]), "method": method, "params": params}
    if rng.random() < 0.15:
        message[rng.choice(list(message))] = rng.choice([*ODD, "1.0", "\ud800"])
    return [message] * 3 if rng.random() < 0.05 else message
