"""Wrong queries from every door: request, export, stream, turn, MCP, /v1. Nothing of another's comes."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2 as http
import pytest
from django.conf import settings
from django.test import Client

from chat.models import Chat, Message, MessageStatus
from chat.turns import runner
from memoryhub.http.handler import OneThreadHandler
from tests.chat.doors.conftest import running
from tests.factories import make_chat, make_document, make_key_text, make_memory, make_message, make_user
from tests.fakes.openai_server import Answer, ScriptedOpenAI
from tests.workspaces.isolation.guarded import row_security
from tests.workspaces.isolation.wrong import Asked, ask_wrongly
from workspaces.access import default_workspace
from workspaces.models import User

pytestmark = pytest.mark.django_db(transaction=True)
OTHERS, OWN = "kumquat", "apricot"


@pytest.fixture
def guarded(transactional_db: None) -> Iterator[None]:
    with row_security():
        yield


@pytest.fixture
def otto(guarded: None) -> User:
    """With something of everything, beside somebody else who has it, too."""
    return [_person(name, word) for name, word in (("nadia", OTHERS), ("otto", OWN))][-1]


def _person(name: str, word: str) -> User:
    person = make_user(name)
    User.objects.filter(pk=person.pk).update(memory_default=True)
    person.refresh_from_db()
    home = default_workspace(person)
    make_memory(f"The {word} is ripe in May", person, home)
    make_document(person, home, f"The {word} is turned in June.")
    make_message(make_chat(person, home, title=f"{word} plans"), f"Where is the {word}?")
    return person


@pytest.fixture
def asked(otto: User, monkeypatch: pytest.MonkeyPatch) -> Asked:
    return ask_wrongly(monkeypatch)


@pytest.fixture
def address(guarded: None) -> Iterator[str]:
    """A server of its own: its threads and its middleware know of row security."""
    with running(OneThreadHandler()) as address:
        yield address


@pytest.fixture
def browser(otto: User, address: str) -> http.Client:
    signed_in = Client()
    signed_in.force_login(otto)
    cookies = {settings.SESSION_COOKIE_NAME: signed_in.cookies[settings.SESSION_COOKIE_NAME].value}
    found = http.Client(base_url=address, cookies=cookies, timeout=30)
    found.get("/profile/")
    found.headers["x-csrftoken"] = found.cookies[settings.CSRF_COOKIE_NAME]
    return found


@pytest.fixture
def program(otto: User, address: str) -> http.Client:
    key = make_key_text(otto, default_workspace(otto))
    return http.Client(base_url=address, headers={"authorization": f"Bearer {key}"}, timeout=30)


def only_ottos(asked: Asked, otto: User) -> None:
    """At each door something was asked, found Otto's own, and nothing of anybody else's."""
    for door in asked.doors:
        texts = asked.texts[door]
        assert any(OWN in text for text in texts), door
        assert [text for text in texts if OTHERS in text] == [], door
        assert asked.whose[door] == {otto.pk}, door


def test_requests_and_streams(otto: User, asked: Asked, browser: http.Client) -> None:
    home = default_workspace(otto).public_id
    rest = f"/chat/api/workspaces/{home}"
    for path in (f"/workspaces/{home}/memories/", f"{rest}/memories", f"/workspaces/{home}/documents/"):
        with asked.at(path):
            assert browser.get(path).status_code == 200
    for path in ("recall", "search"):
        with asked.at(path):
            assert browser.post(f"{rest}/{path}", json={"query": "when?"}).status_code == 200
    with asked.at("export"):
        assert OWN in browser.get(f"{rest}/export").text
    only_ottos(asked, otto)


def test_turns_whole_and_streamed(
    otto: User, asked: Asked, browser: http.Client, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.script(Answer("In May."), Answer("In June."))
    chat = Chat.objects.get(created_by=otto)
    path = f"/chat/api/{chat.public_id}/messages"
    with asked.at("turn"):
        assert browser.post(path, json={"content": "When?", "stream": False}).status_code == 201
        assert runner.wait_until_idle(10)
    with asked.at("streamed turn"):
        assert "In June." in browser.post(path, json={"content": "And then?", "stream": True}).text
        assert runner.wait_until_idle(10)
    assert Message.objects.filter(chat=chat, status=MessageStatus.DONE, role="assistant").count() == 2
    only_ottos(asked, otto)


def test_programs(otto: User, asked: Asked, program: http.Client, scripted_model: ScriptedOpenAI) -> None:
    scripted_model.script(Answer("In May."), Answer("In June."))
    said = {"model": "scripted-model", "messages": [{"role": "user", "content": f"When is the {OWN} ripe?"}]}
    for stream in (False, True):
        with asked.at(f"/v1, streamed: {stream}"):
            assert program.post("/v1/chat/completions", json={**said, "stream": stream}).status_code == 200
            assert runner.wait_until_idle(10)
    for progress in ({}, {"_meta": {"progressToken": "1"}}):
        call = {"name": "recall_memory", "arguments": {"query": f"When is the {OWN} ripe?"}, **progress}
        with asked.at(f"/mcp {progress}"):
            answer = program.post(
                "/mcp",
                json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
                headers={
                    "accept": "application/json, text/event-stream",
                    "mcp-protocol-version": "2025-06-18",
                },
            )
            assert OWN in answer.text
    with asked.at("REST with a key"):
        assert program.get("/api/v1/memories").status_code == 200
    only_ottos(asked, otto)
