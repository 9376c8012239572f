"""``/v1`` over HTTP, by OpenAI's library, against a scripted model."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import openai
import pytest
from django.db import OperationalError
from django.utils import timezone
from django_q.models import OrmQ

from chat.access import get_chat
from chat.models import PassingTurn
from chat.prompting.short_term_memory import set_summary
from chat.turns import client_turns
from chat.turns.turn import wait_until_idle
from memories.models import Extraction, Memory
from memories.writing.extraction_jobs import extract
from memoryhub.llm.registry import get_embedder
from tests.chat.programs.conftest import client_of
from tests.conftest import Cast
from tests.factories import make_agent, make_chat, make_connection, make_memory, make_workspace
from tests.fakes.openai_server import HOLD, Answer, Call, Failure, ScriptedOpenAI
from workspaces.access import default_workspace
from workspaces.accounts.keys import end_keys
from workspaces.models import ApiKey, KeyScope, User

pytestmark = pytest.mark.django_db(transaction=True)
ASKED = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "When is the deadline of Apollo?"},
]
TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}},
}


@pytest.fixture
def client(door: str, people: Cast) -> openai.OpenAI:
    return client_of(door, people.editor, people.workspace)


@pytest.fixture
def deadline(people: Cast) -> Memory:
    return make_memory("The deadline of Apollo is March 15", people.owner, people.workspace)


def ask(client: openai.OpenAI, messages: Any = ASKED, **more: Any) -> Any:
    answer = client.chat.completions.create(model="scripted-model", messages=messages, **more)
    assert more.get("stream") or wait_until_idle(10), "what was said is kept beside the answer"
    return answer


def test_memory_is_put_before_the_question_and_the_callers_own_prompt_stays_first(
    client: openai.OpenAI, scripted_model: ScriptedOpenAI, deadline: Memory
) -> None:
    scripted_model.script(Answer("On March 15."))
    answer = ask(client, seed=7, temperature=0.1, response_format={"type": "json_object"})
    assert answer.choices[0].message.content == "On March 15."
    assert answer.memoryhub == {"used": [deadline.public_id], "saved": []}
    [sent] = scripted_model.requests
    assert [m["role"] for m in sent.messages] == ["system", "system", "user"]
    assert sent.messages[0] == ASKED[0] and sent.messages[2] == ASKED[1]
    block = sent.messages[1]["content"]
    assert block.startswith("<recalled-memories>") and "March 15" in block
    assert (sent.body["seed"], sent.body["temperature"]) == (7, 0.1)
    assert sent.body["response_format"] == {"type": "json_object"}
    assert sent.body["model"] == "scripted-model" and "metadata" not in sent.body
    raw = client.chat.completions.with_raw_response.create(model="scripted-model", messages=ASKED)  # type: ignore[arg-type]
    assert raw.headers["x-memoryhub-used"] == deadline.public_id


def test_a_streamed_answer_comes_piece_by_piece_and_is_mined_once(
    client: openai.OpenAI, scripted_model: ScriptedOpenAI, deadline: Memory, people: Cast
) -> None:
    scripted_model.script(Answer("On ", "March 15."))
    chunks = list(ask(client, stream=True, stream_options={"include_usage": True}))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "On March 15."
    assert chunks[0].memoryhub["used"] == [deadline.public_id]
    assert not hasattr(chunks[1], "memoryhub")
    assert scripted_model.requests[0].body["stream_options"] == {"include_usage": True}
    ask(client)  # the same question again, as a retry button sends it
    [extraction] = Extraction.objects.all()
    turn = PassingTurn.objects.get()
    assert (extraction.message_id, turn.answer, turn.user) == (turn.public_id, "On March 15.", people.editor)


def run_extractions(scripted_model: ScriptedOpenAI, *statements: str) -> None:
    """Run the pending extractions with a model that finds these statements."""
    found = ", ".join(f'{{"text": "{each}", "kind": "fact", "importance": 0.7}}' for each in statements)
    scripted_model.script(*[Answer(f"[{found}]")] * Extraction.objects.filter(status="pending").count())
    for pk in Extraction.objects.filter(status="pending").values_list("pk", flat=True):
        extract(pk, now=timezone.now())


def test_what_is_said_is_remembered_and_the_next_turn_says_so(
    client: openai.OpenAI, scripted_model: ScriptedOpenAI, people: Cast
) -> None:
    said = [{"role": "user", "content": "I moved to Lisbon last week and work for Acme now."}]
    ask(client, said)
    run_extractions(scripted_model, "Eddie moved to Lisbon last week and works for Acme")
    memory = Memory.objects.get()
    turn = PassingTurn.objects.get()
    assert (memory.author, memory.workspace, memory.source_type) == (
        people.editor,
        people.workspace,
        "auto_chat",
    )
    assert (memory.source_chat_id, memory.source_message_id) == (turn.conversation, turn.public_id)
    assert memory.source_excerpt == "", "others are members, who cannot open the conversation"
    more = [
        *said,
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "What shall I see there?"},
    ]
    answer = ask(client, more)
    assert answer.memoryhub["saved"] == [memory.public_id]
    assert Extraction.objects.count() == 2
    [older, newer] = PassingTurn.objects.order_by("pk")
    assert older.conversation == newer.conversation
    client_turns.sweep(now=timezone.now())
    older.refresh_from_db()
    assert (older.said, older.answer, older.memory_ids) == ([], "", []), "its text is gone once it is mined"
    newer.refresh_from_db()
    assert newer.said, "and not before"
    run_extractions(scripted_model)
    client_turns.sweep(now=timezone.now() + timedelta(hours=25))
    assert not PassingTurn.objects.exists()


def test_memory_is_not_used_or_extracted_without_permission(
    client: openai.OpenAI,
    door: str,
    people: Cast,
    deadline: Memory,
    scripted_model: ScriptedOpenAI,
    settings: Any,
) -> None:
    reading = client_of(door, people.editor, people.workspace, scope=KeyScope.READ)
    errand = [{"role": "user", "content": f"### Task:\nA title.\n<chat_history>\n{ASKED[1]['content']}"}]

    def check(answer: Any, *, reads: bool = False, sent: int = len(ASKED)) -> None:
        assert answer.memoryhub["used"] == ([deadline.public_id] if reads else [])
        assert "metadata" not in scripted_model.requests[-1].body
        assert len(scripted_model.requests[-1].messages) == sent + reads
        assert not Extraction.objects.exists() and not PassingTurn.objects.exists()

    check(ask(client, extra_headers={"X-MemoryHub-Memory": "off"}))
    check(ask(client, metadata={"memoryhub_memory": "off"}))
    check(ask(client, extra_headers={"X-MemoryHub-Memory": "READ"}), reads=True)
    check(ask(reading), reads=True)
    check(ask(client, errand), sent=1)
    settings.MEMORY_ENABLED = False
    check(ask(client))
    settings.MEMORY_ENABLED = None
    User.objects.update(memory_default=None)
    check(ask(client))


def test_tools_are_the_programs_and_their_rounds_are_one_turn(
    client: openai.OpenAI, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.script(Answer("Wait.", calls=[Call("look", {"at": 1})]), Answer("It is green."))
    first = ask(client, tools=[TOOL], tool_choice="auto").choices[0]
    assert first.finish_reason == "tool_calls" and first.message.tool_calls[0].function.name == "look"
    assert not Extraction.objects.exists()
    call = first.message.tool_calls[0]
    rest = [
        first.message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": call.id, "content": "The lamp is green"},
    ]
    assert ask(client, [*ASKED, *rest], tools=[TOOL]).choices[0].message.content == "It is green."
    sent = scripted_model.requests[1]
    assert sent.tool_names == ["look"] and sent.messages[-1]["content"] == "The lamp is green"
    assert Extraction.objects.count() == 1
    turn = PassingTurn.objects.get()
    assert turn.answer == "Wait.\n\nIt is green." and {"lamp", "green"} < set(turn.shown)


def test_memory_never_takes_the_room_that_the_programs_tools_take(
    client: openai.OpenAI, scripted_model: ScriptedOpenAI, deadline: Memory
) -> None:
    assert ask(client, tools=[TOOL]).memoryhub["used"] == [deadline.public_id]
    many = [{**TOOL, "function": {**TOOL["function"], "description": "Look. " * 5_000}}] * 20
    assert ask(client, tools=many).memoryhub["used"] == []
    assert scripted_model.requests[-1].messages == ASKED


def test_a_cut_connection_loses_nothing_that_was_said(
    client: openai.OpenAI, scripted_model: ScriptedOpenAI, eventually: Callable[..., None]
) -> None:
    scripted_model.script(Answer("On March 15, ", HOLD, "as ever."))
    stream = ask(client, stream=True)
    assert next(iter(stream)).choices[0].delta.content in {"On March 15, ", "", None}
    next(iter(stream))
    stream.close()
    eventually(lambda: Extraction.objects.count() == 1)
    turn = PassingTurn.objects.get()
    assert turn.said[-1] == ["user", ASKED[1]["content"]] and turn.answer == "On March 15,"
    assert scripted_model.wait_for_hang_up(), "the model is asked for no more"


def test_the_model_is_at_work_while_its_turn_is_noted(
    client: openai.OpenAI, scripted_model: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fast answer is stored with its turn as well."""
    asked, begin = [], client_turns.begin

    def slowly(*args: Any, **more: Any) -> Any:
        asked.append(scripted_model.wait_for_requests(1))
        wait_until_idle(0.2)  # not idle: the answer is complete and waits for its turn
        return begin(*args, **more)

    monkeypatch.setattr(client_turns, "begin", slowly)
    scripted_model.script(Answer("On March 15."))
    chunks = list(ask(client, stream=True))
    assert asked == [True] and chunks[0].memoryhub["saved"] == []
    assert Extraction.objects.count() == 1 and PassingTurn.objects.get().answer == "On March 15."


