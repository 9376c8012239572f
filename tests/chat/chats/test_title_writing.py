"""A new chat's title, written by the model that answers there."""

from typing import Any

import pytest
from django.utils import timezone
from django_q.models import OrmQ

from chat.chats.services import rename_chat, title_from
from chat.models import Chat, Message
from chat.tasks import title_chat
from chat.turns.services import begin_turn
from chat.turns.titles import clean_title
from chat.turns.turn import wait_until_idle
from tests.conftest import Cast
from tests.factories import make_chat, make_connection, make_memory
from tests.fakes.openai_server import Answer, Failure, ScriptedOpenAI
from workspaces.models import Budget

pytestmark = pytest.mark.django_db(transaction=True)
QUESTION = "Can you help me plan a three-day trip to Lisbon with two small children in May? <b>Thanks</b>"


def ask(chat: Chat, text: str = QUESTION) -> Message:
    turn = begin_turn(chat, content=text, by=chat.created_by, now=timezone.now())
    assert wait_until_idle(10)
    chat.refresh_from_db()
    return turn.answer


def jobs() -> list[dict[str, Any]]:
    return [
        task.task["kwargs"] for task in OrmQ.objects.all() if task.task["func"] == "chat.tasks.title_chat"
    ]


def test_first_message_is_named_by_the_model(cast: Cast, scripted_model: ScriptedOpenAI) -> None:
    make_memory("The trip to Lisbon is a surprise for Nora", cast.owner, cast.workspace)
    chat = make_chat(cast.owner, cast.workspace)
    ask(chat)
    assert chat.title == title_from(QUESTION)
    [job] = jobs()
    scripted_model.title = Answer("“Family Trip to Lisbon.”")
    assert title_chat(**job) == "named"
    chat.refresh_from_db()
    assert chat.title == "Family Trip to Lisbon"
    sent = scripted_model.title_requests[-1].messages
    assert len(sent) == 2 and "&lt;b&gt;" in sent[1]["content"]
    assert "Nora" not in str(sent), "only the message: an answer may rest on what others must not read"
    assert title_chat(**job) == "it has a name" and len(scripted_model.title_requests) == 1
    ask(chat, "And what about the weather?")
    assert len(jobs()) == 1


def test_short_message_is_its_own_title(cast: Cast, scripted_model: ScriptedOpenAI) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    ask(chat, "When is my  project deadline?")
    assert (chat.title, jobs()) == ("When is my project deadline?", [])


def test_name_that_somebody_gave_stays(cast: Cast, scripted_model: ScriptedOpenAI) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    ask(chat)
    [job] = jobs()
    rename_chat(chat, title="Holidays")
    assert title_chat(**job) == "it has a name"
    chat.refresh_from_db()
    assert chat.title == "Holidays"


def test_reply_that_is_no_title_is_left(cast: Cast, scripted_model: ScriptedOpenAI) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    ask(chat)
    [job] = jobs()
    for reply, said in ((Answer("Of course! " * 30), "kept"), (Failure(401), "failed: model_refused")):
        scripted_model.title = reply
        assert title_chat(**job) == said
    Budget.objects.create(workspace=cast.workspace, tokens=1)
    assert title_chat(**job) == "the budget of the month is used up"
    chat.refresh_from_db()
    assert chat.title == title_from(QUESTION)


def test_small_model_and_temporary_chat_are_not_asked(cast: Cast, scripted_model: ScriptedOpenAI) -> None:
    small = make_connection(
        base_url=scripted_model.base_url, api_key="test-key", is_local=True, can_extract=False
    )
    chat = make_chat(cast.owner, cast.workspace)
    Chat.objects.filter(pk=chat.pk).update(connection=small)
    chat.refresh_from_db()
    ask(chat)
    temporary = make_chat(cast.owner, cast.workspace)
    Chat.objects.filter(pk=temporary.pk).update(is_temporary=True)
    temporary.refresh_from_db()
    ask(temporary)
    assert jobs() == []


def test_title_is_taken_out_of_the_reply() -> None:
    for reply, title in (
        ('"Trip to Lisbon"', "Trip to Lisbon"),
        ("**Title: Trip**", "Trip"),
        ("Trip\nto \x00Lisbon.", "Trip to Lisbon"),
        ("\x00 ", ""),
        ("x" * 81, ""),
    ):
        assert clean_title(reply) == title, reply[:20]
