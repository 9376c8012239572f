"""Memories stored by background sources, and their events: each once, only to those who may see it, without text."""

import json
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from django.utils import timezone

from chat.models import Chat, Message, Mode
from chat.turns.compaction import compact
from chat.turns.services import begin_turn
from chat.turns.turn import wait_until_idle
from memories import tasks
from memories.models import Extraction, Memory, Scope
from memoryhub import pubsub
from tests.factories import make_chat, make_memory, make_message
from tests.fakes.openai_server import Answer, Call, ScriptedOpenAI
from workspaces.models import Agent

pytestmark = pytest.mark.django_db(transaction=True)
LONG = (
    "Olive works on the harbour project, whose deadline is March 15, and she has decided to take the train. "
)


@pytest.fixture
def told() -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """Yield the list of auto_saved events, as channel and data."""
    heard: list[tuple[str, dict[str, Any]]] = []
    publish = pubsub.publish

    def note(channel: str, name: str, data: Any = None) -> None:
        if name == "x_memory.auto_saved":
            heard.append((channel, data))
        publish(channel, name, data or {})

    with patch.object(pubsub, "publish", side_effect=note):
        yield heard


def found(*texts: str) -> Answer:
    return Answer(json.dumps([{"text": text, "kind": "fact", "importance": 0.7} for text in texts]))


def take_turn(
    chat: Chat,
    server: ScriptedOpenAI,
    *replies: Answer,
    mode: str = Mode.CHAT,
    content: str = "Hi",
    **more: Any,
) -> Message:
    server.script(*replies)
    turn = begin_turn(chat, content=content, by=chat.created_by, now=timezone.now(), mode=mode, **more)
    assert wait_until_idle(20)
    turn.answer.refresh_from_db()
    return turn.answer


def mine(source_type: str, server: ScriptedOpenAI, *texts: str) -> None:
    """Run only the extraction of this source."""
    server.script(found(*texts))
    tasks.extract_turn(extraction_id=Extraction.objects.get(source_type=source_type).pk)


def think(chat: Chat, server: ScriptedOpenAI, text: str, **more: Any) -> Message:
    return take_turn(chat, server, Answer("Think."), Answer(text), mode=Mode.DEEP_THINK, **more)


class TestDeepThink:
    def test_outputs_of_200_characters_or_more_are_distilled(
        self, chat: Chat, scripted_model: ScriptedOpenAI
    ) -> None:
        for length, queued in ((199, False), (200, True)):
            chat = make_chat(chat.created_by)
            Extraction.objects.all().delete()
            answer = think(chat, scripted_model, "a" * length)
            assert Extraction.objects.filter(source_type="auto_deep_think").exists() is queued, length
            assert Extraction.objects.get(source_type="auto_chat").message_id == answer.public_id, length

    def test_what_it_stores_says_where_it_comes_from_and_is_told(
        self, chat: Chat, scripted_model: ScriptedOpenAI, told: list[tuple[str, dict[str, Any]]]
    ) -> None:
        answer = think(chat, scripted_model, LONG * 3, content="My deadline is March 15 and I take the train")
        mine("auto_deep_think", scripted_model, "User takes the train", "User's deadline is March 15")
        assert (
            scripted_model.chat_requests[-1]
            .messages[0]["content"]
            .startswith("You read what an assistant wrote")
        )
        stored = list(Memory.objects.order_by("pk"))
        assert [memory.source_type for memory in stored] == ["auto_deep_think"] * 2
        assert {memory.source_message_id for memory in stored} == {answer.reply_to.public_id}  # type: ignore[union-attr]
        assert told == [
            (
                f"workspace:{chat.workspace.public_id}",
                {
                    "workspace_id": chat.workspace.public_id,
                    "chat_id": chat.public_id,
                    "source_type": "auto_deep_think",
                    "memory_ids": [memory.public_id for memory in stored],
                    "count": 2,
                },
            )
        ]

    def test_without_consent_nothing_is_extracted(self, chat: Chat, scripted_model: ScriptedOpenAI) -> None:
        for off in ("the chip", "temporary"):
            fields = {"is_temporary": True} if off == "temporary" else {"memory_enabled": False}
            chat = make_chat(chat.created_by, **fields)
            answer = think(chat, scripted_model, LONG * 3)
            assert answer.status == "done", off
            assert not Extraction.objects.exists(), off

    def test_in_a_private_chat_it_becomes_personal_and_is_told_to_its_person_alone(
        self, chat: Chat, scripted_model: ScriptedOpenAI, told: list[tuple[str, dict[str, Any]]]
    ) -> None:
        Chat.objects.update(is_private=True)
        chat.refresh_from_db()
        think(chat, scripted_model, LONG * 3, content="I take the train")
        mine("auto_deep_think", scripted_model, "User takes the train")
        memory = Memory.objects.get()
        assert (memory.scope, memory.owner) == (Scope.USER, chat.created_by)
        assert [channel for channel, _ in told] == [f"user:{chat.created_by.public_id}"]

    def test_what_only_repeats_a_memory_it_was_checked_against_is_stored_by_nobody(
        self, chat: Chat, scripted_model: ScriptedOpenAI, told: list[tuple[str, dict[str, Any]]]
    ) -> None:
        make_memory("The harbour project ends on March 15", chat.created_by, chat.workspace)
        think(chat, scripted_model, LONG * 3, content="What do I have to know?")
        mine("auto_deep_think", scripted_model, "The harbour project ends on March 15 of this year")
        assert Memory.objects.live().count() == 1
        assert told == []


