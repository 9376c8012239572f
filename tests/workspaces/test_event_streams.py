"""The limit of open event streams of one person, and the end of a broken one."""

import gc
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import InterfaceError, connections
from django.test import AsyncClient, Client

from chat.models import Message
from memoryhub.errors import NotFound, TooManyRequests
from tests.factories import make_chat, make_user
from tests.fakes.openai_server import ScriptedOpenAI
from tests.memoryhub.test_database_errors import database_says
from workspaces.access import default_workspace
from workspaces.models import User
from workspaces.views.event_streams import EventStream, Overloaded, StreamSlot

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
async def _close_the_connection_of_async_tests() -> AsyncIterator[None]:
    yield
    await sync_to_async(connections.close_all)()


@pytest.fixture
def user(settings: Any) -> User:
    settings.EVENT_STREAMS = 2
    return make_user("olive")


async def nothing() -> AsyncGenerator[str, None]:
    yield "event: more\n\n"


def test_the_one_too_many_is_refused_and_others_have_their_own(user: User) -> None:
    held = [EventStream(nothing(), slot=StreamSlot(user)) for _ in range(2)]
    with pytest.raises(TooManyRequests) as refused:
        StreamSlot(user)
    assert refused.value.headers() == {"Retry-After": "30"}
    StreamSlot(make_user("sam"))
    held[0].close()
    held[0].close()  # closing twice counts once
    StreamSlot(user).leave()
    held[1].close()
    assert [StreamSlot(user), StreamSlot(user)]  # both are free


def test_one_that_never_began_is_given_back(user: User) -> None:
    EventStream(nothing(), slot=StreamSlot(user))
    StreamSlot(user)
    gc.collect()
    assert [StreamSlot(user), StreamSlot(user)]  # both are free


async def test_every_door_with_events_counts_and_refuses_before_anything_is_done(
    user: User, scripted_model: ScriptedOpenAI
) -> None:
    client = AsyncClient()
    await sync_to_async(client.force_login)(user)
    chat = await sync_to_async(make_chat)(user)
    workspace = await sync_to_async(default_workspace)(user)
    feed, turns = f"/workspaces/{workspace.public_id}/events/", f"/chat/api/{chat.public_id}/messages"
    held = [await client.get(feed) for _ in range(2)]
    assert [each.status_code for each in held] == [200, 200]
    refused = [await client.get(feed), await client.post(turns, {"content": "Hello"}, "application/json")]
    for answer in refused:
        assert (answer.status_code, answer["Retry-After"]) == (429, "30")
    assert not await Message.objects.filter(chat=chat).aexists()
    whole = await client.post(turns, {"content": "Hello", "stream": False}, "application/json")
    assert whole.status_code == 201
    message = f"/chats/{chat.public_id}/messages/{whole.json()['answer']['id']}/stream/"
    again = f"{turns}/{whole.json()['answer']['id']}/retry"
    assert (await client.get(message)).status_code == 429
    assert (await client.post(again, {"stream": True}, "application/json")).status_code == 429
    assert await Message.objects.filter(chat=chat).acount() == 2
    for each in held:
        await sync_to_async(each.close)()
    assert (await client.get(message)).status_code == 200


@pytest.mark.parametrize(
    ("fails", "code"),
    [
        (database_says("25006"), "unavailable"),
        (database_says("57P01"), "unavailable"),
        (lambda: (_ for _ in ()).throw(InterfaceError("the connection is closed")), "unavailable"),
        (lambda: (_ for _ in ()).throw(NotFound("This answer no longer exists.")), "not_found"),
    ],
)
async def test_a_stream_that_cannot_go_on_says_so_last(user: User, fails: Any, code: str) -> None:
    def broken() -> None:
        for _ in fails() or ():
            pass

    async def events() -> AsyncGenerator[str, None]:
        yield "event: token\ndata: {}\n\n"
        await sync_to_async(broken)()

    found = [part.decode() async for part in EventStream(events(), slot=StreamSlot(user))]  # type: ignore[union-attr, misc]
    assert found[0].startswith("event: token")
    name, data = found[1].strip().split("\n")
    assert (name, json.loads(data.removeprefix("data: "))["code"]) == ("event: error", code)
    assert len(found) == 2


async def test_an_answer_that_is_followed_ends_with_an_error_when_the_database_fails(
    user: User, monkeypatch: pytest.MonkeyPatch, scripted_model: ScriptedOpenAI
) -> None:
    chat = await sync_to_async(make_chat)(user)
    client = AsyncClient()
    await sync_to_async(client.force_login)(user)
    monkeypatch.setattr("chat.turns.stream._stored_state", database_says("53100"))
    monkeypatch.setattr("chat.turns.stream.live_answer", lambda answer_id: None)
    path = f"/chat/api/{chat.public_id}/messages"
    response = await client.post(path, {"content": "Hello"}, "application/json")
    text = "".join([part.decode() async for part in response])  # type: ignore[attr-defined]
    assert response.status_code == 200
    assert text.rstrip().split("\n\n")[-1].startswith("event: error\ndata: ")
    assert "run out of disk space" in text


def test_a_browser_is_told_on_a_page(user: User) -> None:
    client = Client()
    client.force_login(user)
    held = [StreamSlot(user), StreamSlot(user)]
    workspace = default_workspace(user)
    response = client.get(f"/workspaces/{workspace.public_id}/events/")
    assert (response.status_code, response["Retry-After"], len(held)) == (429, "30", 2)


@pytest.mark.django_db
def test_all_streams_of_a_process_have_a_bound_beside_each_persons(settings: Any) -> None:
    settings.EVENT_STREAMS, settings.STREAMS_AT_ONCE = 2, 3
    olive, eddie, vera = (make_user(name) for name in ("olive", "eddie", "vera"))
    held: list[Any] = [StreamSlot(olive), StreamSlot(olive), StreamSlot(eddie)]
    with pytest.raises(Overloaded):
        StreamSlot(vera)
    held.pop().leave()
    with pytest.raises(TooManyRequests):
        StreamSlot(olive)
    held.append(StreamSlot(vera))
