"""Reads go to the database that the servers' states call for."""

from collections.abc import Iterator
from contextlib import suppress

import pytest
from django.core.cache import cache
from django.db import DatabaseError, OperationalError, connection, connections, router, transaction
from psycopg_pool import PoolTimeout

from memoryhub.database import replicas
from memoryhub.database.queries import using
from memoryhub.database.replicas import (
    ATTEMPTS,
    DatabaseWrapper,
    State,
    answering,
    pin_to_primary,
    primary_is_away,
    read,
)
from tests.fakes.replica import ALIAS, shared_replica
from workspaces.models import User

pytestmark = pytest.mark.django_db(transaction=True)
PERSON = 1
NEAR = State(follows=True, applied=True, lag=0.0, started=1.0)
FAR = State(follows=True, applied=True, lag=3600.0, started=1.0)
PRIMARY = State(follows=False, applied=True, lag=0.0, started=1.0)


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, State | None]]:
    """The servers' states, none of which is cached."""
    found: dict[str, State | None] = {"default": PRIMARY, ALIAS: NEAR}
    monkeypatch.setattr(replicas, "probe_state", lambda alias: found[alias])
    monkeypatch.setattr(replicas, "KEPT", 0.0)
    monkeypatch.setattr(replicas, "SKIPPED", 0.0)
    monkeypatch.setattr(replicas, "_states", {})
    monkeypatch.setattr(replicas, "_primary_is_away", False)
    with shared_replica():
        yield found
    cache.clear()  # of pins


def asked() -> str:
    return router.db_for_read(User)


def test_reads_go_to_a_replica_that_is_near_and_writes_to_the_primary(
    states: dict[str, State | None],
) -> None:
    assert read(PERSON, asked) == "default", "the request may write"
    with answering():
        assert (asked(), read(PERSON, asked)) == ("default", ALIAS)
        assert read(PERSON, lambda: router.db_for_write(User)) == "default"
        with transaction.atomic():
            assert read(PERSON, asked) == "default", "it may have written"
        for state in (FAR, PRIMARY, None):
            states[ALIAS] = state
            assert read(PERSON, asked) == "default"
        states[ALIAS] = NEAR
        pin_to_primary(PERSON)
        assert (read(PERSON, asked), read(PERSON + 1, asked)) == ("default", ALIAS)
    assert asked() == "default"


@pytest.mark.usefixtures("states")
def test_a_replica_that_fails_is_skipped_for_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicas, "SKIPPED", 1.0)
    monkeypatch.setattr(connections[ALIAS], "close", lambda: None)
    used = []

    def fails() -> str:
        used.append(asked())
        if used[-1] == ALIAS:
            raise DatabaseError("conflict with recovery")
        return used[-1]

    with answering():
        assert (read(PERSON, fails), read(PERSON, fails)) == ("default", "default")
    assert used == [ALIAS, "default", "default"]


def test_a_replica_with_everything_stands_in_until_the_primary_is_back(
    states: dict[str, State | None],
) -> None:
    states["default"] = None
    assert not primary_is_away(), "no query has failed"
    assert primary_is_away(failed=True)
    states[ALIAS] = FAR
    with answering():
        assert (asked(), router.db_for_write(User), replicas.stands_in()) == (ALIAS, ALIAS, True)
        assert read(PERSON, asked) == ALIAS
    states[ALIAS] = State(follows=True, applied=False, lag=0.0, started=1.0)
    with answering():
        assert (asked(), replicas.stands_in()) == ("default", False)
    states["default"] = PRIMARY
    assert not primary_is_away()


@pytest.mark.parametrize(
    ("only_reads", "is_away", "attempts"), [(False, True, ATTEMPTS), (True, False, ATTEMPTS), (True, True, 1)]
)
def test_only_a_read_gives_up_a_primary_that_is_away(
    states: dict[str, State | None],
    monkeypatch: pytest.MonkeyPatch,
    only_reads: bool,
    is_away: bool,
    attempts: int,
) -> None:
    tried = []

    def full(_self: object, _params: object) -> None:
        tried.append(1)
        raise PoolTimeout

    monkeypatch.setattr("django.db.backends.postgresql.base.DatabaseWrapper.get_new_connection", full)
    states["default"] = None if is_away else PRIMARY
    wrapper = DatabaseWrapper(connection.settings_dict, "default")
    with answering() if only_reads else using("default"), suppress(PoolTimeout, OperationalError):
        wrapper.get_new_connection({})
    assert len(tried) == attempts
    if is_away and only_reads:
        with answering(), pytest.raises(OperationalError):
            wrapper.get_new_connection({})
    assert len(tried) == attempts, "while a replica stands in, nothing waits for the primary"
