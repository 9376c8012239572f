"""Database failures at each endpoint: 503 with a reason and a Retry-After, by Postgres's error code."""

import errno
import logging
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import InterfaceError, OperationalError, connection, transaction
from django.test import Client
from psycopg_pool import PoolTimeout

from memoryhub.errors import DiskFull, trouble_of
from memoryhub.llm.errors import ModelError
from tests.conftest import Cast
from workspaces.models import Document

pytestmark = pytest.mark.django_db
AWAY = "Part of the system is not answering"
SAID = {
    "25006": ("database is read-only", "30"),
    "53100": ("run out of disk space", "60"),
    "53200": ("database is overloaded", "5"),
    "53300": ("database is overloaded", "5"),
    "57014": ("database is overloaded", "5"),
    "57P01": (AWAY, "5"),
    "57P02": (AWAY, "5"),
    "57P03": (AWAY, "5"),
    "58030": (AWAY, "5"),
    "08006": (AWAY, "5"),
    "40001": ("changing the same thing", "1"),
    "40P01": ("changing the same thing", "1"),
    "55P03": ("changing the same thing", "1"),
}


def database_says(state: str) -> Callable[..., None]:
    """Return a function in which the server itself raises the error, as Django gets it."""

    def ask(*args: Any, **kwargs: Any) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"DO $$ BEGIN RAISE EXCEPTION 'kumquat' USING ERRCODE = '{state}'; END $$")

    return ask


def raising(error: Exception) -> Callable[..., None]:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise error

    return fail


@pytest.fixture
def client(cast: Cast) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(cast.owner)
    return client


def test_every_door_says_what_is_wrong(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    for state, (sentence, seconds) in SAID.items():
        for place in ("chat.views.chats.get_workspace", "chat.api.views.get_chat"):
            monkeypatch.setattr(place, database_says(state))
        page = f"/workspaces/{cast.workspace.public_id}/"
        with caplog.at_level(logging.ERROR):
            answers = [client.get(page), client.get(page, headers={"HX-Request": "true"})]
            answers.append(client.get(f"/chat/api/chats/chat_{'a' * 24}"))
        for answer in answers:
            assert (answer.status_code, answer["Retry-After"]) == (503, seconds), state
            assert sentence in answer.content.decode() and "kumquat" not in answer.content.decode(), state
        assert answers[2].json()["error"]["code"] == "unavailable", state
        assert state in caplog.text


FULL = [
    OSError(errno.ENOSPC, "No space left on device"),
    OSError(errno.EDQUOT, "Disk quota exceeded"),
    FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']"),
]


def test_every_door_says_that_this_servers_disk_is_full(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    for error in FULL:
        for place in ("chat.views.chats.get_workspace", "tempfile.SpooledTemporaryFile"):
            monkeypatch.setattr(place, raising(error))
        page = f"/workspaces/{cast.workspace.public_id}/"
        answers = [client.get(page), client.get(page, headers={"HX-Request": "true"})]
        file = SimpleUploadedFile("notes.txt", b"The launch is in May")
        place = f"/chat/api/workspaces/{cast.workspace.public_id}/documents"
        answers.append(client.post(place, {"file": file}))
        for answer in answers:
            assert (answer.status_code, answer["Retry-After"]) == (503, "60"), answer.content
            assert "run out of disk space" in answer.content.decode(), error
        assert not Document.objects.exists(), error


def test_a_file_that_is_missing_is_not_a_full_disk() -> None:
    assert trouble_of(FileNotFoundError(errno.ENOENT, "No such file or directory")) is None


def test_our_own_mistakes_stay_500(client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    for state in ("54000", "XX000", "42P01", "25P02", "22012"):
        monkeypatch.setattr("chat.views.chats.get_workspace", database_says(state))
        assert client.get(f"/workspaces/{cast.workspace.public_id}/").status_code == 500, state


def test_what_was_not_even_asked_is_away() -> None:
    assert trouble_of(InterfaceError("connection already closed")) is not None
    assert trouble_of(psycopg.OperationalError("server closed the connection unexpectedly")) is not None
    assert trouble_of(psycopg.ProgrammingError("the last operation didn't produce records")) is None
    full = psycopg.OperationalError("FATAL: could not write init file: No space left on device")
    assert isinstance(trouble_of(full), DiskFull)
    error = OperationalError("no connection in time")
    error.__cause__ = PoolTimeout()
    assert trouble_of(error) is not None
    assert trouble_of(ModelError("model_unreachable")) is None and trouble_of(None) is None


def test_a_database_that_is_away_before_a_write_begins(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr("memoryhub.http.middleware.refuse_writes", away)
    for path in ("/workspaces/", "/chat/api/workspaces"):
        answer = client.post(path, {"name": "Launch"}, "application/json")
        assert (answer.status_code, answer["Retry-After"]) == (503, "5")
