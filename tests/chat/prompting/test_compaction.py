"""Older messages are summarized behind a turn, over real HTTP; small models leave them out and report it."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from chat.models import Chat, Compaction, Message
from chat.tasks import compact_chat
from chat.turns import compaction
from chat.turns.compaction import compact
from chat.turns.services import begin_turn
from chat.turns.turn import wait_until_idle
from memories.models import Extraction, Memory
from memories.writing.extraction_jobs import extract
from tests.factories import make_chat, make_connection, make_message, make_user
from tests.fakes.openai_server import Answer, Failure, Received, Reply, ScriptedOpenAI
from workspaces.models import Membership, Role

pytestmark = pytest.mark.django_db(transaction=True)
SUMMARY = (
    "The user, Olive, plans the launch of Apollo on March 15 with Anna. They decided on PostgreSQL. " * 3
)
FILLER = "and some more words about it " * 12


@pytest.fixture
def chat(scripted_model: ScriptedOpenAI, settings: Any) -> Chat:
    settings.LLM_CONTEXT_TOKENS, settings.LLM_MAX_TOKENS, settings.LLM_HISTORY_TOKENS = 8000, 500, 2000
    return make_chat(make_user("olive", memory_default=True))


def talk(chat: Chat, rounds: int, length: int = 1) -> None:
    for number in range(rounds):
        question = make_message(chat, f"Question {number} {FILLER * length}")
        make_message(chat, f"Answer {number} {FILLER * length}", "assistant", reply_to=question)


def ask(chat: Chat, content: str = "And now?") -> Message:
    turn = begin_turn(chat, content=content, by=chat.created_by, now=timezone.now())
    assert wait_until_idle(15)
    turn.answer.refresh_from_db()
    return Message.objects.select_related("chat__workspace", "reply_to__author").get(pk=turn.answer.pk)


def answering(request: Received) -> Reply:
    """Answer a request for a summary with one, else with a short answer."""
    is_summary = "shorten a conversation" in request.messages[0]["content"]
    return Answer(SUMMARY if is_summary else "Fine.")


def summary_requests(server: ScriptedOpenAI) -> list[Received]:
    return [r for r in server.chat_requests if "shorten a conversation" in r.messages[0]["content"]]


def queued(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    jobs: list[int] = []
    monkeypatch.setattr(compaction, "queue_compaction", lambda answer, user: jobs.append(answer.pk))
    monkeypatch.setattr("chat.turns.turn.queue_compaction", lambda answer, user: jobs.append(answer.pk))
    return jobs


def test_a_full_history_is_summarised_behind_the_turn_and_the_next_one_reads_the_summary(
    chat: Chat, scripted_model: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = queued(monkeypatch)
    scripted_model.respond = answering
    talk(chat, 12)
    answer = ask(chat)
    assert jobs == [answer.pk]
    assert answer.seen_from is not None
    assert compact_chat(answer_id=answer.pk, user_id=chat.created_by.pk) == "stored 1"
    made = Compaction.objects.get()
    assert (made.summary, made.model) == (SUMMARY.strip(), scripted_model.model)
    assert made.upto.role == "assistant", "what stays begins with a person"
    assert "Question 0" in summary_requests(scripted_model)[0].last_user_text
    following = ask(chat)
    prompt = scripted_model.chat_requests[-1].messages
    assert prompt[1]["role"] == "system"
    assert prompt[1]["content"].endswith(SUMMARY.strip())
    shown = [m["content"] for m in prompt if m["role"] == "user" and m["content"].startswith("Question")]
    assert f"Question {12 - len(shown)} " in shown[0]
    assert following.seen_from is None
    assert compact_chat(answer_id=following.pk, user_id=chat.created_by.pk) == "stored 0", (
        "nothing more to do"
    )
    page = page_of(chat)
    assert page.count("Earlier messages were summarised") == 1 and "They decided on PostgreSQL" in page
    assert page.index(f'id="{made.upto.public_id}"') < page.index('class="compaction"')
    assert "no longer sees" not in page


def test_a_history_longer_than_the_model_can_read_is_summarised_in_portions_each_with_the_one_before(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.respond = answering
    talk(chat, 30, length=5)
    answer = ask(chat)
    compact(answer, chat.created_by, now=timezone.now())
    requests = summary_requests(scripted_model)
    assert len(requests) >= 3
    assert Compaction.objects.count() == len(requests)
    assert all(SUMMARY.strip() in request.last_user_text for request in requests[1:])
    assert all(len(str(request.messages)) < 8000 * 3.2 for request in requests)
    last = Compaction.objects.first()
    assert last is not None
    assert last.upto_id == max(Compaction.objects.values_list("upto_id", flat=True))


def test_one_message_longer_than_everything_is_cut(chat: Chat, scripted_model: ScriptedOpenAI) -> None:
    scripted_model.respond = answering
    make_message(chat, "word " * 6000)
    make_message(chat, "What a text.", "assistant")
    talk(chat, 8)
    compact(ask(chat), chat.created_by, now=timezone.now())
    assert all(len(str(request.messages)) < 8000 * 3.2 for request in summary_requests(scripted_model))
    assert Compaction.objects.exists()


def test_it_is_mined_for_memories_as_a_summary(chat: Chat, scripted_model: ScriptedOpenAI) -> None:
    scripted_model.respond = answering
    make_message(chat, "Apollo is launched on March 15")
    talk(chat, 12)
    answer = ask(chat)
    compact(answer, chat.created_by, now=timezone.now())
    mined = Extraction.objects.get(source_type="auto_compaction")
    assert mined.message_id == Compaction.objects.get().public_id
    scripted_model.script(Answer('[{"text": "The launch of Apollo is on March 15", "kind": "event"}]'))
    assert extract(mined.pk, now=timezone.now()) == "stored 1"
    memory = Memory.objects.get()
    assert (memory.source_type, memory.source_chat_id) == ("auto_compaction", chat.public_id)
    assert "wrote for itself" in scripted_model.chat_requests[-1].messages[0]["content"]


def test_without_memory_it_is_summarised_but_not_mined(chat: Chat, scripted_model: ScriptedOpenAI) -> None:
    scripted_model.respond = answering
    Chat.objects.update(memory_enabled=False)
    chat.refresh_from_db()
    talk(chat, 12)
    compact(ask(chat), chat.created_by, now=timezone.now())
    assert Compaction.objects.exists()
    assert not Extraction.objects.exists()


def test_failed_or_empty_summary_is_not_stored(chat: Chat, scripted_model: ScriptedOpenAI) -> None:
    for reply in (Failure(401, "bad key"), Answer("No.")):
        chat = make_chat(chat.created_by)
        scripted_model.respond = answering
        talk(chat, 12)
        answer = ask(chat)
        scripted_model.script(reply)
        compact(answer, chat.created_by, now=timezone.now())
        assert not Compaction.objects.exists(), reply


def test_of_two_workers_one_stores(
    chat: Chat, scripted_model: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted_model.respond = answering
    talk(chat, 12)
    answer = ask(chat)
    real = compaction._summarise

    def while_another_stores(*args: Any) -> Compaction | None:
        made = real(*args)
        if not Compaction.objects.exists():
            Compaction.objects.create(chat=chat, upto=args[2][-1], summary="The other one's", model="x")
        return made

    monkeypatch.setattr(compaction, "_summarise", while_another_stores)
    compact(answer, chat.created_by, now=timezone.now())
    assert [row.summary for row in Compaction.objects.all()] == ["The other one's"]


def test_a_deleted_chat_is_not_summarised(chat: Chat, scripted_model: ScriptedOpenAI) -> None:
    scripted_model.respond = answering
    talk(chat, 12)
    answer = ask(chat)
    Chat.objects.update(deleted_at=timezone.now())
    assert (
        compact_chat(answer_id=answer.pk, user_id=chat.created_by.pk) == "the answer is gone, or its person"
    )


def test_it_is_asked_of_the_model_of_the_person_whose_turn_it_was(
    chat: Chat, scripted_model: ScriptedOpenAI, settings: Any
) -> None:
    settings.PEOPLE_MAY_CONNECT = settings.PEOPLE_MAY_CONNECT_INTERNAL = True
    another = make_user("petra", memory_default=True)
    Membership.objects.create(workspace=chat.workspace, user=another, role=Role.EDITOR)
    chat.connection = make_connection(
        chat.created_by, base_url=scripted_model.base_url, model="of-olive", context_tokens=8000
    )
    chat.save()
    scripted_model.respond = answering
    talk(chat, 12)
    answer = ask(chat)
    compact(answer, another, now=timezone.now())
    assert [request.body["model"] for request in summary_requests(scripted_model)] == [scripted_model.model]
    assert Extraction.objects.get(source_type="auto_compaction").user == another
    Compaction.objects.all().delete()
    compact(answer, chat.created_by, now=timezone.now())
    assert summary_requests(scripted_model)[-1].body["model"] == "of-olive"


def page_of(chat: Chat) -> str:
    client = Client()
    client.force_login(chat.created_by)
    return client.get(f"/chats/{chat.public_id}/").content.decode()


def test_a_model_too_small_to_summarise_leaves_out_and_the_page_says_so(
    chat: Chat, scripted_model: ScriptedOpenAI, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.LLM_CAN_EXTRACT = settings.LLM_HAS_TOOLS = False
    jobs = queued(monkeypatch)
    scripted_model.respond = answering
    talk(chat, 12)
    answer = ask(chat)
    assert jobs == []
    assert compact(answer, chat.created_by, now=timezone.now()) == "the model is too small to summarise"
    page = page_of(chat)
    assert page.count("The model no longer sees the messages above") == 1
    assert answer.seen_from is not None
    first = Message.objects.get(pk=answer.seen_from)
    assert f'id="compaction-{first.public_id}"' in page
    sent = scripted_model.chat_requests[-1].messages
    assert sent[1]["content"] == first.content