class TestOnceEach:
    def test_what_two_sources_of_one_turn_find_is_stored_and_told_once(
        self, chat: Chat, scripted_model: ScriptedOpenAI, told: list[tuple[str, dict[str, Any]]]
    ) -> None:
        think(chat, scripted_model, LONG * 3, content="I take the train to work")
        mine("auto_chat", scripted_model, "User takes the train to work")
        mine("auto_deep_think", scripted_model, "User takes the train to work")
        assert Memory.objects.count() == 1
        assert [(data["source_type"], data["count"]) for _, data in told] == [("auto_chat", 1)]

    def test_the_same_statement_saved_by_a_tool_and_noticed_afterwards_is_told_once(
        self, chat: Chat, scripted_model: ScriptedOpenAI, told: list[tuple[str, dict[str, Any]]]
    ) -> None:
        call = Call("x_save_memory", {"content": "User takes the train to work"})
        replies = Answer(calls=[call]), Answer("Noted.")
        take_turn(chat, scripted_model, *replies, content="I take the train to work")
        mine("auto_chat", scripted_model, "User takes the train to work")
        memory = Memory.objects.get()
        assert [(data["source_type"], data["memory_ids"]) for _, data in told] == [
            ("model", [memory.public_id])
        ]

    def test_a_duplicate_and_a_refusal_are_not_told(
        self, chat: Chat, scripted_model: ScriptedOpenAI, told: list[tuple[str, dict[str, Any]]]
    ) -> None:
        make_memory("User takes the train to work", chat.created_by, chat.workspace)
        calls = [
            Call("x_save_memory", {"content": "User takes the train to work"}),
            Call("x_save_memory", {"content": "The key is sk-proj-" + "Ab3dEf9hIj2k" * 4}),
        ]
        take_turn(chat, scripted_model, Answer(calls=calls), Answer("Done."), content="And now?")
        assert told == []

    def test_what_a_person_saves_is_no_automatic_save(
        self, chat: Chat, told: list[tuple[str, dict[str, Any]]]
    ) -> None:
        make_memory("User takes the train", chat.created_by, chat.workspace)
        assert told == []


class TestOtherSources:
    def test_a_summary_noted_by_a_tool(
        self, chat: Chat, scripted_model: ScriptedOpenAI, told: list[tuple[str, dict[str, Any]]]
    ) -> None:
        call = Call("update_short_term_memory", {"summary": LONG * 3})
        take_turn(chat, scripted_model, Answer(calls=[call]), Answer("Done."), content="I take the train")
        mine("model", scripted_model, "User takes the train")
        assert [(data["source_type"], data["count"]) for _, data in told] == [("model", 1)]

    def test_what_an_assistant_keeps_for_itself(
        self, chat: Chat, scripted_model: ScriptedOpenAI, told: list[tuple[str, dict[str, Any]]]
    ) -> None:
        chat.agent = Agent.objects.create(workspace=chat.workspace, name="Ada")
        chat.save()
        call = Call("ltm_remember", {"text": "User takes the train"})
        take_turn(chat, scripted_model, Answer(calls=[call]), Answer("Done."), content="I take the train")
        assert [data["memory_ids"] for _, data in told] == [[Memory.objects.get().public_id]]

    def test_a_compaction(
        self,
        chat: Chat,
        scripted_model: ScriptedOpenAI,
        settings: Any,
        told: list[tuple[str, dict[str, Any]]],
    ) -> None:
        settings.LLM_HISTORY_TOKENS = 200
        said = "I take the train to work. "
        for number in range(6):
            asked = make_message(chat, f"{said}Number {number}. " * 8)
            answer = make_message(chat, LONG, "assistant", reply_to=asked, memory_enabled=True)
        scripted_model.respond = lambda request: Answer(LONG * 3)
        assert compact(answer, chat.created_by, now=timezone.now()).startswith("stored")
        scripted_model.respond = lambda request: found("User takes the train to work")
        first = Extraction.objects.filter(source_type="auto_compaction").order_by("pk")[0]
        tasks.extract_turn(extraction_id=first.pk)
        assert [(data["source_type"], data["count"]) for _, data in told] == [("auto_compaction", 1)]
