import asyncio
from collections.abc import AsyncIterator

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.utils import timezone

from chat.live_answers import live_answer
from chat.models import Chat, Message
from chat.turns import stream
from chat.turns.services import begin_turn
from chat.turns.stream import (
    StreamEvent,
    follow,
    follow_for,
    to_sse,
)
from chat.turns.turn import wait_until_idle
from tests.factories import make_chat, make_message, make_user, make_workspace
from tests.fakes.openai_server import HOLD, Answer, ScriptedOpenAI
from workspaces.models import User

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def chat(scripted_model: ScriptedOpenAI) -> Chat:
    return make_chat(make_user())


@pytest.fixture(autouse=True)
async def _close_the_connection_of_async_tests() -> AsyncIterator[None]:
    yield
    await sync_to_async(connections.close_all)()


async def collect(answer_id: str, after: int = 0) -> list[StreamEvent]:
    return [event async for event in follow(answer_id, after=after)]


def text_of(events: list[StreamEvent]) -> str:
    return "".join(event.data["text"] for event in events if event.kind == "token")


async def begin(chat: Chat, content: str) -> Message:
    turn = await sync_to_async(begin_turn)(chat, content=content, by=chat.created_by, now=timezone.now())
    return turn.answer


async def test_tokens_come_as_they_are_written_each_with_where_it_reaches(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.script(Answer("One ", HOLD, "two"))
    answer = await begin(chat, "Count")
    events = follow(answer.public_id)
    first = await anext(events)
    assert (first.kind, first.data, first.id) == ("token", {"text": "One "}, 4)
    scripted_model.release()
    rest = [event async for event in events]
    assert text_of(rest) == "two"
    assert (rest[-1].kind, rest[-1].data, rest[-1].id) == ("done", {"status": "done"}, 7)


async def test_a_dropped_stream_goes_on_from_where_it_was_and_loses_nothing(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.script(Answer("One ", HOLD, "two ", "three"))
    answer = await begin(chat, "Count")
    events = follow(answer.public_id)
    last = (await anext(events)).id
    await events.aclose()  # the tab is closed
    scripted_model.release()
    assert await asyncio.to_thread(wait_until_idle, 10)
    assert text_of(await collect(answer.public_id, after=last)) == "two three"
    assert text_of(await collect(answer.public_id)) == "One two three"


async def test_another_process_follows_through_the_database(
    chat: Chat, scripted_model: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``follow`` reads rows and notifications of another process if this one has no live answer."""
    scripted_model.script(Answer("One ", HOLD, "two"))
    answer = await begin(chat, "Count")
    monkeypatch.setattr(stream, "live_answer", lambda public_id: None)
    events = follow(answer.public_id)
    assert (await anext(events)).data == {"text": "One "}
    assert live_answer(answer.public_id) is not None
    scripted_model.release()
    assert text_of([event async for event in events]) == "two"


async def test_a_failure_is_the_last_event_with_its_sentence(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.script(Answer("Half", cut=True))
    answer = await begin(chat, "Count")
    events = await collect(answer.public_id)
    assert text_of(events) == "Half"
    assert (events[-1].kind, events[-1].data["code"]) == ("error", "model_cut")


async def test_an_answer_that_is_gone_ends_at_once(db: None) -> None:
    assert [event.kind for event in await collect("msg_nothing")] == ["error"]


async def test_an_id_beyond_the_text_begins_anew(chat: Chat) -> None:
    answer = await sync_to_async(make_message)(chat, "Short", "assistant")
    events = await collect(answer.public_id, after=500)
    assert [event.kind for event in events] == ["restart", "token", "done"]


@pytest.mark.parametrize("change", ["removed", "closed", "private", "deleted", "personal"])
async def test_who_may_no_longer_read_gets_no_more_of_the_answer(
    scripted_model: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(stream, "RECHECK_SECONDS", 0)
    owner, viewer = await sync_to_async(make_user)(), await sync_to_async(make_user)()
    workspace = await sync_to_async(make_workspace)(owner=owner, viewer=viewer)
    chat = await sync_to_async(make_chat)(owner, workspace)
    scripted_model.script(Answer("One ", HOLD, "two"))
    answer = await begin(chat, "Count")
    events = follow_for(viewer, chat.public_id, answer.public_id)
    assert (await anext(events)).data == {"text": "One "}
    match change:
        case "removed":
            await workspace.memberships.filter(user=viewer).adelete()
        case "closed":
            await User.objects.filter(pk=viewer.pk).aupdate(is_active=False)
        case "private":
            await Chat.objects.filter(pk=chat.pk).aupdate(is_private=True)
        case "deleted":
            await Chat.objects.filter(pk=chat.pk).aupdate(deleted_at=timezone.now())
        case "personal":  # a tool used personal data, and the viewer joined after the start
            await workspace.memberships.filter(user=viewer).aupdate(created_at=timezone.now())
            await Message.objects.filter(pk=answer.pk).aupdate(personal="held")
    scripted_model.release()
    rest = [event async for event in events]
    assert [(event.kind, event.data.get("code")) for event in rest] == [("error", "not_found")]
    assert await asyncio.to_thread(wait_until_idle, 10)


def test_an_event_is_one_line_of_json_whatever_the_text() -> None:
    sent = to_sse(StreamEvent("token", {"text": "a\n\ndata: forged\r\n\u2028"}, 7))
    assert sent.startswith("id: 7\nevent: token\ndata: {")
    assert sent.count("\n") == 4
