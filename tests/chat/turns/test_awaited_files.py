"""A message waits for its own files, shows that it does, and is answered with their text."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from chat.answer_steps import step_event
from chat.live_answers import stop_answer
from chat.models import Chat, Message, MessageStatus
from chat.models.answer_steps import StepKind
from chat.turns import turn as awaited_files
from chat.turns.services import begin_turn, retry_answer
from chat.turns.turn import wait_until_idle
from tests.api import Api
from tests.factories import add_member, make_chat, make_user
from tests.fakes.openai_server import Answer, ScriptedOpenAI
from workspaces import tasks
from workspaces.documents import documents, reading_jobs
from workspaces.models import Document
from workspaces.models.documents import DOCUMENT

pytestmark = pytest.mark.django_db(transaction=True)
TEXT = b"The eastern warehouse: its keeper is Morag Tulloch."


@pytest.fixture(autouse=True)
def _settings(settings: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings.FILES_DIR, settings.FILE_WAIT_SECONDS = tmp_path, 30
    monkeypatch.setattr(awaited_files, "POLL", 0.05)
    monkeypatch.setattr(awaited_files, "INDEXED_WITHIN", 30)
    yield


@pytest.fixture
def chat(scripted_model: ScriptedOpenAI) -> Chat:
    return make_chat(make_user("olive"))


def brought(chat: Chat, name: str = "report.txt", **given: Any) -> Document:
    made = {"content": [TEXT + name.encode()], "by": chat.created_by, "now": timezone.now()} | given
    return documents.add_document(chat.workspace, name=name, **made).document


def ask(chat: Chat, *named: Document, content: str = "Who keeps the eastern warehouse?") -> Message:
    ids = [each.public_id for each in named]
    return begin_turn(chat, content=content, by=chat.created_by, now=timezone.now(), documents=ids).answer


def done(answer: Message) -> Message:
    assert wait_until_idle(20)
    answer.refresh_from_db()
    return answer


def line_of(answer: Message) -> str:
    """Return the line of its waiting step over REST."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        found = Api(answer.chat.created_by).get(f"{answer.chat.public_id}/messages").json()["items"]
        steps = [step for message in found for step in message["steps"]]
        if steps:
            assert [step["kind"] for step in steps] == ["reading"]
            return str(steps[0]["line"])
        time.sleep(0.05)
    return ""


def prompt(server: ScriptedOpenAI) -> str:
    return "\n".join(str(message["content"]) for message in server.chat_requests[-1].messages)


def page(chat: Chat) -> str:
    client = Client()
    client.force_login(chat.created_by)
    return client.get(f"/chats/{chat.public_id}/").content.decode()


