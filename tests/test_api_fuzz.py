"""Requests that schemathesis generates from the OpenAPI schema, valid and invalid, with every answer checked by it."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.test import Client
from hypothesis import HealthCheck, Phase, assume, given, settings
from schemathesis import GenerationMode
from schemathesis.core import NOT_SET
from schemathesis.specs.openapi.checks import ignored_auth, positive_data_acceptance

from tests.api import openapi_schema, type_password_again
from tests.conftest import Cast
from tests.factories import make_key_text
from tests.fakes.openai_server import ScriptedOpenAI
from tests.fuzz_hooks import make_right
from tests.routes import API_ROWS, NO_KEYS, Row
from tests.world import EachRow, World

TOKEN = "a" * 32
NO_ROUTE = ("chat/api/", "api/v1/")
UPLOADS = (
    "imports_create",
    "v1_assets_create",
    "documents_create",
    "documents_replace",
)  # no schema describes the bytes of a valid file
ADDRESSED = (
    "connections_create",
    "connections_update",
    "webhooks_create",
    "webhooks_update",
)  # nor the text of a valid address
PARTS = 8  # tests, so that none lasts long
EXAMPLES = 2  # valid ones of each route with input: quick enough for every run
WRONG_EXAMPLES = 1  # tests/memoryhub/test_api_hostile_input.py sends wrong values of every field
ROWS = [
    row for row in API_ROWS if row.route.startswith(("chat/api/", "api/v1/")) and row.route not in NO_ROUTE
]


@pytest.fixture(scope="module")
def schema() -> Iterator[Any]:
    """Load the schema against the web server in this process, on the test's connection, which stays open."""
    request_started.disconnect(close_old_connections)
    request_finished.disconnect(close_old_connections)
    told = json.dumps(openapi_schema())
    schema = schemathesis.openapi.from_dict(json.loads(told, object_hook=short_enough))
    schema.app = WSGIHandler()
    schema.config.analysis.constants.enabled = False  # the sources' own words are no better
    # A body over a megabyte is refused for its size, which schemathesis does not count as a refusal.
    refusals = schema.config.checks.negative_data_rejection
    refusals.expected_statuses = [*refusals.expected_statuses, "413"]
    yield schema
    request_started.connect(close_old_connections)
    request_finished.connect(close_old_connections)


def short_enough(field: dict[str, Any]) -> dict[str, Any]:
    """Drop the length of a long field with a pattern: schemathesis would merge them into a pattern that is slow to
    compile.
    """
    if "pattern" in field and field.get("maxLength", 0) > 300:
        del field["maxLength"]
    return field


def operation_of(schema: Any, row: Row) -> Any:
    path = "/" + re.sub(r"<\w+:(\w+)>", r"{\1}", row.route)
    return schema[path][row.method]


def session_of(cast: Cast, *, fresh: bool) -> dict[str, str]:
    """Return the cookies of the owner's session."""
    client = Client()
    client.force_login(cast.owner)
    if fresh:
        type_password_again(client)
    return {name: morsel.value for name, morsel in client.cookies.items()} | {"csrftoken": TOKEN}


@pytest.mark.parametrize("part", range(PARTS))
def test_answers_are_as_the_schema_says(
    part: int, each_row: EachRow, schema: Any, scripted_model: ScriptedOpenAI
) -> None:
    """Runs in this process; every other route uses a key, if it accepts one. The command uses both."""
    for number, (row, world) in enumerate(each_row(ROWS[part::PARTS])):
        cast = world.cast
        if row.keys == NO_KEYS or number % 2:
            cookies, headers = session_of(cast, fresh=row.fresh), {"X-CSRFToken": TOKEN}
        else:
            cookies, headers = {}, {"Authorization": f"Bearer {make_key_text(cast.owner, cast.workspace)}"}
        statuses = ask(operation_of(schema, row), row, world, cookies, headers)
        assert statuses, f"no request was made: {row}"
        assert max(statuses) < 500, row


def ask(
    operation: Any, row: Row, world: World, cookies: dict[str, str], headers: dict[str, str]
) -> list[int]:
    """Send a route valid and invalid requests. Return their statuses.

    A route that takes ids alone has one valid request, and tests/memoryhub/test_api_hostile_input.py tries wrong ids.
    """
    ids = world.ids | (world.deleted_ids if row.deleted else {})
    there = {parameter.name: ids[parameter.name] for parameter in operation.path_parameters}
    has_no_schema = operation.definition.raw["operationId"] in (*UPLOADS, *ADDRESSED)
    unfit = [positive_data_acceptance] if has_no_schema else []
    statuses: list[int] = []

    def check(case: Any) -> None:
        # Spectacular calls a body optional if any one of two fields suffices.
        assume(case.body is not NOT_SET or row.method == "GET" or not row.route.endswith("/memory"))
        case.headers.pop("Authorization", None)  # a generated one
        statuses.append(case.call_and_validate(headers=headers, excluded_checks=unfit).status_code)

    def check_right(case: Any) -> None:
        make_right(case)
        check(case)

    if not (operation.body or operation.query):
        check(operation.Case(path_parameters=there, cookies=cookies))
        return statuses
    profile = settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    right = operation.as_strategy(GenerationMode.POSITIVE, path_parameters=there, cookies=cookies)
    wrong = operation.as_strategy(GenerationMode.NEGATIVE, path_parameters=there, cookies=cookies)
    profile(given(case=right)(check_right))()
    unfit.append(ignored_auth)  # valid requests have shown it: authentication precedes validation
    settings(profile, max_examples=WRONG_EXAMPLES)(given(case=wrong)(check))()
    return statuses
