"""Models that run on this machine: permissions, the addresses probed, and connecting by one click."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from memoryhub.errors import Forbidden, Invalid, NotFound, TooManyRequests
from memoryhub.llm.addresses import AddressRange
from memoryhub.llm.http_clients import Endpoint
from memoryhub.llm.model_check import list_models
from memoryhub.local.model_server import read_endpoint
from tests.conftest import Cast
from tests.factories import make_connection, make_user
from tests.fakes.local_model import running_local_model
from tests.fakes.ollama import CHAT, EMBEDDER, Ollama
from tests.fakes.openai_server import Answer, Call, Failure, Hang, Raw
from tests.signing_in import signed_in
from workspaces.access import default_workspace, get_workspace
from workspaces.actions import model_connections
from workspaces.actions.model_connections import Connected
from workspaces.connection_tests import Report
from workspaces.models import User
from workspaces.models.language_models import Connection

pytestmark = pytest.mark.django_db
CONNECT = "/connections/here/connect/"


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ollama]:
    """A fake Ollama server, with the ports of the others closed."""
    server = Ollama()
    server.start()
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound without listening, so that connections are refused
        nobody = closed.getsockname()[1]
        places = {
            "ollama": ("Ollama", server.port),
            "lm-studio": ("LM Studio", nobody),
            "llama-cpp": ("llama.cpp", nobody),
        }
        monkeypatch.setattr(model_connections, "SERVERS", places)
        yield server
    server.stop()


@pytest.fixture
def admin() -> User:
    return make_user("ada", is_staff=True, is_superuser=True)


def test_a_model_is_found_and_answers_after_one_click(ollama: Ollama, admin: User) -> None:
    page = signed_in(admin)
    home = default_workspace(admin)
    page.get("/", follow=True)  # the workspace visited last
    assert ollama.requests == [], "opening pages asks nobody"
    assert "Look for models" in page.get("/connections/").content.decode()
    found = page.post("/connections/here/").content.decode()
    assert "Ollama" in found and "llama3.2:latest" in found and "LM Studio</h3>" not in found
    ollama.script(
        Answer("ready"), Answer(calls=[Call("get_time", {"city": "Rome"})]), Answer('{"fact": "Moved."}')
    )
    done = page.post(CONNECT, {"server": "ollama", "model": "llama3.2:latest"}, follow=True)
    assert "is connected and answers in “Personal” now" in done.content.decode()
    made = Connection.objects.get()
    assert (made.is_shared, made.is_local, made.has_key, made.context_tokens) == (True, True, False, 4096)
    assert (made.has_tools, made.can_extract) == (True, True), "as it was tried"
    home.refresh_from_db()
    assert home.connection == made
    page.post(CONNECT, {"server": "ollama", "model": "llama3.2:latest"})
    assert Connection.objects.count() == 1, "once more, it is the same one"


def test_one_that_has_no_model_yet_is_told_from_one_that_does_not_run(ollama: Ollama, admin: User) -> None:
    ollama.models = {}
    found = signed_in(admin).post("/connections/here/").content.decode()
    assert "Ollama is running, but has no model yet" in found
    assert "LM Studio is running" not in found and "No model found" not in found
    with pytest.raises(Invalid):
        model_connections.connect_local("ollama", CHAT, by=admin, now=timezone.now())


def test_what_a_model_cannot_do_is_what_it_said_of_itself(ollama: Ollama, admin: User) -> None:
    """Ollama lists models of all kinds, and reports on request that one embeds or calls no tools."""
    who: dict[str, Any] = {"by": admin, "now": timezone.now(), "place": default_workspace(admin)}
    report = model_connections.connect_local("ollama", EMBEDDER, **who)
    assert isinstance(report, Report)
    outcomes = {line.step: line.outcome for line in report.lines}
    assert (report.answers, outcomes["model"], outcomes["streams"]) == (False, "works", "fails")
    page = signed_in(admin).post(CONNECT, {"server": "ollama", "model": EMBEDDER}).content.decode()
    assert "does not answer" in page and EMBEDDER in page and not Connection.objects.exists()
    ollama.models[CHAT] = {"completion"}
    ollama.script(Answer("ready"), Answer("It is noon, I think."), Answer('{"fact": "Moved."}'))
    made = model_connections.connect_local("ollama", CHAT, **who)
    assert isinstance(made, Connected) and made.workspace is not None
    assert (made.connection.has_tools, made.connection.can_extract) == (False, True)


@pytest.mark.local_model
@pytest.mark.parametrize("key", ["none", ""], ids=["open", "with a key of its own"])
def test_a_real_llama_cpp_is_found_and_connected(
    admin: User, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bundled server is llama.cpp's own. One that requires a key tells nothing without it.

    Takes some seconds: the server is started and probed.
    """
    home = default_workspace(admin)
    with running_local_model(tmp_path, key=key) as folder:
        endpoint = read_endpoint(folder)
        assert endpoint is not None
        port = urlsplit(endpoint.base_url).port
        monkeypatch.setattr(model_connections, "SERVERS", {"llama-cpp": ("llama.cpp", port)})
        found = model_connections.find_local_servers(by=admin, now=timezone.now())
        if not key:
            assert found == []
            return
        assert [(each.name, each.models) for each in found] == [("llama.cpp", [endpoint.model])]
        made = model_connections.connect_local(
            "llama-cpp", endpoint.model, by=admin, now=timezone.now(), place=home
        )
    assert isinstance(made, Connected) and made.workspace == home
    assert not made.connection.has_tools, "it calls none, whatever it is told"


