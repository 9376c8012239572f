from __future__ import annotations

import logging
import sys

import pytest
from django.db import IntegrityError, connection

from memoryhub.logs import Formatter
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