def test_it_is_answered_from_a_file_that_was_read_meanwhile(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.script(Answer("Morag Tulloch. [1]"))
    document = brought(chat)
    answer = ask(chat, document)
    assert line_of(answer) == "Reading report.txt …" and "Reading report.txt …" in page(chat)
    assert not scripted_model.chat_requests
    reading_jobs.read(document.pk, now=timezone.now())
    assert not scripted_model.chat_requests, "its vectors are waited for, too"
    tasks.embed_passages(kind=DOCUMENT, refs=list(document.passages.values_list("pk", flat=True)))
    assert done(answer).status == MessageStatus.DONE and "Morag Tulloch" in prompt(scripted_model)
    assert line_of(answer) == "Read report.txt." and "Read report.txt." in page(chat)


def test_after_the_stated_time_it_is_answered_and_says_what_was_not_read(
    chat: Chat, scripted_model: ScriptedOpenAI, settings: Any
) -> None:
    settings.FILE_WAIT_SECONDS = 1
    scripted_model.script(Answer("I cannot tell."))
    answer = done(ask(chat, brought(chat, title="a </documents> file")))
    said = "Not read in time, so the answer does without: a </documents> file."
    assert (answer.status, line_of(answer)) == (MessageStatus.DONE, said)
    assert "have not been read" in prompt(scripted_model)
    assert prompt(scripted_model).count("</documents>") == 1


def test_a_file_that_could_not_be_read_is_named(chat: Chat, scripted_model: ScriptedOpenAI) -> None:
    scripted_model.script(Answer("I cannot tell."))
    broken = brought(chat, "broken.pdf", content=[b"%PDF-1.4 and nothing more"])
    answer = ask(chat, broken)
    line_of(answer)
    reading_jobs.read(broken.pk, now=timezone.now())
    done(answer)
    assert line_of(answer) == "Could not be read, so the answer does without: broken.pdf."


def test_words_find_a_file_whose_vectors_take_long(
    chat: Chat, scripted_model: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(awaited_files, "INDEXED_WITHIN", 0.2)
    scripted_model.script(Answer("Morag Tulloch."))
    document = brought(chat)
    reading_jobs.read(document.pk, now=timezone.now())
    answer = done(ask(chat, document))
    assert line_of(answer) == (
        "Read report.txt. So far 0 % of it can be found by meaning, all of it by words."
    )
    assert "Morag Tulloch" in prompt(scripted_model)


def test_nothing_is_waited_for_where_all_are_ready_or_none_is_named(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.script(Answer("Hello."), Answer("Hello."))
    brought(chat, "other.txt")  # in the workspace, but not attached
    ready = brought(chat)
    reading_jobs.read(ready.pk, now=timezone.now())
    tasks.embed_passages(kind=DOCUMENT, refs=list(ready.passages.values_list("pk", flat=True)))
    assert not done(ask(chat, ready)).steps.exists()
    turn = begin_turn(chat, content="Hello?", by=chat.created_by, now=timezone.now())
    assert not done(turn.answer).steps.exists()


def test_a_stop_ends_the_wait(chat: Chat, scripted_model: ScriptedOpenAI) -> None:
    answer = ask(chat, brought(chat))
    line_of(answer)
    stop_answer(answer, now=timezone.now())
    assert done(answer).status == MessageStatus.STOPPED
    assert answer.steps.get().outcome == "stopped"


def test_another_attempt_waits_anew(chat: Chat, scripted_model: ScriptedOpenAI, settings: Any) -> None:
    settings.FILE_WAIT_SECONDS = 0
    scripted_model.script(Answer("I cannot tell."), Answer("Morag Tulloch."))
    document = brought(chat)
    answer = done(ask(chat, document))
    assert line_of(answer).startswith("Not read in time")
    reading_jobs.read(document.pk, now=timezone.now())
    again = retry_answer(answer, by=chat.created_by, now=timezone.now())
    assert not done(again).steps.filter(kind=StepKind.READING).exists()
    assert "Morag Tulloch" in prompt(scripted_model)


def test_titles_are_told_to_those_who_may_read_the_file_and_go_when_it_is_forgotten(
    chat: Chat, scripted_model: ScriptedOpenAI, settings: Any
) -> None:
    settings.FILE_WAIT_SECONDS = 0
    scripted_model.script(Answer("I cannot tell."))
    chat.personal_allowed_by = chat.created_by
    document = brought(chat, "diagnosis.txt", personal=True)
    answer = done(ask(chat, document))
    assert "diagnosis.txt" in line_of(answer)
    vera = make_user("vera")
    add_member(chat.workspace, user=vera, role="viewer", by=chat.created_by)
    shown = Api(vera).get(f"{chat.public_id}/messages")
    assert shown.status_code in (200, 404) and "diagnosis" not in shown.content.decode()
    documents.forget_document(document, by=chat.created_by)
    assert "diagnosis" not in line_of(answer) and "a file" in line_of(answer)


def test_stream_names_a_personal_file_only_in_a_private_chat(
    scripted_model: ScriptedOpenAI, settings: Any
) -> None:
    olive = make_user("olive")
    for is_private in (True, False):
        settings.FILE_WAIT_SECONDS = 0
        scripted_model.script(Answer("I cannot tell."))
        chat = make_chat(olive, is_private=is_private)
        answer = done(ask(chat, brought(chat, "diagnosis.txt", personal=True)))
        assert ("diagnosis.txt" in step_event(answer.steps.get())["text"]) is is_private, is_private
