"""Turns over REST: complete or streamed, stopped, retried; and the memories they recalled."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection

from chat.models import Chat, MessageRole, MessageStatus
from chat.turns.turn import wait_until_idle
from memories.models import Receipt, ReceiptItem
from tests.api import API, Api, error_of
from tests.asgi import posted
from tests.conftest import Cast
from tests.factories import make_chat, make_memory, make_message, make_user, make_workspace
from tests.fakes.openai_server import HOLD, Answer, Failure, ScriptedOpenAI


@pytest.fixture
def chat(transactional_db: None, scripted_model: ScriptedOpenAI) -> Chat:
    person = make_user("ann")
    return make_chat(person, make_workspace(owner=person))


def cookies_of(chat: Chat) -> str:
    return "; ".join(f"{name}={morsel.value}" for name, morsel in Api(chat.created_by).client.cookies.items())


def say(chat: Chat, content: str = "Hello", **fields: Any) -> Any:
    body = {"content": content, "stream": False, **fields}
    return Api(chat.created_by).post(f"{chat.public_id}/messages", body)


def test_without_a_stream_the_whole_turn_is_answered(chat: Chat, scripted_model: ScriptedOpenAI) -> None:
    scripted_model.script(Answer("The deadline ", "is March 15."))
    turn = say(chat, "When is it due?")
    assert turn.status_code == 201
    message, answer = turn.json()["message"], turn.json()["answer"]
    assert (message["role"], message["content"], message["status"]) == ("user", "When is it due?", "done")
    assert message["author"] == {"id": chat.created_by.public_id, "username": "ann"}
    assert (answer["role"], answer["content"]) == ("assistant", "The deadline is March 15.")
    assert (answer["status"], answer["error"], answer["author"]) == ("done", None, None)
    assert answer["reply_to"] == message["id"]
    assert answer["model"] == "scripted-model"
    assert answer["finished_at"].endswith("Z")
    listed = Api(chat.created_by).get(f"{chat.public_id}/messages").json()["items"]
    assert listed == [message, answer]


def test_a_turn_names_the_wrong_field_and_stores_nothing(chat: Chat) -> None:
    for body, field in (
        ({}, "content"),
        ({"content": " \n "}, "content"),
        ({"content": 5}, "content"),
        ({"content": "x" * 32_001}, "content"),
        ({"content": "a\0b"}, "content"),
        ({"content": "a", "stream": "no"}, "stream"),
        ({"content": "a", "memory_enabled": 1}, "memory_enabled"),
        ({"content": "a", "mode": "poetry"}, "mode"),
        ({"content": "a", "role": "system"}, "role"),
    ):
        refused = Api(chat.created_by).post(f"{chat.public_id}/messages", body)
        assert refused.status_code == 422
        assert list(error_of(refused)["fields"]) == [field]
        assert not chat.messages.exists()


def test_a_turn_with_memory_shows_what_it_recalled(chat: Chat) -> None:
    memory = make_memory("The project deadline is March 15", by=chat.created_by, workspace=chat.workspace)
    turn = say(chat, "When is the project deadline?", memory_enabled=True).json()
    assert (turn["message"]["receipt"], turn["answer"]["memory_enabled"]) == (None, True)
    receipt = turn["answer"]["receipt"]
    assert (receipt["degraded"], receipt["degraded_reason"]) == (False, None)
    assert [(item["memory_id"], item["used"], item["reason"]) for item in receipt["items"]] == [
        (memory.public_id, True, "")
    ]
    assert receipt["items"][0]["content"] == memory.content
    place = f"{chat.public_id}/messages/{turn['answer']['id']}/receipt"
    assert Api(chat.created_by).get(place).json() == receipt


async def test_a_stream_brings_message_tokens_receipt_and_the_whole_answer(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    await sync_to_async(make_memory)("The deadline is March 15", chat.created_by, chat.workspace)
    scripted_model.script(Answer("March ", HOLD, "15."))
    cookies = await sync_to_async(cookies_of)(chat)
    body = {"content": "When is the deadline?", "memory_enabled": True}
    async with posted(f"{API}/{chat.public_id}/messages", body, cookies) as exchange:
        status, headers = await exchange.start()
        assert (status, headers["content-type"]) == (200, "text/event-stream")
        name, begun = await exchange.event() or ("", {})
        assert (name, begun["message"]["content"]) == ("message", "When is the deadline?")
        assert (begun["answer"]["status"], begun["answer"]["content"]) == ("streaming", "")
        assert await exchange.event() == ("token", {"text": "March "})
        scripted_model.release()
        rest = await exchange.events()
    assert [name for name, _ in rest if name != "token"] == ["receipt", "done"]
    assert "".join(data["text"] for name, data in rest if name == "token") == "15."
    done = rest[-1][1]
    assert (done["id"], done["content"], done["status"]) == (begun["answer"]["id"], "March 15.", "done")
    assert done["receipt"] == rest[-2][1]


async def test_a_stream_of_a_failed_answer_ends_with_the_error(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.respond = lambda request: Failure(401)
    cookies = await sync_to_async(cookies_of)(chat)
    async with posted(f"{API}/{chat.public_id}/messages", {"content": "Hello"}, cookies) as exchange:
        await exchange.start()
        events = await exchange.events()
    assert [name for name, _ in events] == ["message", "error"]
    assert set(events[-1][1]) == {"code", "message"}


async def test_a_client_that_hangs_up_loses_nothing(chat: Chat, scripted_model: ScriptedOpenAI) -> None:
    scripted_model.script(Answer("One ", HOLD, "two"))
    cookies = await sync_to_async(cookies_of)(chat)
    async with posted(f"{API}/{chat.public_id}/messages", {"content": "Count"}, cookies) as exchange:
        await exchange.start()
        assert (await exchange.event() or ("",))[0] == "message"
        assert await exchange.event() == ("token", {"text": "One "})
        await exchange.hang_up()
    scripted_model.release()
    assert await asyncio.to_thread(wait_until_idle, 10)
    answer = await chat.messages.aget(role=MessageRole.ASSISTANT)
    assert (answer.content, answer.status) == ("One two", MessageStatus.DONE)


async def test_streams_that_wait_keep_no_database_connection(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.respond = lambda request: Answer("One ", HOLD, "two")
    cookies = await sync_to_async(cookies_of)(chat)
    chats = [await sync_to_async(make_chat)(chat.created_by, chat.workspace) for _ in range(8)]

    def connections() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
            return int(cursor.fetchone()[0])

    started, go_on = asyncio.Semaphore(0), asyncio.Event()

    async def stream(one: Chat) -> None:
        async with posted(f"{API}/{one.public_id}/messages", {"content": "Count"}, cookies) as exchange:
            await exchange.start()
            while (event := await exchange.event()) and event[0] != "token":
                continue
            started.release()
            await go_on.wait()
            assert (await exchange.events())[-1][0] == "done"

    async with asyncio.TaskGroup() as group:
        for one in chats:
            group.create_task(stream(one))
        for _ in chats:
            await asyncio.wait_for(started.acquire(), 10)
        held = min([await sync_to_async(connections)() for _ in range(5)])
        scripted_model.release()
        go_on.set()
    assert held < len(chats)  # the test's own, the listener's and sometimes one that saves


def test_retry_writes_the_answer_anew_in_its_place(chat: Chat, scripted_model: ScriptedOpenAI) -> None:
    scripted_model.script(Answer("First."), Answer("Second."))
    turn = say(chat).json()
    place = f"{chat.public_id}/messages/{turn['answer']['id']}/retry"
    again = Api(chat.created_by).post(place, {"stream": False})
    assert again.status_code == 201
    assert again.json()["message"] == turn["message"]
    assert again.json()["answer"]["content"] == "Second."
    listed = Api(chat.created_by).get(f"{chat.public_id}/messages").json()["items"]
    assert listed == [turn["message"], again.json()["answer"]]


def test_a_personal_memory_in_a_receipt_is_its_owners_to_see(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    own = make_memory("I prefer tea", by=cast.owner, scope="user")
    answer = make_message(chat, "Tea?", role=MessageRole.ASSISTANT)
    receipt = Receipt.objects.create(
        message_id=answer.public_id,
        workspace=cast.workspace,
        user=cast.owner,
        ranking="hybrid",
        threshold=0.3,
    )
    ReceiptItem.objects.create(
        receipt=receipt, memory=own, position=1, score=0.5, content=own.content, used=True
    )
    place = f"{chat.public_id}/messages/{answer.public_id}/receipt"
    assert len(Api(cast.owner).get(place).json()["items"]) == 1
    assert Api(cast.viewer).get(place).json()["items"] == []


def test_who_waits_for_an_answer_whose_workspace_is_deleted_is_told_that_it_is_gone(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.script(Answer("One ", HOLD, "two"))
    with ThreadPoolExecutor(1) as waiting:
        turn = waiting.submit(say_and_let_go, chat)
        assert scripted_model.wait_for_requests(1)
        chat.workspace.delete()
        scripted_model.release()
        assert (turn.result(20).status_code, error_of(turn.result())["code"]) == (404, "not_found")


def say_and_let_go(chat: Chat) -> Any:
    """Call ``say`` in another thread and close its connection."""
    try:
        return say(chat)
    finally:
        connection.close()
