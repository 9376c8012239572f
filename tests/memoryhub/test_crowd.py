"""More than a web process can do: refused at once, as what was asked for is read, and only then."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory, override_settings
from django.urls import path
from pytest_django.fixtures import Settings

from memoryhub.errors import TooManyRequests
from memoryhub.http import crowd as crowds
from memoryhub.http.crowd import ALWAYS, MANY, TURN, TURN_OF_MANY, Crowd, Overloaded, aside
from memoryhub.http.handler import OneThreadHandler
from tests.factories import make_user
from tests.memoryhub.test_handler import Conversation
from workspaces.event_streams import Place

gate = threading.Event()
asked: list[str] = []  # by those who wait for the model


def slow(request: HttpRequest) -> HttpResponse:
    assert gate.wait(20)
    return HttpResponse("done")


def asks_a_model(request: HttpRequest) -> HttpResponse:
    with aside():
        asked.append(request.path)
        assert gate.wait(20)
    return HttpResponse("answered")


def quick(request: HttpRequest) -> HttpResponse:
    return HttpResponse("well")


urlpatterns = [
    path("slow", slow),
    path("asks", asks_a_model),
    path("accounts/login/", quick),
    path("v1/quick", quick),
]


@pytest.fixture(autouse=True)
def shut() -> Iterator[None]:
    gate.clear()
    asked.clear()
    yield
    gate.set()


async def told(handler: OneThreadHandler, name: str) -> tuple[int, dict[str, str], bytes]:
    said = Conversation(name, "GET")
    await asyncio.wait_for(handler(said.scope, said.receive, said.send), 20)
    headers = {name.decode().lower(): value.decode() for name, value in said.sent[0]["headers"]}
    return said.sent[0]["status"], headers, said.body


async def until(is_so: Callable[[], bool]) -> None:
    for _ in range(2000):
        if is_so():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come to be")


@pytest.mark.django_db(transaction=True)
@override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=[], REQUESTS_AT_ONCE=3)
def test_what_is_more_is_refused_at_once_and_what_is_inside_is_answered() -> None:
    async def scene() -> None:
        handler = OneThreadHandler()
        first = [asyncio.create_task(told(handler, "slow")) for _ in range(3)]
        await until(lambda: handler.crowd.inside == 3)
        more = await asyncio.gather(*(told(handler, "v1/quick") for _ in range(20)))
        assert {(status, headers["retry-after"]) for status, headers, _ in more} == {(503, "1")}
        assert all(headers["content-security-policy"] and headers["x-request-id"] for _, headers, _ in more)
        assert (await told(handler, "accounts/login/"))[2] == b"well", "who comes in is not shed"
        gate.set()
        assert [body for _, _, body in await asyncio.gather(*first)] == [b"done"] * 3
        assert handler.crowd.inside == 0
        assert (await told(handler, "v1/quick"))[0] == 200

    asyncio.run(scene())


@override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=[], REQUESTS_AT_ONCE=1)
def test_it_is_refused_before_its_body_is_read() -> None:
    async def scene() -> None:
        handler, sent = OneThreadHandler(), Conversation("v1/quick")
        handler.crowd.enter("/chats/")
        await asyncio.wait_for(handler(sent.scope, None, sent.send), 20)
        assert sent.sent[0]["status"] == 503
        assert (b"Content-Length", str(len(sent.body)).encode()) in sent.sent[0]["headers"]

    asyncio.run(scene())


@pytest.mark.django_db(transaction=True)
@override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=[], REQUESTS_AT_ONCE=3)
def test_who_waits_for_a_model_takes_nobodys_room() -> None:
    async def scene() -> None:
        handler = OneThreadHandler()
        waiting = []
        for _ in range(10):
            waiting.append(asyncio.create_task(told(handler, "asks")))
            await until(lambda: len(asked) == len(waiting))
        assert handler.crowd.inside == 0
        assert (await told(handler, "v1/quick"))[0] == 200
        gate.set()
        assert [status for status, _, _ in await asyncio.gather(*waiting)] == [200] * 10
        assert handler.crowd.inside == 0

    asyncio.run(scene())


def test_monitors_and_who_comes_in_have_room_and_are_counted() -> None:
    crowd = Crowd(most=2)
    assert [crowd.enter("/chats/") for _ in range(3)] == [True, True, False]
    assert all(crowd.enter(each) for each in ALWAYS)
    assert crowd.inside == 2 + len(ALWAYS)
    for _ in range(len(ALWAYS) + 1):
        crowd.leave()
    assert [crowd.enter("/chats/") for _ in range(2)] == [True, False]


def test_of_many_each_keeps_the_interpreter_for_longer() -> None:
    crowd = Crowd(most=100)
    turns = []
    for change in [crowd.enter] * (MANY + 2) + [crowd.leave] * (MANY + 2):
        change()
        turns.append(sys.getswitchinterval())
    assert turns == [TURN] * MANY + [TURN_OF_MANY] * 3 + [TURN] * (MANY + 1)


@pytest.mark.parametrize(
    ("address", "headers", "kind"),
    [
        ("/chat/api/chats", {}, "application/json"),
        ("/v1/models", {}, "application/json"),
        ("/workspaces/", {"HX-Request": "true"}, "text/html"),
        ("/workspaces/", {"Accept-Language": "de"}, "text/html"),
        ("/workspaces/\x00", {"Accept-Language": "x" * 9000}, "text/html"),
    ],
)
def test_it_is_said_as_it_was_asked_for_without_asking_the_database(
    address: str, headers: dict[str, str], kind: str
) -> None:
    answer = crowds.refused(RequestFactory().get(address, headers=headers))
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert answer["Content-Type"].startswith(kind) and answer["Cache-Control"] == "no-store"
    text = answer.content.decode()
    if kind == "application/json":
        assert json.loads(text)["error"]["code"] == "overloaded"
    else:
        language = headers.get("Accept-Language") == "de"
        assert ('<html lang="de"' in text) == language
        assert ("<html" not in text) == ("HX-Request" in headers)
    assert crowds.refused(RequestFactory().get(address, headers=headers)).content == answer.content


@pytest.mark.django_db
def test_all_streams_of_a_process_have_a_bound_beside_each_persons(settings: Settings) -> None:
    settings.EVENT_STREAMS, settings.STREAMS_AT_ONCE = 2, 3
    olive, eddie, vera = (make_user(name) for name in ("olive", "eddie", "vera"))
    held: list[Any] = [Place(olive), Place(olive), Place(eddie)]
    with pytest.raises(Overloaded):
        Place(vera)
    held.pop().leave()
    with pytest.raises(TooManyRequests):
        Place(olive)
    held.append(Place(vera))
