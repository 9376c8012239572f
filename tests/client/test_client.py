"""The Python client against the application on a real port, and against failing networks."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from threading import get_ident

import httpx2
import pytest

from memories.models import Memory
from memoryhub_client import ApiError, AsyncMemoryHub, ConnectionLost, MemoryHub
from tests.conftest import Cast
from tests.factories import PASSWORD, make_key_text, make_memory
from tests.fakes.openai_server import Answer, ScriptedOpenAI


@pytest.fixture
def key(people: Cast) -> str:
    return make_key_text(people.editor, people.workspace)


class Dropping(httpx2.HTTPTransport):
    """A transport that sends requests, and loses as many answers as ``losses`` says."""

    def __init__(self, losses: int) -> None:
        super().__init__()
        self.losses = losses

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = super().handle_request(request)
        if self.losses:
            self.losses -= 1
            answer.close()
            raise httpx2.ReadError("the connection was reset")
        return answer


def test_saved_recalled_edited_and_listed(door: str, key: str, people: Cast) -> None:
    place = people.workspace.public_id
    with MemoryHub(door, key) as hub:
        saved = hub.save_memory(place, content="Eddie's cat is called Tilly", tags=["cat"])
        assert hub.save_memory(place, content="Eddie's cat is called Tilly")["duplicate"] is True
        found = hub.recall(place, "What is the cat called?", limit=3)
        assert [each["id"] for each in found["memories"]] == [saved["id"]]
        assert hub.search(place, "cat", types=["memory"])["results"][0]["id"] == saved["id"]
        seen = hub.memory_version(place, saved["id"])
        changed = hub.edit_memory(place, saved["id"], seen=seen, content="Eddie's cat is called Milly")
        assert changed["content"].endswith("Milly") and changed["tags"] == ["cat"]
        with pytest.raises(ApiError) as late:
            hub.edit_memory(place, saved["id"], seen=seen, content="Eddie's cat is called Lilly")
        assert (late.value.status, late.value.code) == (409, "stale")
        assert hub.memory(place, saved["id"])["content"].endswith("Milly")


def test_every_page_of_120_memories_in_both(door: str, key: str, people: Cast) -> None:
    rows = [Memory(content=f"Fact {n}", workspace=people.workspace, author=people.owner) for n in range(119)]
    made = {each.public_id for each in Memory.objects.bulk_create(rows)}
    cat = make_memory("Eddie's cat is called Tilly", people.owner, people.workspace).public_id
    with MemoryHub(door, key) as hub:
        listed = [each["id"] for each in hub.memories(people.workspace.public_id)]
    assert len(listed) == 120 and set(listed) == made | {cat}

    async def use() -> list[str]:
        with MemoryHub(door, key) as blocking:  # as in a notebook, whose loop is running
            assert next(blocking.memories(people.workspace.public_id))["id"] == listed[0]
        async with AsyncMemoryHub(door, key) as hub:
            found = await hub.recall(people.workspace.public_id, "What is the cat called?")
            assert found["memories"][0]["id"] == cat
            return [each["id"] async for each in hub.memories(people.workspace.public_id)]

    assert asyncio.run(use()) == listed


def test_what_a_lost_answer_had_made_is_not_made_again(
    door: str, key: str, people: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoryhub_client.asking.FIRST_PAUSE", 0.01)
    with MemoryHub(door, key, transport=Dropping(2)) as hub:
        saved = hub.save_memory(people.workspace.public_id, content="Said once", dedupe="create")
    assert [memory.public_id for memory in Memory.objects.all()] == [saved["id"]]


def test_what_is_refused_says_what_is_wrong(door: str, key: str, people: Cast) -> None:
    with MemoryHub(door, key) as hub:
        with pytest.raises(ApiError) as wrong:
            hub.save_memory(people.workspace.public_id, content="")
        assert (wrong.value.status, wrong.value.code, *wrong.value.fields) == (422, "invalid", "content")
        with pytest.raises(ApiError, match="404 not_found"):
            hub.memory(people.workspace.public_id, "mem_" + "0" * 24)
        for leads_elsewhere in ("", "..", "mem_none/revisions", "mem_none%2Frevisions", "mem_none?limit=1"):
            with pytest.raises(ValueError, match="memory_id is not an id"):
                hub.memory(people.workspace.public_id, leads_elsewhere)
    with MemoryHub(door, "mh_wrong") as hub, pytest.raises(ApiError, match="401 bad_key"):
        next(hub.memories(people.workspace.public_id))


def test_a_person_signs_in_for_what_no_key_may_do(
    door: str, people: Cast, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.respond = lambda request: Answer("On ", "March 15.")
    place = people.workspace.public_id
    with MemoryHub(door) as hub:
        with pytest.raises(ApiError, match="401 not_signed_in"):
            hub.sign_in("eddie", "wrong")
        hub.sign_in("eddie", PASSWORD)
        assert place in [each["id"] for each in hub.workspaces()]
        saved = hub.save_memory(place, content="The deadline is March 15")
        hub.delete_memory(place, saved["id"])
        assert hub.restore_memory(place, saved["id"])["lost_key"] is None
        with pytest.raises(ApiError, match="bad_password"):
            hub.confirm_password("wrong")
        hub.confirm_password(PASSWORD)
        assert hub.forget_memory(place, saved["id"])["recall"]["found"] == 0
        made = hub.create_key(name="Robot", workspace_id=place, scope="read")
        assert [each["id"] for each in hub.api_keys()] == [made["id"]] and made["key"].startswith("mh_")
        hub.revoke_key(made["id"])
        chat = hub.create_chat(workspace_id=place, title="Deadlines")
        assert [each["id"] for each in hub.chats(place)] == [chat["id"]]
        assert hub.send_message(chat["id"], "When is the deadline?")["answer"]["content"] == "On March 15."
        told = list(hub.stream_message(chat["id"], "And again?"))
        assert "".join(each["data"]["text"] for each in told if each["event"] == "token") == "On March 15."
        assert told[-1]["event"] == "done" and len(list(hub.messages(chat["id"]))) == 4
        brought = hub.bring_file(place, "plan.txt", b"The launch is in May.")
        assert hub.bring_text(place, "Plan", "The launch is in June.")["id"] != brought["id"]
        assert hub.document(place, brought["id"])["title"] == brought["title"]
        hub.delete_document(place, brought["id"])
        assert [each["title"] for each in hub.documents(place)] == ["Plan"]


def test_the_same_asynchronously(door: str, people: Cast, scripted_model: ScriptedOpenAI) -> None:
    scripted_model.respond = lambda request: Answer("On ", "March 15.")

    async def use() -> None:
        async with AsyncMemoryHub(door) as hub:
            await hub.sign_in("eddie", PASSWORD)
            await hub.confirm_password(PASSWORD)
            assert (await hub.workspace(people.workspace.public_id))["role"] == "editor"
            chat = await hub.create_chat(workspace_id=people.workspace.public_id)
            told = [each async for each in hub.stream_message(chat["id"], "When is the deadline?")]
            assert told[-1]["data"]["content"] == "On March 15."
            with pytest.raises(ApiError, match="not_found"):
                await hub.memory(people.workspace.public_id, "mem_none")
            with pytest.raises(ApiError, match="not_found"):
                _ = [each async for each in hub.stream_message("chat_none", "Hello")]

    asyncio.run(use())


class Failing:
    """A transport that returns these answers in turn, recording requests and pauses between them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: httpx2.Response | Exception) -> None:
        self.answers, self.asked, self.pauses = list(answers), list[httpx2.Request](), list[float]()
        mine, wait, wait_async = get_ident(), time.sleep, asyncio.sleep

        def sleep(seconds: float) -> None:
            if get_ident() == mine:
                self.pauses.append(seconds)
            else:
                wait(seconds)

        async def sleep_async(seconds: float) -> None:
            if get_ident() == mine:
                self.pauses.append(seconds)
            else:
                await wait_async(seconds)

        # Servers that other tests left running sleep in threads of their own.
        monkeypatch.setattr("time.sleep", sleep)
        monkeypatch.setattr("asyncio.sleep", sleep_async)
        self.transport = httpx2.MockTransport(self.answer)
        self.hub = MemoryHub("http://hub.test", "mh_key", transport=self.transport, retries=3)

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def refusal(status: int, code: str = "unavailable", **headers: str) -> httpx2.Response:
    body = {"error": {"code": code, "message": "Not now."}}
    return httpx2.Response(
        status, json=body, headers={name.replace("_", "-"): headers[name] for name in headers}
    )


