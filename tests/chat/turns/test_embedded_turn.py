"""Whole turns on the real embedded model, which calls no tools and cannot summarize, so neither is offered."""

from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from chat.live_answers import CUT, CUT_SENTENCE
from chat.models import Chat, Compaction, Message, MessageStatus, Mode, ShortTermMemory, ToolCall
from chat.turns.services import begin_turn, continue_answer
from chat.turns.turn import wait_until_idle
from memories.models import ReceiptItem
from memoryhub.errors import Invalid
from tests.api import Api, error_of
from tests.factories import make_chat, make_memory, make_message, make_user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.local_model]


def test_long_chat_is_answered_without_tools_and_the_page_says_what_is_left_out(
    local_model: Path, settings: Settings
) -> None:
    settings.LLM_HISTORY_TOKENS, settings.LLM_MAX_TOKENS = 300, 60  # so that the model reads and writes less
    chat = make_chat(make_user("olive", memory_default=True))
    for number in range(20):
        question = make_message(chat, f"Question {number} " + "about the sea and the hills " * 8)
        make_message(chat, f"Answer {number}: blue.", "assistant", reply_to=question)
    turn = begin_turn(chat, content="What is the sea?", by=chat.created_by, now=timezone.now())
    assert wait_until_idle(60)
    turn.answer.refresh_from_db()
    assert turn.answer.status == MessageStatus.DONE
    assert turn.answer.error in ("", CUT_SENTENCE), "how long a small model goes on is another each time"
    assert turn.answer.seen_from is not None
    assert ShortTermMemory.objects.get().summary == ""
    assert not ToolCall.objects.exists()
    assert not Compaction.objects.exists()
    client = Client()
    client.force_login(chat.created_by)
    page = client.get(f"/chats/{chat.public_id}/").content.decode()
    assert "The model no longer sees the messages above" in page
    assert "This model cannot write it" in client.get(f"/chats/{chat.public_id}/short-term/").content.decode()


def test_a_cut_answer_goes_on_where_it_stopped(local_model: Path) -> None:
    """Asked to continue in words, so small a model started over."""
    chat = make_chat(make_user("olive", memory_default=True))
    question = make_message(chat, "Count from 1 to 20.")
    so_far = "1, 2, 3, 4, 5, 6, 7,"
    answer = make_message(chat, so_far, "assistant", reply_to=question, status="done", error_code=CUT)
    continue_answer(answer, by=chat.created_by, now=timezone.now())
    assert wait_until_idle(60)
    answer.refresh_from_db()
    assert answer.content.startswith(f"{so_far} 8, 9, 10")


def test_thinking_is_refused_with_what_is_allowed_and_the_page_offers_the_rest(local_model: Path) -> None:
    """No check of eight measured ones was the required JSON (docs/decisions/0016)."""
    chat = make_chat(make_user("olive", memory_default=True))
    with pytest.raises(Invalid, match="can extract memories"):
        begin_turn(chat, content="Hi", by=chat.created_by, now=timezone.now(), mode=Mode.DEEP_THINK)
    api = Api(chat.created_by)
    refused = api.post(f"{chat.public_id}/messages", {"content": "Hi", "mode": "deep_think"})
    assert refused.status_code == 422
    assert error_of(refused)["fields"]["mode"].endswith("Allowed: chat.")
    assert not chat.messages.exists()
    page = api.client.get(f"/chats/{chat.public_id}/").content.decode()
    assert 'name="mode"' not in page
    assert "The model in use is too small for that" in page


def ask(chat: Chat, question: str) -> Message:
    turn = begin_turn(chat, content=question, by=chat.created_by, now=timezone.now())
    assert wait_until_idle(60)
    turn.answer.refresh_from_db()
    assert turn.answer.status == MessageStatus.DONE
    return turn.answer


def test_question_is_answered_with_the_memory_alone(local_model: Path) -> None:
    """The README's story: so small a model would not repeat a memory reliably, so the memory itself is the answer."""
    chat = make_chat(make_user("olive", memory_default=True))
    make_memory("My project deadline is March 15", chat.created_by, chat.workspace)
    make_memory("The deadline of the budget is in May", chat.created_by, chat.workspace)
    make_memory("I am vegetarian", chat.created_by, chat.workspace)
    make_memory("I lead the design", make_user("bea"), chat.workspace)
    for question, answer in (
        ("When is my project deadline?", "My project deadline is March 15"),
        ("tell me my deadline", "My project deadline is March 15"),
        ("Wann ist die Abgabe meines Projekts?", "My project deadline is March 15"),
        ("Who leads the design?", "bea: I lead the design"),
    ):
        answered = ask(make_chat(chat.created_by), question)
        assert answered.content == answer, question
        used = ReceiptItem.objects.filter(receipt__message_id=answered.public_id, used=True)
        assert [item.content for item in used] == [answer.removeprefix("bea: ")], question


def test_question_about_everything_is_answered_with_an_overview(local_model: Path) -> None:
    chat = make_chat(make_user("olive", memory_default=True))
    texts = ("I am vegetarian", "I live in Porto", "I play the violin")
    for text in texts:
        make_memory(text, chat.created_by, chat.workspace)
    answered = ask(chat, "What do you know about me?")
    assert set(answered.content.splitlines()) == {f"- {text}" for text in texts}
    assert ReceiptItem.objects.filter(receipt__message_id=answered.public_id, used=True).count() == 3


def test_advice_is_given_by_the_model_and_not_by_a_memory(local_model: Path) -> None:
    chat = make_chat(make_user("olive", memory_default=True))
    make_memory("I am vegetarian", chat.created_by, chat.workspace)
    answered = ask(chat, "What should I cook tonight?")
    assert answered.content
    assert not answered.content.startswith("I am vegetarian")
