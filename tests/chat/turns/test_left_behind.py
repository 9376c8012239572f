"""Turns whose process, or whose reader's membership, ended in the middle."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from chat.models import Chat, Message, MessageStatus
from chat.turns import turn
from tests.api import Api
from tests.conftest import Cast, make_cast
from tests.factories import make_chat, make_message
from tests.fakes.openai_server import Answer, ScriptedOpenAI
from workspaces.models import Membership

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cast(db: None) -> Cast:
    return make_cast()


def left_behind(cast: Cast, *, seconds: float) -> tuple[Chat, Message]:
    """Create an answer whose process gave its last heartbeat this many seconds ago."""
    chat = make_chat(cast.editor, cast.workspace)
    question = make_message(chat, "When is it?")
    at = timezone.now() - timedelta(seconds=seconds)
    answer = make_message(chat, "On Mar", "assistant", status="streaming", reply_to=question, beat_at=at)
    return chat, answer


def test_stop_takes_over_from_a_dead_process_so_that_another_turn_begins(
    cast: Cast, scripted_model: ScriptedOpenAI
) -> None:
    chat, answer = left_behind(cast, seconds=4)
    api = Api(cast.editor)
    assert api.post(f"{chat.public_id}/messages", {"content": "Hello?", "stream": False}).status_code == 409
    stopped = api.post(f"{chat.public_id}/messages/{answer.public_id}/stop").json()
    assert (stopped["status"], stopped["content"]) == ("stopped", "On Mar")
    scripted_model.script(Answer("Yes."))
    again = api.post(f"{chat.public_id}/messages", {"content": "Hello?", "stream": False})
    assert again.status_code == 201 and again.json()["answer"]["content"] == "Yes."


def test_a_client_that_only_reads_is_told_of_a_dead_answer_and_nothing_is_written(cast: Cast) -> None:
    chat, answer = left_behind(cast, seconds=9)
    read = Api(cast.viewer).get(f"{chat.public_id}/messages").json()["items"][-1]
    assert (read["status"], read["error"]["code"], read["content"]) == ("failed", "interrupted", "On Mar")
    answer.refresh_from_db()
    assert answer.status == MessageStatus.STREAMING


def test_an_answer_that_is_alive_reads_as_being_written(cast: Cast) -> None:
    chat, _answer = left_behind(cast, seconds=2)
    assert Api(cast.viewer).get(f"{chat.public_id}/messages").json()["items"][-1]["status"] == "streaming"


@pytest.mark.parametrize("stream", [False, True])
def test_a_member_removed_in_mid_turn_is_not_given_the_answer(
    cast: Cast, scripted_model: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    scripted_model.script(Answer("The merger price is secret."))
    store = turn._store_outcome

    def remove_and_store(*args: Any) -> None:
        Membership.objects.filter(user=cast.editor, workspace=cast.workspace).delete()
        store(*args)

    monkeypatch.setattr(turn, "_store_outcome", remove_and_store)
    response = Api(cast.editor).post(f"{chat.public_id}/messages", {"content": "Price?", "stream": stream})
    assert turn.wait_until_idle(10)
    if stream:
        body = b"".join(response).decode()
        assert "event: error" in body and "event: done" not in body and "event: receipt" not in body
    else:
        assert response.status_code == 404 and b"merger" not in response.content
    assert Message.objects.get(role="assistant").content == "The merger price is secret."
