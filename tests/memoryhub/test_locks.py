"""Locks for one process at a time, which survive a lost connection of their owner."""

import psycopg
import pytest
from django.db import connection

from memoryhub.database.queries import alone
from memoryhub.database.startup import psycopg_settings

pytestmark = pytest.mark.django_db(transaction=True)
CUT = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'memoryhub lock'"


def test_a_lock_outlives_the_jobs_connection() -> None:
    with alone("boats", 7) as first:
        connection.ensure_connection()
        connection.close()
        with alone("boats", 7) as second, alone("boats", 8) as other, alone("cats", 7) as another:
            assert (first, second, other, another) == (True, False, True, True)
    for _ in range(20):  # free at once, not when the server notices the closed connection
        with alone("boats", 7) as again:
            assert again


def test_an_error_frees_it() -> None:
    with pytest.raises(KeyError), alone("boats"):
        raise KeyError
    with alone("boats") as again:
        assert again


def test_a_cut_connection_frees_it_and_ends_nothing() -> None:
    with alone("boats") as first:
        with psycopg.connect(**psycopg_settings(), autocommit=True) as own:
            assert own.execute(CUT).fetchall() == [(True,)]
        with alone("boats") as second:
            assert first and second
