"""A change that names nothing is refused on every changing route, and changes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core import serializers
from django.db.models import Model

from memories.models import Memory, MemoryNode
from tests.api import type_password_again
from tests.routes import API_ROWS, Row, known_routes
from tests.world import World
from workspaces.models import Agent, Membership, Workspace

CHANGING = [row for row in API_ROWS if row.method == "PATCH"]
KEPT: list[type[Model]] = [Memory, MemoryNode, Agent, Workspace, Membership]


def state() -> list[str]:
    return [serializers.serialize("json", model._base_manager.order_by("pk")) for model in KEPT]


def test_every_route_that_changes_something_is_asked() -> None:
    changing = {route for method, route in known_routes() if method == "PATCH"}
    assert changing == {row.route for row in CHANGING} and len(changing) >= 10


@pytest.mark.parametrize("body", [{}, [], None, ""], ids=repr)
@pytest.mark.parametrize("row", CHANGING, ids=str)
def test_nothing_to_change_is_refused(row: Row, body: Any, world: World, client: Any) -> None:
    client.force_login(world.cast.owner)
    type_password_again(client)
    address, before = world.address(row), state()
    answer = client.generic("PATCH", address, json.dumps(body), content_type="application/json")
    assert answer.status_code == 422, answer.content
    assert answer.json()["error"]["fields"], "which fields there are is not said"
    assert state() == before
