"""schemathesis makes requests from the OpenAPI schema, right ones and wrong ones, and checks every answer by it."""

from __future__ import annotations

import re
from typing import Any

import pytest
import schemathesis
from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, assume, given, settings
from pytest_django.live_server_helper import LiveServer
from schemathesis import GenerationMode
from schemathesis.core import NOT_SET

from tests.api import type_password_again
from tests.conftest import Cast
from tests.fakes.openai_server import ScriptedOpenAI
from tests.routes import API_ROWS, Row, make_world

NO_ROUTE = ("chat/api/", "api/v1/")
EXAMPLES = 5  # of each kind for each route: quick enough for every run
ONLY_THESE = {"username": "sam"}  # right values that no schema can know
ROWS = [
    row for row in API_ROWS if row.route.startswith(("chat/api/", "api/v1/")) and row.route not in NO_ROUTE
]


@pytest.fixture(scope="module")
def schema() -> Any:
    return schemathesis.openapi.from_dict(SchemaGenerator().get_schema(request=None, public=True))


def operation_of(schema: Any, row: Row) -> Any:
    path = "/" + re.sub(r"<\w+:(\w+)>", r"{\1}", row.route)
    return schema[path][row.method]


@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.django_db(transaction=True)
def test_answers_are_as_the_schema_says(
    row: Row, schema: Any, live_server: LiveServer, cast: Cast, scripted_model: ScriptedOpenAI
) -> None:
    world = make_world(cast)
    client = Client()
    client.force_login(cast.owner)
    if row.fresh:
        type_password_again(client)
    cookies = {name: morsel.value for name, morsel in client.cookies.items()} | {"csrftoken": "a" * 32}
    ids = world.ids | (world.deleted_ids if row.deleted else {})
    operation = operation_of(schema, row)
    names = [parameter.name for parameter in operation.path_parameters]

    def check(case: Any) -> None:
        # Spectacular calls a body optional where any one of two fields will do.
        assume(case.body is not NOT_SET or not row.route.endswith("/memory"))
        case.headers.pop("Authorization", None)  # a made-up key: here it is the session that asks
        case.call_and_validate(base_url=live_server.url, headers={"X-CSRFToken": "a" * 32})

    def check_right(case: Any) -> None:
        case.query.pop("cursor", None)  # opaque: only one that was handed out is right
        if isinstance(case.body, dict):
            case.body |= {name: value for name, value in ONLY_THESE.items() if name in case.body}
        check(case)

    profile = settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    there = {name: ids[name] for name in names}
    right = operation.as_strategy(GenerationMode.POSITIVE, path_parameters=there, cookies=cookies)
    unknown = operation.as_strategy(GenerationMode.POSITIVE, cookies=cookies)
    # Where nothing but the ids in the address could be wrong, those are.
    kept = {"path_parameters": there} if operation.body or operation.query else {}
    wrong = operation.as_strategy(GenerationMode.NEGATIVE, cookies=cookies, **kept)
    profile(given(case=right)(check_right))()
    profile(given(case=unknown)(check_right))()
    if row.data or operation.query or names:
        profile(given(case=wrong)(check))()
