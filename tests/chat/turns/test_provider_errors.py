"""A turn when the provider fails, over real HTTP: retries, and a plain error message."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from chat.live_answers import advice_for, reason_of
from chat.models import Chat, Message, MessageRole, MessageStatus
from chat.turns.services import begin_turn
from chat.turns.turn import wait_until_idle
from memoryhub.llm import errors, openai_errors
from memoryhub.llm.registry import embedded_endpoint
from tests.factories import make_chat, make_connection, make_memory, make_message, make_user
from tests.fakes.openai_server import Answer, Call, Drop, Failure, Hang, Received, Reply, ScriptedOpenAI

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    monkeypatch.setattr(openai_errors, "RETRY_DELAYS_SECONDS", (0.0, 0.0))
    settings.LLM_TIMEOUT = 0.5  # type: ignore[assignment]


@pytest.fixture
def chat(scripted_openai: ScriptedOpenAI) -> Chat:
    """Create a chat that uses a connection to the scripted server."""
    at = {
        "base_url": scripted_openai.base_url,
        "api_key": scripted_openai.api_key,
        "model": scripted_openai.model,
    }
    connection = make_connection(name="House model", **at)
    return make_chat(make_user("olive", memory_default=True), connection=connection)


def ask(chat: Chat, content: str = "Hello?") -> Message:
    turn = begin_turn(chat, content=content, by=chat.created_by, now=timezone.now())
    assert wait_until_idle(15)
    turn.answer.refresh_from_db()
    return turn.answer


def page(chat: Chat) -> str:
    client = Client()
    client.force_login(chat.created_by)
    return " ".join(client.get(f"/chats/{chat.public_id}/").content.decode().split())


FAILURES: list[tuple[str, list[Reply], str, str, str]] = [
    # name, replies, code, part of the error, advice on the page
    ("401", [Failure(401, "no")], "model_refused", "refused the API key", "The person who set up the connection"),
    ("404", [Failure(404, "no such model")], "model_not_found", "does not know this model", "The person who set up"),
    ("429 long", [Failure(429, "slow", headers={"retry-after": "30"})], "model_rate_limited",
     "It asks to wait 30 s.", "Retry after a while."),
    ("429 thrice", [Failure(429, "slow", headers={"retry-after": "0"})] * 3, "model_rate_limited",
     "limiting requests", "Retry after a while."),
    ("500", [Failure(500, "broken")] * 3, "model_unavailable", "cannot be reached", "Retried without success"),
    ("silence", [Hang()], "model_timeout", "took too long", "Retry when it is less busy"),
    ("cut", [Answer("Half an", " answer", cut=True)], "model_cut", "broke before the answer was complete",
     "Retry regenerates the answer"),
    ("filter", [Answer("I", finish_reason="content_filter")], "content_filtered", "content filter",
     "Rephrase it"),
    ("overflow", [Failure(400, "no", code="context_length_exceeded")], "model_context_overflow",
     "too long for the model", "start a new chat"),
    ("redirect", [Failure(307, headers={"location": "https://evil.example/v1"})], "model_moved",
     "redirects to another address", "The person who set up the connection"),
    ("bad request", [Failure(400, "messages must alternate")], "model_bad_request", "rejected the request",
     "The person who set up the connection"),
]  # fmt: skip


def test_each_failure_has_a_message_and_advice(chat: Chat, scripted_openai: ScriptedOpenAI) -> None:
    for name, replies, code, said, advice in FAILURES:
        chat = make_chat(chat.created_by, connection=chat.connection)
        scripted_openai.script(*replies)
        before = len(scripted_openai.chat_requests)
        answer = ask(chat)
        assert (answer.status, answer.error_code) == (MessageStatus.FAILED, code), name
        assert said in answer.error, name
        saved = "the text so far are saved." if answer.content else "Your message is saved."
        assert answer.error.endswith(saved), name
        assert len(scripted_openai.chat_requests) - before == len(replies), name
        shown = page(chat)
        assert answer.error.replace("'", "&#x27;") in shown and advice in shown, name
        assert "Retry</button>" in shown, name
        assert Message.objects.filter(chat=chat, role=MessageRole.USER, content="Hello?").exists(), name


def test_passing_failure_is_retried_silently(chat: Chat, scripted_openai: ScriptedOpenAI) -> None:
    passing: list[list[Reply]] = [
        [Failure(429, "slow", headers={"retry-after": "0"})],
        [Failure(500, "broken"), Failure(503, "starting")],
        [Drop(), Failure(502, "gateway")],
    ]
    for failures in passing:
        scripted_openai.script(*failures, Answer("Here it is."))
        answer = ask(chat)
        assert (answer.status, answer.content, answer.error) == ("done", "Here it is.", ""), failures


def talk(chat: Chat, turns: int) -> list[Message]:
    said = []
    for number in range(turns):
        question = make_message(chat, f"Question {number}: " + "word " * 150)
        said += [question, make_message(chat, "answer " * 150, role=MessageRole.ASSISTANT, reply_to=question)]
    return said


def test_a_conversation_too_long_is_told_once_more_with_less(
    chat: Chat, scripted_openai: ScriptedOpenAI
) -> None:
    said = talk(chat, 8)

    def small(request: Received) -> Reply:
        length = sum(len(message["content"]) for message in request.messages)
        too_long = Failure(
            400, "This model's maximum context length is 1000 tokens", code="context_length_exceeded"
        )
        return too_long if length > 8000 else Answer("It fits.")

    scripted_openai.respond = small
    answer = ask(chat, "And now?")
    assert (answer.status, answer.content) == ("done", "It fits.")
    first, second = scripted_openai.chat_requests[:2]
    assert second.last_user_text == first.last_user_text == "And now?"
    history = [m for m in second.messages if m["role"] != "system"]
    assert history[0]["role"] == "user" and 1 < len(history) < len(said)
    shown = next(m for m in said if m.content == history[0]["content"])
    assert answer.seen_from == shown.pk, "the page says from where on the model saw the conversation"


def test_what_does_not_fit_then_either_is_said(chat: Chat, scripted_openai: ScriptedOpenAI) -> None:
    talk(chat, 4)
    scripted_openai.respond = lambda request: Failure(400, "no", code="context_length_exceeded")
    answer = ask(chat)
    assert answer.error_code == "model_context_overflow"
    assert len(scripted_openai.chat_requests) == 2
    assert "Less of the conversation has already been tried" in page(chat)


def test_nothing_is_done_twice_after_tools_have_acted(chat: Chat, scripted_openai: ScriptedOpenAI) -> None:
    talk(chat, 4)
    overflow = Failure(400, "no", code="context_length_exceeded")
    scripted_openai.script(Answer(calls=[Call("x_save_memory", {"content": "Olive likes tea"})]), overflow)
    answer = ask(chat)
    assert answer.error_code == "model_context_overflow"
    assert answer.tool_calls.count() == 1


def test_the_next_turn_uses_a_key_that_was_put_right(chat: Chat, scripted_openai: ScriptedOpenAI) -> None:
    from workspaces.actions.model_connections import update_connection

    admin = make_user(is_staff=True, is_superuser=True)
    connection = chat.connection
    assert connection is not None
    update_connection(connection, by=admin, now=timezone.now(), api_key="wrong")
    assert ask(chat).error_code == "model_refused"
    update_connection(connection, by=admin, now=timezone.now(), api_key=scripted_openai.api_key)
    assert ask(chat).status == "done"


def test_a_persons_connection_that_points_inside_is_refused_at_the_door(
    scripted_openai: ScriptedOpenAI, settings: Settings
) -> None:
    """The address is refused under any host name, and even if its DNS changed later."""
    settings.PEOPLE_MAY_CONNECT = True
    olive = make_user(memory_default=True)
    mine = make_connection(olive, base_url=f"http://localhost:{scripted_openai.port}/v1", model="m")
    answer = ask(make_chat(olive, connection=mine))
    assert answer.error_code == "model_address_refused"
    assert scripted_openai.connections == 0


def test_nothing_of_a_provider_is_logged_or_shown(
    chat: Chat, scripted_openai: ScriptedOpenAI, caplog: pytest.LogCaptureFixture
) -> None:
    make_memory("The zebra is striped", chat.created_by)
    scripted_openai.script(Failure(400, "You said: Hello zebra, sk-secret"))
    answer = ask(chat, "Hello zebra")
    assert "zebra" not in caplog.text and "sk-" not in caplog.text and "zebra" not in answer.error


def test_time_to_wait_is_given_in_words() -> None:
    for seconds, said in ((None, ""), (0.4, ""), (12.2, "It asks to wait 13 s."), (600, "It asks to wait 10 min."),
     (86_400, "It asks to wait for more than an hour.")):  # fmt: skip
        reason = reason_of(errors.ModelRateLimited(retry_after=seconds), has_text=False)
        assert said in reason and reason.endswith("Your message is saved."), seconds


def test_every_failure_of_a_model_has_advice() -> None:
    kinds: list[Any] = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    codes = [
        kind.code for kind in kinds if issubclass(kind, errors.ModelError) and kind is not errors.ModelError
    ]
    assert [code for code in codes if not advice_for(code)] == []


@pytest.mark.local_model
@pytest.mark.usefixtures("local_model")
def test_a_connection_to_the_embedded_server_answers_and_its_errors_have_faces(settings: Settings) -> None:
    """The scripted server's errors match those of a real one."""
    settings.LLM_TIMEOUT = 60.0  # type: ignore[assignment]
    real = embedded_endpoint()
    assert real is not None
    at = {"base_url": real.base_url, "api_key": real.api_key, "model": real.model, "is_local": True}
    small = {"has_tools": False, "can_extract": False, "context_tokens": 2048}
    olive = make_user()
    chat = make_chat(olive, connection=make_connection(**at, **small))
    chat.workspace.local_only = True
    chat.workspace.save()
    answer = ask(chat, "Say hello.")
    assert (answer.status, answer.model) == ("done", real.model) and answer.content
    wrong = make_chat(olive, connection=make_connection(**{**at, "api_key": "wrong"}, **small))
    assert ask(wrong).error_code == "model_refused"
    too_much = make_chat(olive, connection=make_connection(**at, **{**small, "context_tokens": 100_000}))
    assert ask(too_much, "word " * 6000).error_code == "model_context_overflow"
