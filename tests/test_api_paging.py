"""Every list of the API during concurrent writes on other connections: no row that exists throughout is missed or
repeated.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, Thread
from typing import Any

import pytest
from django.db import connection

from tests.api import Api, openapi_schema
from tests.conftest import Cast
from tests.fakes.embedder import FakeEmbedder
from tests.paged_lists import LISTS, Listed

STEADY, LIMIT = 10, 4
WRITERS, WRITES_A_PAGE = (
    2,
    3,
)  # fewer than a page has rows, so that a list read from its old end terminates


def test_every_list_with_a_cursor_is_read_here() -> None:
    schema = openapi_schema()
    paged = {
        path
        for path, methods in schema["paths"].items()
        if any(parameter["name"] == "cursor" for parameter in methods.get("get", {}).get("parameters", []))
    }
    assert {kind.address for kind in LISTS} == paged


class Writers:
    """Threads that add and remove a number of rows for each page that is read."""

    def __init__(self, listed: Listed, doomed: list[Any]) -> None:
        self.listed, self.doomed = listed, doomed
        self.allowed = self.taken = self.done = 0
        self.stopped = False
        self.failed: Exception | None = None
        self.turn = Condition()

    def go_on(self) -> None:
        """Let them write while the next page is read, after waiting for the writes of the last one."""
        with self.turn:
            assert self.turn.wait_for(lambda: self.failed or self.done == self.allowed, 20)
            assert self.failed is None
            self.allowed += WRITES_A_PAGE
            self.turn.notify_all()

    def stop(self) -> None:
        with self.turn:
            self.stopped = True
            self.turn.notify_all()

    def work(self) -> None:
        try:
            while True:
                with self.turn:
                    self.turn.wait_for(lambda: self.stopped or self.allowed > self.taken)
                    if self.stopped:
                        return
                    self.taken += 1
                    victim = self.doomed.pop(0) if self.doomed and self.listed.removable else None
                made = self.listed.add()
                if victim is not None:
                    self.listed.remove(victim)
                with self.turn:
                    self.doomed.append(made)
                    self.done += 1
                    self.turn.notify_all()
        except Exception as error:
            with self.turn:
                self.failed = error
                self.turn.notify_all()
        finally:
            connection.close()


@contextmanager
def writing(listed: Listed, doomed: list[Any]) -> Iterator[Writers]:
    writers = Writers(listed, doomed)
    threads = [Thread(target=writers.work) for _ in range(WRITERS)]
    for thread in threads:
        thread.start()
    try:
        yield writers
    finally:
        writers.stop()
        for thread in threads:
            thread.join(20)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", LISTS, ids=lambda kind: kind.__name__)
def test_what_is_there_throughout_is_seen_once(
    kind: type[Listed], cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workspaces.index.embedding.get_embedder", lambda: FakeEmbedder(16))
    listed = kind(cast)
    steady, doomed = [], []
    for _ in range(STEADY):
        steady.append(listed.name(listed.add()))
        if listed.removable:
            doomed.append(listed.add())
    doomed = doomed[::2] + doomed[1::2][::-1]  # before and behind the reader's position
    api, seen, cursor = Api(cast.owner, base=""), [], None
    with writing(listed, doomed) as writers:
        while True:
            writers.go_on()
            page = api.get(
                listed.address.format(**listed.ids).removeprefix("/"),
                limit=LIMIT,
                **listed.query,
                **({"cursor": cursor} if cursor else {}),
            ).json()
            assert len(page["items"]) <= LIMIT
            seen += [listed.listed_name(item) for item in page["items"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
    assert writers.failed is None
    assert writers.done >= STEADY // LIMIT  # they did write while the list was read
    assert len(seen) == len(set(seen)), "a row came twice"
    assert [name for name in seen if name in set(steady)] in (steady, steady[::-1]), (
        "a row was missed or moved"
    )
