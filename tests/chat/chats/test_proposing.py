"""“Remember this” on a question or an answer proposes a statement; the question itself is never stored."""

import pytest
from django.test import Client
from django.urls import reverse

from chat.models import Chat, Message
from chat.turns.remember_this import is_question
from memories.models import Memory
from tests.api import Api
from tests.conftest import Cast
from tests.factories import make_chat, make_message
from tests.fakes.openai_server import Answer, Failure, ScriptedOpenAI

pytestmark = pytest.mark.django_db
ANSWER = "## Deadline\n\n**Falcon** is due on March 15. The budget is another matter."


@pytest.fixture
def chat(cast: Cast) -> Chat:
    return make_chat(cast.owner, cast.workspace)


def turn(chat: Chat, said: str, answer: str = ANSWER) -> tuple[Message, Message]:
    question = make_message(chat, said, author=chat.created_by)
    return question, make_message(chat, answer, "assistant", reply_to=question)


def proposed(cast: Cast, message: Message) -> dict[str, object]:
    answer = Api(cast.editor).post(f"{message.chat.public_id}/messages/{message.public_id}/proposal", {})
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_what_asks(chat: Chat) -> None:
    for text, asks in (
        ("When is Falcon due?", True),
        ("I am vegetarian. What can I cook?", False),
        ("I'm allergic to peanuts, okay?", False),
        ("\u6771\u4eac\u306b\u4f4f\u3093\u3067\u3044\u307e\u3059\u304b", True),
        (
            "\u59b9\u306e\u540d\u524d\u306f\u3055\u3084\u304b",
            False,
        ),  # a name that ends with the sign of the particle
        ("Our wiki is at https://example.org/?", False),
        ("什么时候到期\uff1f", True),
        ("你吃素吗", True),
        ("متى الموعد؟", True),
        ("Falcon is due on March 15.", False),
        ("Why? Because I said so.", False),
        ("See https://example.org/?q=1", False),
    ):
        assert is_question(make_message(chat, text)) is asks


def test_rest_stores_the_statement_of_a_message(cast: Cast, chat: Chat) -> None:
    for said, kept in (
        ("I'm allergic to peanuts, okay?", "I'm allergic to peanuts"),
        ("I am vegetarian. What can I cook?", "I am vegetarian."),
        ("Our wiki is at https://example.org/?", "Our wiki is at https://example.org/?"),
        ("When is Falcon due?", "When is Falcon due?"),  # a message given by its id is always stored
    ):
        question, _ = turn(chat, said)
        stored = Api(cast.editor).post(f"{chat.public_id}/memory", {"messageId": question.public_id})
        assert (stored.status_code, stored.json()["content"]) == (201, kept), said


def test_rest_proposes_a_statement_for_a_question(cast: Cast, chat: Chat) -> None:
    question, answer = turn(chat, "When is Falcon due?")
    for message in (question, answer):
        assert proposed(cast, message) == {"content": "Falcon is due on March 15.", "synthesized": False}
    assert not Memory.objects.exists(), "a proposal stores nothing"


def test_the_page_shows_the_limit_of_a_message_that_is_too_long(cast: Cast, chat: Chat) -> None:
    message, _ = turn(chat, "We ship on Fridays. " * 120)
    client = Client()
    client.force_login(cast.editor)
    asked = client.post(reverse("chat:remember", args=[chat.public_id, message.public_id])).content.decode()
    assert "A memory has at most 2,000 characters: 400 are too many." in asked
    assert not Memory.objects.exists()


def test_the_page_offers_a_better_proposal_when_the_model_has_one(
    cast: Cast, chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    question, _ = turn(chat, "When is Falcon due?")
    client = Client()
    client.force_login(cast.editor)
    url = reverse("chat:remember", args=[chat.public_id, question.public_id])
    assert "Falcon is due on March 15." in client.post(url).content.decode()
    assert not scripted_model.chat_requests, "nobody waits for a model"
    scripted_model.respond = lambda request: Answer("Falcon is due on March 15.")
    assert "</textarea>" in client.post(url, {"improve": "on"}).content.decode()
    assert "</textarea>" in client.post(url, {"improve": "on", "content": "Falcon"}).content.decode()
    assert not Memory.objects.exists(), "asking for a better proposal stores nothing"
    scripted_model.respond = lambda request: Failure(401, "no")
    assert client.post(url, {"improve": "on"}).status_code == 204


def test_the_model_writes_it_of_question_and_answer(
    cast: Cast, chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    question, answer = turn(chat, "When is Falcon due?")
    scripted_model.respond = lambda request: Answer("<think>hm</think>Falcon is due on March 15.")
    for message in (question, answer):
        assert proposed(cast, message) == {"content": "Falcon is due on March 15.", "synthesized": True}
        said = scripted_model.chat_requests[-1].messages[1]["content"]
        assert "user: When is Falcon due?" in said and "assistant: **Falcon** is due" in said
    for reply in (Failure(401, "no"), Answer("Sorry, I can't."), Answer("Bananas!")):
        scripted_model.script(reply)
        assert proposed(cast, answer)["synthesized"] is False


def test_the_page_asks_what_to_remember_and_stores_what_was_edited(cast: Cast, chat: Chat) -> None:
    client = Client()
    client.force_login(cast.editor)
    for message in turn(chat, "When is Falcon due?", "Falcon <b>is</b> due on March 15."):
        url = reverse("chat:remember", args=[chat.public_id, message.public_id])
        asked = client.post(url).content.decode()
        assert ">Falcon &lt;b&gt;is&lt;/b&gt; due on March 15.</textarea>" in asked
        assert not Memory.objects.exists()
        saved = client.post(url, {"content": "Falcon: March 15"})
        assert "Remembered" in saved.content.decode()
        memory = Memory.objects.get()
        assert (memory.content, memory.source_message_id) == ("Falcon: March 15", message.public_id)
        memory.delete()
    number = client.post(url, {"content": "My card is 4111 1111 1111 1111"})
    assert number.status_code == 422
    assert 'name="content" value="My card is 4111 1111 1111 1111"' in number.content.decode()
    assert client.post(url, {"content": " "}).status_code == 422
    client.force_login(cast.viewer)
    assert client.post(url).status_code == 403
    client.force_login(cast.stranger)
    assert client.post(url).status_code == 404