def test_a_turn_that_cannot_be_noted_stops_the_model_and_holds_nothing(
    client: openai.OpenAI, scripted_model: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.ANSWER_STREAMS = 1
    scripted_model.script(Answer("On ", HOLD, "March 15."), Answer("On March 15."))

    def fails(*args: Any, **more: Any) -> None:
        scripted_model.wait_for_requests(1)
        raise OperationalError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(client_turns, "begin", fails)
        with pytest.raises(openai.APIStatusError):
            ask(client, stream=True)
    assert scripted_model.wait_for_hang_up() and wait_until_idle(10)
    assert not PassingTurn.objects.exists()
    assert list(ask(client, stream=True)), "its place is free again"


def test_a_turn_whose_process_died_is_mined_by_the_sweep(
    client: openai.OpenAI, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.script(Answer(calls=[Call("look")]))
    ask(client, tools=[TOOL])  # and the client never returns
    assert client_turns.sweep(now=timezone.now() + timedelta(minutes=14)) == 0
    assert client_turns.sweep(now=timezone.now() + timedelta(minutes=16)) == 1
    assert Extraction.objects.count() == 1


def test_lost_key_ends_its_open_streams(
    door: str, scripted_model: ScriptedOpenAI, people: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chat.programs.openai_api.answering.RECHECK_SECONDS", 0.05)
    scripted_model.script(*[Answer("On ", HOLD, "March 15.")] * 2)
    for how in ("revoked", "removed"):
        stream = iter(ask(client_of(door, people.editor, people.workspace), stream=True))
        next(stream)
        if how == "revoked":
            end_keys(list(ApiKey.objects.values_list("pk", flat=True)), by=people.editor, now=timezone.now())
        else:
            people.workspace.memberships.filter(user=people.editor).delete()
        with pytest.raises(openai.APIError, match="may not be used any more"):
            list(stream)


def test_models_are_those_that_the_person_may_use(
    client: openai.OpenAI, people: Cast, scripted_model: ScriptedOpenAI, settings: Any
) -> None:
    settings.PEOPLE_MAY_CONNECT = True
    make_connection(
        name="House", model="large-2", base_url=scripted_model.base_url, api_key="test-key", is_local=True
    )
    make_connection(name="Twin", model="large-2")
    make_connection(people.owner, name="Olive's", model="hers")
    names = [model.id for model in client.models.list()]
    assert names[:4] == ["default", "scripted-model", "large-2", "Twin"] and "hers" not in names
    assert client.models.retrieve("default").id == "default"
    assert "Shared/large-2" in names
    assert client.models.retrieve("Shared/large-2").id == "Shared/large-2"
    for name in ("large-2", "Shared/large-2", "House"):
        answer = client.chat.completions.create(model=name, messages=ASKED)  # type: ignore[arg-type]
        assert answer.choices[0].message.content
        assert scripted_model.requests[-1].body["model"] == "large-2"
    for wrong in ("hers", "nothing", "Other/large-2"):
        with pytest.raises(openai.NotFoundError) as refused:
            client.chat.completions.create(model=wrong, messages=ASKED)  # type: ignore[arg-type]
        assert refused.value.code == "model_not_found"
    for tools in ("look", {"name": "look"}, [7]):
        with pytest.raises(openai.BadRequestError) as unread:
            client.chat.completions.create(model="default", messages=ASKED, tools=tools)  # type: ignore[arg-type]
        assert unread.value.param == "tools"


def test_an_assistant_is_asked_by_name_and_its_instructions_come_second(
    client: openai.OpenAI, people: Cast, scripted_model: ScriptedOpenAI
) -> None:
    agent = make_agent(people.owner, people.workspace, name="Proofreader", instructions="Mend commas.")
    for name in ("proofreader", agent.public_id):
        ask(client, metadata={"memoryhub_assistant": name, "mine": "stays"})
        sent = scripted_model.requests[-1]
        assert sent.messages[0] == ASKED[0] and "Mend commas." in sent.messages[1]["content"]
        assert sent.messages[-1] == ASKED[1] and sent.body["metadata"] == {"mine": "stays"}
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, metadata={"memoryhub_assistant": "Nobody"})
    assert refused.value.param == "memoryhub_assistant"


def test_a_key_opens_its_own_workspace_alone(door: str, people: Cast, deadline: Memory) -> None:
    client = client_of(door, people.editor, people.workspace)
    assert ask(client, extra_headers={"X-MemoryHub-Workspace": "Shared"}).memoryhub["used"]
    other = make_workspace(owner=people.editor, name="Also theirs")
    for elsewhere in (other.name, other.public_id, "ws_" + "a" * 24):
        header: Any = {"extra_headers": {"X-MemoryHub-Workspace": elsewhere}}
        for how in (header, {"metadata": {"memoryhub_workspace": elsewhere}}):
            with pytest.raises(openai.NotFoundError):
                ask(client, **how)
    User.objects.update(memory_default=True)
    stranger = client_of(door, people.stranger, default_workspace(people.stranger))
    assert ask(stranger).memoryhub["used"] == []


def test_a_workspace_that_stays_here_asks_no_model_elsewhere(
    door: str, people: Cast, deadline: Memory
) -> None:
    people.workspace.local_only = True
    people.workspace.save()
    make_connection(name="Away", model="away")
    client = client_of(door, people.editor, people.workspace)
    assert "away" not in [model.id for model in client.models.list()]
    assert ask(client).memoryhub["used"], "the scripted one is on this machine"


def test_what_the_model_refuses_is_said_in_openais_form(
    client: openai.OpenAI, scripted_model: ScriptedOpenAI
) -> None:
    for failure, kind, code in (
        (
            Failure(400, "max_colour is unknown", param="max_colour"),
            openai.BadRequestError,
            "invalid_request",
        ),
        (Failure(400, "context_length_exceeded"), openai.BadRequestError, "context_length_exceeded"),
        (Failure(401, "no such key test-key"), openai.InternalServerError, "model_refused"),
        (Failure(429, headers={"retry-after": "30"}), openai.RateLimitError, "rate_limit_exceeded"),
        (Failure(503, headers={"retry-after": "30"}), openai.InternalServerError, "model_unavailable"),
        # As llama.cpp says it. Clients send an "unavailable" again, which cannot help here.
        (Failure(500, "image input is not supported"), openai.BadRequestError, "invalid_request"),
    ):
        scripted_model.script(failure)
        with pytest.raises(kind) as refused:
            ask(client, stream=code.startswith("model_"))
        body: Any = refused.value.body
        assert (body["code"], "test-key" in str(body)) == (code, False)
        assert set(body) == {"message", "type", "param", "code"}
        if "max_colour" in failure.message:
            assert "max_colour is unknown" in refused.value.message


def test_an_answer_that_breaks_says_so_in_its_stream(
    client: openai.OpenAI, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.script(Answer("On March", cut=True))
    with pytest.raises(openai.APIError, match="broke before the answer was complete"):
        list(ask(client, stream=True))
    assert PassingTurn.objects.get().answer == "On March"


def test_a_strict_chat_template_gets_the_memory_in_the_question(
    client: openai.OpenAI, scripted_model: ScriptedOpenAI, deadline: Memory
) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:,"}}
    parts = [{"type": "text", "text": ASKED[1]["content"]}, picture]
    scripted_model.script(Failure(400, "Conversation roles must alternate user/assistant"))
    for content in (ASKED[1]["content"], parts):
        answer = ask(client, [ASKED[0], {"role": "user", "content": content}])
        assert answer.memoryhub["used"] == [deadline.public_id]
        system, question = scripted_model.requests[-1].messages
        assert system == ASKED[0] and "March 15" in str(question["content"])
        assert question["content"][-1] == (picture if content is parts else "?")
    assert len(scripted_model.requests) == 3, "it is asked so at once from then on"


def test_what_a_model_thinks_passes_and_is_not_mined(
    client: openai.OpenAI, scripted_model: ScriptedOpenAI
) -> None:
    said = "<think>Perhaps they live in Oslo.</think>On March 15."
    scripted_model.script(Answer(said))
    assert ask(client).choices[0].message.content == said
    assert PassingTurn.objects.get().answer == "On March 15."


def test_embeddings_are_those_that_memories_are_found_by(client: openai.OpenAI) -> None:
    [name] = [model.id for model in client.models.list()][-1:]
    made = client.embeddings.create(model=name, input=["a cat", "a dog"])
    embedder = get_embedder()
    assert embedder is not None and embedder.name == name and made.usage.prompt_tokens > 0
    for each, own in zip(made.data, embedder.embed(["a cat", "a dog"]), strict=True):
        assert each.embedding == pytest.approx(own.tolist(), abs=1e-5)
    plain = client.embeddings.create(model=name, input="a cat", encoding_format="float")
    assert plain.data[0].embedding == pytest.approx(made.data[0].embedding, abs=1e-6)
    for wrong in ({"input": ""}, {"input": []}, {"input": [1, 2]}, {"input": "a", "dimensions": 5}):
        with pytest.raises(openai.BadRequestError):
            client.embeddings.create(model=name, **wrong)  # type: ignore[arg-type]
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="text-embedding-9", input="a")


def test_calls_are_counted_and_limited(client: openai.OpenAI, settings: Any) -> None:
    settings.KEY_RATE = 2
    for _ in range(2):
        client.models.list()
    with pytest.raises(openai.RateLimitError):
        for _ in range(3):
            client.models.list()
    assert ApiKey.objects.get().calls >= 2
    assert not OrmQ.objects.exists()


def test_a_role_that_is_none_is_refused_and_no_failure(client: openai.OpenAI) -> None:
    for role in ({}, [], {"a": []}, 1, None, "nobody"):
        with pytest.raises(openai.BadRequestError):
            ask(client, [{"role": role, "content": "Hello"}])


def test_a_program_is_told_of_no_chat(
    client: openai.OpenAI, people: Cast, scripted_model: ScriptedOpenAI
) -> None:
    """A program's conversation belongs to no chat, so summaries of other chats are withheld from it."""
    people.editor.short_term_everywhere = True
    people.editor.save()
    for place, is_private in ((people.workspace, True), (default_workspace(people.editor), False)):
        chat = make_chat(people.editor, place, is_private=is_private)
        loaded = get_chat(people.editor, chat.public_id)
        set_summary(loaded, "The diagnosis is walnuts", by=people.editor, now=timezone.now())
    ask(client, [{"role": "user", "content": "What went on in my other chats?"}])
    assert "other chats" in str(scripted_model.chat_requests[-1].body)
    assert "walnuts" not in str(scripted_model.chat_requests[-1].body)
