import json
from collections.abc import Callable
from datetime import timedelta
from itertools import product
from unittest.mock import patch

import pytest
from django.utils import timezone

from memories import tasks
from memories.models import Extraction, Memory
from memories.writing import extraction_jobs as run
from memories.writing.gate import delete_memory
from memoryhub import pubsub
from memoryhub.errors import Conflict
from tests.factories import make_chat, make_memory, make_message, make_user, make_workspace
from tests.fakes.openai_server import Answer, Failure, ScriptedOpenAI

pytestmark = pytest.mark.django_db

SAID = "My project deadline is March 15 and I am vegetarian."


def queued(said: str = SAID, answer: str = "Noted.", **chat: object) -> Extraction:
    person = make_user()
    room = make_chat(person, **chat)
    question = make_message(room, said)
    reply = make_message(room, answer, "assistant", reply_to=question)
    return run.queue_extraction(
        workspace=room.workspace,
        user=person,
        chat_id=room.public_id,
        message_id=reply.public_id,
        source_type="auto_chat",
        now=timezone.now(),
    )


def candidates(*texts: str) -> str:
    return json.dumps([{"text": text, "kind": "fact", "importance": 0.7} for text in texts])


def test_the_rules_take_what_the_person_said_of_themselves() -> None:
    extraction = queued()
    tasks.extract_turn(extraction_id=extraction.pk)
    extraction.refresh_from_db()
    assert (extraction.status, extraction.extractor, extraction.stored_count) == ("done", "rules", 2)
    stored = {memory.content: memory for memory in Memory.objects.all()}
    assert any("March 15" in content for content in stored)
    assert any("vegetarian" in content for content in stored)
    memory = next(iter(stored.values()))
    assert (memory.source_type, memory.source_details["extractor"]) == ("auto_chat", "rules")
    assert (memory.source_chat_id, memory.author) == (extraction.chat_id, extraction.user)
    assert SAID in memory.source_excerpt


def replied(question: str, answer: str, **fields: object) -> list[Memory]:
    """Extract from a reply to the assistant's question. Return the memories."""
    person = make_user()
    room = make_chat(person)
    make_message(room, question, "assistant", reply_to=make_message(room, "Help me plan."), **fields)
    said = make_message(room, answer)
    done = make_message(room, "Noted.", "assistant", reply_to=said)
    extraction = run.queue_extraction(
        workspace=room.workspace, user=person, chat_id=room.public_id, message_id=done.public_id,
        source_type="auto_chat", now=timezone.now(),
    )  # fmt: skip
    tasks.extract_turn(extraction_id=extraction.pk)
    return list(Memory.objects.all())


def test_a_reply_is_stored_with_the_question_it_answers() -> None:
    [memory] = replied("Fine. Which database do you use?", "Postgres 16")
    assert memory.content == "Which database do you use? Postgres 16"
    assert (memory.review, memory.owner) == ("", None)


def test_a_reply_to_a_personal_answer_is_not_stored() -> None:
    """Its question may contain what only one person may read."""
    assert replied("Aunt Mabel has diabetes. Which sweetener does she use?", "Stevia", personal="held") == []


def test_a_capable_model_extracts(scripted_model: ScriptedOpenAI) -> None:
    scripted_model.script(
        Answer("Sure:\n```json\n" + candidates("The deadline is March 15", "Eats no meat") + "\n```")
    )
    extraction = queued()
    tasks.extract_turn(extraction_id=extraction.pk)
    extraction.refresh_from_db()
    assert (extraction.extractor, extraction.stored_count) == ("model", 2)
    assert set(Memory.objects.values_list("summary", flat=True)) == {
        "The deadline is March 15",
        "Eats no meat",
    }


def test_others_read_the_name_of_who_said_it(scripted_model: ScriptedOpenAI) -> None:
    scripted_model.script(Answer(candidates("User's dog is called Rex")))
    extraction = queued()
    tasks.extract_turn(extraction_id=extraction.pk)
    assert Memory.objects.get().content == "User's dog is called Rex"
    Memory.objects.all().delete()
    maria, other = make_user("maria", first_name="Maria"), make_user()
    room = make_chat(maria, make_workspace(owner=other, editor=maria))
    question = make_message(room, "My dog is called Rex")
    reply = make_message(room, "Hello Rex.", "assistant", reply_to=question)
    scripted_model.script(
        Answer(candidates("User's dog is called Rex", "The user lives in Oslo", "Users sign in"))
    )
    extraction = run.queue_extraction(
        workspace=room.workspace,
        user=maria,
        chat_id=room.public_id,
        message_id=reply.public_id,
        source_type="auto_chat",
        now=timezone.now(),
    )
    tasks.extract_turn(extraction_id=extraction.pk)
    assert {memory.content for memory in Memory.objects.all()} >= {"Maria's dog is called Rex"}
    assert not Memory.objects.filter(content__startswith="Maria sign").exists()


