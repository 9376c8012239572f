"""``Idempotency-Key`` on every route that creates something: executed once, answered for each repetition."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.utils import timezone
from pytest_django.fixtures import Settings
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from chat.models import Chat, Message
from chat.models.imports import Import
from memories.models import Asset, Memory, MemoryNode
from memories.writing import gate
from tests.api import Api, error_of
from tests.asgi import posted
from tests.conftest import Cast
from tests.factories import make_chat, make_key_text, make_memory, make_user
from tests.fakes.openai_server import HOLD, Answer, ScriptedOpenAI
from workspaces import tasks
from workspaces.api import idempotency
from workspaces.models import Agent, Artifact, DoneRequest, Membership, Workspace
from workspaces.models.language_models import Connection

KEY = "8e03978e-40d5-43e8-bc93-6894a57f9324"


def send(api: Api, path: str, body: Any, key: str = KEY, *, method: str = "post", **headers: str) -> Any:
    ask = getattr(api.client, method)
    headers["Idempotency-Key"] = key
    return ask(f"/{path}", body, content_type="application/json", headers=headers)


class Making:
    """A creating route: its path, two bodies, and a count of the rows it creates."""

    def __init__(
        self, path: str, body: dict[str, Any], other: dict[str, Any], count: Callable[[], int]
    ) -> None:
        self.path, self.body, self.other, self.count = path, body, other, count


@pytest.fixture
def makings(cast: Cast, scripted_model: ScriptedOpenAI, settings: Settings) -> dict[str, Making]:
    make_user("max")
    chat = make_chat(cast.owner, cast.workspace)
    said = Message.objects.create(chat=chat, author=cast.owner, role="user", content="Cats purr")
    ws = f"chat/api/workspaces/{cast.workspace.public_id}"
    of_chat = f"chat/api/{chat.public_id}"
    settings.PEOPLE_MAY_CONNECT = True
    model = {"name": "A", "base_url": "https://api.example.org/v1", "model": "m"}
    fact, other = {"content": "Cats purr"}, {"content": "Dogs bark"}
    memories, turns = Memory.objects.count, Message.objects.count
    return {
        "workspace": Making(
            "chat/api/workspaces", {"name": "Launch"}, {"name": "Lunch"}, Workspace.objects.count
        ),
        "member": Making(f"{ws}/members", {"username": "sam"}, {"username": "max"}, Membership.objects.count),
        "agent": Making(f"{ws}/agents", {"name": "Writer"}, {"name": "Reader"}, Agent.objects.count),
        "connection": Making("chat/api/connections", model, {**model, "name": "B"}, Connection.objects.count),
        "artifact": Making(
            f"{ws}/artifacts",
            {"title": "Sums", "kind": "code", "content": "1 + 1"},
            {"title": "Sums", "kind": "code", "content": "2 + 2"},
            Artifact.objects.count,
        ),
        "chat": Making("chat/api/chats", {"title": "Plans"}, {"title": "Plan"}, Chat.objects.count),
        "memory": Making(f"{ws}/memories", fact, other, memories),
        "memory of a chat": Making(f"{of_chat}/memory", fact, other, memories),
        "remembered message": Making(f"{of_chat}/memory", {"messageId": said.public_id}, other, memories),
        "v1 memory": Making("api/v1/memories", {"value": "Cats purr"}, {"value": "Dogs bark"}, memories),
        "proposal": Making(f"{ws}/proposals", fact, other, memories),
        "node": Making(
            "api/v1/memory-nodes", {"name": "Apollo"}, {"name": "Gemini"}, MemoryNode.objects.count
        ),
        "turn": Making(f"{of_chat}/messages", fact | {"stream": False}, other | {"stream": False}, turns),
    }


@pytest.mark.django_db(transaction=True)
def test_the_same_again_is_done_once(makings: dict[str, Making], cast: Cast) -> None:
    api = Api(cast.owner)
    for name, making in makings.items():
        key = f"{KEY}-{name.replace(' ', '-')}"
        first = send(api, making.path, making.body, key)
        assert first.status_code in {201, 202}, name
        assert "Idempotent-Replayed" not in first, name
        there = making.count()
        reordered = dict(reversed(making.body.items()))
        for again in (
            send(api, making.path, making.body, key),
            send(api, making.path, reordered, f'"{key}"'),
        ):
            assert (again.status_code, again.json()) == (first.status_code, first.json()), name
            assert again["Idempotent-Replayed"] == "true", name
            assert again.get("ETag") == first.get("ETag"), name
        other = send(api, making.path, making.other, key)
        assert (other.status_code, error_of(other)["code"]) == (422, "idempotency_mismatch"), name
        assert making.count() == there, name
        assert send(api, making.path, making.other, f"another-{key}").status_code in {201, 202}, name
        Memory.objects.all().delete()  # several routes store the same text


@pytest.mark.parametrize("door", ["workspace", "chat", "v1"])
def test_an_edit_is_made_once_and_what_came_after_it_stays(cast: Cast, door: str) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    memory = make_memory("Cats purr", cast.owner, cast.workspace, source_chat_id=chat.public_id)
    path, field = {
        "workspace": (f"chat/api/workspaces/{cast.workspace.public_id}/memories", "content"),
        "chat": (f"chat/api/{chat.public_id}/memories", "content"),
        "v1": ("api/v1/memories", "value"),
    }[door]
    path, api = f"{path}/{memory.public_id}?workspace_id={cast.workspace.public_id}", Api(cast.owner)

    def edit(text: str, key: str = KEY, **headers: str) -> Any:
        return send(api, path, {field: text}, key, method="patch", **headers)

    seen = api.client.get(f"/{path}")["ETag"] if door != "chat" else "*"
    first = edit("Cats purr at night", **{"If-Match": seen})
    assert (first.status_code, first.json()[field]) == (200, "Cats purr at night")
    again = edit("Cats purr at night", **{"If-Match": seen})
    assert (again.status_code, again.json(), again["Idempotent-Replayed"]) == (200, first.json(), "true")
    assert again["ETag"] == first["ETag"]
    assert edit("Cats purr by day", "another-key").status_code == 200
    assert edit("Cats purr at night").json()[field] == "Cats purr by day"
    assert memory.revisions.count() == 3
    other = edit("Dogs bark")
    assert (other.status_code, error_of(other)["code"]) == (422, "idempotency_mismatch")
    assert edit("Cats purr at night", "a b").status_code == 400
    assert edit("My password is hunter2sGreatSecret", "third").status_code == 422
    assert edit("Cats purr always", "third").status_code == 200, "what was refused did nothing"


@contextmanager
def request_in_progress(request: Any) -> Iterator[None]:
    """Let another connection begin the same request and not finish it."""
    begun, finish = Event(), Event()

    def act() -> int:
        begun.set()
        assert finish.wait(10)
        raise RuntimeError("the process was killed")

    def run() -> None:
        try:
            with pytest.raises(RuntimeError):
                idempotency.do_once(request, act, keep=lambda made: {}, now=timezone.now())
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as elsewhere:
        running = elsewhere.submit(run)
        assert begun.wait(10)
        try:
            yield
        finally:
            finish.set()
            running.result(10)


def request_of(person: Any) -> DoneRequest:
    request = Request(APIRequestFactory().post("/", headers={"Idempotency-Key": KEY}))
    identity = idempotency.identity_of_request(request, person)
    assert identity is not None
    return identity


@pytest.mark.django_db(transaction=True)
def test_while_the_first_is_at_work_the_second_waits_and_after_a_crash_it_acts(cast: Cast) -> None:
    api, path = Api(cast.owner), f"chat/api/workspaces/{cast.workspace.public_id}/memories"
    with request_in_progress(request_of(cast.owner)):
        early = send(api, path, {"content": "Cats purr"})
        assert (early.status_code, error_of(early)["code"]) == (409, "idempotency_running")
        assert int(early["Retry-After"]) >= 1
        assert send(api, path, {"content": "Dogs bark"}, "another-key").status_code == 201
    assert not Memory.objects.filter(content="Cats purr").exists()
    assert send(api, path, {"content": "Cats purr"}).status_code == 201


@pytest.mark.django_db(transaction=True)
def test_many_at_once_store_one_row(cast: Cast) -> None:
    path = f"chat/api/workspaces/{cast.workspace.public_id}/memories"
    body = {"content": "Cats purr", "dedupe": "create"}

    def post(_: int) -> tuple[int, bool, Any]:
        try:
            answer = send(Api(cast.owner), path, body)
            return answer.status_code, answer.get("Idempotent-Replayed") == "true", answer.json()
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(post, range(12)))
    memory = Memory.objects.get()
    made = [answer for code, replayed, answer in outcomes if code == 201 and not replayed]
    assert [answer["id"] for answer in made] == [memory.public_id]
    for code, replayed, answer in outcomes:
        assert code in (201, 409)
        assert code == 409 or answer == made[0], replayed


def test_what_failed_may_be_tried_again(cast: Cast) -> None:
    api, path = Api(cast.owner), f"chat/api/workspaces/{cast.workspace.public_id}/members"
    assert send(api, path, {"username": "vera"}).status_code == 409  # already a member
    assert send(api, path, {"username": "nobody"}).status_code == 422
    assert send(api, path, {"username": "sam"}).status_code == 201


def test_a_body_that_is_not_valid_is_refused_whatever_the_key_did(cast: Cast) -> None:
    api = Api(cast.owner)
    assert send(api, "chat/api/workspaces", {"name": "Launch"}).status_code == 201
    refused = send(api, "chat/api/workspaces", {"name": 5})
    assert (refused.status_code, error_of(refused)["code"]) == (422, "invalid")


def test_a_malformed_key_is_refused(cast: Cast) -> None:
    for key in ("", " ", "a b", "ü", 'a"b', '"a', "a\\b", "a\tb", '""', "k" * 256, '"' + "k" * 256 + '"'):
        refused = send(Api(cast.owner), "chat/api/workspaces", {"name": "Launch"}, key)
        assert (refused.status_code, error_of(refused)["code"]) == (400, "malformed"), key
        assert not Workspace.objects.filter(name="Launch").exists(), key


def test_the_longest_key_will_do(cast: Cast) -> None:
    assert send(Api(cast.owner), "chat/api/workspaces", {"name": "Launch"}, "k" * 255).status_code == 201


def test_a_key_belongs_to_its_person_and_to_the_way_they_came_in(cast: Cast) -> None:
    path, body = (
        f"api/v1/memories?workspace_id={cast.workspace.public_id}",
        {"value": "Cats purr", "dedupe": "create"},
    )
    ways = [Api(cast.owner), Api(cast.editor), Api(key=make_key_text(cast.owner, cast.workspace))]
    ids = [send(api, path, body).json()["id"] for api in ways]
    assert len(set(ids)) == 3
    assert [send(api, path, body).json()["id"] for api in ways] == ids


def test_the_same_key_at_another_address_is_another_request(cast: Cast) -> None:
    api = Api(cast.owner)
    assert send(api, "api/v1/memories", {"value": "Cats purr"}).status_code == 201
    elsewhere = send(api, f"api/v1/memories?workspace_id={cast.workspace.public_id}", {"value": "Cats purr"})
    assert (elsewhere.status_code, error_of(elsewhere)["code"]) == (422, "idempotency_mismatch")


def test_a_memory_that_was_known_is_answered_as_before(cast: Cast) -> None:
    known = make_memory("Cats purr", cast.owner, cast.workspace)
    api, path = Api(cast.owner), f"chat/api/workspaces/{cast.workspace.public_id}/memories"
    first = send(api, path, {"content": "Cats purr"})
    assert (first.status_code, first.json()["duplicate"]) == (200, True)
    again = send(api, path, {"content": "Cats purr"})
    assert (again.status_code, again.json()) == (200, first.json())
    assert again.json()["id"] == known.public_id


def test_what_was_made_is_shown_as_it_is_now_and_only_to_whom_may_see_it(cast: Cast) -> None:
    api, path = Api(cast.editor), f"chat/api/workspaces/{cast.workspace.public_id}/memories"
    made = send(api, path, {"content": "Cats purr"}).json()
    memory = Memory.objects.get()
    gate.edit_memory(memory, by=cast.owner, now=timezone.now(), content="Cats purr at night")
    assert send(api, path, {"content": "Cats purr"}).json()["content"] == "Cats purr at night"
    gate.delete_memory(memory, by=cast.owner, now=timezone.now())
    gone = send(api, path, {"content": "Cats purr"})
    assert (gone.status_code, gone["Idempotent-Replayed"]) == (404, "true")
    assert Memory.objects.get().public_id == made["id"]  # and no second one was created
    Membership.objects.filter(user=cast.editor).delete()
    assert send(api, path, {"content": "Cats purr"}).status_code == 404


def test_no_text_is_kept_and_after_a_day_nothing(cast: Cast) -> None:
    api, path = Api(cast.owner), f"chat/api/workspaces/{cast.workspace.public_id}/memories"
    send(api, path, {"content": "Cats purr", "dedupe": "create"})
    kept = DoneRequest.objects.get()
    for field in DoneRequest._meta.concrete_fields:
        assert "purr" not in str(getattr(kept, field.attname)).lower()
        assert KEY not in str(getattr(kept, field.attname))
    DoneRequest.objects.update(done_at=timezone.now() - timedelta(hours=24))
    again = send(api, path, {"content": "Cats purr", "dedupe": "create"})
    assert (again.status_code, Memory.objects.count()) == (
        201,
        2,
    )  # expired, even before it is swept
    assert tasks.sweep().startswith("0 notes of requests")
    DoneRequest.objects.update(done_at=timezone.now() - timedelta(hours=25))
    assert tasks.sweep().startswith("1 notes of requests")
    assert not DoneRequest.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_turn_being_written_can_be_followed_again_but_not_waited_for_twice(
    cast: Cast, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.script(Answer("It is due ", HOLD, "on March 15."))
    api, chat = Api(cast.owner), make_chat(cast.owner, cast.workspace)
    path = f"chat/api/{chat.public_id}/messages"
    with ThreadPoolExecutor(1) as elsewhere:

        def post() -> Any:
            try:
                return send(Api(cast.owner), path, {"content": "When?", "stream": False}).json()
            finally:
                connection.close()

        first = elsewhere.submit(post)
        try:
            assert scripted_model.wait_for_requests(1)
            early = send(api, path, {"content": "When?", "stream": False})
            assert (early.status_code, error_of(early)["code"]) == (409, "idempotency_running")
        finally:
            scripted_model.release()
        turn = first.result(10)
    assert send(api, path, {"content": "When?", "stream": False}).json() == turn
    assert Message.objects.count() == 2


@pytest.fixture
def chat(transactional_db: None) -> Chat:
    return make_chat(make_user("ann"))


async def test_who_lost_the_stream_may_follow_it_again(chat: Chat, scripted_model: ScriptedOpenAI) -> None:
    scripted_model.script(Answer("It is due ", HOLD, "on March 15."))
    client = await sync_to_async(lambda: Api(chat.created_by).client)()
    cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())
    sent = (f"/chat/api/{chat.public_id}/messages", {"content": "When?"}, cookies, {"Idempotency-Key": KEY})
    async with posted(*sent) as exchange:
        await exchange.start()
        first = await exchange.event()
        await exchange.hang_up()
    async with posted(*sent) as exchange:
        status, headers = await exchange.start()
        assert (status, headers["idempotent-replayed"]) == (200, "true")
        again = await exchange.event()
        assert first and again and again[1]["answer"]["id"] == first[1]["answer"]["id"]
        scripted_model.release()
        rest = await exchange.events()
    assert "".join(data["text"] for name, data in rest if name == "token") == "It is due on March 15."
    assert rest[-1][0] == "done"
    assert len(scripted_model.requests) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("door", ["file", "import"])
def test_the_same_file_again_is_kept_once(door: str, cast: Cast) -> None:
    memory = make_memory("Tea", cast.owner, cast.workspace)
    query = f"?workspace_id={cast.workspace.public_id}"
    path = f"/api/v1/memories/{memory.public_id}/assets{query}" if door == "file" else "/chat/api/imports"
    count = (Asset if door == "file" else Import).objects.count
    api = Api(cast.owner)

    def upload(text: bytes, name: str = "list.txt") -> Any:
        data = {"file": SimpleUploadedFile(name, text)}
        return api.client.post(path, data, headers={"Idempotency-Key": KEY})

    first, again = upload(b"Cats purr"), upload(b"Cats purr")
    assert (first.status_code, again.status_code, again["Idempotent-Replayed"]) == (201, 201, "true")
    assert (first.json()["id"], count()) == (again.json()["id"], 1)
    for other in (upload(b"Dogs bark"), upload(b"Cats purr", "other.txt")):
        assert (other.status_code, error_of(other)["code"]) == (422, "idempotency_mismatch")
    assert count() == 1
