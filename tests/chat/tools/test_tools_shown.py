"""Tool calls as people and programs see them: while running, after a reload, and what is hidden."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.answer_steps import call_line
from chat.api.turn_responses import messages_json
from chat.models import Chat, Message, ToolCall, ToolStatus
from chat.tools import OF_AN_AGENT, OF_EVERY_CHAT
from chat.turns import stream
from chat.turns.services import begin_turn
from chat.turns.stream import StreamEvent, follow
from memories.writing.gate import delete_memory
from tests.conftest import Cast
from tests.factories import make_chat, make_memory, make_message
from tests.fakes.openai_server import HOLD, Answer, Call, ScriptedOpenAI


def called(answer: Message, name: str = "x_recall_memory", **fields: Any) -> ToolCall:
    fields = {"status": "done", "outcome": "found", "arguments": {"query": "the deadline"}} | fields
    return ToolCall.objects.create(message=answer, name=name, **fields)


@pytest.fixture
def answered(cast: Cast) -> Message:
    chat = make_chat(cast.editor, cast.workspace)
    return make_message(chat, "On March 15", "assistant", reply_to=make_message(chat, "When?"))


def page_of(answer: Message, person: Any) -> str:
    client = Client()
    client.force_login(person)
    return client.get(f"/chats/{answer.chat.public_id}/").content.decode()


def test_a_save_is_a_line_with_undo_after_a_reload(answered: Message, cast: Cast) -> None:
    memory = make_memory("User likes <tea>", cast.editor, cast.workspace, source_type="model")
    called(answered, "x_save_memory", outcome="saved", memory_ids=[memory.public_id], arguments={})
    page = page_of(answered, cast.editor)
    assert "Saved to memory: <bdi>“User likes &lt;tea&gt;”</bdi>" in page
    undo = f"/memories/{memory.public_id}/delete/?as=receipt"
    assert undo in page
    assert undo not in page_of(answered, cast.viewer), "who may only read undoes nothing"
    assert "User likes &lt;tea&gt;" in page_of(answered, cast.viewer)


def test_what_was_forgotten_is_gone_from_the_line(answered: Message, cast: Cast) -> None:
    memory = make_memory("User likes tea", cast.editor, cast.workspace)
    call = called(answered, "x_save_memory", outcome="saved", memory_ids=[memory.public_id], arguments={})
    delete_memory(memory, by=cast.editor, now=timezone.now())
    page = page_of(answered, cast.editor)
    assert "Saved to memory" in page
    assert "likes tea" not in page
    shown = messages_json([answered], cast.editor)[0]["tool_calls"]
    assert [(row["id"], row["memory_ids"]) for row in shown] == [(call.public_id, [])]


def test_a_search_shows_each_reader_only_their_own(answered: Message, cast: Cast) -> None:
    shared = make_memory("The deadline is March 15", cast.owner, cast.workspace)
    personal = make_memory("The deadline frightens me", cast.editor, scope="user")
    called(answered, memory_ids=[shared.public_id, personal.public_id], count=2)
    mine, theirs = page_of(answered, cast.editor), page_of(answered, cast.owner)
    assert "Searched memory for “the deadline” · 2 found" in mine
    assert "frightens me" in mine
    assert "frightens me" not in theirs
    assert "The deadline is March 15" in theirs
    assert messages_json([answered], cast.owner)[0]["tool_calls"][0]["memory_ids"] == [shared.public_id]


def test_every_outcome_has_its_words(answered: Message, cast: Cast) -> None:
    lines: list[tuple[dict[str, Any], str]] = [
        ({"name": "x_save_memory", "outcome": "duplicate"}, "Already in memory"),
        ({"name": "x_save_memory", "outcome": "refused", "status": "failed"}, "Not saved to memory"),
        ({"name": "x_recall_memory", "count": 0}, "Searched memory for “the deadline” · nothing found"),
        ({"name": "x_workspace_search", "count": 1}, "Searched the workspace for “the deadline” · 1 found"),
        ({"name": "x_workspace_search", "count": 1, "arguments": {"query": "doc_abc"}}, "Read a document"),
        ({"name": "x_workspace_search", "count": 1, "arguments": {"query": "art_abc"}}, "Read an artifact"),
        ({"name": "rm <b>", "outcome": "error", "status": "failed"}, "rm &lt;b&gt; did not work"),
        ({"name": "x_of_tomorrow", "outcome": "found", "count": 1}, "Used x_of_tomorrow"),
        ({"name": "x_of_tomorrow", "outcome": "noted"}, "Used x_of_tomorrow"),
        ({"name": "update_short_term_memory", "outcome": "noted"}, "Noted a summary of this chat"),
        ({"name": "x_recall_memory", "outcome": "", "status": "running"}, "x_recall_memory did not finish"),
        (
            {"arguments": {"query": "a\u202eb\n" + "long " * 60}},
            "Searched memory for “ab " + ("long " * 60)[:116] + "…” · nothing found",
        ),
    ]
    for fields, _line in lines:
        called(answered, **fields)
    page = page_of(answered, cast.editor)
    assert [line for _fields, line in lines if line not in page] == []
    assert page.count("Used x_of_tomorrow") == 2


def test_while_it_works_each_tool_of_a_chat_is_said_in_words() -> None:
    for tool in (*OF_EVERY_CHAT, *OF_AN_AGENT):
        assert tool.name not in call_line(ToolCall(name=tool.name, status="running"))


def test_many_calls_cost_no_more_queries(answered: Message, cast: Cast) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            messages_json([answered], cast.editor)
        return len(captured)

    memory = make_memory("The deadline is March 15", cast.owner, cast.workspace)
    called(answered, memory_ids=[memory.public_id])
    few = queries()
    for number in range(5):
        other = make_memory(f"The deadline of project {number} is May 1", cast.owner, cast.workspace)
        called(answered, memory_ids=[other.public_id])
    assert queries() == few


class TestStreams:
    pytestmark = pytest.mark.django_db(transaction=True)

    @pytest.fixture(autouse=True)
    async def _close_connections(self) -> AsyncIterator[None]:
        yield
        await sync_to_async(connections.close_all)()

    @staticmethod
    async def begin(chat: Chat, server: ScriptedOpenAI) -> Message:
        server.script(
            Answer(calls=[Call("x_save_memory", {"content": "User likes tea"})]), Answer("No", HOLD, "ted.")
        )
        turn = await sync_to_async(begin_turn)(
            chat, content="I like tea", by=chat.created_by, now=timezone.now()
        )
        return turn.answer

    @staticmethod
    def statuses(events: list[StreamEvent]) -> list[str]:
        return [event.data["status"] for event in events if event.kind == "tool"]

    @pytest.mark.parametrize("elsewhere", [False, True], ids=["this process", "another process"])
    async def test_every_reader_hears_of_calls_whenever_they_come(
        self,
        chat: Chat,
        scripted_model: ScriptedOpenAI,
        monkeypatch: pytest.MonkeyPatch,
        eventually: Callable[..., None],
        elsewhere: bool,
    ) -> None:
        answer = await self.begin(chat, scripted_model)
        if elsewhere:
            monkeypatch.setattr(stream, "live_answer", lambda public_id: None)
        seen: list[StreamEvent] = []
        async for event in follow(answer.public_id):
            seen.append(event)
            if event.kind == "token":
                scripted_model.release()
        assert self.statuses(seen)[-1] == ToolStatus.DONE
        assert seen[-1].kind == "done"
        tool = next(event for event in seen if event.kind == "tool")
        assert tool.data["name"] == "x_save_memory"
        assert "tea" not in json.dumps(tool.data)
        late = [event async for event in follow(answer.public_id, after=3)]
        assert self.statuses(late) == ["done"]
        assert [event.data["text"] for event in late if event.kind == "token"] == ["ed."]