def test_it_runs_twice_and_stores_once(scripted_model: ScriptedOpenAI) -> None:
    scripted_model.script(Answer(candidates("One thing")), Answer(candidates("Another thing")))
    extraction = queued()
    tasks.extract_turn(extraction_id=extraction.pk)
    tasks.extract_turn(extraction_id=extraction.pk)
    assert [memory.content for memory in Memory.objects.all()] == ["One thing"]


def test_queued_twice_is_recorded_once() -> None:
    first = queued()
    again = run.queue_extraction(
        workspace=first.workspace,
        user=first.user,
        chat_id=first.chat_id,
        message_id=first.message_id,
        source_type=first.source_type,
        now=timezone.now(),
    )
    assert again == first


def test_a_worker_that_dies_before_the_commit_leaves_nothing_and_the_next_stores_all() -> None:
    extraction = queued()
    with (
        patch.object(run, "announce_auto_saved", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        tasks.extract_turn(extraction_id=extraction.pk)
    assert not Memory.objects.exists()
    tasks.extract_turn(extraction_id=extraction.pk)
    extraction.refresh_from_db()
    assert (extraction.status, extraction.attempts, Memory.objects.count()) == ("done", 2, 2)


def test_failures_back_off_and_are_given_up_visibly(scripted_model: ScriptedOpenAI) -> None:
    scripted_model.respond = lambda request: Failure(401, "bad key")
    extraction = queued()
    waits = []
    for _ in range(run.MAX_ATTEMPTS):
        now = timezone.now()
        run.extract(extraction.pk, now=now)
        extraction.refresh_from_db()
        waits.append(extraction.next_attempt_at - now)
    assert waits[:4] == [timedelta(seconds=30 * 2**n) for n in range(4)]
    assert (extraction.status, extraction.attempts) == ("failed", run.MAX_ATTEMPTS)
    assert "API key" in extraction.error
    assert run.extract(extraction.pk, now=timezone.now()) == "nothing to do"
    run.retry(extraction, now=timezone.now())
    scripted_model.respond = lambda request: Answer(candidates("At last"))
    run.extract(extraction.pk, now=timezone.now())
    assert Memory.objects.get().content == "At last"


def test_the_sweep_takes_up_what_is_due_and_only_that() -> None:
    extraction = queued()
    Extraction.objects.update(next_attempt_at=timezone.now() + timedelta(minutes=1))
    assert run.sweep(now=timezone.now()) == 0
    assert run.sweep(now=timezone.now() + timedelta(minutes=2)) == 1
    extraction.refresh_from_db()
    assert extraction.status == "done"


@pytest.mark.parametrize("chat", [{"is_temporary": True}, {"deleted_at": timezone.now()}])
def test_nothing_is_taken_from_a_temporary_or_deleted_chat(chat: dict[str, object]) -> None:
    extraction = queued(**chat)
    tasks.extract_turn(extraction_id=extraction.pk)
    assert not Memory.objects.exists()


def test_the_operators_veto_stops_what_was_queued_before_it(settings: object) -> None:
    extraction = queued()
    settings.MEMORY_ENABLED = False  # type: ignore[attr-defined]
    tasks.extract_turn(extraction_id=extraction.pk)
    assert not Memory.objects.exists()


def test_secrets_and_duplicates_are_counted_and_not_stored(scripted_model: ScriptedOpenAI) -> None:
    extraction = queued()
    make_memory("Eats no meat", extraction.user, extraction.workspace)
    key = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    scripted_model.script(Answer(candidates("Eats no meat", f"The key is {key}", "Is vegetarian")))
    tasks.extract_turn(extraction_id=extraction.pk)
    extraction.refresh_from_db()
    assert (extraction.stored_count, extraction.duplicate_count, extraction.refused_count) == (1, 1, 1)
    assert not Memory.objects.filter(content__contains=key).exists()


def test_a_background_save_tells_the_open_pages() -> None:
    extraction = queued()
    with patch.object(pubsub, "publish") as publish:
        tasks.extract_turn(extraction_id=extraction.pk)
    said = [call.args for call in publish.call_args_list if call.args[1] == "x_memory.auto_saved"]
    assert len(said) == 1
    channel, _, data = said[0]
    assert channel == f"workspace:{extraction.workspace.public_id}"
    assert (data["count"], len(data["memory_ids"]), data["source_type"]) == (2, 2, "auto_chat")
    assert "vegetarian" not in json.dumps(data)


def test_what_was_noticed_in_a_private_chat_is_told_to_its_person_alone() -> None:
    extraction = queued(is_private=True)
    with patch.object(pubsub, "publish") as publish:
        tasks.extract_turn(extraction_id=extraction.pk)
    channels = {call.args[0] for call in publish.call_args_list if call.args[1] == "x_memory.auto_saved"}
    assert channels == {f"user:{extraction.user.public_id}"}


def test_rerun_refreshes_the_summary_from_the_source(
    scripted_model: ScriptedOpenAI, django_capture_on_commit_callbacks: Callable[..., object]
) -> None:
    person = make_user()
    message = make_message(make_chat(person), SAID)
    memory = make_memory(SAID, person, source_message_id=message.public_id)
    scripted_model.script(Answer(candidates("Deadline March 15")))
    with patch.object(run, "async_task") as job, django_capture_on_commit_callbacks(execute=True):  # type: ignore[attr-defined]
        run.rerun(memory, by=person, now=timezone.now())
    assert job.call_args.args == ("memories.tasks.rerun_extraction",)
    tasks.rerun_extraction(memory_id=memory.pk, by_id=person.pk)
    memory.refresh_from_db()
    assert (memory.summary, memory.content) == ("Deadline March 15", SAID)


TWO = "I live in Oslo and play chess on Mondays"


def test_rerun_takes_the_candidate_that_says_the_same_as_the_memory(scripted_model: ScriptedOpenAI) -> None:
    cases = [
        ("User plays chess on Mondays", "User plays chess every Monday"),
        ("I play chess on Mondays", "User plays chess every Monday"),
        ("User lives in Oslo", "User lives in Oslo"),
        ("Walnuts make Ann ill", None),
    ]
    person = make_user()
    source = make_message(make_chat(person), TWO).public_id
    for (content, summary), source_type in product(cases, ("auto_chat", "user")):
        memory = make_memory(content, person, source_message_id=source, source_type=source_type)
        scripted_model.script(Answer(candidates("User lives in Oslo", "User plays chess every Monday")))
        tasks.rerun_extraction(memory_id=memory.pk, by_id=person.pk)
        memory.refresh_from_db()
        assert (memory.content, memory.summary) == (content, summary), (content, source_type)


def test_rerun_says_when_there_is_no_source() -> None:
    person = make_user()
    with pytest.raises(Conflict):
        run.rerun(make_memory("From nowhere", person), by=person, now=timezone.now())


def test_a_background_refresh_never_resurrects(scripted_model: ScriptedOpenAI) -> None:
    person = make_user()
    memory = make_memory("Old", person, source_message_id=make_message(make_chat(person), SAID).public_id)
    delete_memory(memory, by=person, now=timezone.now())
    assert tasks.rerun_extraction(memory_id=memory.pk, by_id=person.pk) == "the memory is gone"
    memory.refresh_from_db()
    assert memory.deleted_at is not None


def test_rerun_reads_no_message_that_its_asker_may_not_see() -> None:
    owner, editor = make_user(), make_user()
    workspace = make_workspace(owner=owner, editor=editor)
    for private in (True, False):
        room = make_chat(owner, workspace if private else None, is_private=private)
        secret = make_message(room, SAID)
        memory = make_memory("The owner is vegetarian", owner, workspace, source_message_id=secret.public_id)
        for asker in (editor.pk, None):
            outcome = tasks.rerun_extraction(memory_id=memory.pk, by_id=asker)
            assert outcome == "its source message is gone"
        memory.refresh_from_db()
        assert not memory.summary
        assert "refreshed" in tasks.rerun_extraction(memory_id=memory.pk, by_id=owner.pk)