def good() -> httpx2.Response:
    return httpx2.Response(200, json={"id": "mem_1"})


def test_what_is_busy_is_asked_again_under_the_same_name_and_when_it_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = [refusal(429, Retry_After="7"), httpx2.Response(502, text="<h1>Bad gateway</h1>")]
    net = Failing(monkeypatch, *first, refusal(409, "idempotency_running", Retry_After="1"), good())
    assert net.hub.save_memory("ws_1", content="Said once")["id"] == "mem_1"
    assert len({request.headers["Idempotency-Key"] for request in net.asked}) == 1 and len(net.asked) == 4
    assert net.pauses[0] == 7 and 0.5 <= net.pauses[1] <= 0.75 and 1 <= net.pauses[2] <= 1.5


def test_in_the_end_the_failure_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Failing(monkeypatch, *(httpx2.ConnectTimeout("too slow") for _ in range(4)))
    with pytest.raises(ConnectionLost, match="too slow"):
        net.hub.recall("ws_1", "anything")
    assert len(net.asked) == 4
    net = Failing(monkeypatch, refusal(503, Retry_After="3600"))
    with pytest.raises(ApiError) as busy:
        net.hub.memory("ws_1", "mem_1")
    assert (busy.value.code, busy.value.retry_after, net.pauses) == ("unavailable", 3600, [])
    net = Failing(monkeypatch, httpx2.Response(500, text="oh"))
    with pytest.raises(ApiError, match="500 http_500"):
        net.hub.memory("ws_1", "mem_1")
    net = Failing(monkeypatch, httpx2.Response(200, text="<h1>Another program</h1>"))
    with pytest.raises(ApiError, match="200 http_200"):
        net.hub.memory("ws_1", "mem_1")


