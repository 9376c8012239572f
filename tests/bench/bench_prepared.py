"""Compare the busiest routes with prepared queries and with Django's ORM in their place, alternating in one run.

python -m pytest -n 0 -s tests/bench/bench_prepared.py
"""

import json
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from chat.turns.turn import wait_until_idle
from memoryhub.database.queries import PreparedQuery
from tests.conftest import Cast
from tests.factories import make_chat, make_memory, make_message, make_user
from tests.fakes.openai_server import Answer, ScriptedOpenAI

pytestmark = pytest.mark.django_db(transaction=True)
TIMES, TURNS = 100, 25


def by_orm(query: PreparedQuery[Any], *, limit: int | None = None, **values: Any) -> list[Any]:
    return list(query._make(**values)[:limit])


def test_ratios(cast: Cast, scripted_model: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    user = make_user("oscar", memory_default=True)
    chat = make_chat(user)
    workspace = chat.workspace
    for number in range(300):
        make_memory(f"Lamp {number} is blue and cost {number * 7} euros", user, workspace)
    for number in range(40):
        make_message(make_chat(user, workspace), f"Message {number} about lamps")
    client = Client(headers={"HX-Request": "true"})
    client.force_login(user)
    memories = f"/chat/api/workspaces/{workspace.public_id}/memories"
    question = {"query": "Which lamp is blue?"}
    numbers = iter(range(10_000))

    def post(address: str, values: dict[str, str]) -> HttpResponse:
        return client.post(address, json.dumps(values), content_type="application/json")

    def turn() -> HttpResponse:
        scripted_model.script(Answer("It is ", "blue."))
        response = client.post(f"/chats/{chat.public_id}/messages/", {"content": "Which lamp is blue?"})
        assert wait_until_idle(20)
        return response

    routes: dict[str, Callable[[], HttpResponse]] = {
        "workspaces": lambda: client.get("/chat/api/workspaces"),
        "memories": lambda: client.get(memories),
        "chats": lambda: client.get("/chat/api/chats"),
        "a chat's page": lambda: client.get(f"/chats/{chat.public_id}/"),
        "save": lambda: post(memories, {"content": f"Shelf {next(numbers)} holds jars"}),
        "recall": lambda: post(f"/chat/api/workspaces/{workspace.public_id}/recall", question),
        "turn": turn,
    }
    for name, request in routes.items():
        seconds: dict[str, list[float]] = {"prepared": [], "ORM": []}
        for _ in range(TURNS if name == "turn" else TIMES):
            for kind in seconds:
                with monkeypatch.context() as patched:
                    if kind == "ORM":
                        patched.setattr(PreparedQuery, "all", by_orm)
                    begin = perf_counter()
                    response = request()
                    seconds[kind].append(perf_counter() - begin)
                assert response.status_code < 300, response.content
        prepared, orm = (1000 * median(each) for each in seconds.values())
        print(f"{name:15} {prepared:7.1f} ms, with the ORM {orm:7.1f} ms: {orm / prepared:.2f} times")
