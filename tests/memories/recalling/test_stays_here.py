"""A workspace with local_only: nothing of it reaches a remote embedder or model.

The servers are scripted ones over real HTTP; that they are elsewhere is what the settings say of them.
"""

from dataclasses import replace
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from chat.models import Chat, Message, MessageRole, ShortTermMemory
from chat.prompting.short_term_memory import short_term_for
from chat.turns.compaction import compact
from chat.turns.remember_this import remember_message
from chat.turns.services import begin_turn
from memories import tasks
from memories.models import Memory, Scope, SourceType
from memories.recalling.recall import recall
from memories.writing import extraction_jobs as run
from memories.writing.gate import Draft, edit_memory, save_memory
from memories.writing.review import approve
from memoryhub.errors import Conflict
from tests.bulk import save_memories
from tests.conftest import Cast
from tests.factories import HERE, make_chat, make_connection, make_memory, make_message
from tests.fakes.openai_server import ScriptedOpenAI
from workspaces.index import embedding, reembedding
from workspaces.models import EmbeddingModel, PassageVector, Workspace

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "zebra"  # appears in every text of the local_only workspace


@pytest.fixture(autouse=True)
def embedder(scripted_openai: ScriptedOpenAI, settings: Settings) -> ScriptedOpenAI:
    """Configure the scripted server as remote embedder and model."""
    settings.EMBEDDING_BASE_URL, settings.EMBEDDING_MODEL = scripted_openai.base_url, "far-embedder"
    settings.EMBEDDING_API_KEY, settings.EMBEDDING_LOCAL = scripted_openai.api_key, False
    settings.LLM_BASE_URL, settings.LLM_MODEL, settings.EMBEDDED_MODEL = (
        scripted_openai.base_url,
        "far",
        False,
    )
    settings.LLM_API_KEY, settings.LLM_LOCAL = scripted_openai.api_key, False
    settings.LLM_HAS_TOOLS = settings.LLM_CAN_EXTRACT = True
    settings.LLM_CONTEXT_TOKENS, settings.LLM_MAX_TOKENS, settings.LLM_HISTORY_TOKENS = 16_384, 2048, 12_000
    return scripted_openai


@pytest.fixture
def kept(cast: Cast) -> Workspace:
    cast.workspace.local_only = True
    cast.workspace.save()
    return cast.workspace


def heard(server: ScriptedOpenAI) -> list[str]:
    return [request.path for request in server.requests if SECRET in str(request.body)]


def test_every_way_in_stores_without_a_vector_and_tells_nobody(
    cast: Cast, kept: Workspace, embedder: ScriptedOpenAI
) -> None:
    now, owner = timezone.now(), cast.owner
    saved = save_memory(
        Draft(f"The {SECRET} is striped", kept, owner, source_excerpt=f"A {SECRET}"), by=owner, now=now
    )
    edit_memory(saved.memory, by=owner, now=now, content=f"The {SECRET} is black and white")
    save_memories(
        [Draft(f"{SECRET} number {n} eats grass", kept, owner) for n in range(3)], by=owner, now=now
    )
    proposed = save_memory(Draft(f"The {SECRET} sleeps standing", kept, owner).to_review(), by=owner, now=now)
    approve(proposed.memory, by=owner, now=now)
    tasks.embed_memories(memory_ids=list(Memory.objects.values_list("pk", flat=True)))
    tasks.sweep()
    assert Memory.objects.filter(deleted_at=None).count() == 5
    assert not PassageVector.objects.exists()
    assert not Memory.objects.exclude(embedding_failed_at=None).exists(), "nothing failed: it was not tried"
    assert heard(embedder) == []


def test_recall_goes_by_words_and_says_why(cast: Cast, kept: Workspace, embedder: ScriptedOpenAI) -> None:
    # The embedder works, and is used for other workspaces
    make_memory("Elsewhere the sky is blue", cast.owner)
    make_memory(f"The {SECRET} is striped", cast.owner, kept)
    found = recall(f"What does the {SECRET} look like?", kept, cast.owner, policy=HERE, now=timezone.now())
    assert [item.memory.content for item in found.items] == [f"The {SECRET} is striped"]
    assert (
        found.degraded == "the embedder is on another machine, and texts of this workspace stay on this one"
    )
    assert heard(embedder) == [] and embedder.requests