def test_one_that_does_not_answer_is_neither_kept_nor_changed_nor_chosen(ollama: Ollama, admin: User) -> None:
    ollama.respond = lambda request: Failure(500, "cannot load")
    home = default_workspace(admin)
    who: dict[str, Any] = {"by": admin, "now": timezone.now(), "place": home}
    assert isinstance(model_connections.connect_local("ollama", CHAT, **who), Report)
    assert not Connection.objects.exists()
    there = {"base_url": ollama.base_url, "model": CHAT}
    known = make_connection(**there, has_tools=True)
    assert isinstance(model_connections.connect_local("ollama", CHAT, **who), Report)
    known.refresh_from_db()
    home.refresh_from_db()
    assert (known.has_tools, home.connection) == (True, None)


def test_nobody_looks_into_this_network_without_leave(ollama: Ollama, cast: Cast, settings: Settings) -> None:
    """Owners and staff alike; also where people may connect to external addresses only."""
    settings.PEOPLE_MAY_CONNECT = True
    for person in (cast.owner, make_user(is_staff=True)):
        assert "Look for models" not in signed_in(person).get("/connections/").content.decode()
        for act in (
            model_connections.find_local_servers,
            lambda **who: model_connections.connect_local("ollama", "llama3.2:latest", **who),
        ):
            with pytest.raises(Forbidden):
                act(by=person, now=timezone.now())
    assert ollama.requests == []
    settings.PEOPLE_MAY_CONNECT_INTERNAL = True
    made = model_connections.connect_local(
        "ollama",
        "llama3.2:latest",
        by=cast.editor,
        now=timezone.now(),
        place=get_workspace(cast.editor, cast.workspace.public_id),
    )
    assert isinstance(made, Connected)
    assert (made.connection.owner, made.connection.is_local, made.workspace) == (cast.editor, False, None)


def test_nothing_that_is_sent_says_where_is_asked(ollama: Ollama, admin: User, settings: Settings) -> None:
    who: dict[str, Any] = {"by": admin, "now": timezone.now()}
    for server in ("http://169.254.169.254", "127.0.0.1:22", "ollama@evil", "ollama/../x", "", "__class__"):
        with pytest.raises(NotFound):
            model_connections.connect_local(server, "llama3.2:latest", **who)
    for model in ("another", "", "llama3.2:latest\r\nX: y", "x" * 5000):
        with pytest.raises(Invalid):
            model_connections.connect_local("ollama", model, **who)
    fields = {"server": "ollama", "model": "llama3.2:latest", "base_url": "http://10.0.0.1/v1", "port": "22"}
    signed_in(admin).post(CONNECT, fields)
    assert Connection.objects.get().base_url == ollama.base_url
    assert Client(enforce_csrf_checks=True).post("/connections/here/").status_code in {302, 403}
    settings.THROTTLES = {**settings.THROTTLES, "model tests": 1}
    with pytest.raises(TooManyRequests):
        for _ in range(2):
            model_connections.find_local_servers(**who)
    Connection.objects.all().delete()
    asked = len(ollama.requests)
    with pytest.raises(TooManyRequests):
        model_connections.connect_local("ollama", "llama3.2:latest", **who)
    assert not Connection.objects.exists() and len(ollama.requests) == asked, "what is refused does nothing"


def test_what_speaks_no_such_language_is_no_server(
    ollama: Ollama, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_connections, "SECONDS", 0.3)
    nowhere = Endpoint("http://192.0.2.1/v1", "", "", AddressRange.INTERNAL)
    assert list_models(nowhere, seconds=0.2) is None
    for reply in (
        {"data": "all"},
        {"data": [{"id": 7}, {"name": "x"}]},
        {"models": []},
        Raw(b"[]"),
        Failure(302, headers={"location": "http://127.0.0.1:9/v1/models"}),
        Hang(),
        Raw(b"[" * 100_000),
        Failure(401, "who are you?"),
        {"data": [{"id": "x" * 1_100_000}]},
        {"data": [{"id": "a\x00b"}, {"id": ""}, {"id": "y" * 300}]},
    ):
        monkeypatch.setattr(ollama, "_choose", lambda request, reply=reply: reply)
        assert model_connections.find_local_servers(by=admin, now=timezone.now()) == [], str(reply)[:80]