def test_what_may_not_be_done_twice_is_not_sent_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    for lost in (httpx2.ReadError("reset"), refusal(503)):
        net = Failing(monkeypatch, lost)
        with pytest.raises((ConnectionLost, ApiError)):
            net.hub.create_key(name="Robot", workspace_id="ws_1")
        assert len(net.asked) == 1
    net = Failing(monkeypatch, httpx2.ConnectError("refused"), refusal(429), good())
    net.hub.create_key(name="Robot", workspace_id="ws_1")  # neither request reached the server
    net = Failing(monkeypatch, httpx2.ReadError("reset"))
    with pytest.raises(ConnectionLost):
        net.hub.delete_memory("ws_1", "mem_1", seen='"mem_1.1"')


def test_an_edit_is_sent_again_as_the_same_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The version seen is sent again as well, and the first attempt is not a conflict."""
    net = Failing(monkeypatch, httpx2.ReadError("reset"), good())
    net.hub.edit_memory("ws_1", "mem_1", seen='"mem_1.1"', content="Other")
    assert len({request.headers["Idempotency-Key"] for request in net.asked}) == 1 and len(net.asked) == 2


def test_a_delete_whose_answer_was_lost_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Failing(monkeypatch, httpx2.ReadError("reset"), refusal(404, "not_found"))
    assert net.hub.delete_memory("ws_1", "mem_1") is None  # type: ignore[func-returns-value]
    with pytest.raises(ApiError, match="not_found"):
        Failing(monkeypatch, refusal(404, "not_found")).hub.delete_memory("ws_1", "mem_1")


def test_the_asynchronous_client_asks_again_too(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Failing(monkeypatch, httpx2.ReadError("reset"), refusal(504, Retry_After="2"), good())

    async def use() -> str:
        async with AsyncMemoryHub("http://hub.test", "mh_key", transport=net.transport) as hub:
            return (await hub.save_memory("ws_1", content="Said once"))["id"]

    assert asyncio.run(use()) == "mem_1"
    assert len({request.headers["Idempotency-Key"] for request in net.asked}) == 1
    assert len(net.pauses) == 2 and net.pauses[1] == 2


def test_it_needs_nothing_of_the_product() -> None:
    folder = Path(__file__).resolve().parents[2] / "client"
    look = "import sys, memoryhub_client; print([m for m in sys.modules if m.split('.')[0] in {'django', 'memoryhub'}])"
    done = subprocess.run(
        [sys.executable, "-c", look], cwd=folder, capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.strip() == "[]"
