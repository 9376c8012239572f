"""Every route on a read-only database: 503 with a Retry-After, or the answer; never a 500."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core import mail
from django.db import OperationalError, connection, transaction
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from memoryhub.database import replicas
from memoryhub.database.replicas import State
from memoryhub.http.middleware import reads_only
from tests.factories import PASSWORD, make_key_text
from tests.fakes.replica import shared_replica
from tests.routes import API_ROWS, NO_KEYS, ROWS, V1, WS, Row
from tests.test_attacks import client_of, send
from tests.world import EachRow, World
from workspaces.access import default_workspace
from workspaces.models import User


def _is_noted(row: Row) -> bool:
    """Return whether the request is logged in the audit log, as exports are."""
    return "export" in row.route or row.route.endswith("account/copy")


IN_REQUEST = [row for row in ROWS if not row.in_threads]
READS = [row for row in IN_REQUEST if row.method == "GET" and not _is_noted(row)]
# Routes without keys answer 401 before reading one, as the access matrix says.
TAKE_KEYS = [row for row in API_ROWS if row.keys != NO_KEYS and not row.upload]
ONLY_READ = {f"{WS}/recall", f"{WS}/search", f"{V1}/memories/recall"}
# A read-only state that the server reports at once, and one that only a write detects: older servers, or a switch
# during the request.
SAID = "SET default_transaction_read_only = on; SET TRANSACTION READ ONLY"
FOUND_OUT = "SET TRANSACTION READ ONLY"


def run(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def files() -> set[Path]:
    return set(Path(settings.DATA_DIR).glob("assets/**/*")) | set(
        Path(settings.DATA_DIR).glob("imports/**/*")
    )


def on_read_only(client: Client, row: Row, world: World, how: str) -> Any:
    """Return the answer; changes outside the database, which is rolled back, are removed."""
    default_workspace(world.cast.owner)  # created on the first visit
    had = files()
    with transaction.atomic():
        run(how)
        response = send(client, row, world.address(row), world.data(row))
        transaction.set_rollback(True)
    assert (files(), len(mail.outbox)) == (had, 0)
    return response


def assert_said(response: Any, row: Row) -> None:
    assert response.status_code == 503, response.content
    assert response["Retry-After"] == "30"
    text = response.json()["error"]["message"] if row.is_api else response.content.decode()
    assert "the database is read-only" in text
    assert row.is_api or "<h1>" in text


def test_of_what_is_sent_recall_and_search_alone_are_for_replicas(world: World) -> None:
    """`/v1` and `/mcp` are not: a client reads its own writes there, and a failed model call must not be paid twice."""
    sent = [row for row in ROWS if row.method not in {"GET", "HEAD"}]
    told = {row.route for row in sent if reads_only(RequestFactory().generic(row.method, world.address(row)))}
    assert told == ONLY_READ


def test_writes_are_refused(each_row: EachRow) -> None:
    """The first kind of server reports it beforehand, to the middleware; with the second only a write detects it."""
    for number, (row, world) in enumerate(each_row([row for row in IN_REQUEST if row not in READS])):
        client = client_of(world.cast.owner, row)
        if number % 10 == 0:  # views have no part in it
            assert_said(on_read_only(client, row, world, SAID), row)
        response = on_read_only(client, row, world, FOUND_OUT)
        if response.status_code == 503:
            assert_said(response, row)
        else:  # nothing was written
            assert response.status_code == row.statuses[0], row


WRITES = re.compile(r'\s*(INSERT INTO|UPDATE|DELETE FROM) "?(\w+)|.*\bFOR UPDATE', re.DOTALL)


def test_reads_are_answered_and_write_what_is_listed_and_nothing_else(world: World) -> None:
    """The workspace last visited, a link's opening count, and a job that stores rendered text.

    No read is checked for writes beforehand, so the server's state changes nothing.
    """
    default_workspace(world.cast.owner)
    written: dict[str, set[str]] = {}
    for row in READS:
        with CaptureQueriesContext(connection) as captured:
            response = on_read_only(client_of(world.cast.owner, row), row, world, SAID)
        assert response.status_code == row.statuses[0], row
        for query in captured.captured_queries:
            if found := WRITES.match(query["sql"]):
                written.setdefault(found[2] or query["sql"], set()).add(str(row))
    assert set(written) == {"django_session", "chat_sharelink", "django_q_ormq"}, written


def test_keys_are_told_the_same(each_row: EachRow) -> None:
    """A key's requests are counted, so not even a read succeeds; all keys are read in one place."""
    for row, world in each_row(TAKE_KEYS[::10]):
        key = make_key_text(world.cast.owner, world.cast.workspace)
        client = Client(raise_request_exception=False, headers={"authorization": f"Bearer {key}"})
        assert_said(on_read_only(client, row, world, SAID), row)


@pytest.fixture
def replica(db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A replica that answers while the primary is unavailable."""
    monkeypatch.setattr(replicas, "primary_is_away", lambda: True)
    monkeypatch.setattr(replicas, "state_of", lambda alias: State(True, True, lag=0.0, started=0.0))
    with shared_replica() as found:
        yield found


@pytest.mark.usefixtures("replica")
def test_a_replica_answers_what_only_reads_while_the_primary_is_away(world: World) -> None:
    """Also what is queried by handwritten SQL, or in a transaction."""

    def away(*_: Any) -> None:
        raise OperationalError("the primary is away")

    default_workspace(world.cast.owner)
    key = make_key_text(world.cast.owner, world.cast.workspace)
    by_key = Client(raise_request_exception=False, headers={"authorization": f"Bearer {key}"})
    for row in [*READS, *(row for row in ROWS if row.method == "POST" and row.route in ONLY_READ)]:
        client = client_of(world.cast.owner, row)
        for each in (client, by_key) if row.route == f"{V1}/memories" else (client,):
            with transaction.atomic(), connection.execute_wrapper(away):
                response = send(each, row, world.address(row), world.data(row))
                transaction.set_rollback(True)
            assert response.status_code == row.statuses[0], row


def test_a_fragment_says_it_in_a_toast(world: World) -> None:
    for how in (SAID, FOUND_OUT):
        row = Row("POST", "workspaces/", (), {"name": "Launch"})
        client = client_of(world.cast.owner, row, headers={"HX-Request": "true"})
        response = on_read_only(client, row, world, how)
        text = response.content.decode()
        assert (response.status_code, response["Retry-After"]) == (503, "30"), how
        assert 'role="alert"' in text and "<html" not in text, how


def test_nobody_signs_in_or_up(world: World) -> None:
    for path in ("login", "signup", "logout", "password/reset"):
        row = Row("POST", f"accounts/{path}/", (), {"login": "olive", "password": PASSWORD})
        assert_said(on_read_only(Client(raise_request_exception=False), row, world, SAID), row)


def test_the_admin_can_be_read(world: World) -> None:
    for path in ("admin/", "admin/memories/memory/", "admin/workspaces/user/"):
        User.objects.filter(pk=world.cast.owner.pk).update(is_staff=True, is_superuser=True)
        row = Row("GET", path, (200,))
        assert on_read_only(client_of(world.cast.owner, row), row, world, SAID).status_code == 200, path
