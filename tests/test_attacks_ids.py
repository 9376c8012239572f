"""The ids of one world in requests from another: no access, no change."""

from dataclasses import replace
from typing import Any

import pytest

from chat.models import Chat, Message
from memories.models import Memory
from tests.conftest import make_cast
from tests.copies import copied
from tests.digests import digests
from tests.factories import make_user, make_workspace
from tests.routes import ROWS, Row
from tests.test_attacks import client_of, columns, send
from tests.world import EachRow, World, make_world
from workspaces.models import Agent, ApiKey, Membership, SignIn, User, Workspace

Selects = tuple[dict[str, str], list[Any]]
BODY_IDS = ["{ws}", "{mem}", "{agent}", "{node}", "{other_node}"]


def _ids_in(row: Row) -> list[str]:
    """Return the names of the ids in a row's body."""
    return [f"{text[1:-1]}_id" for text in BODY_IDS if text in str(row.data)]


WITH_IDS = [row for row in ROWS if not row.in_threads and ("_id>" in row.route or _ids_in(row))]


def make_others(world: World) -> World:
    """Create a second world whose owner is no member in the first."""
    User.objects.filter(username="max").update(username="max of the first world", looks=[])
    ApiKey.objects.update(name="of the first world")
    SignIn.objects.update(session_key="of the first world")
    keys = list(ApiKey.objects.values_list("pk", flat=True))
    eve = make_user("eve")
    cast = replace(world.cast, owner=eve, workspace=make_workspace(owner=eve, name="Eve's"))
    made = make_world(cast)
    assert ApiKey.objects.exclude(pk__in=keys).count() == 1
    return made


@pytest.fixture(scope="module")
def made(module_transaction: None) -> tuple[World, World]:
    world = make_world(make_cast())
    return world, make_others(world)


@pytest.fixture
def world(made: tuple[World, World], people_may_connect: None, db: None) -> World:
    return copied(made[0])


@pytest.fixture
def others(made: tuple[World, World], db: None) -> World:
    return copied(made[1])


@pytest.fixture(scope="module")
def selects(made: tuple[World, World]) -> Selects:
    """Return statements that select all of the first world, with their parameters."""
    place = made[0].cast.workspace
    rows = (
        Workspace.objects.filter(pk=place.pk).values_list(),
        Membership.objects.filter(workspace=place).values_list(),
        Memory.objects.filter(workspace=place).values_list(*columns(Memory)),
        Chat.objects.filter(workspace=place).values_list(),
        Message.objects.filter(chat__workspace=place).values_list(),
        Agent.objects.filter(workspace=place).values_list(),
    )
    asked = {each.model.__name__: each.query.sql_with_params() for each in rows}
    return {name: sql for name, (sql, _) in asked.items()}, [
        each for _, given in asked.values() for each in given
    ]


def test_ids_of_another_world_open_nothing(each_row: EachRow, others: World, selects: Selects) -> None:
    """Each id in turn is the other world's, and all others are one's own."""
    for row, world in each_row(WITH_IDS):
        client = client_of(others.cast.owner, row)
        mine = others.ids | (others.deleted_ids if row.deleted else {})
        mine |= others.proposed_ids if row.proposed else {}
        theirs = world.ids | (world.deleted_ids if row.deleted else {})
        theirs |= world.proposed_ids if row.proposed else {}
        if row.message:
            mine |= {"message_id": mine[f"{row.message}_id"]}
            theirs |= {"message_id": theirs[f"{row.message}_id"]}
            row = replace(row, message="")
        in_route = [name for name in mine if name.endswith("_id") and f":{name}>" in row.route]
        protected = digests(*selects)
        tried = 0
        for name in in_route:
            mixed = replace(others, ids=mine | {name: theirs[name]}, deleted_ids={}, proposed_ids={})
            answer = send(client, row, mixed.address(row), others.data(row))
            assert answer.status_code in ({401} if row.keys_alone else {404, 422}), name
            tried += 1
        for name in _ids_in(row):
            mixed = replace(others, ids=mine | {name: theirs[name]})
            address = replace(others, ids=mine, deleted_ids={}, proposed_ids={}).address(row)
            answer = send(client, row, address, mixed.data(row))
            refused = answer.status_code in {404, 422} or _is_left_out(answer, theirs[name])
            assert refused, name
            tried += 1
        assert tried, row
        assert digests(*selects) == protected, row


def _is_left_out(answer: Any, public_id: str) -> bool:
    """Return whether a bulk answer lists the id as missing, or a page counts no change."""
    if answer["Content-Type"].startswith("application/json"):
        return public_id in answer.json().get("missing", [])
    return "0 memories changed." in answer.content.decode()
