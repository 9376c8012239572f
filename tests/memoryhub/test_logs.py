import io
import json
import logging
import re
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from django.db import IntegrityError, connection
from django.test import Client

from memoryhub.monitoring import request_origin
from memoryhub.monitoring.logs import Formatter, JsonFormatter
from tests.factories import make_user


def written(error: Exception) -> str:
    try:
        raise error
    except Exception:
        record = logging.LogRecord("x", logging.ERROR, "", 0, "It failed", (), sys.exc_info())
        return Formatter("{levelname} {message}", style="{").format(record)


@pytest.mark.django_db
def test_an_error_of_the_database_is_logged_without_the_row_it_quotes() -> None:
    make_user("kumquat")
    with pytest.raises(IntegrityError) as failure, connection.cursor() as cursor:
        cursor.execute("UPDATE workspaces_user SET public_id = NULL WHERE username = 'kumquat'")
    assert "Failing row contains" in str(failure.value)
    told = written(failure.value)
    assert "Failing row" not in told
    assert told.count("null value in column") == 2  # psycopg's and Django's
    assert "test_logs.py" in told and "which led to" in told


def test_a_long_message_is_cut_and_a_short_one_is_not() -> None:
    assert written(ValueError("too short")).endswith("builtins.ValueError: too short")
    assert len(written(ValueError("x" * 5000)).splitlines()[-1]) < 250


def test_errors_that_name_each_other_end() -> None:
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    assert written(one).count("Traceback") == 2


@pytest.fixture
def console() -> Iterator[io.StringIO]:
    """Capture the terminal's output."""
    [handler] = [each for each in logging.getLogger().handlers if isinstance(each.formatter, Formatter)]
    shown, before = (
        io.StringIO(),
        handler.stream,
    )  # setStream would flush the old one, which is closed
    handler.stream = shown
    yield shown
    handler.stream = before


@pytest.mark.django_db
@pytest.mark.parametrize(
    "asked",
    [
        {"path": "/", "headers": {"host": "evil.example"}},
        {"path": "/accounts/login/", "data": "x", "content_type": "multipart/form-data; boundary="},
        {
            "path": "/accounts/login/",
            "data": "&".join(f"a{number}=1" for number in range(1_500)),
            "content_type": "application/x-www-form-urlencoded",
        },
    ],
    ids=["host", "body", "fields"],
)
def test_refused_page_leaves_a_line_and_no_traceback(console: io.StringIO, asked: dict[str, Any]) -> None:
    assert Client().post(**asked).status_code == 400
    assert len(console.getvalue().splitlines()) == 1 and "Traceback" not in console.getvalue()


def test_failure_of_ours_keeps_its_traceback(console: io.StringIO) -> None:
    try:
        raise ValueError("ours")
    except ValueError:
        logging.getLogger("django.request").error("Failed", exc_info=True, extra={"status_code": 500})
    assert "Traceback" in console.getvalue()


@pytest.fixture
def from_a_request() -> Iterator[None]:
    before = request_origin.current.get()
    request_origin.current.set(request_origin.Origin("0123456789abcdef"))
    yield
    request_origin.current.set(before)


def test_a_line_of_json_says_what_when_and_for_which_request(from_a_request: None) -> None:
    try:
        raise ValueError("too\nlong")
    except ValueError:
        record = logging.LogRecord(
            "memoryhub.x", logging.ERROR, "", 0, "It “failed”:\n%s", ("twice",), sys.exc_info()
        )
    record.fields = {"route": "chat:send", "status": 500}
    text = JsonFormatter().format(record)
    assert "\n" not in text
    line = json.loads(text)
    assert datetime.fromisoformat(line["at"]).tzinfo is not None
    assert line["message"] == "It “failed”:\ntwice"
    assert (line["level"], line["logger"], line["request_id"]) == ("ERROR", "memoryhub.x", "0123456789abcdef")
    assert (line["route"], line["status"]) == ("chat:send", 500)
    assert line["error"].endswith("builtins.ValueError: too")


def test_a_plain_line_names_its_request_and_has_no_brackets_without_one(from_a_request: None) -> None:
    record = logging.LogRecord("x", logging.INFO, "", 0, "Hello", (), None)
    line = Formatter("{name}{request}: {message}", style="{")
    assert line.format(record) == "x [0123456789abcdef]: Hello"
    request_origin.current.set(request_origin.NOWHERE)
    assert line.format(record) == "x: Hello"


@pytest.mark.django_db
def test_the_callers_request_id_is_kept_if_well_formed() -> None:
    for given, kept in (
        ("0af7651916cd43dd8448eb211c80319c", True),
        ("a.b-c_d8", True),
        ("short", False),
        ("x" * 65, False),
        ("two words", False),
        ("new\nline1234", False),
        ("<script>alert(1)</script>", False),
        ("", False),
    ):
        answers = [Client().get("/accounts/login/", headers={"x-request-id": given}) for _ in range(2)]
        ids = [answer["X-Request-ID"] for answer in answers]
        assert (ids == [given, given]) if kept else (given not in ids and ids[0] != ids[1])
        assert all(re.fullmatch(r"[A-Za-z0-9._-]{8,64}", each) for each in ids), given


@pytest.mark.django_db
def test_a_request_is_logged_by_its_route_without_its_query(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("memoryhub.requests").setLevel(logging.INFO)
    try:
        Client().get("/accounts/login/?next=/kumquat/")
    finally:
        logging.getLogger("memoryhub.requests").setLevel(logging.WARNING)
    record = next(record for record in caplog.records if record.name == "memoryhub.requests")
    assert record.getMessage() == "GET account_login 200"
    assert "kumquat" not in str(record.__dict__)