def test_a_batch_of_both_kinds_sends_the_others(
    cast: Cast, kept: Workspace, embedder: ScriptedOpenAI
) -> None:
    texts = [("One is blue", ""), (f"The {SECRET}", ""), ("Two is red", "")]
    made = embedding.embed_texts(texts, [HERE, replace(HERE, local_only=True), HERE])
    assert made is not None and [each is not None for each in made] == [True, False, True]
    assert heard(embedder) == []


def test_a_local_embedder_embeds_them(
    cast: Cast, kept: Workspace, embedder: ScriptedOpenAI, settings: Settings
) -> None:
    settings.EMBEDDING_LOCAL = True
    memory = make_memory(f"The {SECRET} is striped", cast.owner, kept)
    assert memory.embeddings.exists()
    assert recall(f"{SECRET}?", kept, cast.owner, policy=HERE, now=timezone.now()).degraded == ""


def test_a_new_embedding_model_is_built_without_them_and_switched_to(
    cast: Cast, kept: Workspace, embedder: ScriptedOpenAI, settings: Settings
) -> None:
    make_memory("The sky is blue", cast.owner)
    make_memory(f"The {SECRET} is striped", cast.owner, kept)
    settings.EMBEDDING_MODEL = "another-far-embedder"
    reembedding.notice_settings()
    assert reembedding.advance(seconds=20) == reembedding.Outcome.SWITCHED
    active = EmbeddingModel.objects.active()
    assert active is not None and active.name == "another-far-embedder"
    assert heard(embedder) == []


def test_when_they_may_leave_again_the_sweep_embeds_them(
    cast: Cast, kept: Workspace, embedder: ScriptedOpenAI
) -> None:
    make_memory("The sky is blue", cast.owner)
    memory = make_memory(f"The {SECRET} is striped", cast.owner, kept)
    Workspace.objects.update(local_only=False)
    tasks.sweep()
    assert memory.embeddings.exists()


def answered(message: Message) -> Message:

    from chat.turns.turn import wait_until_idle

    assert wait_until_idle(timeout=20)
    message.refresh_from_db()
    return message


def test_a_turn_is_refused_before_anything_is_sent(
    cast: Cast, kept: Workspace, embedder: ScriptedOpenAI
) -> None:
    chat = make_chat(cast.owner, kept)
    turn = begin_turn(chat, content=f"The {SECRET}?", by=cast.owner, now=timezone.now(), memory_enabled=True)
    answer = answered(turn.answer)
    assert (answer.status, answer.error_code) == ("failed", "model_not_local")
    assert "“far” is not marked local" in answer.error
    assert embedder.requests == []


def test_a_local_connection_answers(
    cast: Cast, kept: Workspace, embedder: ScriptedOpenAI, settings: Settings
) -> None:
    near = make_connection(base_url=embedder.base_url, api_key=embedder.api_key, model="near", is_local=True)
    chat = make_chat(cast.owner, kept, connection=near)
    turn = begin_turn(chat, content=f"The {SECRET}?", by=cast.owner, now=timezone.now(), memory_enabled=True)
    assert answered(turn.answer).status == "done"
    assert {request.body["model"] for request in embedder.requests} == {"near"}


def test_what_works_in_the_background_asks_no_model_elsewhere(
    cast: Cast, kept: Workspace, embedder: ScriptedOpenAI, settings: Settings
) -> None:
    settings.LLM_HISTORY_TOKENS = 50
    now, chat = timezone.now(), make_chat(cast.owner, kept)
    for number in range(8):
        question = make_message(chat, f"I like the {SECRET} number {number} " * 20)
        answer = make_message(
            chat, "Noted. " * 40, role=MessageRole.ASSISTANT, reply_to=question, memory_enabled=True
        )
    assert compact(answer, cast.owner, now=now) == "not asked: model_not_local"
    for kind in (SourceType.AUTO_CHAT, SourceType.AUTO_DEEP_THINK):
        queued = run.queue_extraction(
            workspace=kept,
            user=cast.owner,
            chat_id=chat.public_id,
            message_id=answer.public_id,
            source_type=kind,
            now=now,
        )
        assert run.extract(queued.pk, now=now).startswith("stored")
        queued.refresh_from_db()
        assert queued.extractor in {"rules", "none"}
    saved = remember_message(question, by=cast.owner, now=now, synthesize=True)
    assert run.refresh(saved.memory, by=cast.owner, now=now) is not None
    assert heard(embedder) == []


