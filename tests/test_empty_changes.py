"""A change that names nothing is refused on every changing route, and changes nothing."""

from django.core import serializers
from django.db.models import Model

from memories.models import Memory, MemoryNode
from tests.routes import API_ROWS, known_routes
from tests.test_attacks import client_of
from tests.world import EachRow
from workspaces.models import Agent, Membership, Workspace

CHANGING = [row for row in API_ROWS if row.method == "PATCH"]
KEPT: list[type[Model]] = [Memory, MemoryNode, Agent, Workspace, Membership]


def state() -> list[str]:
    return [serializers.serialize("json", model._base_manager.order_by("pk")) for model in KEPT]


def test_every_route_that_changes_something_is_asked() -> None:
    changing = {route for method, route in known_routes() if method == "PATCH"}
    assert changing == {row.route for row in CHANGING} and len(changing) >= 10


def test_nothing_to_change_is_refused(each_row: EachRow) -> None:
    for row, world in each_row(CHANGING):
        client, address, before = client_of(world.cast.owner, row), world.address(row), state()
        for body in ("{}", "[]", "null", '""'):
            answer = client.generic("PATCH", address, body, content_type="application/json")
            assert answer.status_code == 422, (row, body, answer.content)
            assert answer.json()["error"]["fields"], "which fields there are is not said"
        assert state() == before, row
