"""“Remember this” with ``synthesize``, and running an extraction again, as seed 003 specifies them."""

import json
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks
from pytest_django.fixtures import Settings

from chat.models import Chat, Message
from memories import tasks
from memories.models import Memory
from memories.writing.changing import version_of
from memories.writing.gate import edit_memory
from tests.api import Api, error_of
from tests.conftest import Cast
from tests.factories import make_chat, make_memory, make_message
from tests.fakes.openai_server import Answer, Failure, ScriptedOpenAI

SAID = (
    "Hi! So we talked about it again, and the launch of Falcon, well, it was moved to March 15 now, thanks."
)
STATEMENT = "The launch of Falcon was moved to March 15."


@pytest.fixture
def chat(cast: Cast) -> Chat:
    return make_chat(cast.editor, cast.workspace)


@pytest.fixture
def message(chat: Chat) -> Message:
    return make_message(chat, SAID)


def remember(cast: Cast, chat: Chat, **body: Any) -> Any:
    return Api(cast.editor).post(f"{chat.public_id}/memory", {"synthesize": True, **body})


def candidates(*texts: str) -> str:
    return json.dumps([{"text": text, "kind": "fact", "importance": 0.7} for text in texts])


def test_the_model_rewrites_a_message_before_it_is_stored(
    cast: Cast, chat: Chat, message: Message, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.script(Answer(STATEMENT))
    made = remember(cast, chat, messageId=message.public_id, category="decision")
    assert made.status_code == 201
    shown = made.json()
    assert (shown["content"], shown["synthesized"], shown["duplicate"]) == (STATEMENT, True, False)
    assert (shown["summary"], shown["category"], shown["source_type"]) == (None, "decision", "user")
    assert (shown["source_chat_id"], shown["source_message_id"]) == (chat.public_id, message.public_id)
    assert "launch of Falcon, well" in scripted_model.requests[0].last_user_text
    assert [memory.content for memory in Memory.objects.all()] == [STATEMENT]


def test_a_statement_that_is_known_is_not_stored_again(
    cast: Cast, chat: Chat, message: Message, scripted_model: ScriptedOpenAI
) -> None:
    known = make_memory(STATEMENT, cast.owner, cast.workspace)
    scripted_model.script(Answer(STATEMENT))
    answer = remember(cast, chat, messageId=message.public_id)
    assert (answer.status_code, answer.json()["id"], answer.json()["duplicate"]) == (
        200,
        known.public_id,
        True,
    )


def test_a_statement_with_a_secret_is_refused(
    cast: Cast, chat: Chat, message: Message, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.script(Answer("The launch password is password=hunter2hunter2"))
    refused = remember(cast, chat, messageId=message.public_id)
    assert (refused.status_code, error_of(refused)["code"]) == (422, "secret")
    assert not Memory.objects.exists()


def test_where_the_model_is_too_small_the_text_is_kept_and_the_answer_says_so(
    cast: Cast, chat: Chat, message: Message, scripted_model: ScriptedOpenAI, settings: Settings
) -> None:
    settings.LLM_CAN_EXTRACT = False
    made = remember(cast, chat, messageId=message.public_id)
    assert (made.status_code, made.json()["content"], made.json()["synthesized"]) == (201, SAID, False)
    assert scripted_model.requests == []
    memory = Memory.objects.get()
    assert memory.source_details == {"synthesize": True, "synthesized": False}


@pytest.mark.parametrize("reply", [Failure(401), Answer("I'm sorry, I cannot do that."), Answer("")])
def test_what_a_model_fails_at_is_kept_as_it_is_and_tried_again_in_the_background(
    reply: Failure | Answer,
    cast: Cast,
    chat: Chat,
    message: Message,
    scripted_model: ScriptedOpenAI,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    scripted_model.respond = lambda request: reply
    with django_capture_on_commit_callbacks() as later:
        made = remember(cast, chat, messageId=message.public_id)
    assert (made.status_code, made.json()["content"], made.json()["synthesized"]) == (201, SAID, False)
    assert any("rerun" in getattr(callback, "__qualname__", "") for callback in later)
    scripted_model.respond = lambda request: Answer(STATEMENT)
    tasks.rerun_extraction(memory_id=Memory.objects.get().pk, by_id=cast.editor.pk)
    assert Memory.objects.get().content == STATEMENT


@pytest.mark.parametrize("synthesized", [True, False])
def test_running_an_extraction_again_refreshes_the_same_row(
    synthesized: bool, cast: Cast, chat: Chat, message: Message, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.respond = lambda request: Answer(STATEMENT)
    made = remember(cast, chat, messageId=message.public_id, synthesize=synthesized)
    before = made.json()

    answer = Api(cast.editor).post(f"{chat.public_id}/memories/{before['id']}/rerun-extraction")
    assert answer.status_code == 202
    shown = {name: before[name] for name in before if name not in ("duplicate", "synthesized")}
    assert answer.json() == shown  # unchanged so far: the work is done in the background
    assert answer["ETag"] == made["ETag"]

    newer = "Falcon starts on March 15."
    scripted_model.respond = lambda request: Answer(
        newer
        if "You rewrite one message" in request.messages[0]["content"]
        else candidates("Falcon: March 15")
    )
    tasks.rerun_extraction(memory_id=Memory.objects.get().pk, by_id=cast.editor.pk)
    after = Api(cast.editor).get(f"workspaces/{cast.workspace.public_id}/memories/{before['id']}")
    assert after.json()["summary"] == "Falcon: March 15"
    assert after.json()["content"] == (newer if synthesized else SAID)
    assert after["ETag"] != made["ETag"]


def test_what_somebody_edits_meanwhile_is_not_overwritten(
    cast: Cast, chat: Chat, message: Message, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.respond = lambda request: Answer(STATEMENT)
    memory = Memory.objects.get(public_id=remember(cast, chat, messageId=message.public_id).json()["id"])
    version = version_of(memory)
    edit_memory(memory, by=cast.owner, now=timezone.now(), content="Falcon has no date yet")
    scripted_model.respond = lambda request: Answer("Falcon starts on March 15.")
    job = {"memory_id": memory.pk, "by_id": cast.editor.pk}
    assert "somebody edited it" in tasks.rerun_extraction(**job, version=version)
    assert Memory.objects.get().content == "Falcon has no date yet"