def test_what_a_person_keeps_there_does_not_follow_them_to_a_model_elsewhere(
    cast: Cast, embedder: ScriptedOpenAI
) -> None:
    """Personal memories are available everywhere, unless their home workspace is local_only."""
    from workspaces.access import default_workspace

    home = default_workspace(cast.owner)
    make_memory(f"I ride a {SECRET}", cast.owner, home, scope=Scope.USER)
    make_memory("The office is blue", cast.owner, cast.workspace)
    assert (
        len(
            recall(
                f"{SECRET} office blue",
                cast.workspace,
                cast.owner,
                policy=replace(HERE, leaves=True),
                now=timezone.now(),
            ).items
        )
        == 2
    )
    Workspace.objects.filter(pk=home.pk).update(local_only=True)
    found = recall(
        f"{SECRET} office blue",
        cast.workspace,
        cast.owner,
        policy=replace(HERE, leaves=True),
        now=timezone.now(),
    )
    assert [item.memory.content for item in found.items] == ["The office is blue"]
    assert (
        len(
            recall(f"{SECRET} office blue", cast.workspace, cast.owner, policy=HERE, now=timezone.now()).items
        )
        == 2
    ), "the person sees all"


def test_short_term_memory_of_such_a_place_is_not_told_elsewhere(cast: Cast, kept: Workspace) -> None:
    now, owner = timezone.now(), cast.owner
    owner.short_term_everywhere = True
    owner.save()
    there, here = make_chat(owner, kept, title="There"), make_chat(owner)
    place: dict[str, Any] = {"touched_at": now, "expires_at": now + timezone.timedelta(hours=1)}
    ShortTermMemory.objects.create(chat=there, summary=f"About the {SECRET}", **place)
    question = make_message(here, "Hello?")
    for local_only, leaves, told in ((False, True, False), (False, False, False), (True, False, True)):
        question.chat.workspace.local_only = local_only
        policy = replace(HERE, local_only=local_only, leaves=leaves)
        found = short_term_for(question, owner, can_update=False, room=8000, policy=policy, now=now)
        assert (SECRET in str(found.items)) is told


def test_switched_on_in_the_middle_of_a_turn_its_tools_say_no(
    cast: Cast, embedder: ScriptedOpenAI, settings: Settings
) -> None:
    from tests.fakes.openai_server import Answer, Call

    make_memory(f"The {SECRET} is striped", cast.owner, cast.workspace)
    embedder.requests.clear()

    def switch_and_ask(request: Any) -> Answer:
        if any(message["role"] == "tool" for message in request.messages):
            return Answer("I cannot look.")
        return Answer(calls=[Call("x_recall_memory", {"query": "stripes"})])

    chat = make_chat(cast.owner, cast.workspace)
    embedder.respond = switch_and_ask
    from chat.tools import loop as tools_run

    real = tools_run.get_chat

    def after_the_switch(*args: Any, **kwargs: Any) -> Chat:
        Workspace.objects.update(local_only=True)
        return real(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tools_run, "get_chat", after_the_switch)
        turn = begin_turn(chat, content="Stripes?", by=cast.owner, now=timezone.now(), memory_enabled=True)
        answer = answered(turn.answer)
    assert answer.content == "I cannot look."
    results = [m["content"] for r in embedder.chat_requests for m in r.messages if m["role"] == "tool"]
    assert results and all(SECRET not in result for result in results)


def test_a_private_chat_there_leaves_nothing_in_a_place_that_may_be_read_elsewhere(
    cast: Cast, kept: Workspace, embedder: ScriptedOpenAI
) -> None:
    """Memories from it are personal, and stored in the user's own workspace."""
    from workspaces.access import default_workspace

    now, chat = timezone.now(), make_chat(cast.owner, kept, is_private=True)
    question = make_message(chat, f"I always ride a {SECRET} to work")
    answer = make_message(chat, "Noted.", role=MessageRole.ASSISTANT, reply_to=question, memory_enabled=True)

    def mined(kind: str) -> str:
        queued = run.queue_extraction(
            workspace=kept,
            user=cast.owner,
            chat_id=chat.public_id,
            message_id=answer.public_id,
            source_type=kind,
            now=now,
        )
        return run.extract(queued.pk, now=now)

    assert mined(SourceType.AUTO_CHAT) == "stored 0"
    with pytest.raises(Conflict, match="your personal workspace does not"):
        remember_message(question, by=cast.owner, now=now)
    assert not Memory.objects.exists() and heard(embedder) == []

    Workspace.objects.filter(pk=default_workspace(cast.owner).pk).update(local_only=True)
    assert remember_message(question, by=cast.owner, now=now).created
    assert heard(embedder) == []
