"""Every list of the API while rows come and go: no row that exists throughout is missed or repeated."""

import pytest
from django.db import transaction

from tests.api import Api, openapi_schema
from tests.conftest import Cast
from tests.fakes.embedder import FakeEmbedder
from tests.paged_lists import LISTS, Listed

STEADY, LIMIT = 6, 3
WRITES_A_PAGE = 2  # fewer than a page has rows, so that a list read from its old end terminates


def test_every_list_with_a_cursor_is_read_here() -> None:
    schema = openapi_schema()
    paged = {
        path
        for path, methods in schema["paths"].items()
        if any(parameter["name"] == "cursor" for parameter in methods.get("get", {}).get("parameters", []))
    }
    assert {kind.address for kind in LISTS} == paged


def test_what_is_there_throughout_is_seen_once(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are added and removed before each page, on both sides of the reader's position."""
    monkeypatch.setattr("workspaces.index.embedding.get_embedder", lambda: FakeEmbedder(16))
    for kind in LISTS:
        with transaction.atomic():
            check(kind(cast), Api(cast.owner, base=""), kind.__name__)
            transaction.set_rollback(True)


def check(listed: Listed, api: Api, name: str) -> None:
    steady, doomed = [], []
    for _ in range(STEADY):
        steady.append(listed.name(listed.add()))
        if listed.removable:
            doomed.append(listed.add())
    doomed = doomed[::2] + doomed[1::2][::-1]
    address, seen = listed.address.format(**listed.ids).removeprefix("/"), list[str]()
    cursor, pages = {}, 0
    while cursor is not None:
        for _ in range(WRITES_A_PAGE):
            doomed.append(listed.add())
            if listed.removable:
                listed.remove(doomed.pop(0))
        page = api.get(address, limit=LIMIT, **listed.query, **cursor).json()
        assert len(page["items"]) <= LIMIT, name
        seen += [listed.listed_name(item) for item in page["items"]]
        cursor, pages = {"cursor": page["next_cursor"]} if page["next_cursor"] else None, pages + 1
    assert pages > STEADY // LIMIT, name
    assert len(seen) == len(set(seen)), f"{name}: a row came twice"
    there = [each for each in seen if each in set(steady)]
    assert there in (steady, steady[::-1]), f"{name}: a row was missed or moved"
